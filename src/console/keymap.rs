//! From keys to intents, after the table in `intent`, remapped by the configuration.
//!
//! A key is written as in `j`, `G`, `?`, `space`, `enter`, `f5`, `ctrl-l`, `alt-enter`, `shift-tab`;
//! a sequence has spaces between its keys, as in `g g`.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::actions::{ACTIONS, Action, FIXED};
use super::intent::{Context, Intent};

/// One key with its modifiers, in the form terminals agree on: a capital letter has no shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Keys by name; a space is `space`, since spaces part the keys of a sequence.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("space", KeyCode::Char(' ')),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("insert", KeyCode::Insert),
    ("delete", KeyCode::Delete),
];

const MODIFIERS: [(&str, KeyModifiers); 3] =
    [("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT), ("shift-", KeyModifiers::SHIFT)];

impl Key {
    /// From what the terminal reported; nothing for the release of a key.
    pub fn from_event(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        // Caps lock and keypad state are no part of a binding.
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        Some(Self::new(event.code, event.modifiers & known))
    }

    fn new(mut code: KeyCode, mut modifiers: KeyModifiers) -> Self {
        match code {
            KeyCode::BackTab => {
                code = KeyCode::Tab;
                modifiers |= KeyModifiers::SHIFT;
            }
            KeyCode::Char(character) if modifiers.contains(KeyModifiers::SHIFT) => {
                if let (Some(upper), 1) = (character.to_uppercase().next(), character.to_uppercase().count())
                {
                    code = KeyCode::Char(upper);
                }
                modifiers -= KeyModifiers::SHIFT;
            }
            _ => {}
        }
        Self { code, modifiers }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut modifiers = KeyModifiers::NONE;
        while let Some((name, modifier)) =
            MODIFIERS.iter().find(|(name, _)| rest.len() > name.len() && rest.starts_with(name))
        {
            if modifiers.contains(*modifier) {
                return Err(format!("`{name}` stands twice; write it once"));
            }
            modifiers |= *modifier;
            rest = &rest[name.len()..];
        }
        let mut characters = rest.chars();
        let code = match (characters.next(), characters.next()) {
            (Some(character), None) if !character.is_control() && !character.is_whitespace() => {
                if modifiers.contains(KeyModifiers::SHIFT) {
                    return Err(format!(
                        "write the character itself instead, as in `{}`",
                        character.to_uppercase()
                    ));
                }
                KeyCode::Char(character)
            }
            _ => match NAMES.iter().find(|(name, _)| *name == rest) {
                Some((_, code)) => *code,
                None => match rest.strip_prefix('f').and_then(|number| number.parse().ok()) {
                    Some(number @ 1..=12) if !rest[1..].starts_with(['+', '0']) => KeyCode::F(number),
                    _ => {
                        return Err(format!(
                            "no such key; write a character, f1 to f12, or one of {}, with ctrl-, alt- or shift- \
                             before it and spaces between the keys of a sequence",
                            NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
                        ));
                    }
                },
            },
        };
        if let (KeyCode::Char(character), KeyModifiers::CONTROL) = (code, modifiers) {
            // A terminal sends the same byte for both.
            let twin = match character {
                'i' => Some("tab"),
                'm' => Some("enter"),
                '[' => Some("esc"),
                'h' => Some("backspace"),
                _ => None,
            };
            if let Some(twin) = twin {
                return Err(format!("terminals send it as `{twin}`; write that, or choose another key"));
            }
            if character.is_ascii_uppercase() {
                return Err(format!(
                    "write it in lower case, as in `ctrl-{}`",
                    character.to_ascii_lowercase()
                ));
            }
        }
        Ok(Self::new(code, modifiers))
    }

    /// Whether it types a character.
    fn is_text(self) -> bool {
        matches!(self.code, KeyCode::Char(_))
            && !self.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }
}

impl fmt::Display for Key {
    /// As the configuration writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, modifier) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::F(number) => write!(f, "f{number}"),
            code => match NAMES.iter().find(|(_, known)| *known == code) {
                Some((name, _)) => f.write_str(name),
                None => write!(f, "{code}"),
            },
        }
    }
}

