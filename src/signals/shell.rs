//! What a shell command would do, by its words and operators. A guess: no shell runs, nothing is
//! expanded, and what a program does is known by its name alone.

mod programs;
mod tokens;

use tokens::{Token, tokens};

/// How deep commands within commands are followed; what is deeper counts as a change.
const MAX_DEPTH: usize = 8;
/// Programs for which exit code 1 is an answer, and no failure.
const ANSWER_BY_ONE: [&str; 6] = ["grep", "egrep", "fgrep", "rg", "test", "diff"];
/// Words that begin or join commands and are none.
const RESERVED: [&str; 11] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "coproc"];
/// Where output goes that is kept nowhere.
const NOWHERE: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// What is known of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guess {
    /// The first program that it runs; none where it runs none.
    pub verb: Option<String>,
    /// Whether it changes anything outside itself.
    pub mutates: bool,
    /// Whether its exit code 1 is an answer.
    pub answers_by_one: bool,
}

impl Guess {
    /// Guesses what `command` does.
    pub fn of(command: &str) -> Self {
        let mut guess = Self::default();
        guess.read(command, 0);
        guess
    }

    fn read(&mut self, command: &str, depth: usize) {
        if depth > MAX_DEPTH {
            self.mutates = true;
            return;
        }
        let mut words: Vec<String> = Vec::new();
        let mut last = None;
        for token in tokens(command) {
            match token {
                Token::Word(word) => words.push(word),
                Token::Inner(inner) => {
                    // It runs, but what the whole answers is not its exit code.
                    let answers = self.answers_by_one;
                    self.read(&inner, depth + 1);
                    self.answers_by_one = answers;
                }
                Token::Output(target) => self.mutates |= !is_nowhere(&target),
                Token::End => last = self.command(&std::mem::take(&mut words), depth).or(last),
            }
        }
        last = self.command(&words, depth).or(last);
        if let Some(last) = last {
            self.answers_by_one = ANSWER_BY_ONE.contains(&last.as_str()) || last == "[" || last == "[[";
        }
    }

    /// Takes one simple command; its program, if it has one of its own.
    fn command(&mut self, words: &[String], depth: usize) -> Option<String> {
        let words = programs::behind_wrappers(skip_reserved(words));
        let program = words.first()?.rsplit('/').next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        if let Some(inner) = programs::script(&program, &rest) {
            self.read(&inner, depth + 1);
            return None;
        }
        self.verb.get_or_insert_with(|| program.clone());
        self.mutates |= programs::mutates(&program, &rest);
        Some(program)
    }
}

fn is_nowhere(target: &str) -> bool {
    NOWHERE.contains(&target) || target.starts_with("/dev/fd/")
}

fn skip_reserved(mut words: &[String]) -> &[String] {
    while let Some((first, rest)) = words.split_first() {
        match first.as_str() {
            // What follows are words, no command.
            "for" | "case" | "select" | "function" => return &[],
            word if RESERVED.contains(&word) => words = rest,
            _ => break,
        }
    }
    // What closes a block is no command either.
    match words.first().map(String::as_str) {
        Some("fi" | "done" | "esac" | "}") => &[],
        _ => words,
    }
}

