//! Looking at a lead's pane: `staff_inspect` of `docs/contract.md`. Passive: nothing reaches the
//! program there.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::contract::{NativeId, SessionId, Timestamp, Untrusted};
use crate::fact::{Foreground, Inspection, ProcessEvidence};
use crate::herd::Lead;
use crate::herdr::api::{Process, ProcessInfo};
use crate::herdr::listing::{AGENT, SOURCE};
use crate::herdr::{Client, HerdrError, Pane};

/// Lines of text kept, the last ones.
pub const MAX_LINES: usize = 80;
/// Bytes of these kept, the last ones.
pub const MAX_BYTES: usize = 16 << 10;
/// Programs kept, the first ones.
pub const MAX_PROCESSES: usize = 8;
/// Bytes of the name a program was started by.
pub const MAX_ARGV0: usize = 256;
/// Bytes of a program's arguments.
pub const MAX_CMDLINE: usize = 4 << 10;
/// Bytes of a program's state.
pub const MAX_STATE: usize = 64;

/// Who is looked at, and where that lead is: on another pane, or with another session on this one,
/// it is somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    session: SessionId,
    session_file: Option<Untrusted>,
    workspace: NativeId,
    tab: NativeId,
    pane: NativeId,
}

/// Which text is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// The last lines, those that are scrolled out among them.
    Recent,
    /// What stands on the screen now.
    Visible,
}

/// Why a lead could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// It is not there.
    #[error("the lead is not on pane {0} any more")]
    NotThere(String),
    /// It went, or another came, while its pane was read.
    #[error("the lead on pane {0} changed while it was looked at, so nothing of it is shown")]
    Changed(String),
    /// Herdr did not answer, or refused.
    #[error("{}", .0.why())]
    Herdr(HerdrError),
}

impl Subject {
    /// The lead as the roster has it.
    pub fn of(lead: &Lead) -> Self {
        Self {
            session: lead.session.clone(),
            session_file: lead.session_file.clone(),
            workspace: lead.workspace.clone(),
            tab: lead.tab.clone(),
            pane: lead.pane.clone(),
        }
    }

    /// Whose pane it is.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Whether that lead is on `pane`.
    fn is_on(&self, pane: &Pane) -> bool {
        let place = [&self.workspace, &self.tab, &self.pane].map(NativeId::as_untrusted);
        let Some(session) = &pane.agent_session else { return false };
        place == [&pane.workspace_id, &pane.tab_id, &pane.pane_id]
            && session.source == SOURCE
            && session.agent == AGENT
            && if session.kind == "id" {
                session.value == *self.session.as_untrusted()
            } else {
                session.kind == "path" && self.session_file.as_ref() == Some(&session.value)
            }
    }

    async fn look(&self, client: &Client) -> Result<Pane, InspectError> {
        let looked = client.pane_get(&self.pane.as_untrusted().to_str_lossy()).await;
        let pane = looked.map_err(|error| self.failed(error))?;
        if self.is_on(&pane) { Ok(pane) } else { Err(InspectError::NotThere(self.shown())) }
    }

    fn failed(&self, error: HerdrError) -> InspectError {
        match error.code() {
            Some(code) if *code == "pane_not_found" => InspectError::NotThere(self.shown()),
            _ => InspectError::Herdr(error),
        }
    }

    fn shown(&self) -> String {
        self.pane.escaped().to_string()
    }
}

/// Looks at the pane of `subject`, and that the lead is on it before and after. What programs there
/// are may stay unknown.
///
/// # Errors
/// [`InspectError`]; what was read of somebody else's pane is dropped.
pub async fn inspect(client: &Client, subject: &Subject, text: Text) -> Result<Inspection, InspectError> {
    let before = subject.look(client).await?;
    let read = match text {
        Text::Recent => client.recent_text(&before).await,
        Text::Visible => client.pane_visible(&before.pane_id.to_str_lossy()).await,
    };
    let read = read.map_err(|error| subject.failed(error))?;
    let captured_at = now();
    let process = client.pane_process_info(&before.pane_id.to_str_lossy()).await;
    let after = match subject.look(client).await {
        Err(InspectError::NotThere(pane)) => return Err(InspectError::Changed(pane)),
        after => after?,
    };
    // Another terminal under the same ids is a Herdr that was restarted in between.
    if before.terminal_id != after.terminal_id {
        return Err(InspectError::Changed(subject.shown()));
    }
    let (output, truncated) = end_of(&read.text, text);
    let process = process.map(evidence).map_err(|error| error.why());
    Ok(Inspection { captured_at, output, truncated, process })
}

