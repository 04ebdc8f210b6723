//! What a lead is marked with, and what can be done about it.

use super::Line;
use crate::console::age::Ages;
use crate::console::intent::Intent;
use crate::console::keymap::Keymap;
use crate::console::text;
use crate::console::theme::Role;
use crate::contract::Timestamp;
use crate::fact::Now;
use crate::herd::Lead;
use crate::model::Model;
use crate::signals::sight::Word;

/// The gravest word that `lead` is marked with.
pub fn word(lead: &Lead, model: &Model, now: Now) -> Option<Word> {
    let judged = model.judged(lead)?;
    judged.words.first().copied().or_else(|| model.silence(lead, now).map(|_| Word::Silent))
}

/// How a word is shown.
pub fn role(word: Word) -> Role {
    match word {
        Word::Loop | Word::NoProgress | Word::FailingChecks => Role::Warning,
        Word::Unverified => Role::Notice,
        Word::Alternation | Word::Monologue | Word::Compactions | Word::Silent => Role::Muted,
    }
}

/// All it is marked with, each with what it means, and the key that steers it.
pub fn section(
    lines: &mut Vec<Line>,
    lead: &Lead,
    model: &Model,
    now: Now,
    keymap: &Keymap,
    room: usize,
    ages: &mut Ages,
) {
    let Some(judged) = model.judged(lead) else { return };
    let fired = judged.sight.fired;
    for word in &judged.words {
        let since = fired.filter(|_| word.is_signal()).and_then(|fired| fired.since);
        let since = since.map(Timestamp::from_millis).map(|at| {
            let age = ages.show(model.sessions().age(&lead.session, at, now));
            format!(" for {age}")
        });
        let told = format!("{}{}: {}.", word.as_str(), since.unwrap_or_default(), word.meaning());
        super::wrapped(lines, &text::line(&told), room, role(*word));
    }
    if let Some(quiet) = model.silence(lead, now) {
        let told = format!("{} for {}: {}.", Word::Silent.as_str(), ages.show(quiet), Word::Silent.meaning());
        super::wrapped(lines, &text::line(&told), room, role(Word::Silent));
    }
    if judged.standing.draft.is_none() {
        return;
    }
    if judged.offers_draft() {
        lines.push(Line::Pieces(vec![
            (text::line(format_args!("  {}", keymap.key_of(Intent::Steer))), Role::Key),
            (text::line(" steer: a draft is ready"), Role::Muted),
        ]));
    } else {
        let told = "  You wrote to it since; a draft is offered again if it goes on the same.";
        super::wrapped(lines, &text::line(told), room, Role::Muted);
    }
}
