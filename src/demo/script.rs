//! What a lead of the demo does next: a small state machine over a fixed plan, with seeded times.
//! Pure: no clock, no file.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use super::random::Random;
use super::session::ToolCall;
use crate::contract::SessionId;
use crate::herdr::Status;

/// Someone in the play.
#[derive(Debug, Clone)]
pub struct Character {
    /// What it is called.
    pub name: Cow<'static, str>,
    /// Its repository.
    pub repo: Cow<'static, str>,
    /// Its branch.
    pub branch: Cow<'static, str>,
    /// What it was first told to do.
    pub task: Cow<'static, str>,
    /// What it is shown doing from the start.
    pub starts: Status,
    /// A first prompt that was taken back, and what was answered to it.
    pub taken_back: Option<(&'static str, &'static str)>,
    /// What a compaction before the curtain rose left of it.
    pub summary: Option<&'static str>,
    /// What it did before the curtain rose.
    pub history: &'static [ToolCall<'static>],
    /// What it does, in turn.
    pub work: &'static [ToolCall<'static>],
    /// The command it can't get past.
    pub stuck_on: ToolCall<'static>,
    /// What it does instead once somebody writes to it about that, and what it says then; nothing if it
    /// takes no notice.
    pub recovery: Option<(&'static [ToolCall<'static>], &'static str)>,
    /// What it asks, in turn.
    pub asks: &'static [Question],
    /// What it writes to the Chief, in turn.
    pub tells: &'static [Tell],
    /// What it writes to peers, in turn.
    pub notes: &'static [Note],
    /// What it answers peers who ask it something, in turn.
    pub answers: &'static [&'static str],
    /// How it ends a turn, in turn.
    pub closes: &'static [&'static str],
    /// What it is told to do next, in turn.
    pub prompts: &'static [&'static str],
    /// What it does, step by step.
    pub plan: &'static [Step],
    /// The step after a process of it died.
    pub resumes: usize,
}

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// The question itself.
    pub question: &'static str,
    /// A file that goes with it.
    pub attached: Option<Attachment>,
    /// Whether nothing can be done without an answer.
    pub blocks: bool,
}

/// A file that goes with a question or message.
#[derive(Debug, Clone, Copy)]
pub struct Attachment {
    /// Its name in the working directory.
    pub name: &'static str,
    /// What is in it.
    pub content: &'static str,
    /// How often.
    pub times: usize,
}

/// A message to the Chief that waits for nothing.
#[derive(Debug, Clone, Copy)]
pub struct Tell {
    /// What it says.
    pub text: &'static str,
    /// A file that goes with it.
    pub attached: Option<Attachment>,
}

/// A message to a peer. One that ends in a question mark is answered.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    /// What the peer calls itself.
    pub to: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// Who is written to among the peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// Who calls itself so.
    Named(&'static str),
    /// Whose session this is.
    Session(SessionId),
}

/// One step of a plan. Seconds are those of speed 1, more or less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// So many calls of tools.
    Work(usize),
    /// So often the same failing command.
    Loop(usize),
    /// The next question; while one is pending, the reply is waited for first.
    Ask,
    /// Waits for the reply to what is pending.
    Await,
    /// The next message to the Chief.
    Tell,
    /// The next message to a peer.
    Write,
    /// Ends the turn and rests for so many seconds.
    Close(f64),
    /// Begins a turn with the next prompt.
    Prompt,
    /// Waits for so many seconds for someone at its own terminal.
    Blocked(f64),
    /// The process ends without a word.
    Die,
}

