//! What programs do, by their names and first arguments.

/// Programs that change something whatever their arguments are.
const ALWAYS: &[&str] = &[
    "rm", "rmdir", "mv", "cp", "mkdir", "touch", "tee", "ln", "chmod", "chown", "chgrp", "truncate", "dd",
    "install", "unlink", "shred", "patch", "rsync", "scp", "unzip", "gzip", "gunzip", "bunzip2", "mktemp",
    "mkfifo", "mknod", "sponge", "useradd", "userdel", "reboot", "shutdown", "crontab",
];

/// Programs that do what their first word says, and the words that change something. A trailing `*` stands
/// for any ending.
const BY_WORD: &[(&[&str], &[&str])] = &[
    (
        &["npm", "pnpm", "yarn", "bun"],
        &[
            "install",
            "i",
            "ci",
            "add",
            "remove",
            "rm",
            "uninstall",
            "un",
            "update",
            "up",
            "upgrade",
            "link",
            "unlink",
            "publish",
            "init",
            "create",
            "version",
            "dedupe",
            "prune",
            "rebuild",
        ],
    ),
    (&["pip", "pip3", "pipx"], &["install", "uninstall", "download", "wheel", "upgrade", "inject"]),
    (&["uv"], &["add", "remove", "sync", "lock", "init", "venv", "publish"]),
    (&["poetry", "pdm"], &["add", "remove", "install", "update", "lock", "init", "publish", "sync"]),
    (&["bundle", "gem", "composer"], &["install", "update", "add", "remove", "require", "uninstall", "push"]),
    (
        &["cargo"],
        &[
            "add",
            "remove",
            "rm",
            "install",
            "uninstall",
            "new",
            "init",
            "update",
            "publish",
            "clean",
            "fix",
            "yank",
        ],
    ),
    (&["go"], &["get", "install", "generate", "fmt", "clean"]),
    (
        &["apt", "apt-get", "dnf", "yum", "brew", "apk", "zypper", "snap"],
        &[
            "install",
            "remove",
            "purge",
            "upgrade",
            "update",
            "add",
            "del",
            "autoremove",
            "dist-upgrade",
            "reinstall",
            "uninstall",
        ],
    ),
    (
        &["docker", "podman"],
        &[
            "run", "rm", "rmi", "build", "push", "pull", "start", "stop", "restart", "kill", "create",
            "exec", "cp", "tag", "commit", "load", "import", "prune", "up", "down",
        ],
    ),
    (
        &["kubectl", "oc"],
        &[
            "apply", "create", "delete", "edit", "patch", "replace", "scale", "set", "label", "annotate",
            "rollout", "drain", "cordon", "uncordon", "taint", "exec", "cp", "run", "expose",
        ],
    ),
    (&["helm"], &["install", "upgrade", "uninstall", "rollback", "repo"]),
    (&["terraform", "tofu"], &["apply", "destroy", "import", "init", "taint", "untaint"]),
    (
        &["systemctl", "service"],
        &["start", "stop", "restart", "reload", "enable", "disable", "mask", "unmask", "daemon-reload"],
    ),
    (&["make", "ninja", "just"], &["install", "uninstall", "clean", "distclean", "deploy", "fmt", "format"]),
];

/// Words of git that change something.
const GIT: &[&str] = &[
    "commit",
    "push",
    "pull",
    "fetch",
    "merge",
    "rebase",
    "reset",
    "checkout",
    "switch",
    "restore",
    "add",
    "rm",
    "mv",
    "cherry-pick",
    "revert",
    "apply",
    "am",
    "clean",
    "clone",
    "init",
    "gc",
    "prune",
    "filter-branch",
    "update-index",
    "update-ref",
    "read-tree",
    "write-tree",
    "commit-tree",
    "symbolic-ref",
    "lfs",
    "subtree",
];

