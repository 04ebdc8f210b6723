//! How a turn can fail: names, classes, and when to try again. The supervisor itself never does.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// What became of a turn that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No progress for as long as the stall window.
    Stalled,
    /// It took longer than the wall clock allows.
    WallClock,
    /// Ended from outside: Ctrl-C, a signal, the terminal gone.
    Cancelled,
    /// The command could not be started.
    SpawnFailed,
    /// It ended itself after its own time limit.
    AdapterTimeout,
    /// It ended with another code than 0.
    AdapterExit,
    /// A signal that was not ours ended it.
    AdapterError,
}

/// Who found the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The supervisor.
    Supervisor,
    /// What was run.
    Adapter,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Stalled,
        Self::WallClock,
        Self::Cancelled,
        Self::SpawnFailed,
        Self::AdapterTimeout,
        Self::AdapterExit,
        Self::AdapterError,
    ];

    /// Its name in the line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::WallClock => "wall_clock",
            Self::Cancelled => "cancelled",
            Self::SpawnFailed => "spawn_failed",
            Self::AdapterTimeout => "adapter_timeout",
            Self::AdapterExit => "adapter_exit",
            Self::AdapterError => "adapter_error",
        }
    }

    /// Who found it.
    pub fn source(self) -> Source {
        match self {
            Self::Stalled | Self::WallClock | Self::Cancelled | Self::SpawnFailed => Source::Supervisor,
            Self::AdapterTimeout | Self::AdapterExit | Self::AdapterError => Source::Adapter,
        }
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What kind of trouble a failure is.
/// Of two, the lesser one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// What was paid for is used up.
    Quota,
    /// Too many requests for now.
    RateLimit,
    /// Something has to be set up first.
    Configuration,
    /// Anything else.
    Runtime,
}

/// What an agent of a subscription says of its quota, even as its reply.
const SESSION_LIMIT: &str = "session limit";

/// Words of each class, in the order in which they count.
const WORDS: [(Class, &[&str]); 3] = [
    (
        Class::Quota,
        &[
            "insufficient_quota",
            "quota exceeded",
            "billing hard limit",
            "exceeded your current quota",
            SESSION_LIMIT,
            "usage limit",
            "weekly limit",
            "credit balance",
            "out of credits",
            "payment required",
        ],
    ),
    (
        Class::RateLimit,
        &[
            "rate limit",
            "rate_limit",
            "rate-limit",
            "ratelimit",
            "resource_exhausted",
            "too many requests",
            "429",
            "overloaded",
        ],
    ),
    (
        Class::Configuration,
        &[
            "api key",
            "api_key",
            "unauthorized",
            "forbidden",
            "authentication",
            "not logged in",
            "please log in",
            "/login",
            "command not found",
            "no such file",
            "permission denied",
            "unknown option",
            "unrecognized option",
            "unknown model",
            "model not found",
            "enoent",
            "eacces",
            "401",
            "403",
        ],
    ),
];

/// Words that make a number beside them the status of a request.
const STATUS: [&str; 8] =
    ["http", "status", "statuscode", "httpstatus", "code", "errorcode", "error", "apierror"];

impl Class {
    /// The class of what was said on standard error and output, which is looked at here and kept
    /// nowhere: the first that fits one of them. A reply may be about anything, so that only a writer
    /// of JSON lines is taken at all its words there.
    pub fn of_both(stderr: &[u8], stdout: &[u8], json_lines: bool) -> Self {
        let replied = if json_lines {
            Self::of(stdout)
        } else if String::from_utf8_lossy(stdout).to_lowercase().contains(SESSION_LIMIT) {
            Self::Quota
        } else {
            Self::Runtime
        };
        Self::of(stderr).min(replied)
    }

    /// The class of what was said.
    pub fn of(said: &[u8]) -> Self {
        let said = String::from_utf8_lossy(said).to_lowercase();
        let found = WORDS.iter().find(|(_, words)| words.iter().any(|word| says(&said, word)));
        found.map_or(Self::Runtime, |(class, _)| *class)
    }

    /// The class of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "quota" => Some(Self::Quota),
            "rate_limit" => Some(Self::RateLimit),
            "configuration" => Some(Self::Configuration),
            "runtime" => Some(Self::Runtime),
            _ => None,
        }
    }

    /// What to do after the `nth` failure in a row, from 1.
    pub fn advice(self, nth: u32) -> Advice {
        let nth = nth.max(1);
        // Doubled from the first on; large enough, it only hits the cap.
        let doubled = |first: u64, times: u32| first.saturating_mul(1 << times.min(16)).min(LONGEST);
        let (seconds, circuit_open) = match self {
            Self::Quota | Self::Configuration => (LONGEST, true),
            Self::RateLimit => (doubled(60, nth - 1), false),
            Self::Runtime if nth < 3 => (doubled(5, nth - 1), false),
            Self::Runtime => (doubled(60, nth - 3), true),
        };
        Advice { after: Duration::from_secs(seconds), circuit_open }
    }
}

