//! What `headman message` and `headman reply` share: through the running Chief of the same state
//! directory and socket, or as Chief for as long as it takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::sync::mpsc;

use super::counter::{self, Counter, Seen};
use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::prefix::{is_meant, lead_of};
use super::signals::Signals;
use super::{duration, letter};
use crate::chief::attach::FileArgument;
use crate::chief::journal::Journal;
use crate::chief::service::Request;
use crate::chief::staff::{Letter, Office, Refusal, Reply};
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::role::Role;
use crate::contract::{Kind, Message, SessionId, Timestamp, Untrusted, Uuid};
use crate::control::client::{self, Connection};
use crate::control::host::{self, Host};
use crate::control::socket::ControlSocket;
use crate::disk::inbox::{self, Content};
use crate::disk::records::{self, Holding};
use crate::disk::{Runtime, durable};
use crate::fact::{Done, Fate, OtherChief, Sent, Standing};
use crate::herdr::Client;
use crate::herdr::locate::Located;

/// What to do where another message has the id.
const OTHER_ID: &str = "Give it an id of its own, or none";
/// How long a lead gets to take it from a Chief that ends then.
const WAIT: Duration = Duration::from_secs(30);
/// How long the lead's session gets to show what the lead has taken.
const PROOF: Duration = Duration::from_secs(2);
/// Queued messages that are named one by one.
const NAMED: usize = 20;

/// What both are asked.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// What to say; `-` is standard input
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: OsString,
    /// A file to attach, or a result as result:UUID; may be given again
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<OsString>,
    /// Become Chief for as long as this takes, when nobody is
    #[arg(long)]
    take_lease: bool,
    /// Wait so long for the lead to take it, as 30s, 500ms or 2m
    ///
    /// Without it a message counts as sent once it is queued; with --take-lease the wait is 30s, as
    /// nothing is taken of a Chief that is gone.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    /// The id it is to have: sent again under the same id, it is not sent twice
    ///
    /// A UUID of version 1 to 5. Where a message was sent under it already, what became of that is
    /// told, also after a restart; one to another lead or of another text is refused. Without it a
    /// fresh one is chosen, which is named where it is not known what became of the message.
    #[arg(long, value_name = "UUID", value_parser = message_id)]
    id: Option<Uuid>,
}

fn message_id(text: &str) -> Result<Uuid, String> {
    let id = Uuid::parse(&text.to_ascii_lowercase());
    id.ok_or_else(|| "a UUID of version 1 to 5 is needed, as uuidgen prints it".to_owned())
}

/// What is sent.
pub(super) enum Wanted {
    /// A message.
    Message,
    /// A reply to the ask whose id begins so.
    Reply(String),
}

impl Wanted {
    fn kind(&self) -> Kind {
        match self {
            Wanted::Message => Kind::ChiefMessage,
            Wanted::Reply(_) => Kind::ChiefReply,
        }
    }

    /// The verb, which is what fails.
    fn what(&self) -> &'static str {
        match self {
            Wanted::Message => "send",
            Wanted::Reply(_) => "reply",
        }
    }
}

/// Sends, and tells what became of it.
pub(super) async fn run(
    places: &Places,
    socket: &Located,
    lead: &std::ffi::OsStr,
    wanted: Wanted,
    options: &Options,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let task = Task {
        places,
        socket,
        what: wanted.what(),
        lead: SessionId::new(Untrusted::from_bytes_lossy(lead.as_encoded_bytes())).ok_or_else(|| {
            Failure::usage(format!("can't {}: that is no session id", wanted.what()), "See `headman list`")
        })?,
        text: letter::text(wanted.what(), &options.text)?,
        files: letter::files(&options.files)?,
        id: options.id.unwrap_or_else(Uuid::random),
        wanted,
    };
    let exchange = task.run(options).await?;
    let sent = &exchange.sent;
    tell(&exchange, out)?;
    Ok(match sent.fate {
        _ if exchange.interrupted => Exit::Interrupted,
        Fate::Queued if options.wait.is_none() && !exchange.gave_back => Exit::Done,
        Fate::Taken | Fate::Delivered | Fate::Answered => Exit::Done,
        Fate::Queued | Fate::Unknown | Fate::Again | Fate::Unsent => Exit::No,
    })
}

/// One text on its way to one lead.
struct Task<'a> {
    places: &'a Places,
    socket: &'a Located,
    what: &'static str,
    lead: SessionId,
    text: Untrusted,
    files: Vec<FileArgument>,
    id: Uuid,
    wanted: Wanted,
}

