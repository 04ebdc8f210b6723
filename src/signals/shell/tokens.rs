//! The words and operators of a command line, as a POSIX shell and bash read them.

use std::collections::VecDeque;

/// A part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, without its quotes.
    Word(String),
    /// A command within: of a substitution.
    Inner(String),
    /// Where output is written to; not where it only goes to another descriptor.
    Output(String),
    /// A simple command ends.
    End,
}

/// What a redirection makes of the word behind it.
enum Target {
    Output,
    /// A file where the word is no descriptor.
    Descriptor,
    Input,
    /// The delimiter of a text that follows, and whether tabs before it don't count.
    Here {
        tabs: bool,
    },
}

struct Lexer<'a> {
    rest: &'a str,
    out: Vec<Token>,
    word: String,
    /// Whether there is a word, which may be empty: `''`.
    in_word: bool,
    /// Whether a part of it was quoted.
    quoted: bool,
    target: Option<Target>,
    here: VecDeque<(String, bool)>,
    /// Within `[[ … ]]`, where `<` and `>` compare.
    in_test: bool,
}

/// The tokens of `command`.
pub(super) fn tokens(command: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: command,
        out: Vec::new(),
        word: String::new(),
        in_word: false,
        quoted: false,
        target: None,
        here: VecDeque::new(),
        in_test: false,
    };
    lexer.run();
    lexer.out
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn run(&mut self) {
        while let Some(character) = self.next() {
            match character {
                '\'' => {
                    let end = self.rest.find('\'').unwrap_or(self.rest.len());
                    self.push(&self.rest[..end]);
                    self.rest = self.rest.get(end + 1..).unwrap_or_default();
                    self.quoted = true;
                }
                '"' => self.double_quoted(),
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(escaped) => {
                        self.push(escaped.encode_utf8(&mut [0; 4]));
                        self.quoted = true;
                    }
                },
                '$' | '`' => self.expansion(character),
                '#' if !self.in_word => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                '\n' => {
                    self.end_command();
                    self.skip_here_texts();
                }
                ' ' | '\t' | '\r' => self.end_word(),
                ';' => {
                    self.in_test = false;
                    self.end_command();
                }
                '|' => self.end_command(),
                '(' if !self.in_word
                    && self.out.last().is_none_or(|last| *last == Token::End)
                    && self.eat("(") =>
                {
                    self.arithmetic();
                    self.push("((");
                }
                '(' | ')' => self.end_command(),
                '&' if self.rest.starts_with('>') => {
                    self.end_word();
                    let _ = self.eat(">>") || self.eat(">");
                    self.target = Some(Target::Output);
                }
                '&' => self.end_command(),
                '<' | '>' if self.in_test => self.end_word(),
                '<' | '>' if self.rest.starts_with('(') => {
                    self.eat("(");
                    let inner = self.balanced();
                    self.out.push(Token::Inner(inner));
                    self.push("/dev/fd/63");
                }
                '>' => {
                    self.end_before_redirection();
                    let is_copy = !self.eat(">") && !self.eat("|") && self.eat("&");
                    self.target = Some(if is_copy { Target::Descriptor } else { Target::Output });
                }
                '<' => {
                    self.end_before_redirection();
                    self.target = Some(if self.eat("<<") || self.eat("&") {
                        Target::Input
                    } else if self.eat("<-") {
                        Target::Here { tabs: true }
                    } else if self.eat("<") {
                        Target::Here { tabs: false }
                    } else if self.eat(">") {
                        Target::Output
                    } else {
                        Target::Input
                    });
                }
                other => self.push(other.encode_utf8(&mut [0; 4])),
            }
        }
        self.end_command();
    }

    fn push(&mut self, text: &str) {
        self.word.push_str(text);
        self.in_word = true;
    }

    fn double_quoted(&mut self) {
        self.in_word = true;
        self.quoted = true;
        while let Some(character) = self.next() {
            match character {
                '"' => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped.encode_utf8(&mut [0; 4])),
                    Some(other) => {
                        self.word.push('\\');
                        self.push(other.encode_utf8(&mut [0; 4]));
                    }
                },
                '$' | '`' => self.expansion(character),
                other => self.push(other.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// What begins with `$` or a back quote: a command within is one of its own.
    fn expansion(&mut self, introducer: char) {
        self.in_word = true;
        if introducer == '`' {
            let mut inner = String::new();
            while let Some(character) = self.next() {
                match character {
                    '`' => break,
                    '\\' => inner.extend(self.next()),
                    other => inner.push(other),
                }
            }
            self.out.push(Token::Inner(inner));
        } else if self.eat("((") {
            self.arithmetic();
        } else if self.eat("(") {
            let inner = self.balanced();
            self.out.push(Token::Inner(inner));
        } else {
            self.word.push('$');
        }
    }

    /// Up to the parentheses that close an arithmetic expression.
    fn arithmetic(&mut self) {
        let end = self.rest.find("))").unwrap_or(self.rest.len());
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
    }

    /// Up to the parenthesis that closes, which quotes don't hold.
    fn balanced(&mut self) -> String {
        let (begin, mut depth, mut quote) = (self.rest, 1_usize, None);
        let mut end = begin.len();
        while let Some(character) = self.next() {
            match (quote, character) {
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (Some('\''), _) => {}
                (_, '\\') => {
                    self.next();
                }
                (None, '\'' | '"') => quote = Some(character),
                (None, '(') => depth += 1,
                (None, ')') => {
                    depth -= 1;
                    if depth == 0 {
                        end = begin.len() - self.rest.len() - 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        begin[..end].to_owned()
    }

    fn end_before_redirection(&mut self) {
        // The digits before it name a descriptor.
        if !self.quoted && !self.word.is_empty() && self.word.bytes().all(|byte| byte.is_ascii_digit()) {
            self.word.clear();
            self.in_word = false;
        }
        self.end_word();
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.in_word) {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let quoted = std::mem::take(&mut self.quoted);
        match self.target.take() {
            None => {
                match word.as_str() {
                    "[[" if !quoted => self.in_test = true,
                    "]]" if !quoted => self.in_test = false,
                    _ => {}
                }
                self.out.push(Token::Word(word));
            }
            Some(Target::Output) => self.out.push(Token::Output(word)),
            Some(Target::Descriptor) => {
                if word != "-" && !word.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit()) {
                    self.out.push(Token::Output(word));
                }
            }
            Some(Target::Input) => {}
            Some(Target::Here { tabs }) => self.here.push_back((word, tabs)),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if self.in_test {
            // `&&` and parentheses join conditions there.
            return;
        }
        self.target = None;
        self.out.push(Token::End);
    }

    fn skip_here_texts(&mut self) {
        while let Some((delimiter, tabs)) = self.here.pop_front() {
            loop {
                let end = self.rest.find('\n');
                let line = &self.rest[..end.unwrap_or(self.rest.len())];
                let line = if tabs { line.trim_start_matches('\t') } else { line };
                let is_last = line == delimiter;
                self.rest = end.map_or("", |end| &self.rest[end + 1..]);
                if is_last || self.rest.is_empty() {
                    break;
                }
            }
        }
    }
}