/// Seconds to wait at most.
const LONGEST: u64 = 900;

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// Not before that time.
    pub after: Duration,
    /// Whether nothing more should be sent there until one turn went well.
    pub circuit_open: bool,
}

/// Whether `word` stands in `said`; a number only as one of its own that is called a status.
fn says(said: &str, word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    said.match_indices(word).any(|(at, _)| !is_number || is_status(&said[..at], &said[at + word.len()..]))
}

/// Whether the number between the two is one of its own, with a word of a status beside it in its
/// line. That of a line in a file is none.
fn is_status(before: &str, after: &str) -> bool {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    if before.ends_with(is_word) || after.starts_with(is_word) {
        return false;
    }
    if before.ends_with(':') && after.starts_with(':') {
        return false;
    }
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = after.split('\n').next().unwrap_or_default();
    // A version may stand between: `HTTP/1.1 429`.
    let mut words = before.rsplit(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty());
    let previous = words.find(|word| word.len() > 1 || !word.bytes().all(|byte| byte.is_ascii_digit()));
    let next = after.split(|it: char| !it.is_alphanumeric()).find(|word| !word.is_empty());
    [previous, next].into_iter().flatten().any(|word| STATUS.contains(&word))
}

/// Whether it says of itself that it "timed out after Nms".
pub fn timed_out(said: &[u8]) -> bool {
    let said = String::from_utf8_lossy(said).to_lowercase();
    said.match_indices("timed out after ").any(|(at, words)| {
        let rest = &said[at + words.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].trim_start_matches(' ').starts_with("ms")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_has_a_class_the_first_that_fits() {
        for (said, class) in [
            ("429 insufficient_quota", Class::Quota),
            ("You've hit your session limit", Class::Quota),
            ("Rate limit reached, API key ok", Class::RateLimit),
            ("HTTP 429", Class::RateLimit),
            ("request 14290 failed", Class::Runtime),
            ("Invalid API key", Class::Configuration),
            ("sh: x: command not found", Class::Configuration),
            ("panicked at main.rs:401:5", Class::Runtime),
            ("src/error:429: unused", Class::Runtime),
            ("HTTP/1.1 429", Class::RateLimit),
            ("{\"error\":{\"code\":429}}", Class::RateLimit),
            ("got a 429 error", Class::RateLimit),
            ("status=4290", Class::Runtime),
            ("429 files changed", Class::Runtime),
            ("an error\n429 times", Class::Runtime),
            ("status code 401", Class::Configuration),
            ("API Error: 403", Class::Configuration),
            ("403 Forbidden", Class::Configuration),
            ("line 403", Class::Runtime),
            ("RESOURCE_EXHAUSTED", Class::RateLimit),
            ("Billing hard limit has been reached", Class::Quota),
            ("main.rs:1401", Class::Runtime),
            ("", Class::Runtime),
        ] {
            assert_eq!(Class::of(said.as_bytes()), class, "{said}");
        }
        assert_eq!(Class::of(b"\xff rate limit \xff"), Class::RateLimit);
    }

    #[test]
    fn of_both_streams_the_first_class_counts() {
        for (stderr, stdout, json_lines, class) in [
            ("invalid api key", "insufficient_quota", true, Class::Quota),
            ("insufficient_quota", "invalid api key", true, Class::Quota),
            ("no such file", "rate limit", true, Class::RateLimit),
            ("no such file", "rate limit", false, Class::Configuration),
            ("", "rate limit", false, Class::Runtime),
            ("", "You've hit your Session limit", false, Class::Quota),
            ("no such file", "session limit", false, Class::Quota),
        ] {
            let found = Class::of_both(stderr.as_bytes(), stdout.as_bytes(), json_lines);
            assert_eq!(found, class, "{stderr:?} {stdout:?} {json_lines}");
        }
    }

    #[test]
    fn advice_grows_with_failures_in_a_row() {
        let of = |class: Class| {
            (1..=8).map(|nth| (class.advice(nth).after.as_secs(), class.advice(nth).circuit_open)).collect()
        };
        let all: [Vec<(u64, bool)>; 4] =
            [of(Class::Quota), of(Class::Configuration), of(Class::RateLimit), of(Class::Runtime)];
        assert_eq!(all[0], [(900, true); 8]);
        assert_eq!(all[1], [(900, true); 8]);
        assert_eq!(all[2].iter().map(|it| it.0).collect::<Vec<_>>(), [60, 120, 240, 480, 900, 900, 900, 900]);
        assert!(all[2].iter().all(|it| !it.1));
        let runtime = [
            (5, false),
            (10, false),
            (60, true),
            (120, true),
            (240, true),
            (480, true),
            (900, true),
            (900, true),
        ];
        assert_eq!(all[3], runtime);
        assert_eq!(Class::Runtime.advice(u32::MAX).after.as_secs(), 900);
    }

    #[test]
    fn its_own_time_limit_is_known_by_its_words() {
        assert!(timed_out(b"error: Timed out after 30000ms"));
        assert!(timed_out(b"timed out after 5 ms."));
        assert!(!timed_out(b"timed out after a while"));
        assert!(!timed_out(b"timed out after ms"));
    }
}