/// The end of a pane's text, and whether something of its last lines was cut off for its bytes.
fn end_of(whole: &Untrusted, text: Text) -> (Untrusted, bool) {
    let trimmed = match text {
        Text::Recent => whole.trim(),
        // What stands where on a screen says something, but for the empty rest of it.
        Text::Visible => {
            let blank = whole.as_wtf8().iter().rev().take_while(|byte| matches!(byte, b'\n' | b' ')).count();
            whole.first_bytes(whole.utf8_len() - blank)
        }
    };
    let bytes = trimmed.as_wtf8();
    let breaks = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let lines = match breaks.map(|(at, _)| at).nth(MAX_LINES - 1) {
        Some(before) => trimmed.last_bytes(bytes.len() - before - 1),
        None => trimmed,
    };
    let end = lines.last_bytes(MAX_BYTES);
    let truncated = end.utf8_len() < lines.utf8_len();
    (end, truncated)
}

fn evidence(info: ProcessInfo) -> ProcessEvidence {
    let program = |process: Process| {
        Some(Foreground {
            pid: process.pid?,
            argv0: process.argv0.map(|it| it.first_bytes(MAX_ARGV0)),
            cmdline: process.cmdline.map(|it| it.first_bytes(MAX_CMDLINE)),
            state: process.state.map(|it| it.first_bytes(MAX_STATE)),
        })
    };
    ProcessEvidence {
        shell: info.shell_pid,
        group: info.foreground_process_group_id,
        foreground: info.foreground_processes.into_iter().filter_map(program).take(MAX_PROCESSES).collect(),
    }
}

fn now() -> Timestamp {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(wall.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_of_these_the_last_bytes() {
        let end = |whole: &str, text| {
            let (end, truncated) = end_of(&whole.into(), text);
            (end.to_str_lossy().into_owned(), truncated)
        };
        let recent = |whole: &str| end(whole, Text::Recent);
        let kept = |text: &str| (text.to_owned(), false);
        assert_eq!(recent("\n  a\n\n b \n\n"), kept("a\n\n b"));
        assert_eq!(end("\n  a\n b \n \n", Text::Visible), kept("\n  a\n b"));
        let lines: Vec<String> = (0..=MAX_LINES).map(|nth| format!("line {nth}")).collect();
        assert_eq!(recent(&lines[1..].join("\n")), kept(&lines[1..].join("\n")));
        assert_eq!(recent(&lines.join("\n")), kept(&lines[1..].join("\n")), "lines are no cut");
        let full = "x".repeat(MAX_BYTES);
        assert_eq!(recent(&full), kept(&full));
        assert_eq!(recent(&format!("y{full}")), (full.clone(), true));
        let halved = format!("é{}", &full[1..]);
        assert_eq!(recent(&halved), (full[1..].to_owned(), true), "no half of a character is left");
        assert_eq!(recent(" \n "), kept(""));
    }

    #[test]
    fn of_the_programs_the_first_ones_are_kept_and_each_is_bounded() {
        let process = |pid| Process {
            pid,
            argv0: Some("é".repeat(MAX_ARGV0).into()),
            cmdline: Some("c".repeat(MAX_CMDLINE + 1).into()),
            state: Some("s".repeat(MAX_STATE + 1).into()),
            ..Process::default()
        };
        let all = std::iter::once(process(None)).chain((1..=9).map(|pid| process(Some(pid))));
        let found = evidence(ProcessInfo { foreground_processes: all.collect(), ..ProcessInfo::default() });
        let pids: Vec<u64> = found.foreground.iter().map(|it| it.pid).collect();
        assert_eq!(pids, (1..=MAX_PROCESSES as u64).collect::<Vec<_>>());
        let bytes = |text: &Option<Untrusted>| text.as_ref().map(Untrusted::utf8_len);
        let one = &found.foreground[0];
        assert_eq!(
            [bytes(&one.argv0), bytes(&one.cmdline), bytes(&one.state)],
            [Some(MAX_ARGV0), Some(MAX_CMDLINE), Some(MAX_STATE)]
        );
    }
}