/// The lead as it is now, with the ask to answer and its question.
struct Target {
    lead: SessionId,
    instance: Uuid,
    ask: Option<(Uuid, Untrusted)>,
}

/// What came of it.
struct Exchange {
    sent: Sent,
    /// A signal ended the waiting.
    interrupted: bool,
    /// We were Chief only for this, and are not any more.
    gave_back: bool,
}

impl Task<'_> {
    fn disk_failed(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::disk(self.what, error, "See `headman doctor`")
    }

    fn occupied(&self, message: impl std::fmt::Display, hint: &str) -> Failure {
        Failure::new(Exit::NotChief, "lease_occupied", format!("can't {}: {message}", self.what), hint)
    }

    async fn run(&self, options: &Options) -> Result<Exchange, Failure> {
        let control = ControlSocket::of_environment(&self.places.state_dir, &self.socket.path);
        let running = control.connect().await.map_err(|error| counter::silent(self.what, &error))?;
        match running {
            Some(connection) => self.through(connection, options).await,
            None => {
                let runtime = self.places.agent_dir.runtime(&self.socket.path);
                self.free(&runtime, options.take_lease)?;
                self.as_chief(control, options).await
            }
        }
    }

    /// Through the service of another process.
    async fn through(&self, connection: Connection, options: &Options) -> Result<Exchange, Failure> {
        let pid = connection.hello().pid;
        let session = connection.hello().session.clone();
        let target = self.target(&self.office(session), options).await?;
        let (requests, asked) = mpsc::channel(8);
        let (attached, facts) = client::attach(connection, asked);
        let mut counter =
            Counter { what: self.what, requests: &requests, facts: &facts, seen: Seen::default() };
        counter.wait_for(|seen| seen.standing.as_ref().is_some_and(|it| *it != Standing::Starting)).await?;
        let is_chief = counter.seen.lease().is_some();
        if !is_chief {
            let hint = "Press c in it, or add --take-lease to have it be Chief for as long as this takes";
            match counter.seen.standing.clone() {
                Some(
                    Standing::Observer { chief: OtherChief::None, .. }
                    | Standing::Suspended(OtherChief::None),
                ) if options.take_lease => {
                    counter.become_chief().await?;
                }
                Some(Standing::Lost { chief: OtherChief::None, .. }) if options.take_lease => {
                    counter.become_chief().await?;
                }
                _ => {
                    let message = format!("the running headman (process {pid}) is not Chief");
                    return Err(Failure::new(
                        Exit::NotChief,
                        "not_chief",
                        format!("can't {}: {message}", self.what),
                        hint,
                    ));
                }
            }
        }
        let wait = options.wait.or((!is_chief).then_some(WAIT));
        let result = self.exchange(&mut counter, target, wait).await;
        let left = match is_chief {
            true => Ok(()),
            false => counter.ask(|ticket| Request::Leave { ticket }).await.map(drop),
        };
        drop(requests);
        // What was asked is on its way; nothing more is said to us.
        attached.abort();
        let (sent, interrupted) = result?;
        left?;
        Ok(Exchange { sent, interrupted, gave_back: !is_chief })
    }

    /// As Chief, for as long as it takes.
    async fn as_chief(&self, control: ControlSocket, options: &Options) -> Result<Exchange, Failure> {
        let runtime = self.places.agent_dir.runtime(&self.socket.path);
        let state = StateDir::open(&self.places.state_dir, &self.socket.path)
            .map_err(|error| self.disk_failed(&error))?;
        let identity = state.identity().map_err(|error| self.disk_failed(&error))?;
        // Before anything is voided for it: the send itself looks again.
        let target = self.target(&self.office(identity.session()), options).await?;
        self.tell_voided(&runtime, &state);
        let host = Host::start(host::Options {
            socket: self.socket.clone(),
            agent_dir: self.places.agent_dir.clone(),
            sessions: self.places.sessions.clone(),
            state_dir: self.places.state_dir.clone(),
            // What is old goes with the next console.
            keep_days: None,
            notified: true,
            turn_logs: None,
            may_only_watch: false,
            pane: Err("headman is Chief only for as long as one message takes".to_owned()),
            control,
        });
        let host = host.map_err(|error| self.disk_failed(&error))?;
        let mut counter =
            Counter { what: self.what, requests: &host.requests, facts: &host.facts, seen: Seen::default() };
        let result = match counter.become_chief().await {
            Ok(()) => self.exchange(&mut counter, target, Some(options.wait.unwrap_or(WAIT))).await,
            Err(failure) => Err(failure),
        };
        // Resuming as Chief at the next start is for those who were Chief before.
        let left = if identity.role == Role::Lead && counter.seen.lease().is_some() {
            counter.ask(|ticket| Request::Leave { ticket }).await.map(drop)
        } else {
            Ok(())
        };
        host.end().await;
        let (sent, interrupted) = result?;
        left?;
        Ok(Exchange { sent, interrupted, gave_back: true })
    }

    /// Sends, and waits for what becomes of it; whether a signal ended the waiting.
    async fn exchange(
        &self,
        counter: &mut Counter<'_>,
        target: Target,
        wait: Option<Duration>,
    ) -> Result<(Sent, bool), Failure> {
        // From here on an interruption gives the lease back first.
        let mut signals = Signals::new().map_err(|error| self.disk_failed(&error))?;
        let wait = wait.map(|wait| Instant::now() + wait);
        let mut known = None;
        loop {
            let (sent, interrupted) = self.once(counter, &target, wait, &mut signals).await?;
            // On its way under another id, it is told of by that once it is asked for again.
            let goes_on = sent.fate == Fate::Again && known.replace(sent.id) != Some(sent.id);
            if !goes_on || interrupted {
                return Ok((sent, interrupted));
            }
        }
    }

    async fn once(
        &self,
        counter: &mut Counter<'_>,
        target: &Target,
        wait: Option<Instant>,
        signals: &mut Signals,
    ) -> Result<(Sent, bool), Failure> {
        let Some(lease) = counter.seen.lease() else { return Err(counter.gone()) };
        let outcome = counter.ask(|ticket| self.request(ticket, target, lease)).await;
        let what = self.what;
        let refused = |why: String| {
            let message = format!("can't {what}: {why}");
            if why.starts_with(client::UNKNOWN) {
                return self.unknown(Failure::new(Exit::No, "unknown", message, "See `headman doctor`"));
            }
            let stays = [Refusal::OtherUnderId(self.id), Refusal::IdTaken(self.id)];
            let hint = match stays.iter().any(|refusal| why == refusal.to_string()) {
                true => OTHER_ID,
                false => "See `headman list`; once the reason is gone, try again",
            };
            Failure::new(Exit::No, "refused", message, hint)
        };
        let outcome = outcome.map_err(|failure| self.unknown(failure))?;
        let Done::Sent(id) = outcome.map_err(refused)? else { return Err(counter.gone()) };
        let told = counter.wait_for(|seen| seen.sent(id).is_some()).await;
        told.map_err(|failure| self.unknown(failure))?;
        let interrupted = match wait {
            None => false,
            Some(wait) => tokio::select! {
                settled = settled(counter, id) => {
                    settled.map(|()| false).map_err(|failure| self.unknown(failure))?
                }
                () = tokio::time::sleep_until(wait.into()) => false,
                _ = signals.any() => true,
            },
        };
        let sent = counter.seen.sent(id).cloned().map(|sent| (sent, interrupted));
        sent.ok_or_else(|| self.unknown(counter.gone()))
    }

    fn request(&self, ticket: u64, target: &Target, lease: Uuid) -> Request {
        let (lead, instance, id) = (target.lead.clone(), target.instance, Some(self.id));
        let (text, files) = (self.text.clone(), self.files.clone());
        match target.ask.clone() {
            None => {
                let letter = Letter { lead, instance, lease, text, files, id };
                Request::Message { ticket, letter }
            }
            Some((ask, question)) => {
                let reply = Reply { lead, instance, ask, question, lease, text, files, id };
                Request::Reply { ticket, reply }
            }
        }
    }

    /// With the way to find out, where it is not known what became of it.
    fn unknown(&self, failure: Failure) -> Failure {
        if failure.code != "unknown" {
            return failure;
        }
        let id = self.id;
        let hint =
            format!("{}; then run the same command again with --id {id}: it is not sent twice", failure.hint);
        Failure { id: Some(id), hint, ..failure }
    }

    fn office(&self, session: SessionId) -> Office {
        let runtime = self.places.agent_dir.runtime(&self.socket.path);
        Office::new(self.places.agent_dir.clone(), runtime, session, Instant::now())
    }

    /// Looks for the lead, or what was sent before, and says how the files will go.
    async fn target(&self, office: &Office, options: &Options) -> Result<Target, Failure> {
        let sent_before = match options.id {
            Some(id) => self.sent_before(id)?,
            None => None,
        };
        // Its files went with it, whatever they are now.
        if let Some(target) = sent_before {
            return Ok(target);
        }
        let target = self.target_now(office).await?;
        let rendered = office
            .render(self.wanted.kind(), &target.lead, &self.text, &self.files)
            .map_err(|error| letter::not_attached(self.what, &error))?;
        letter::tell_references(&rendered);
        Ok(target)
    }

    /// To whom the message of that id went, if there is one: that lead may be gone by now, and the ask
    /// answered. The service says what became of it, and whether it is the same.
    fn sent_before(&self, id: Uuid) -> Result<Option<Target>, Failure> {
        let state = StateDir::at(&self.places.state_dir, &self.socket.path);
        let journal = Journal::open(&state.journal()).map_err(|error| self.disk_failed(&error))?;
        let Some(entry) = journal.index().sent_entry(id) else { return Ok(None) };
        let message = journal.message(entry).map_err(|error| self.disk_failed(&error))?;
        let ask = match (&self.wanted, message.ask) {
            (Wanted::Message, None) => Some(None),
            (Wanted::Reply(wanted), Some(ask)) if ask.to_string().starts_with(wanted) => Some(Some(ask)),
            _ => None,
        };
        let Some(ask) = ask.filter(|_| is_meant(&message.lead, self.lead.as_untrusted())) else {
            let why = Refusal::OtherUnderId(id);
            let message = format!("can't {}: {why}", self.what);
            return Err(Failure::new(Exit::No, "refused", message, OTHER_ID));
        };
        // An instance and a question that are nobody's: nothing new is sent for this.
        let ask = ask.map(|ask| (ask, Untrusted::from("")));
        Ok(Some(Target { lead: message.lead, instance: Uuid::random(), ask }))
    }

    /// Looks for the lead and its ask in Herdr.
    async fn target_now(&self, office: &Office) -> Result<Target, Failure> {
        let herdr = Client::new(PathBuf::from(&self.socket.path));
        let snapshot =
            herdr.snapshot().await.map_err(|error| Failure::herdr(self.what, &error, self.socket))?;
        let roster = office.roster(&snapshot).map_err(|error| self.disk_failed(&error))?;
        let not_found = |message: String| {
            let message = format!("can't {}: {message}", self.what);
            Failure::new(Exit::No, "not_found", message, "See `headman list`")
        };
        let found = lead_of(&roster, &self.lead).map_err(not_found)?;
        let ask = match (&self.wanted, &found.pending_ask) {
            (Wanted::Message, _) => None,
            (Wanted::Reply(id), Some(pending)) if pending.ask.to_string().starts_with(id) => {
                Some((pending.ask, pending.question.clone()))
            }
            (Wanted::Reply(_), Some(pending)) => {
                return Err(not_found(format!("that lead asks something else now, {}", pending.ask)));
            }
            (Wanted::Reply(_), None) => {
                return Err(not_found(
                    "that lead asks nothing now: the ask was answered or withdrawn, or the id is no ask's"
                        .to_owned(),
                ));
            }
        };
        Ok(Target { lead: found.session.clone(), instance: found.instance, ask })
    }

    /// Whether nobody is Chief, and we may become it.
    fn free(&self, runtime: &Runtime, take_lease: bool) -> Result<(), Failure> {
        let holding = records::read_holding(runtime).map_err(|error| self.disk_failed(&error))?;
        match holding {
            Holding::Held(chief) => Err(self.occupied(
                format!(
                    "session {} on pane {} (process {}) is Chief",
                    chief.session.escaped(),
                    chief.pane.escaped(),
                    chief.claim.pid
                ),
                "Send it from there, or leave Chief mode there first",
            )),
            Holding::InProgress(claim) => {
                Err(self
                    .occupied(format!("process {} is becoming Chief", claim.pid), "Try again in a moment"))
            }
            Holding::Unverifiable(why) => {
                Err(self.occupied(format!("it can't be told who is Chief: {why}"), "See `headman doctor`"))
            }
            Holding::Free | Holding::Stale(_) if !take_lease => Err(Failure::new(
                Exit::NotChief,
                "not_chief",
                format!("can't {}: no Chief is running here", self.what),
                "Start the console with `headman`, or `headman serve`, or add --take-lease to be Chief for as long \
                 as this takes",
            )),
            Holding::Free | Holding::Stale(_) => Ok(()),
        }
    }

    /// Says which messages that still stand in leads' inboxes a new lease makes void: those of the
    /// lease before it. What is left of earlier ones has been void since that began, and was told
    /// then.
    fn tell_voided(&self, runtime: &Runtime, state: &StateDir) {
        let mut queued: Vec<Message> = Vec::new();
        let hashes = durable::list(&runtime.inboxes()).unwrap_or_default();
        for hash in hashes.iter().filter_map(|name| name.to_str()) {
            // What can't be listed can't be named; the lead judges it all the same.
            let entries = inbox::list(&runtime.inbox_of_hash(hash)).unwrap_or_default();
            queued.extend(entries.into_iter().filter(|entry| !entry.quarantined).filter_map(|entry| {
                match entry.content {
                    Content::Valid(message)
                        if matches!(message.kind, Kind::ChiefMessage | Kind::ChiefReply) =>
                    {
                        Some(*message)
                    }
                    _ => None,
                }
            }));
        }
        let voided = of_the_last_lease(queued, last_claim(state));
        for message in voided.iter().take(NAMED) {
            note(&format!(
                "taking the lease voids message {} to {}, still queued under lease {}",
                message.id,
                message.to.escaped(),
                message.lease
            ));
        }
        if voided.len() > NAMED {
            note(&format!("taking the lease voids {} more queued messages", voided.len() - NAMED));
        }
        if !voided.is_empty() {
            note("what of it is yours is sent again, by this or your next Chief");
        }
    }
}

