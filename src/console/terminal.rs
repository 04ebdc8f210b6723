//! The terminal: taken over at the start, given back on every way out.
//!
//! [`Screen`] enters raw mode, the alternate screen and what else the console needs, and restores
//! all of it when it is dropped, before a panic's message is printed (the hook does it), and
//! around a suspension or an editor. Signals never end the process by themselves: [`Signals`]
//! yields them, and the loop leaves in the ordinary way. When the terminal itself is gone nothing
//! is written any more, not even to standard error, which is gone too.

mod events;
mod signals;

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::queue;
use crossterm::style::{Print, ResetColor};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal};
use rustix::process::{Signal as RawSignal, kill_current_process_group};

use super::text::Visible;
pub use events::{Events, Read};
pub use signals::{Signal, Signals};

/// Whether the terminal is ours at the moment.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Which of the optional modes were entered.
static KEYBOARD: AtomicBool = AtomicBool::new(false);
static MOUSE: AtomicBool = AtomicBool::new(false);

/// Whether the terminal hung up. It never comes back.
static GONE: AtomicBool = AtomicBool::new(false);

/// How long a full output queue is waited for. A terminal that was left non-blocking by another
/// program refuses instead of waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the stop that a suspension asks for may take. An orphaned process group is never
/// stopped; then the console goes on.
const STOP_WITHIN: Duration = Duration::from_millis(300);

/// Saves and restores the window's title on the terminal's own stack.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// Standard input or output is something else.
    #[error("the console needs a terminal, and {which} is none")]
    NotATerminal {
        /// Which of them.
        which: &'static str,
    },
    /// The screen was given back and not taken again, as after a panic elsewhere.
    #[error("nothing can be drawn: the terminal was given back")]
    Left,
    /// The terminal hung up.
    #[error("the terminal is gone")]
    Gone,
    /// The system refused.
    #[error("the terminal could not {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl TerminalError {
    /// The next step, without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotATerminal { .. } => {
                "Use `headman list` for the leads, or --plain for text that can be piped"
            }
            Self::Left | Self::Gone | Self::Io { .. } => "Use `headman list`, or another terminal",
        }
    }
}

/// How a program came back that had the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lent {
    /// It ended by itself.
    Done,
    /// It could not be run, or said that it failed; safe to print why.
    Failed(String),
    /// A signal that ends us came, and ended it.
    Ended(Signal),
}

async fn wait_for(mut child: tokio::process::Child, signals: &mut Signals) -> Lent {
    loop {
        tokio::select! {
            ended = child.wait() => return match ended {
                Ok(status) if status.success() => Lent::Done,
                Ok(status) => Lent::Failed(status.to_string()),
                Err(error) => Lent::Failed(error.to_string()),
            },
            signal = signals.next() => match signal {
                // Both have been told: it is the one that is used now.
                Signal::Interrupt | Signal::Continued => {}
                signal => {
                    // Only what we started, and whatever it makes of it: the terminal is needed no more.
                    let _ = child.kill().await;
                    return Lent::Ended(signal);
                }
            }
        }
    }
}

/// What to ask the terminal for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Report the mouse. It takes selecting away from the terminal, so it is a choice.
    pub mouse: bool,
    /// Don't ask for unambiguous keys, without which Shift-Enter is Enter.
    pub plain_keys: bool,
}

/// The terminal while it is ours.
pub struct Screen {
    terminal: Option<Terminal<CrosstermBackend<Out>>>,
    options: Options,
    held: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal over and clears it. Only one screen can stand at a time.
    pub fn enter(options: Options) -> Result<Self, TerminalError> {
        if !io::stdin().is_terminal() {
            return Err(TerminalError::NotATerminal { which: "standard input" });
        }
        if !io::stdout().is_terminal() {
            return Err(TerminalError::NotATerminal { which: "standard output" });
        }
        restore_on_panic();
        enter(options)?;
        // From here on dropping it restores.
        let mut screen = Self { terminal: None, options, held: Arc::default() };
        let out = Out { buffer: Vec::new(), held: Arc::clone(&screen.held) };
        let terminal = Terminal::new(CrosstermBackend::new(out)).map_err(failed("be measured"))?;
        screen.terminal = Some(terminal);
        screen.redraw()?;
        Ok(screen)
    }