/// One thing to be done by the one who plays the lead.
#[derive(Debug, Clone)]
pub enum Act {
    /// Tell Herdr.
    Show(Status),
    /// Into the session: a tool's call and result.
    Call(ToolCall<'static>),
    /// Into the session: an answer that ends a turn.
    Say(String),
    /// Into the session: a prompt.
    Prompt(&'static str),
    /// Ask the Chief.
    Ask(Question),
    /// Write to the Chief.
    Tell(Tell),
    /// Write to a peer.
    Write(Recipient, &'static str),
    /// End this process without a word.
    Die,
}

/// Where a lead stands in its plan.
#[derive(Debug)]
pub struct Script {
    character: Character,
    random: Random,
    /// How many times faster than life; 0 stands still.
    speed: f64,
    /// The step that comes next.
    step: usize,
    /// What of earlier steps is still to be done, each after its pause in seconds.
    ahead: VecDeque<(f64, Act)>,
    /// What is done before all else: how it gets past what it was stuck on.
    recovery: VecDeque<Act>,
    /// Whether it did last what it can't get past.
    stuck: bool,
    /// Whether it got past that in this turn.
    recovered: bool,
    pending: bool,
    /// Whether it was shown that nothing goes on without a reply.
    rests: bool,
    done: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    work: usize,
    asks: usize,
    tells: usize,
    closes: usize,
    prompts: usize,
    notes: usize,
    answers: usize,
}

/// Between two things done while working.
const PACE: f64 = 4.5;
/// The same while it gets past what it was stuck on.
const RECOVERY: f64 = 1.5;
/// Before the first ask of the whole herd, which is not to be waited for long.
const FIRST_ASK: f64 = 1.2;

impl Script {
    /// The beginning. `speed` is not negative.
    pub fn new(character: Character, random: Random, speed: f64) -> Self {
        let stuck =
            character.history.last().is_some_and(|call| call.arguments == character.stuck_on.arguments);
        Self {
            character,
            recovery: VecDeque::new(),
            stuck,
            recovered: false,
            random,
            speed,
            step: 0,
            ahead: VecDeque::new(),
            pending: false,
            rests: false,
            done: Counts::default(),
        }
    }

    /// Goes on after the process died, with `asks` questions asked so far and, maybe, one pending.
    pub fn resume(&mut self, asks: usize, pending: bool) {
        self.step = self.character.resumes;
        self.done.asks = asks;
        // So that it is not at the same work again.
        self.done.work = asks * 3;
        self.pending = pending;
        self.ahead.push_back((1.0, Act::Prompt("The session was cut off. Pick up where you left it.")));
    }

    /// What is done next, and after how long. None while a reply is waited for, and for ever where
    /// the script stands still.
    pub fn next_act(&mut self) -> Option<(Duration, Act)> {
        if let Some(act) = self.recovery.pop_front() {
            let at_rest = self.speed == 0.0;
            let pause =
                if at_rest { Duration::ZERO } else { self.random.about(RECOVERY).div_f64(self.speed) };
            return Some((pause, act));
        }
        if self.speed == 0.0 {
            return self.next_at_rest().map(|act| (Duration::ZERO, act));
        }
        // A plan that only waits ends here, too.
        for _ in 0..=self.character.plan.len() {
            if let Some((pause, act)) = self.ahead.pop_front() {
                match &act {
                    Act::Ask(question) => (self.pending, self.rests) = (true, question.blocks),
                    Act::Show(Status::Working) => self.rests = false,
                    Act::Call(call) => self.stuck = call.arguments == self.character.stuck_on.arguments,
                    _ => {}
                }
                return Some((self.random.about(pause).div_f64(self.speed), act));
            }
            let plan = self.character.plan;
            let step = *plan.get(self.step % plan.len().max(1))?;
            if self.pending && matches!(step, Step::Ask | Step::Await) {
                if std::mem::replace(&mut self.rests, true) {
                    return None;
                }
                return Some((self.random.about(3.0).div_f64(self.speed), Act::Show(Status::Idle)));
            }
            self.step += 1;
            self.enter(step);
        }
        None
    }

    /// Of a script that stands still, only a question that opens the plan is asked.
    fn next_at_rest(&mut self) -> Option<Act> {
        if self.step > 0 || self.character.plan.first() != Some(&Step::Ask) || self.pending {
            return None;
        }
        self.step = 1;
        self.pending = true;
        self.next_question().map(Act::Ask)
    }

    fn enter(&mut self, step: Step) {
        let work = Act::Show(Status::Working);
        match step {
            Step::Work(times) => {
                self.then(0.0, work);
                for _ in 0..times {
                    if let Some(call) = in_turn(self.character.work, &mut self.done.work) {
                        self.then(PACE, Act::Call(call));
                    }
                }
            }
            Step::Loop(_) if self.recovered => {}
            Step::Loop(times) => {
                self.then(0.0, work);
                for _ in 0..times {
                    self.then(PACE / 2.0, Act::Call(self.character.stuck_on));
                }
            }
            Step::Ask => {
                let is_first = self.step == 1;
                if let Some(question) = self.next_question() {
                    self.then(if is_first { FIRST_ASK } else { 2.0 }, Act::Ask(question));
                    if question.blocks {
                        self.then(0.2, Act::Show(Status::Blocked));
                    }
                }
            }
            Step::Await => {}
            Step::Tell => {
                if let Some(tell) = in_turn(self.character.tells, &mut self.done.tells) {
                    self.then(2.0, Act::Tell(tell));
                }
            }
            Step::Write => {
                if let Some(Note { to, text }) = in_turn(self.character.notes, &mut self.done.notes) {
                    self.then(1.5, Act::Write(Recipient::Named(to), text));
                }
            }
            Step::Close(rest) => {
                if let Some(text) = in_turn(self.character.closes, &mut self.done.closes) {
                    self.then(3.0, Act::Say(text.to_owned()));
                }
                self.then(0.3, Act::Show(Status::Idle));
                // Nothing new to show: it only takes its time.
                self.then(rest, Act::Show(Status::Idle));
            }
            Step::Prompt => {
                self.recovered = false;
                if let Some(text) = in_turn(self.character.prompts, &mut self.done.prompts) {
                    self.then(1.0, Act::Prompt(text));
                    self.then(0.1, work);
                }
            }
            Step::Blocked(rest) => {
                self.then(1.0, Act::Show(Status::Blocked));
                self.then(rest, work);
            }
            Step::Die => self.then(2.0, Act::Die),
        }
    }

    fn then(&mut self, pause: f64, act: Act) {
        self.ahead.push_back((pause, act));
    }

    fn next_question(&mut self) -> Option<Question> {
        in_turn(self.character.asks, &mut self.done.asks)
    }

    /// Does `act` first of all, after that pause: it was not come to after all.
    pub fn put_back(&mut self, pause: Duration, act: Act) {
        self.ahead.push_front((pause.as_secs_f64() * self.speed, act));
    }

    /// The question could not be asked.
    pub fn not_asked(&mut self) {
        self.pending = false;
    }

    /// The reply came: it goes on, after saying so.
    pub fn replied(&mut self, reply: &str) {
        self.pending = false;
        if self.speed == 0.0 {
            return;
        }
        let gist: String = reply.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect();
        self.ahead.push_front((1.2, Act::Say(format!("Understood: {gist}. Going on with that."))));
        self.ahead.push_front((0.3, Act::Show(Status::Working)));
    }

    /// A peer wrote. Who asks is answered, if there is an answer.
    pub fn peer_wrote(&mut self, from: &SessionId, text: &str) {
        if self.speed == 0.0 || !text.trim_end().ends_with('?') {
            return;
        }
        if let Some(answer) = in_turn(self.character.answers, &mut self.done.answers) {
            self.ahead.push_front((2.5, Act::Write(Recipient::Session(from.clone()), answer)));
        }
    }

    /// Something came that needs no answer. Who is stuck does something else for it, even where the play
    /// stands still.
    pub fn told(&mut self) {
        if let Some((calls, word)) = self.character.recovery.filter(|_| std::mem::take(&mut self.stuck)) {
            let stuck_on = self.character.stuck_on.arguments;
            self.ahead.retain(|(_, act)| !matches!(act, Act::Call(call) if call.arguments == stuck_on));
            self.recovered = true;
            self.recovery.push_back(Act::Show(Status::Working));
            self.recovery.extend(calls.iter().copied().map(Act::Call));
            self.recovery.push_back(Act::Say(word.to_owned()));
            return;
        }
        if self.speed > 0.0 {
            self.ahead.push_front((1.5, Act::Say("Noted, I'll keep to that.".to_owned())));
        }
    }
}

/// The next of `all`, over and over.
fn in_turn<T: Copy>(all: &[T], done: &mut usize) -> Option<T> {
    let next = all.get(*done % all.len().max(1)).copied();
    *done += 1;
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::lead::is_question;
    use crate::demo::cast;

    fn script(nth: usize, speed: f64) -> Script {
        Script::new(cast::character(nth), Random::new(1, nth as u64), speed)
    }

    fn kind(act: &Act) -> &'static str {
        match act {
            Act::Show(_) => "show",
            Act::Call(_) => "call",
            Act::Say(_) => "say",
            Act::Prompt(_) => "prompt",
            Act::Ask(_) => "ask",
            Act::Tell(_) => "tell",
            Act::Write(..) => "write",
            Act::Die => "die",
        }
    }

    #[test]
    fn the_first_asks_within_two_seconds_and_once_until_it_is_answered() {
        let mut script = script(0, 1.0);
        let (pause, act) = script.next_act().unwrap();
        assert_eq!(kind(&act), "ask");
        assert!(pause < Duration::from_secs(2));
        let mut done = Vec::new();
        while let Some((_, act)) = script.next_act() {
            done.push(kind(&act));
        }
        assert!(!done.contains(&"ask") && done.contains(&"call"), "{done:?}");
        script.replied("Rotate them.");
        assert!(matches!(script.next_act(), Some((_, Act::Show(Status::Working)))));
        let Some((_, Act::Say(text))) = script.next_act() else { panic!() };
        assert!(text.contains("Rotate them"));
    }

    #[test]
    fn a_script_that_stands_still_asks_once_in_all() {
        let mut asked = 0;
        for nth in 0..7 {
            let mut script = script(nth, 0.0);
            while let Some((_, act)) = script.next_act() {
                assert_eq!(kind(&act), "ask");
                asked += 1;
                script.replied("yes");
            }
        }
        assert_eq!(asked, 1);
    }

    #[test]
    fn every_one_asks_several_different_things_and_each_can_be_asked() {
        for nth in 0..40 {
            let character = cast::character(nth);
            assert!(character.asks.len() >= 2, "{}", character.name);
            for ask in character.asks {
                assert!(is_question(&ask.question.into()), "{}", ask.question);
            }
            for call in character.history.iter().chain(character.work).chain([&character.stuck_on]) {
                let arguments: serde_json::Value = serde_json::from_str(call.arguments).unwrap();
                assert!(arguments.is_object());
            }
        }
    }

    #[test]
    fn notes_go_to_others_who_are_there_and_who_asks_a_peer_is_answered() {
        let characters: Vec<Character> = (0..cast::WRITTEN).map(cast::character).collect();
        let mut asked = 0;
        for character in &characters {
            assert!(
                character.plan.contains(&Step::Write) != character.notes.is_empty(),
                "{}",
                character.name
            );
            for note in character.notes {
                let to = characters.iter().find(|other| other.name == note.to).unwrap();
                assert_ne!(to.name, character.name);
                asked += usize::from(note.text.ends_with('?'));
            }
            assert!(!character.answers.is_empty() && !character.answers.iter().any(|it| it.ends_with('?')));
        }
        assert!(asked > 0);
        let from = SessionId::new("peer").unwrap();
        let mut asked = script(0, 1.0);
        asked.peer_wrote(&from, "Anything else?\n");
        let Some((_, Act::Write(to, _))) = asked.next_act() else { panic!() };
        assert_eq!(to, Recipient::Session(from.clone()));
        let mut told = script(0, 1.0);
        told.peer_wrote(&from, "That was all.");
        assert!(matches!(told.next_act(), Some((_, Act::Ask(_)))));
    }

    #[test]
    fn with_a_chief_who_answers_everyone_goes_on_for_ever_and_repeats_by_the_seed() {
        for nth in 0..9 {
            let play = |seed| {
                let mut script = Script::new(cast::character(nth), Random::new(seed, 0), 3.0);
                let mut told = Vec::new();
                for _ in 0..300 {
                    match script.next_act() {
                        Some((pause, act)) => told.push(format!("{pause:?} {}", kind(&act))),
                        None => {
                            script.replied("go on");
                            told.push("replied".to_owned());
                        }
                    }
                }
                told
            };
            assert_eq!(play(5), play(5));
            assert_ne!(play(5), play(6));
            assert!(play(5).iter().any(|it| it.ends_with("ask")), "{nth} never asks");
        }
    }
}