/// Programs that run the command behind them, and their options that take a word.
const WRAPPERS: &[(&str, &[&str])] = &[
    (
        "sudo",
        &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-D", "-R", "-T", "-U", "--user", "--group", "--chdir"],
    ),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "-C", "-S", "--unset", "--chdir"]),
    ("nohup", &[]),
    ("nice", &["-n", "--adjustment"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"]),
    ("time", &["-f", "-o"]),
    ("exec", &["-a"]),
    ("command", &[]),
    ("builtin", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("setsid", &[]),
    ("chronic", &[]),
    (
        "xargs",
        &[
            "-n",
            "-I",
            "-L",
            "-P",
            "-d",
            "-E",
            "-s",
            "-a",
            "--max-args",
            "--max-procs",
            "--replace",
            "--delimiter",
        ],
    ),
    ("strace", &["-e", "-o", "-p", "-s"]),
];

/// `words` without assignments and programs that only run what follows.
pub(super) fn behind_wrappers(mut words: &[String]) -> &[String] {
    loop {
        while words.first().is_some_and(|word| is_assignment(word)) {
            words = &words[1..];
        }
        let Some((first, rest)) = words.split_first() else { return words };
        let name = first.rsplit('/').next().unwrap_or_default();
        let Some((_, with_word)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) else {
            return words;
        };
        // Where nothing follows, the wrapper itself is what runs: `env`, `command -v x`.
        let mut behind = rest;
        while let Some((option, more)) = behind.split_first().filter(|(option, _)| option.starts_with('-')) {
            behind = more;
            if option == "--" {
                break;
            }
            if name == "command" && (option == "-v" || option == "-V") {
                return words;
            }
            if with_word.contains(&option.as_str()) {
                behind = behind.get(1..).unwrap_or_default();
            }
        }
        if name == "timeout" {
            behind = behind.get(1..).unwrap_or_default();
        }
        if behind.is_empty() {
            return words;
        }
        words = behind;
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_first = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    name.bytes().next().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit())
}

/// The command line that `program` runs, where it is one that runs such.
pub(super) fn script(program: &str, arguments: &[&str]) -> Option<String> {
    match program {
        "eval" => Some(arguments.join(" ")),
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "su" => {
            let is_command =
                |option: &&str| option.starts_with('-') && !option.starts_with("--") && option.ends_with('c');
            let at = arguments.iter().position(is_command)?;
            arguments.get(at + 1).map(|script| (*script).to_owned())
        }
        "find" | "fd" => {
            let at =
                arguments.iter().position(|it| matches!(*it, "-exec" | "-execdir" | "-ok" | "-x" | "-X"))?;
            if arguments.contains(&"-delete") {
                return None;
            }
            let inner = arguments[at + 1..].iter().take_while(|it| !matches!(**it, ";" | "+" | "\\;"));
            // Quoted again: it was taken apart already.
            Some(inner.map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// Whether `program` with these arguments changes something.
pub(super) fn mutates(program: &str, arguments: &[&str]) -> bool {
    let has = |option: &str| arguments.contains(&option);
    let has_short = |letter: char| {
        let is_short = |it: &&&str| it.starts_with('-') && !it.starts_with("--") && it.len() > 1;
        arguments.iter().filter(is_short).any(|it| it.contains(letter))
    };
    let first = arguments.iter().find(|it| !it.starts_with(['-', '+'])).copied();
    if let Some((_, words)) = BY_WORD.iter().find(|(programs, _)| programs.contains(&program)) {
        return match first {
            None => matches!(program, "yarn" | "bundle") && !has("--version") && !has("-v") && !has("--help"),
            Some("fmt") if program == "cargo" => !has("--check"),
            Some("mod" | "work") if program == "go" => true,
            Some("pip") if program == "uv" => has("install") || has("uninstall") || has("sync"),
            Some("compose") => arguments.iter().any(|it| words.contains(it)),
            Some("clippy") => has("--fix"),
            Some(first) => words.contains(&first),
        };
    }
    match program {
        "git" => git(arguments),
        "sed" | "gsed" => {
            // An option's letters end where one takes the rest of the word.
            let in_place = |it: &&str| {
                let letters = it.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
                letters.is_some_and(|letters| {
                    letters.split(['e', 'f', 'l']).next().is_some_and(|it| it.contains('i'))
                })
            };
            arguments.iter().any(|it| in_place(it) || it.starts_with("--in-place"))
        }
        "perl" | "ruby" => arguments.iter().any(|it| {
            let letters =
                it.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
            letters.split(['e', 'E', 'I', 'M', 'm', 'r']).next().is_some_and(|letters| letters.contains('i'))
        }),
        "awk" | "gawk" => arguments.windows(2).any(|pair| pair == ["-i", "inplace"]),
        "python" | "python3" | "py" => {
            arguments.windows(2).any(|pair| pair == ["-m", "pip"]) && (has("install") || has("uninstall"))
                || arguments.windows(2).any(|pair| pair == ["-m", "venv"])
        }
        "tar" | "bsdtar" => {
            let bundled = arguments.first().copied().unwrap_or_default();
            let lists =
                bundled.trim_start_matches('-').contains('t') && !bundled.starts_with("--") || has("--list");
            !arguments.is_empty() && !lists && !has("--version") && !has("--help")
        }
        "curl" => {
            let method = |it: &&str| {
                ["POST", "PUT", "PATCH", "DELETE"].iter().any(|of| it.trim_start_matches("-X") == *of)
            };
            has_short('o')
                || has_short('O')
                || has("--output")
                || has("--remote-name")
                || has_short('T')
                || arguments.iter().any(method)
                || arguments.iter().any(|it| it.starts_with("--data") || *it == "-d" || *it == "--json")
        }
        "wget" => {
            let to_output = |it: &&str| *it == "-O-" || *it == "-qO-" || it.ends_with("O-");
            let spaced = arguments.windows(2).any(|pair| pair[0].ends_with('O') && pair[1] == "-");
            !arguments.iter().any(to_output) && !spaced && !has("--spider") && !has("--version")
        }
        "find" | "fd" => has("-delete") || has("-fprint"),
        "gh" | "glab" => {
            let changing = [
                "create", "merge", "close", "edit", "comment", "delete", "reopen", "review", "rerun",
                "cancel", "upload", "fork", "clone", "rename", "set", "run", "enable", "disable", "checkout",
                "ready", "sync",
            ];
            let words: Vec<&&str> = arguments.iter().filter(|it| !it.starts_with('-')).take(2).collect();
            match words[..] {
                [&"api", ..] => {
                    has("POST") || has("PUT") || has("PATCH") || has("DELETE") || has("-f") || has("-F")
                }
                [_, second] => changing.contains(second),
                _ => false,
            }
        }
        "prettier" | "gofmt" | "goimports" | "shfmt" => has("--write") || has("-w"),
        "eslint" | "stylelint" | "golangci-lint" => has("--fix"),
        "ruff" => has("--fix") || first == Some("format") && !has("--check") && !has("--diff"),
        "black" | "isort" => !has("--check") && !has("--diff") && !has("--version"),
        "rustfmt" => !has("--check") && !has("--version"),
        "clang-format" => has("-i"),
        "kill" | "pkill" | "killall" => !has("-0") && !has("-l"),
        "pacman" => has_short('S') || has_short('R') || has_short('U'),
        "sqlite3" | "psql" | "mysql" | "redis-cli" => false,
        _ => ALWAYS.contains(&program),
    }
}

fn git(arguments: &[&str]) -> bool {
    let mut rest = arguments;
    while let Some((option, more)) = rest.split_first().filter(|(option, _)| option.starts_with('-')) {
        let takes_word =
            matches!(*option, "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path");
        rest = if takes_word { more.get(1..).unwrap_or_default() } else { more };
    }
    let Some((word, rest)) = rest.split_first() else { return false };
    let has = |options: &[&str]| rest.iter().any(|it| options.contains(it));
    let first = rest.iter().find(|it| !it.starts_with('-')).copied();
    match *word {
        "stash" => !matches!(first, Some("list" | "show")),
        "branch" => {
            has(&["-d", "-D", "-m", "-M", "-c", "-C", "-f", "-u", "--delete", "--move", "--unset-upstream"])
                || first.is_some()
                    && !has(&[
                        "--list",
                        "-l",
                        "-a",
                        "-r",
                        "-v",
                        "-vv",
                        "--contains",
                        "--merged",
                        "--no-merged",
                        "--show-current",
                    ])
        }
        "tag" => first.is_some() && !has(&["-l", "--list", "-n", "--contains", "--points-at", "-v"]),
        "config" => {
            let plain = rest.iter().filter(|it| !it.starts_with('-')).count();
            has(&["--unset", "--unset-all", "--add", "--replace-all", "-e", "--edit"])
                || plain >= 2 && !has(&["--get", "--get-all", "--get-regexp", "get", "list"])
        }
        "remote" => matches!(
            first,
            Some("add" | "remove" | "rm" | "rename" | "set-url" | "prune" | "update" | "set-head")
        ),
        "worktree" => {
            matches!(first, Some("add" | "remove" | "move" | "prune" | "repair" | "lock" | "unlock"))
        }
        "submodule" => !matches!(first, None | Some("status" | "summary")),
        "notes" => matches!(first, Some("add" | "append" | "edit" | "remove" | "copy" | "merge" | "prune")),
        "bisect" => !matches!(first, None | Some("log" | "view" | "visualize")),
        "apply" => !has(&["--check", "--stat", "--numstat", "--summary"]),
        "add" | "commit" | "push" | "rm" | "mv" | "clean" | "fetch" => {
            !has(&["--dry-run", "-n"]) || *word == "commit" && !has(&["--dry-run"])
        }
        word => GIT.contains(&word),
    }
}