/// The exit code that Pi writes behind the output of a failed command.
pub fn exit_code(output: &str) -> Option<i32> {
    let last = output.trim_end().rsplit('\n').next()?;
    last.strip_prefix("Command exited with code ")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_something_is_known() {
        for command in [
            "rm -rf build",
            "/bin/rm x",
            "mv a b && ls",
            "ls; mkdir x",
            "cat a | tee b",
            "echo hi > out.txt",
            "echo hi >> out.txt",
            "make 2> err.log",
            "make &> log",
            "echo x >| y",
            "sed -i 's/a/b/' f",
            "sed -ni.bak p f",
            "sed --in-place=.bak p f",
            "perl -pi -e 's/a/b/' f",
            "git commit -m 'x'",
            "git -C /w -c a=b --no-pager push",
            "git stash",
            "git branch -D x",
            "git tag v1",
            "npm install",
            "npm i left-pad",
            "yarn",
            "pip install x",
            "python3 -m pip install x",
            "cargo fmt",
            "cargo +nightly add serde",
            "sudo -u root rm x",
            "FOO=1 BAR=\"a b\" touch x",
            "env -i A=b touch x",
            "nohup timeout -s KILL 5 touch x",
            "xargs -0 -n 1 rm",
            "find . -name '*.o' -delete",
            "find . -exec rm {} +",
            "bash -c 'touch x'",
            "sh -ec \"cd a && rm b\"",
            "eval rm x",
            "(cd a; rm b)",
            "{ rm b; }",
            "if true; then rm b; fi",
            "for f in a b; do rm $f; done",
            "echo $(rm x)",
            "echo \"`rm x`\"",
            "echo \"a $(touch \"x y\") b\"",
            "cat <<EOF > f\nhello\nEOF",
            "curl -o f http://x",
            "curl -sSLO http://x",
            "wget http://x",
            "tar xf a.tar",
            "gh pr create --fill",
            "docker rm x",
            "kubectl apply -f x",
            "cp a b # copy",
            "echo a\\\n b > c",
            "diff <(sort a) <(rm b)",
        ] {
            assert!(Guess::of(command).mutates, "{command}");
        }
    }

    #[test]
    fn what_only_looks_is_a_check() {
        for command in [
            "ls -la",
            "cargo test",
            "cargo build --release 2>&1 | tail -5",
            "cargo fmt --check",
            "echo 'rm -rf /'",
            "echo \"a > b\"",
            "echo a \\> b",
            "grep -r \"git commit\" . > /dev/null",
            "make >/dev/null 2>&1",
            "make &>/dev/null",
            "git status && git diff | cat",
            "git log --oneline -5",
            "git branch -a",
            "git stash list",
            "git -C /w config --get user.name",
            "git tag -l",
            "sed -n 1,5p f",
            "awk '$1 > 5 { print }' f",
            "[[ a > b ]]",
            "(( a > b ))",
            "echo $(( 1 > 0 ))",
            "test -f x",
            "cat <<'EOF'\nrm x > y\nEOF",
            "cat <<-EOF\n\trm x\n\tEOF\nls",
            "# rm x",
            "python -c 'print(1 > 0)'",
            "npm test",
            "npm run build",
            "gh run view 7",
            "tar tf a.tar",
            "curl -s http://x",
            "wget -qO- http://x",
            "find . -name x -exec grep y {} +",
            "for f in rm mv; do echo $f; done",
            "case rm in rm) echo x;; esac",
            "docker ps",
            "kubectl get pods",
            "echo x 3>&1 >&2",
            "sort < in",
            "cat <<< 'rm x'",
            "true 0",
            "date",
            "\u{1b}]0;x",
        ] {
            assert!(!Guess::of(command).mutates, "{command}");
        }
    }

    #[test]
    fn the_verb_is_the_first_program() {
        for (command, verb, answers) in [
            ("rg foo", Some("rg"), true),
            ("cd a && rg foo", Some("cd"), true),
            ("rg foo && cargo test", Some("rg"), false),
            ("rg foo | head", Some("rg"), false),
            ("A=1 sudo /usr/bin/grep x f", Some("grep"), true),
            ("[ -f x ]", Some("["), true),
            ("! diff a b", Some("diff"), true),
            ("bash -c 'grep x y'", Some("grep"), true),
            ("cargo test $(grep x y)", Some("grep"), false),
            ("  ", None, false),
            ("A=1", None, false),
            ("", None, false),
        ] {
            let guess = Guess::of(command);
            assert_eq!((guess.verb.as_deref(), guess.answers_by_one), (verb, answers), "{command}");
        }
    }

    #[test]
    fn what_is_not_whole_or_nests_without_end_is_read_all_the_same() {
        for command in
            ["echo 'open", "echo \"open $(", "echo `", "cat <<EOF", ">", "<<", "&&", "$((", "a\\", "((", "$("]
        {
            Guess::of(command);
        }
        let deep = format!("{}rm x{}", "$(".repeat(50_000), ")".repeat(50_000));
        assert!(Guess::of(&deep).mutates);
        Guess::of(&"(".repeat(100_000));
        Guess::of(&"\"$(\"".repeat(30_000));
    }

    #[test]
    fn the_exit_code_stands_in_the_last_line() {
        assert_eq!(exit_code("x\n\nCommand exited with code 101"), Some(101));
        assert_eq!(exit_code("Command exited with code 1\n"), Some(1));
        assert_eq!(exit_code("Command exited with code 1\nmore"), None);
        assert_eq!(exit_code("Command aborted"), None);
    }
}