/// Why the configured keys can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// No action has this name.
    #[error("keys.{}: no such action; the actions are {}", .name.escape_debug(), action_names())]
    UnknownAction {
        /// The name found.
        name: String,
    },
    /// The action's keys can't be changed.
    #[error("keys.{name}: it keeps its key, so that there is always a way out; remove the line")]
    Fixed {
        /// The action.
        name: &'static str,
    },
    /// A key is not written as one.
    #[error("keys.{name}: `{}`: {why}", .key.escape_debug())]
    BadKey {
        /// The action.
        name: &'static str,
        /// The key as it stands.
        key: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// Two actions share a key, or one's key begins the other's sequence.
    #[error("keys.{name}: `{key}` collides with `{other_key}` of `{other}` ({}); give one of them another key", .context.title())]
    Conflict {
        /// The action.
        name: &'static str,
        /// Its key.
        key: String,
        /// The other action.
        other: &'static str,
        /// The other's key.
        other_key: String,
        /// Where both are in use.
        context: Context,
    },
}

fn action_names() -> String {
    ACTIONS.iter().map(|action| action.name).collect::<Vec<_>>().join(", ")
}

struct Binding {
    action: &'static Action,
    sequences: Vec<Vec<Key>>,
}

/// The keys in use.
pub struct Keymap {
    bindings: Vec<Binding>,
}

/// What a key press came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// This is wanted.
    Intent(Intent),
    /// A sequence has begun.
    Pending,
    /// Nothing is bound to it here; a text field takes it as text.
    Unbound,
}

/// The keys of a sequence pressed so far. It belongs to the loop; a change of context empties it.
#[derive(Debug, Default)]
pub struct Sequence {
    keys: Vec<Key>,
    context: Option<Context>,
}

impl Sequence {
    /// What has been pressed of a sequence, for the footer.
    pub fn shown(&self) -> Option<String> {
        (!self.keys.is_empty()).then(|| show(&self.keys))
    }
}

/// One line of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpLine {
    /// All its keys, as the configuration writes them.
    pub keys: Vec<String>,
    /// The action's name in the configuration.
    pub name: &'static str,
    /// What it does.
    pub help: String,
    /// What it asks for.
    pub intent: Intent,
}

impl Keymap {
    /// The default keys with those of `configured` (action name → its keys) in place of an
    /// action's own; no keys at all make it unreachable. Every mistake is reported, not the first
    /// alone.
    pub fn new(configured: &BTreeMap<String, Vec<String>>) -> Result<Self, Vec<KeymapError>> {
        let mut errors = Vec::new();
        for name in configured.keys() {
            match ACTIONS.iter().find(|action| action.name == name) {
                None => errors.push(KeymapError::UnknownAction { name: name.clone() }),
                Some(action) if action.name == FIXED => errors.push(KeymapError::Fixed { name: action.name }),
                Some(_) => {}
            }
        }
        let mut bindings = Vec::new();
        for action in ACTIONS {
            let keys: Vec<&str> = match configured.get(action.name).filter(|_| action.name != FIXED) {
                Some(keys) => keys.iter().map(String::as_str).collect(),
                None => action.keys.to_vec(),
            };
            let mut sequences: Vec<Vec<Key>> = Vec::new();
            for text in keys {
                match parse_sequence(text, action) {
                    Ok(sequence) if !sequences.contains(&sequence) => sequences.push(sequence),
                    Ok(_) => {}
                    Err(why) => {
                        errors.push(KeymapError::BadKey { name: action.name, key: text.to_owned(), why });
                    }
                }
            }
            bindings.push(Binding { action, sequences });
        }
        let map = Self { bindings };
        map.find_conflicts(&mut errors);
        if errors.is_empty() { Ok(map) } else { Err(errors) }
    }

    fn find_conflicts(&self, errors: &mut Vec<KeymapError>) {
        for (at, binding) in self.bindings.iter().enumerate() {
            for other in &self.bindings[..at] {
                let Some(context) = Context::ALL
                    .into_iter()
                    .find(|context| context.is_in(binding.action.scope) && context.is_in(other.action.scope))
                else {
                    continue;
                };
                for key in &binding.sequences {
                    for other_key in &other.sequences {
                        if key.starts_with(other_key) || other_key.starts_with(key) {
                            errors.push(KeymapError::Conflict {
                                name: binding.action.name,
                                key: show(key),
                                other: other.action.name,
                                other_key: show(other_key),
                                context,
                            });
                        }
                    }
                }
            }
        }
    }

    /// What `event` means in `context`, after the keys in `sequence`. A key that does not continue
    /// a sequence counts on its own.
    pub fn press(&self, context: Context, sequence: &mut Sequence, event: KeyEvent) -> Pressed {
        let Some(key) = Key::from_event(event) else { return Pressed::Unbound };
        if sequence.context.replace(context) != Some(context) {
            sequence.keys.clear();
        }
        sequence.keys.push(key);
        let found = self.find(context, &sequence.keys);
        let found = match found {
            Pressed::Unbound if sequence.keys.len() > 1 => {
                sequence.keys = vec![key];
                self.find(context, &sequence.keys)
            }
            found => found,
        };
        if found != Pressed::Pending {
            sequence.keys.clear();
        }
        found
    }

