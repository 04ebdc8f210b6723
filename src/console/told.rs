//! What the console tells of itself: drafts kept, the next key to try, the window's title.

use super::app::App;
use super::drafts::{Draft, DraftKey};
use super::guide::Office;
use super::text::{self, Visible};
use crate::fact::{OtherChief, Standing};

impl App {
    /// Whether a draft is kept for what `lead` asks.
    pub fn has_draft(&self, lead: &crate::herd::Lead) -> bool {
        let ask = lead.pending_ask.as_ref().map(|ask| ask.ask);
        ask.is_some() && self.drafts.contains_key(&DraftKey { session: lead.session.clone(), ask })
    }

    /// The drafts kept whose ask no lead puts any more.
    pub fn orphaned_drafts(&self) -> impl Iterator<Item = &Draft> {
        self.drafts.values().filter(|draft| {
            let ask = self.model.lead(&draft.session).and_then(|lead| lead.pending_ask.as_ref());
            draft.ask.is_some() && ask.map(|ask| ask.ask) != draft.ask
        })
    }

    /// Which key to try next, where that is to be said.
    pub fn hint(&self) -> Option<String> {
        let has_asks = self.model.roster().leads.iter().any(|lead| self.model.needs_you(lead));
        let office = match self.model.standing() {
            Standing::Chief { .. } => Office::Ours,
            Standing::Observer { chief: OtherChief::None, .. } => Office::Free,
            _ => Office::Other,
        };
        self.guide.as_ref()?.next(self.context(), office, has_asks, &self.settings.keymap)
    }

    /// The window's title: how many asks wait.
    pub fn title(&self) -> Visible {
        let asks = self.model.asks().map_or(0, |(count, _)| count);
        let separator = self.settings.theme.glyphs().separator;
        match asks {
            0 => text::title("headman"),
            1 => text::title(format_args!("1 ask {separator} headman")),
            _ => text::title(format_args!("{asks} asks {separator} headman")),
        }
    }
}