    /// Draws what changed. One write per frame, shown at once where the terminal can.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> Result<(), TerminalError> {
        let terminal = ours(&mut self.terminal)?;
        self.held.store(true, Ordering::Relaxed);
        let drawn = queue!(terminal.backend_mut(), BeginSynchronizedUpdate)
            .and_then(|()| terminal.draw(render).map(|_| ()))
            .and_then(|()| queue!(terminal.backend_mut(), EndSynchronizedUpdate));
        self.held.store(false, Ordering::Relaxed);
        drawn.and_then(|()| Write::flush(terminal.backend_mut())).map_err(failed("be drawn to"))
    }

    /// Forgets what the terminal shows, so that the next frame draws everything. (Not
    /// `Terminal::clear`: that asks the terminal where its cursor is, and fails without an answer.)
    pub fn redraw(&mut self) -> Result<(), TerminalError> {
        let terminal = ours(&mut self.terminal)?;
        let size = terminal.size().map_err(failed("be measured"))?;
        terminal
            .resize(Rect::from((ratatui::layout::Position::ORIGIN, size)))
            .map_err(failed("be drawn to"))?;
        // Cells that were never drawn may show what another program left there.
        Backend::clear_region(terminal.backend_mut(), ratatui::backend::ClearType::All)
            .and_then(|()| Backend::flush(terminal.backend_mut()))
            .map_err(failed("be drawn to"))
    }

    /// Sets the window's title; leaving restores the one before.
    pub fn set_title(&mut self, title: &Visible) -> Result<(), TerminalError> {
        let out = ours(&mut self.terminal)?.backend_mut();
        queue!(out, SetTitle(title.as_str())).and_then(|()| Write::flush(out)).map_err(failed("be named"))
    }

    /// Offers bytes to the terminal's clipboard (OSC 52). Whether it takes them can't be known.
    pub fn copy(&mut self, bytes: &[u8]) -> Result<(), TerminalError> {
        let out = ours(&mut self.terminal)?.backend_mut();
        queue!(out, crossterm::clipboard::CopyToClipboard::to_clipboard_from(bytes))
            .and_then(|()| Write::flush(out))
            .map_err(failed("be given text to copy"))
    }

    /// Sends the terminal a notice, as `notify::delivery` makes them.
    pub fn notify(&mut self, bytes: &[u8]) -> Result<(), TerminalError> {
        let out = ours(&mut self.terminal)?.backend_mut();
        out.write_all(bytes).and_then(|()| Write::flush(out)).map_err(failed("be given a notice"))
    }

    /// Has another program use the terminal until it ends, and takes the terminal back. Signals that
    /// reach us meanwhile are that program's affair, but for those that end us: these end it first.
    ///
    /// # Errors
    /// Of the terminal; why the program could not be run is a result of its own.
    pub async fn lend(
        &mut self,
        events: &mut Events,
        signals: &mut Signals,
        start: impl FnOnce() -> io::Result<tokio::process::Child>,
    ) -> Result<Lent, TerminalError> {
        events.stop();
        self.give_back();
        let lent = match start() {
            Ok(child) => wait_for(child, signals).await,
            Err(error) => Lent::Failed(error.to_string()),
        };
        if matches!(lent, Lent::Ended(_)) {
            return Ok(lent);
        }
        self.take_back()?;
        *events = Events::start()?;
        Ok(lent)
    }

    /// Gives the terminal back, for an editor say. Stop the [`Events`] first: they would take its
    /// keys. [`Screen::take_back`] follows.
    pub fn give_back(&mut self) {
        restore();
    }

    /// Takes the terminal over again, after [`Screen::give_back`] or when the process was stopped
    /// and continued from outside ([`Signal::Continued`]), whoever changed the modes meanwhile.
    pub fn take_back(&mut self) -> Result<(), TerminalError> {
        restore();
        enter(self.options)?;
        self.redraw()
    }

    /// Stops the console as Ctrl-z stops a program, and takes the terminal back once it is
    /// continued. Everything has to be drawn anew then.
    pub async fn suspend(&mut self, signals: &mut Signals) -> Result<(), TerminalError> {
        restore();
        signals.forget_continued();
        // The whole group, as the terminal would: a script that started us is stopped, too.
        kill_current_process_group(RawSignal::TSTP)
            .map_err(|error| failed("be given to the shell")(error.into()))?;
        // The stop may come a moment after the call returns; drawing before it would leave the
        // shell with our modes.
        let _ = tokio::time::timeout(STOP_WITHIN, signals.continued()).await;
        enter(self.options)?;
        self.redraw()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        if let Some(terminal) = self.terminal.take() {
            // Its own drop shows the cursor and complains on standard error when it can't; what is
            // still buffered belongs to a screen that is gone.
            std::mem::forget(terminal);
        }
    }
}