/// When a console of this state directory last claimed the lease: the file is written at no other
/// time.
fn last_claim(state: &StateDir) -> Option<Timestamp> {
    let written = std::fs::metadata(state.sidecar()).and_then(|found| found.modified()).ok()?;
    let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(u64::try_from(since.as_millis()).ok()?))
}

/// Those that were sent under the lease of the latest, if that was sent after `claimed`. No record
/// says which lease was the last one, so this is as near as can be told.
fn of_the_last_lease(mut queued: Vec<Message>, claimed: Option<Timestamp>) -> Vec<Message> {
    queued.retain(|message| claimed.is_none_or(|claimed| message.created_at >= claimed));
    queued.sort_by_key(|message| (message.created_at, message.id));
    let last = queued.last().map(|message| message.lease);
    queued.retain(|message| Some(message.lease) == last);
    queued
}

/// Waits until the lead has it, and a little for what shows that it does.
async fn settled(counter: &mut Counter<'_>, id: Uuid) -> Result<(), Failure> {
    let is = |seen: &Seen, holds: fn(&Sent) -> bool| seen.sent(id).is_some_and(holds);
    counter.until(|seen| is(seen, |sent| sent.fate != Fate::Queued)).await?;
    let is_final = counter.until(|seen| is(seen, |sent| sent.fate.is_final(sent.kind)));
    // Taken without it is enough.
    let _ = tokio::time::timeout(PROOF, is_final).await;
    Ok(())
}