    fn find(&self, context: Context, keys: &[Key]) -> Pressed {
        let mut found = Pressed::Unbound;
        for binding in self.bindings.iter().filter(|binding| context.is_in(binding.action.scope)) {
            for sequence in &binding.sequences {
                if sequence == keys {
                    return Pressed::Intent(binding.action.intent);
                }
                if sequence.starts_with(keys) {
                    found = Pressed::Pending;
                }
            }
        }
        found
    }

    /// The keys of an intent, for hints in views.
    pub fn keys_of(&self, intent: Intent) -> Vec<String> {
        let binding = self.bindings.iter().find(|binding| binding.action.intent == intent);
        binding.map(|binding| binding.sequences.iter().map(|keys| show(keys)).collect()).unwrap_or_default()
    }

    /// The first key of `intent`, to name it; empty when it has none.
    pub fn key_of(&self, intent: Intent) -> String {
        self.keys_of(intent).into_iter().next().unwrap_or_default()
    }

    /// Whether `intent` can be asked for in `context`.
    pub fn reaches(&self, intent: Intent, context: Context) -> bool {
        let mut bindings = self.bindings.iter().filter(|binding| binding.action.intent == intent);
        bindings.any(|binding| context.is_in(binding.action.scope) && !binding.sequences.is_empty())
    }

    /// What to press for `intent` in `context`, to name it: where that is a letter or answers a
    /// question, one backs out first. None when there is no way.
    pub fn way_to(&self, intent: Intent, context: Context) -> Option<String> {
        let key = self.keys_of(intent).into_iter().next()?;
        if self.reaches(intent, context) {
            return Some(key);
        }
        let back = self.keys_of(Intent::Back).into_iter().next()?;
        Some(format!("{back}, then {key}"))
    }

    /// The footer of a context: first key and label of what is `offered`, the most useful first.
    pub fn footer(&self, context: Context, offered: impl Fn(Intent) -> bool) -> Vec<(String, &'static str)> {
        let mut footer: Vec<(String, &'static str)> = Vec::new();
        let here = |binding: &&Binding| context.is_in(binding.action.scope) && offered(binding.action.intent);
        for binding in self.bindings.iter().filter(here) {
            let label = binding.action.label;
            let Some(keys) = binding.sequences.first().filter(|_| !label.is_empty()) else { continue };
            match footer.last_mut().filter(|(_, last)| *last == label) {
                Some((shown, _)) => shown.push_str(&format!(" {}", show(keys))),
                None => footer.push((show(keys), label)),
            }
        }
        footer
    }

    /// The help: every action once, under the first of its contexts; those of the screen it is asked
    /// for on come first.
    pub fn help(&self, here: Option<Context>) -> Vec<(Context, Vec<HelpLine>)> {
        let here = here.filter(|here| *here != Context::Global);
        let is_here = |action: &Action| here.is_some_and(|here| action.scope.contains(&here));
        let lines = |context: Context| {
            self.bindings
                .iter()
                .filter(|binding| match is_here(binding.action) {
                    true => Some(context) == here,
                    false => binding.action.scope.first() == Some(&context),
                })
                .map(|binding| HelpLine {
                    keys: binding.sequences.iter().map(|keys| show(keys)).collect(),
                    name: binding.action.name,
                    help: binding.action.help.to_owned(),
                    intent: binding.action.intent,
                })
                .collect::<Vec<_>>()
        };
        let others = Context::ALL.into_iter().filter(|context| Some(*context) != here);
        here.into_iter()
            .chain(others)
            .map(|context| (context, lines(context)))
            .filter(|(_, lines)| !lines.is_empty())
            .collect()
    }
}

impl fmt::Debug for Keymap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = |binding: &Binding| binding.sequences.iter().map(|keys| show(keys)).collect::<Vec<_>>();
        f.debug_map()
            .entries(self.bindings.iter().map(|binding| (binding.action.name, keys(binding))))
            .finish()
    }
}

fn parse_sequence(text: &str, action: &Action) -> Result<Vec<Key>, String> {
    let keys =
        text.split(' ').filter(|key| !key.is_empty()).map(Key::parse).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = keys.first() else {
        return Err("no key; write one, or `[]` for no key at all".to_owned());
    };
    let in_text = action.scope.iter().any(|context| context.takes_text());
    if in_text && (first.is_text() || keys.len() > 1) {
        return Err("it works in a text field, where this is text; take a key with ctrl- or alt-".to_owned());
    }
    Ok(keys)
}

fn show(keys: &[Key]) -> String {
    keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