/// Whether the terminal hung up: nothing must be printed then.
pub fn is_gone() -> bool {
    GONE.load(Ordering::SeqCst)
}

fn ours(
    terminal: &mut Option<Terminal<CrosstermBackend<Out>>>,
) -> Result<&mut Terminal<CrosstermBackend<Out>>, TerminalError> {
    if is_gone() {
        return Err(TerminalError::Gone);
    }
    match terminal {
        Some(terminal) if ENTERED.load(Ordering::SeqCst) => Ok(terminal),
        _ => Err(TerminalError::Left),
    }
}

fn enter(options: Options) -> Result<(), TerminalError> {
    if is_gone() {
        return Err(TerminalError::Gone);
    }
    crossterm::terminal::enable_raw_mode().map_err(failed("enter raw mode"))?;
    let keyboard = !options.plain_keys && offers_keyboard(&std::env::var("TERM").unwrap_or_default());
    KEYBOARD.store(keyboard, Ordering::SeqCst);
    MOUSE.store(options.mouse, Ordering::SeqCst);
    ENTERED.store(true, Ordering::SeqCst);
    let mut bytes = Vec::new();
    entering(&mut bytes, keyboard, options.mouse).and_then(|()| write_out(&bytes)).map_err(|error| {
        restore();
        failed("be taken over")(error)
    })
}

fn entering(out: &mut impl Write, keyboard: bool, mouse: bool) -> io::Result<()> {
    queue!(out, Print(PUSH_TITLE), EnterAlternateScreen, Hide, EnableBracketedPaste, EnableFocusChange)?;
    if keyboard {
        queue!(out, PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES))?;
    }
    if mouse {
        queue!(out, EnableMouseCapture)?;
    }
    Ok(())
}

fn leaving(out: &mut impl Write, keyboard: bool, mouse: bool) -> io::Result<()> {
    // A frame may have been half drawn.
    queue!(out, EndSynchronizedUpdate, ResetColor)?;
    if mouse {
        queue!(out, DisableMouseCapture)?;
    }
    if keyboard {
        queue!(out, PopKeyboardEnhancementFlags)?;
    }
    queue!(out, DisableFocusChange, DisableBracketedPaste, Show, LeaveAlternateScreen, Print(POP_TITLE))
}

/// Undoes [`enter`], if it is to be undone. Takes no lock that drawing holds, so that a panic
/// anywhere can call it.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) || is_gone() {
        return;
    }
    let mut bytes = Vec::new();
    // There is nobody left to tell about a failure.
    let _ = leaving(&mut bytes, KEYBOARD.load(Ordering::SeqCst), MOUSE.load(Ordering::SeqCst))
        .and_then(|()| write_out(&bytes));
    let _ = crossterm::terminal::disable_raw_mode();
}

