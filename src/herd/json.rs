//! The projection as JSON: exactly the answer of `staff_list`.

use super::left_out::{LeftOut, Subject};
use super::managed::Agent;
use super::roster::{Lead, Roster};
use crate::contract::Untrusted;
use crate::contract::json::ObjectWriter;
use crate::contract::text::is_unsafe_to_show;

impl Roster {
    /// `{"leads":[…]}` in one line: strings exact, never a file path.
    pub fn to_json(&self) -> String {
        let mut object = ObjectWriter::new();
        object.raw("leads", &array(&self.leads, lead));
        harmless(&object.finish())
    }

    /// The same with `diagnostics` before the leads, where something was left out.
    pub fn to_json_with_diagnostics(&self) -> String {
        let mut object = ObjectWriter::new();
        if !self.left_out.is_empty() {
            object.raw("diagnostics", &array(&self.left_out, left_out));
        }
        object.raw("leads", &array(&self.leads, lead));
        harmless(&object.finish())
    }
}

impl Lead {
    /// The lead as `staff_list` has it, with further members after its own; harmless like those.
    pub fn to_json_with(&self, more: impl FnOnce(&mut ObjectWriter)) -> String {
        let mut object = members(self);
        more(&mut object);
        harmless(&object.finish())
    }
}

pub(super) fn lead(lead: &Lead) -> Vec<u8> {
    members(lead).finish()
}

fn members(lead: &Lead) -> ObjectWriter {
    let counts = ObjectWriter::new()
        .number("active", lead.counts.active as f64)
        .number("blocked", lead.counts.blocked as f64)
        .number("total", lead.counts.total as f64)
        .finish();
    let ask = lead.pending_ask.as_ref();
    let mut object = ObjectWriter::new();
    object
        .string("session", lead.session.as_untrusted())
        .string("display_name", &lead.display_name)
        .string("workspace_id", lead.workspace.as_untrusted())
        .string("workspace_label", &lead.workspace_label)
        .string("tab_id", lead.tab.as_untrusted())
        .string("pane_id", lead.pane.as_untrusted())
        .string("runtime_state", &lead.state.as_str().into())
        .raw("needs_you", if lead.needs_you() { b"true" } else { b"false" })
        .optional("pending_ask_id", ask.map(|ask| ask.ask.to_string().into()).as_ref())
        .optional("pending_ask_question", ask.map(|ask| &ask.question))
        .raw("agent_counts", &counts)
        .raw("available_tools", &array(&lead.available_tools(), |tool| string(&(*tool).into())))
        .raw("agents", &array(&lead.agents, agent));
    object
}

fn agent(agent: &Agent) -> Vec<u8> {
    ObjectWriter::new()
        .string("id", agent.session.as_untrusted())
        .string("label", &agent.label)
        .string("state", &agent.state.as_str().into())
        .finish()
}

fn left_out(left_out: &LeftOut) -> Vec<u8> {
    let mut object = ObjectWriter::new();
    object.string("reason", &left_out.reason.name().into());
    object.string("what", &left_out.subject.kind().into());
    match &left_out.subject {
        Subject::Agent { session, workspace, tab, pane } => {
            object
                .optional("session", session.as_ref())
                .optional("workspace_id", workspace.as_ref())
                .optional("tab_id", tab.as_ref())
                .optional("pane_id", pane.as_ref());
        }
        Subject::Record { session, hash } => {
            object
                .optional("session", session.as_ref().map(|session| session.as_untrusted()))
                .optional("hash", hash.as_deref().map(Untrusted::from).as_ref());
        }
        Subject::ManagedAgent { session, label } => {
            object.string("session", session.as_untrusted()).optional("label", label.as_ref());
        }
        Subject::Mailbox { directory } => {
            object.optional("directory", directory.as_deref().map(Untrusted::from).as_ref());
        }
    }
    object.string("message", &left_out.sentence().into()).finish()
}

pub(super) fn string(text: &Untrusted) -> Vec<u8> {
    let mut out = Vec::new();
    text.write_json(&mut out);
    out
}

fn array<T>(items: &[T], write: impl Fn(&T) -> Vec<u8>) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&write(item));
    }
    out.push(b']');
    out
}

/// The same JSON, in which no character is left that drives a terminal or makes text read other
/// than it is: those stand as `\uXXXX`, so the strings stay exact.
///
/// Between its strings a JSON text has no such character but white space, which is kept. Zero-width
/// joiners go too: in JSON nobody needs to see an emoji whole.
pub fn harmless(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json);
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let unsafe_here = is_unsafe_to_show(character) || character == '\u{200D}';
        if unsafe_here && !matches!(character, '\n' | '\r' | '\t') {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_written_as_escapes_and_reads_back_exactly() {
        let hostile = "a\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{200b}\u{200d}\u{feff}\u{e0041}\n\u{2028}é😀";
        let json = harmless(&string(&hostile.into()));
        assert_eq!(
            json,
            "\"a\\u001b[2J\\u007f\\u009b31m\\u202e\\u200b\\u200d\\ufeff\\udb40\\udc41\\n\\u2028é😀\""
        );
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