fn tell(exchange: &Exchange, out: &mut Out) -> Result<(), Failure> {
    let sent = &exchange.sent;
    if out.is_json() {
        let object = ObjectWriter::new()
            .string("id", &sent.id.to_string().into())
            .string("session", sent.lead.as_untrusted())
            .optional("ask_id", sent.ask.map(|ask| ask.to_string().into()).as_ref())
            .string("fate", &sent.fate.name().into())
            .finish();
        return out.json(&String::from_utf8_lossy(&object));
    }
    let meaning = match sent.fate {
        Fate::Answered => "the lead went on",
        Fate::Taken if sent.kind == Kind::ChiefReply => "the lead has it, and still shows its ask",
        Fate::Taken => "the lead has it",
        Fate::Delivered if sent.kind == Kind::ChiefReply => {
            "the lead's session has it, and the lead still shows its ask"
        }
        Fate::Delivered => "the lead's session has it",
        Fate::Queued if exchange.gave_back => {
            "not taken, and not valid any more, as the lease is given back; your next console that is Chief \
             sends it again. The lead is busy, or has seen no Chief listed in Herdr since it started: send it \
             from a console in a Herdr pane, or try a longer --wait"
        }
        Fate::Queued => {
            "in the lead's inbox. A lead that works takes it when its turn ends; one that has seen no Chief listed \
             in Herdr since it started does not take it"
        }
        Fate::Unknown => "ask the lead",
        Fate::Again => "it was sent again",
        Fate::Unsent => "it could not be put into the lead's inbox",
    };
    out.text(&format!("{} {}: {meaning}", sent.id, sent.fate.as_str()))
}