/// Terminals that know the kitty keyboard protocol act on the request, others ignore it; asking
/// first would cost a start in a terminal that never answers two seconds. These old ones print it.
fn offers_keyboard(term: &str) -> bool {
    let first = term.split('-').next().unwrap_or_default();
    let numbered =
        first.strip_prefix("vt").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    !numbered && !matches!(first, "" | "linux" | "dumb" | "cons25" | "ansi" | "sun" | "eterm")
}

fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let entered = ENTERED.load(Ordering::SeqCst);
            restore();
            if !is_gone() {
                previous(info);
            }
            if entered {
                signals::panicked();
            }
        }));
    });
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> TerminalError {
    move |source| {
        // A terminal that hung up says so to whoever writes before the watch has noticed.
        if is_gone() || source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
            TerminalError::Gone
        } else {
            TerminalError::Io { what, source }
        }
    }
}

/// Standard output, buffered by the frame. Not `io::Stdout`, whose lock and line buffer would get
/// into the way of restoring.
struct Out {
    buffer: Vec<u8>,
    /// While a frame is put together.
    held: Arc<AtomicBool>,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.load(Ordering::Relaxed) || self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.buffer);
        let written = if ENTERED.load(Ordering::SeqCst) { write_out(&bytes) } else { Ok(()) };
        self.buffer = bytes;
        self.buffer.clear();
        written
    }
}

fn write_out(mut bytes: &[u8]) -> io::Result<()> {
    let stdout = io::stdout();
    let mut waited = Duration::ZERO;
    while !bytes.is_empty() {
        match rustix::io::write(stdout.as_fd(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                waited = Duration::ZERO;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) if waited < PATIENCE => {
                let pause = Duration::from_millis(1);
                std::thread::sleep(pause);
                waited += pause;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_that_would_print_it_are_not_asked_for_unambiguous_keys() {
        for term in
            ["xterm-256color", "xterm-kitty", "tmux-256color", "screen", "foot", "vte-256color", "alacritty"]
        {
            assert!(offers_keyboard(term), "{term}");
        }
        for term in ["", "linux", "linux-16color", "dumb", "vt100", "vt220-w", "ansi"] {
            assert!(!offers_keyboard(term), "{term}");
        }
    }

    #[test]
    fn what_is_entered_is_left_in_the_opposite_order() {
        let mut on = Vec::new();
        let mut off = Vec::new();
        entering(&mut on, true, true).unwrap();
        leaving(&mut off, true, true).unwrap();
        let on = String::from_utf8(on).unwrap();
        let off = String::from_utf8(off).unwrap();
        for mode in ["?1049", "?2004", "?1004", "?1000", "?1006"] {
            assert!(on.contains(&format!("\x1b[{mode}h")), "{mode}");
            assert!(off.contains(&format!("\x1b[{mode}l")), "{mode}");
        }
        // The keyboard's flags are kept for each screen apart: popped before the screen is left.
        assert!(on.find("\x1b[>1u").unwrap() > on.find("\x1b[?1049h").unwrap());
        assert!(off.find("\x1b[<1u").unwrap() < off.find("\x1b[?1049l").unwrap());
        assert!(on.starts_with(PUSH_TITLE) && off.ends_with(POP_TITLE));
        assert!(on.contains("\x1b[?25l") && off.contains("\x1b[?25h"));
    }

    #[test]
    fn without_a_terminal_the_error_says_what_to_use() {
        let error = TerminalError::NotATerminal { which: "standard output" };
        assert_eq!(error.to_string(), "the console needs a terminal, and standard output is none");
        assert!(error.hint().contains("`headman list`") && error.hint().contains("--plain"));
    }
}
