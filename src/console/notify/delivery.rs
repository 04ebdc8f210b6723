//! How notices reach the operator: through Herdr, which swallows what a terminal is told, or by the
//! terminal's own sequences where it is known to take them.

use tokio::sync::{mpsc, watch};

use super::{Notice, Notifier, Settings, TerminalWay};
use crate::console::app::App;
use crate::contract::Timestamp;
use crate::fact::Now;
use crate::herdr::Client;
use crate::herdr::api::Shown;

/// Notices that wait for a slow Herdr; further ones are dropped.
const WAITING: usize = 8;

/// How a terminal is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// One text.
    Osc9,
    /// Title and text.
    Osc777,
}

/// The way notices go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Means {
    /// Herdr shows them.
    Herdr,
    /// The terminal does.
    Terminal {
        /// How it is told.
        sequence: Sequence,
        /// Whether tmux is between, which passes it on.
        tmux: bool,
    },
    /// Nobody; safe to print why.
    Nobody(String),
}

impl Means {
    /// What is configured, in this environment.
    pub fn of(settings: &Settings, env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        if set("HERDR_ENV").as_deref() == Some("1") {
            return Self::Herdr;
        }
        let tmux = set("TMUX").is_some();
        let sequence = match settings.terminal {
            TerminalWay::Off => return Self::Nobody("they are switched off (notify.terminal)".to_owned()),
            TerminalWay::Osc9 => Sequence::Osc9,
            TerminalWay::Osc777 => Sequence::Osc777,
            TerminalWay::Auto => match known(&set) {
                Some(sequence) => sequence,
                None => {
                    return Self::Nobody(
                        "this terminal is not known to take them (notify.terminal names a way)".to_owned(),
                    );
                }
            },
        };
        if tmux && !settings.tmux_passthrough {
            return Self::Nobody(
                "tmux is between; where its allow-passthrough is on, set notify.tmux_passthrough".to_owned(),
            );
        }
        Self::Terminal { sequence, tmux }
    }

    /// As a sentence; safe to print.
    pub fn sentence(&self) -> String {
        match self {
            Self::Herdr => "Notices go through Herdr.".to_owned(),
            Self::Terminal { sequence: Sequence::Osc9, .. } => {
                "Notices go to the terminal, by OSC 9.".to_owned()
            }
            Self::Terminal { sequence: Sequence::Osc777, .. } => {
                "Notices go to the terminal, by OSC 777.".to_owned()
            }
            Self::Nobody(why) => format!("No notices: {why}."),
        }
    }
}

/// The sequence that a terminal takes, by the variables it sets. tmux sets its own over them, all but
/// those that no other terminal sets.
fn known(set: &impl Fn(&str) -> Option<String>) -> Option<Sequence> {
    let term = set("TERM").unwrap_or_default();
    let begins = |name: &str| term == name || term.starts_with(&format!("{name}-"));
    match set("TERM_PROGRAM").as_deref() {
        Some("iTerm.app" | "WezTerm" | "ghostty") => return Some(Sequence::Osc9),
        _ if begins("xterm-kitty") || begins("xterm-ghostty") || begins("wezterm") => {
            return Some(Sequence::Osc9);
        }
        _ => {}
    }
    if set("KITTY_WINDOW_ID").is_some() {
        return Some(Sequence::Osc9);
    }
    if begins("foot") || begins("rxvt-unicode") || set("VTE_VERSION").is_some() {
        return Some(Sequence::Osc777);
    }
    None
}

/// What the terminal is told. The text is neutralised, so nothing in it ends the sequence early; a
/// semicolon, which would divide it, becomes a comma.
pub fn bytes(sequence: Sequence, tmux: bool, notice: &Notice, ascii: bool) -> Vec<u8> {
    let shown = |text: &crate::console::text::Visible| match ascii {
        true => text.to_ascii().as_str().replace(';', ","),
        false => text.as_str().replace(';', ","),
    };
    let (title, body) = (shown(&notice.title), shown(&notice.body));
    let told = match sequence {
        Sequence::Osc9 if body.is_empty() => format!("\x1b]9;{title}\x07"),
        Sequence::Osc9 => format!("\x1b]9;{title}: {body}\x07"),
        Sequence::Osc777 => format!("\x1b]777;notify;{title};{body}\x07"),
    };
    match tmux {
        true => format!("\x1bPtmux;{}\x1b\\", told.replace('\x1b', "\x1b\x1b")).into_bytes(),
        false => told.into_bytes(),
    }
}

/// How notices fare, for the diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// A sentence on how they go; safe to print.
    pub way: String,
    /// Why the last one did not arrive, if it did not; safe to print.
    pub trouble: Option<String>,
}

/// Notices from what the console knows to where they are shown.
pub struct Notices {
    notifier: Notifier,
    means: Means,
    bell: bool,
    herdr: mpsc::Sender<Notice>,
    trouble: watch::Receiver<Option<String>>,
}

impl Notices {
    /// Starts the task that speaks with Herdr; within a tokio runtime.
    pub fn start(settings: Settings, means: Means, client: Client) -> Self {
        let (herdr, waiting) = mpsc::channel(WAITING);
        let (report, trouble) = watch::channel(None);
        if means == Means::Herdr {
            tokio::spawn(show(client, waiting, report));
        }
        Self { bell: settings.bell, notifier: Notifier::new(settings), means, herdr, trouble }
    }

    /// When [`Notices::turn`] has something to do although nothing happens.
    pub fn deadline(&self) -> Option<std::time::Duration> {
        self.notifier.deadline()
    }

    /// Takes what happened, and gives what is to be written to the terminal. `minute` gives that of the
    /// day on the operator's clock.
    pub fn turn(&mut self, app: &mut App, minute: fn(Timestamp) -> u16, now: Now) -> Option<Vec<u8>> {
        self.notifier.consider(app.timeline(), app.focused(), || minute(now.wall), now.mono);
        app.notices_fare(Report { way: self.means.sentence(), trouble: self.trouble.borrow().clone() });
        let notice = self.notifier.take_due(now.mono)?;
        let mut out = match &self.means {
            Means::Herdr => {
                // A Herdr that is so slow shows the earlier ones.
                let _ = self.herdr.try_send(notice);
                Vec::new()
            }
            Means::Terminal { sequence, tmux } => {
                bytes(*sequence, *tmux, &notice, app.settings.theme.ascii_text())
            }
            Means::Nobody(_) => Vec::new(),
        };
        if self.bell {
            out.push(b'\x07');
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Gives notices to Herdr, one after the other.
async fn show(client: Client, mut waiting: mpsc::Receiver<Notice>, report: watch::Sender<Option<String>>) {
    while let Some(notice) = waiting.recv().await {
        let body = (!notice.body.is_empty()).then_some(notice.body.as_str());
        let trouble = match client.notification_show(notice.title.as_str(), body, None).await {
            Ok(Shown { shown: true, .. }) => None,
            Ok(Shown { reason: Some(reason), .. }) => {
                let reason = reason.first_units(80);
                Some(format!("Herdr does not show notices: {}", reason.escaped()))
            }
            Ok(Shown { reason: None, .. }) => {
                Some("Herdr does not show notices, and says no reason".to_owned())
            }
            Err(error) => Some(format!("Herdr did not take the last notice: {error}")),
        };
        report.send_replace(trouble);
    }
}
