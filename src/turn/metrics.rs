//! The one line that a turn leaves: metadata, and never a byte of what was said.

use serde::{Serialize, Serializer};

use super::failure::{Class, Failure, Source};

/// How a turn ended for whoever waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There was a reply, and it arrived.
    Delivered,
    /// There was none to deliver.
    Silent,
    /// There was one, and it did not arrive.
    ReplyLost,
    /// Somebody else had the work by then.
    ClaimLost,
    /// The server passed it over.
    ServerSkipped,
    /// The server refused it.
    ServerRefused,
    /// Who stands behind the server refused it.
    UpstreamRefused,
    /// The run failed.
    Failed,
}

impl Outcome {
    /// Whether it is as it should be.
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Delivered | Self::Silent)
    }

    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Delivered,
        Self::Silent,
        Self::ReplyLost,
        Self::ClaimLost,
        Self::ServerSkipped,
        Self::ServerRefused,
        Self::UpstreamRefused,
        Self::Failed,
    ];

    /// Its name in the line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Silent => "silent",
            Self::ReplyLost => "reply_lost",
            Self::ClaimLost => "claim_lost",
            Self::ServerSkipped => "server_skipped",
            Self::ServerRefused => "server_refused",
            Self::UpstreamRefused => "upstream_refused",
            Self::Failed => "failed",
        }
    }

    /// The delivery of that name, `failed` not among them: that is not for others to say.
    pub fn delivery(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name && *outcome != Self::Failed)
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The line, its members in the order in which they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// 1.
    pub v: u8,
    /// When it was written.
    pub ts: String,
    /// Of [`seat`].
    pub seat: String,
    /// Of [`adapter`].
    pub adapter: String,
    /// `supervised`.
    pub path: &'static str,
    /// Of [`event_type`].
    pub event_type: Option<String>,
    /// When the run began.
    pub turn_start: String,
    /// When it settled.
    pub turn_end: String,
    /// Between the two, on a clock that nobody sets.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether that is as it should be.
    pub ok: bool,
    /// What failed.
    pub failure: Option<Failure>,
    /// Who found that.
    pub failure_source: Option<Source>,
    /// What kind of trouble it is.
    pub failure_class: Option<Class>,
    /// Whether the stall window fired.
    pub stalled: bool,
    /// Whether it was asked to end.
    pub cancelled: bool,
    /// Whether it was killed.
    pub killed: bool,
    /// With what code it ended, if it did by itself.
    pub exit_code: Option<i32>,
    /// Of [`signal_name`], if one ended it.
    pub signal: Option<String>,
    /// Whether it was seen to end.
    pub exit_observed: bool,
    /// Whether something of it still ran when it settled.
    pub child_left_running: bool,
    /// Which attempt it was, from 1.
    pub attempts: u32,
    /// The stall window; 0 is none.
    pub stall_ms: u64,
    /// Between asking and killing.
    pub cancel_grace_ms: u64,
    /// The turn's budget; 0 is none.
    pub timeout_ms: u64,
}

impl Line {
    /// As it is written, its end included.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Strings, numbers and booleans: nothing that could fail.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

fn sanitised(name: &str, most: usize) -> String {
    name.chars().take(most).map(|it| if is_plain(it) { it } else { '_' }).collect()
}

/// A seat's name as it is written, at most 64 characters.
pub fn seat(name: &str) -> String {
    sanitised(name, 64)
}

/// An adapter's, at most 32.
pub fn adapter(name: &str) -> String {
    sanitised(name, 32)
}

/// What kind of event a turn answers, if that is a name of at most 40 plain characters.
pub fn event_type(name: &str) -> Option<String> {
    ((1..=40).contains(&name.len()) && name.chars().all(is_plain)).then(|| name.to_owned())
}

/// `SIGTERM` for 15; one without a name by its number.
pub fn signal_name(number: i32) -> String {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::ILL, "ILL"),
        (Signal::TRAP, "TRAP"),
        (Signal::ABORT, "ABRT"),
        (Signal::BUS, "BUS"),
        (Signal::FPE, "FPE"),
        (Signal::KILL, "KILL"),
        (Signal::USR1, "USR1"),
        (Signal::SEGV, "SEGV"),
        (Signal::USR2, "USR2"),
        (Signal::PIPE, "PIPE"),
        (Signal::ALARM, "ALRM"),
        (Signal::TERM, "TERM"),
        (Signal::XCPU, "XCPU"),
        (Signal::XFSZ, "XFSZ"),
        (Signal::SYS, "SYS"),
    ];
    match names.iter().find(|(signal, _)| signal.as_raw() == number) {
        Some((_, name)) => format!("SIG{name}"),
        None => format!("SIG{number}"),
    }
}

/// A time of day in milliseconds since the epoch as `2026-05-28T20:26:40.000Z`.
pub fn time(millis: u64) -> String {
    let at = i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    at.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_plain_and_short() {
        assert_eq!(seat("api/main é"), "api_main__");
        assert_eq!(seat(&"x".repeat(70)).len(), 64);
        assert_eq!(adapter(&"\n".repeat(40)), "_".repeat(32));
        assert_eq!(event_type("chat.message"), Some("chat.message".to_owned()));
        for bad in ["", "a b", &"x".repeat(41), "é", "a\n"] {
            assert_eq!(event_type(bad), None, "{bad}");
        }
    }

    #[test]
    fn signals_and_times_have_one_form() {
        assert_eq!(
            (signal_name(9), signal_name(15), signal_name(40)),
            ("SIGKILL".into(), "SIGTERM".into(), "SIG40".into())
        );
        assert_eq!(time(1_780_000_000_000), "2026-05-28T20:26:40.000Z");
        assert_eq!(time(u64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
