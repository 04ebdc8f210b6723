//! The texts of what a lead writes, with the files that go along, as their records hold them.

use super::coordination::Coordination;
use crate::chief::attach::{self, AttachError, Draft, FileArgument, Heading, Limits, Rendered};
use crate::contract::{Kind, PendingAsk, SessionId, Untrusted, Uuid};
use crate::disk::records::{self, Holding};

impl Coordination {
    /// The text of a message of this kind, with the files attached, under the limits configured now.
    /// One to a peer is measured for the peer `to`; what goes up for the Chief, or, while there is
    /// none, for one whose session is as long as ours. Blocking: files are read.
    ///
    /// # Errors
    /// [`AttachError`]; with files or without, the record has to fit.
    pub fn render(
        &self,
        kind: Kind,
        to: Option<&SessionId>,
        text: &Untrusted,
        files: &[FileArgument],
    ) -> Result<Rendered, AttachError> {
        let data_root = self.agent_dir.data_root();
        let limits = Limits::load(&data_root)?;
        let to = match to {
            Some(to) => to.clone(),
            None => match records::read_holding(&self.runtime) {
                Ok(Holding::Held(chief)) => chief.session,
                _ => self.session.clone(),
            },
        };
        let draft = Draft { text, heading: Heading::of(kind), files };
        attach::render(&draft, &data_root, limits, |text| self.record_bytes(kind, &to, text))
    }

    /// Bytes that the record of a message takes. All ids are of one length.
    fn record_bytes(&self, kind: Kind, to: &SessionId, text: &Untrusted) -> usize {
        let id = Uuid::random();
        if kind != Kind::LeadAsk {
            return self.message(kind, to, id, text).byte_len();
        }
        let ask = PendingAsk { ask: id, question: text.clone(), text: text.clone() };
        self.ask_message(&ask, to, id).byte_len()
    }
}
