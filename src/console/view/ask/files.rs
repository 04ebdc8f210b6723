//! The files that what is written mentions: what was seen of them, and the list of paths to choose
//! from.

use crate::console::composer::Composer;
use crate::console::drafts::DraftKey;
use crate::console::files::list::{Listing, What};
use crate::console::files::look::Look;
use crate::console::files::mention::{self, Partial};
use crate::console::files::{Place, Question, Writing};
use crate::contract::message;

/// The mention being typed: its line, and its place there.
type At = (usize, usize);

/// What is known of the files, and what is to be found out.
pub(super) struct Files {
    writing: Writing,
    look: Option<Look>,
    /// What is listed, and for which mention.
    list: Option<(At, Listing)>,
    /// The entry under the cursor.
    pub(super) chosen: usize,
    /// The mention whose list was closed.
    closed: Option<At>,
    /// The text that is to be sent once its files are seen.
    sends: Option<String>,
    /// Whether what was seen may be old.
    again: bool,
}

/// What a text takes, as far as it is known.
pub(super) struct Count {
    pub(super) bytes: usize,
    pub(super) limit: usize,
    /// Whether the files were seen with this very text.
    pub(super) is_exact: bool,
}

impl Files {
    pub(super) fn new(key: DraftKey, place: Place) -> Self {
        let writing = Writing { key, place };
        Self { writing, look: None, list: None, chosen: 0, closed: None, sends: None, again: false }
    }

    pub(super) fn place(&self) -> &Place {
        &self.writing.place
    }

    /// Has relative paths begin at another directory.
    pub(super) fn begin_at(&mut self, from: std::path::PathBuf) {
        self.writing.place.from = from;
        self.look = None;
    }

    /// What is to be looked at, if it was not yet.
    pub(super) fn look_question(&self, composer: &Composer) -> Option<Question> {
        // Even without files: the limit is configured.
        let is_seen = match &self.look {
            None => false,
            Some(_) if self.again => false,
            Some(look) if !look.mentions_any() && !composer.mentions_any() => true,
            Some(look) => look.text == composer.text(),
        };
        (!is_seen).then(|| Question::Look(self.writing.clone(), composer.text()))
    }

    /// What is to be listed, if it was not yet. A list of another mention is closed.
    pub(super) fn list_question(&mut self, composer: &Composer) -> Option<Question> {
        let Some((at, partial)) = typing(composer) else {
            (self.list, self.closed) = (None, None);
            return None;
        };
        if self.list.as_ref().is_some_and(|(listed, _)| *listed != at) {
            self.list = None;
        }
        if self.closed.is_some_and(|closed| closed != at) {
            self.closed = None;
        }
        let is_listed = self.list.as_ref().is_some_and(|(_, listing)| listing.typed == partial.path);
        (!is_listed && self.closed.is_none()).then(|| Question::List(self.writing.clone(), partial.path))
    }

    /// What was listed, if it is still typed.
    pub(super) fn listed(&mut self, listing: Listing, composer: &Composer) {
        if let Some((at, partial)) = typing(composer)
            && partial.path == listing.typed
            && self.closed.is_none()
        {
            self.chosen = 0;
            self.list = Some((at, listing));
        }
    }

    /// What was seen.
    pub(super) fn looked(&mut self, look: Look) {
        self.look = Some(look);
        self.again = false;
    }

    /// What is offered for what is typed.
    pub(super) fn list(&self) -> Option<&Listing> {
        self.list.as_ref().map(|(_, listing)| listing).filter(|listing| !listing.is_empty())
    }

    /// Whether keys go to the list: it is there, or will be in a moment.
    pub(super) fn is_listing(&self, composer: &Composer) -> bool {
        let Some((at, partial)) = typing(composer).filter(|_| self.closed.is_none()) else { return false };
        match &self.list {
            Some((listed, listing)) if *listed == at && listing.typed == partial.path => !listing.is_empty(),
            Some(_) => true,
            // Before the first answer: an `@` alone asks for nothing yet.
            None => !partial.path.is_empty(),
        }
    }

    /// Moves in the list.
    pub(super) fn choose(&mut self, by: isize) {
        let count = self.list().map_or(0, |listing| listing.entries.len());
        if count > 0 {
            self.chosen = (self.chosen as isize + by).rem_euclid(count as isize) as usize;
        }
    }

    /// Puts the chosen path into the text; none while it is not listed. What can't be attached stays
    /// out of it; why is told.
    pub(super) fn take(&mut self, composer: &mut Composer) -> Option<Result<(), String>> {
        let (at, partial) = typing(composer)?;
        let (listed, listing) = self.list.as_ref()?;
        if *listed != at || listing.typed != partial.path {
            return None;
        }
        let entry = listing.entries.get(self.chosen)?;
        let (path, whole) = match &entry.what {
            What::Directory => (format!("{}/", entry.path), false),
            What::File(..) => (entry.path.clone(), true),
            What::Not(why) => return Some(Err(why.clone())),
        };
        let written = mention::written(&path, whole)?;
        Some(composer.complete(at.1, &written, whole).map_err(|refused| refused.to_string()))
    }

    /// Closes the list; says whether it was open.
    pub(super) fn close(&mut self, composer: &Composer) -> bool {
        let was = self.is_listing(composer) || self.list().is_some();
        if was {
            self.closed = typing(composer).map(|(at, _)| at);
            self.list = None;
        }
        was
    }

    /// What was seen of this very text.
    pub(super) fn seen(&self, text: &str) -> Option<&Look> {
        self.look.as_ref().filter(|look| look.text == text)
    }

    /// What was seen last, of whatever text.
    pub(super) fn last_look(&self) -> Option<&Look> {
        self.look.as_ref()
    }

    /// What the text takes. While its files are being seen, what they took with the text before.
    pub(super) fn count(&self, composer: &Composer) -> Count {
        let limit = self.look.as_ref().map_or(message::MAX_BYTES, |look| look.limit);
        let (bytes, has_files) = (composer.bytes(), composer.mentions_any());
        match &self.look {
            Some(look) if has_files => {
                let of_look = look.bytes.unwrap_or(bytes);
                if look.text == composer.text() {
                    return Count { bytes: of_look, limit, is_exact: true };
                }
                let of_files = of_look.saturating_sub(composer.bytes_of(&look.text));
                Count { bytes: bytes + of_files, limit, is_exact: false }
            }
            _ => Count { bytes, limit, is_exact: !has_files },
        }
    }

    /// Has the text be sent once its files are seen.
    pub(super) fn send_once_seen(&mut self, text: String) {
        self.sends = Some(text);
        self.again = true;
    }

    /// Whether that text waits for that.
    pub(super) fn is_waiting(&self, text: &str) -> bool {
        self.sends.as_deref() == Some(text)
    }

    /// Whether that text is to be sent now, since its files are seen; only once. Another text is not.
    pub(super) fn is_due(&mut self, text: &str) -> bool {
        let waits = self.is_waiting(text);
        if !waits || self.seen(text).is_some() {
            self.sends = None;
        }
        waits && self.seen(text).is_some()
    }

    /// Has nothing be sent by itself.
    pub(super) fn stay(&mut self) -> bool {
        self.sends.take().is_some()
    }
}

/// The mention that is being typed, and where.
fn typing(composer: &Composer) -> Option<(At, Partial)> {
    let (line, before) = composer.before_cursor();
    let partial = mention::partial(&before)?;
    Some(((line, partial.at), partial))
}
