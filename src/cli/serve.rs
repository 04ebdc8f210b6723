//! `headman serve`: a Chief without a screen. It holds the lease, receives into the journal, and
//! answers on the control socket.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::SignalKind;

use super::block_on;
use super::console::{chief_pane, second_attempt};
use super::failure::{Exit, Failure};
use super::out::{Out, note};
use super::signals::Signals;

use crate::chief::service::Request;
use crate::config::{Config, Places};
use crate::contract::json::ObjectWriter;
use crate::control::host::{self, Host};
use crate::control::socket::ControlSocket;
use crate::fact::{Desk, Fact, Mail, OtherChief, Standing};
use crate::herdr::Registration;
use crate::herdr::locate::Located;
use crate::herdr::reexec::{GoOn, Reexec};

/// How long becoming Chief may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The ticket of the one request that has an outcome.
const BECOME_CHIEF: u64 = 1;

/// How it ended.
enum Ended {
    Signal(Exit),
    /// Chief mode was left by another process.
    Left,
    /// To be executed again, so that Herdr takes us for Pi.
    Again(Reexec),
}

/// Runs until a signal ends it, or it is Chief no more.
///
/// # Errors
/// [`Failure`] where it can't be Chief, or lost the lease.
pub fn run(
    places: Places,
    socket: Located,
    config: &Config,
    go_on: &GoOn,
    out: &mut Out,
) -> Result<Exit, Failure> {
    match block_on(serve(places, socket, config, go_on, out))?? {
        Ended::Signal(exit) => Ok(exit),
        Ended::Left => Ok(Exit::Done),
        Ended::Again(again) => {
            // The lease is released.
            let error = again.exec(std::env::args_os().skip(1));
            note(&format!("{error}. Start headman again"));
            Ok(Exit::Unavailable)
        }
    }
}

async fn serve(
    places: Places,
    socket: Located,
    config: &Config,
    go_on: &GoOn,
    out: &mut Out,
) -> Result<Ended, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::disk("serve", error, "See `headman doctor`");
    let mut signals = Signals::new().map_err(|error| failed(&error))?;
    let control = ControlSocket::of_environment(&places.state_dir, &socket.path);
    let pane = chief_pane(go_on);
    let registers = pane.is_ok();
    let second_attempt = second_attempt(&pane);
    let host = Host::start(host::Options {
        socket,
        agent_dir: places.agent_dir,
        sessions: places.sessions,
        state_dir: places.state_dir,
        keep_days: config.keep_days.map(NonZeroU32::get),
        notified: config.notifications,
        turn_logs: None,
        may_only_watch: false,
        pane,
        control,
    });
    let host = host.map_err(|error| failed(&error))?;
    let mut watch = Watch {
        host: &host,
        out,
        standing: Standing::Starting,
        serves: false,
        received: None,
        registers,
        registration: None,
        mail: None,
        herdr_down: None,
        second_attempt,
    };
    let becomes = tokio::time::sleep(PATIENCE);
    tokio::pin!(becomes);
    let ended = loop {
        tokio::select! {
            signal = signals.any() => break Ok(Ended::Signal(match signal {
                kind if kind == SignalKind::interrupt() => Exit::Interrupted,
                _ => Exit::Done,
            })),
            () = &mut becomes, if watch.standing.lease().is_none() => {
                break Err(failed(&"becoming Chief takes too long"));
            }
            () = host.facts.ready() => {
                let mut ended = Ok(None);
                for fact in host.facts.take() {
                    ended = watch.fact(fact).await;
                    if !matches!(ended, Ok(None)) {
                        break;
                    }
                }
                match ended {
                    Ok(None) => {}
                    Ok(Some(ended)) => break Ok(ended),
                    Err(failure) => break Err(failure),
                }
            }
        }
    };
    host.end().await;
    ended
}

/// Tells what happens, a line each.
struct Watch<'a> {
    host: &'a Host,
    out: &'a mut Out,
    standing: Standing,
    /// Whether others could find it.
    serves: bool,
    /// How many messages there were in all, and unread.
    received: Option<(usize, usize)>,
    /// Whether it is to be listed in Herdr at all.
    registers: bool,
    /// What became known before it was Chief, and says something only once it is.
    registration: Option<Registration>,
    mail: Option<Arc<Mail>>,
    second_attempt: Option<Reexec>,
    /// Why Herdr does not answer, as it was told.
    herdr_down: Option<String>,
}

impl Watch<'_> {
    async fn fact(&mut self, fact: Fact) -> Result<Option<Ended>, Failure> {
        match fact {
            Fact::Desk(Desk::Own { socket }) => {
                self.serves = true;
                self.tell("socket", &format!("others of yours find this Chief at {}", socket.display()))?;
            }
            Fact::Desk(Desk::Of { pid, .. }) => {
                return Err(occupied(
                    &format!("headman runs already, as process {pid}"),
                    "Use that one, or end it first",
                ));
            }
            Fact::Desk(Desk::Alone(why)) if self.serves => {
                self.tell("socket", &format!("no other of yours finds this Chief now: {why}"))?;
            }
            Fact::Desk(Desk::Alone(why)) => {
                return Err(Failure::new(
                    Exit::Unavailable,
                    "control_socket",
                    format!("can't serve: {why}"),
                    "See `headman doctor`",
                ));
            }
            Fact::Standing(standing) => return self.stand(standing).await,
            Fact::Outcome(outcome) if outcome.ticket == BECOME_CHIEF => {
                if let Err(why) = outcome.result {
                    return Err(occupied(&format!("not Chief: {why}"), "See `headman doctor`"));
                }
            }
            Fact::Registration(registration) => {
                if self.standing.lease().is_some() {
                    self.registration(&registration)?;
                } else {
                    self.registration = Some(registration.clone());
                }
                if registration.can_write_up() {
                    self.second_attempt = None;
                } else if registration.is_not_taken_for_pi()
                    && let Some(again) = self.second_attempt.take()
                {
                    return Ok(Some(Ended::Again(again)));
                }
            }
            Fact::Mail(mail) if self.standing.lease().is_some() => self.mail(&mail)?,
            Fact::Mail(mail) => self.mail = Some(mail),
            Fact::Sent(sent) => {
                let id = sent.id;
                self.tell(
                    "sent",
                    &format!("{} {id} to {}: {}", sent.kind.as_str(), sent.lead.escaped(), sent.fate.name()),
                )?;
            }
            Fact::HerdrDown { reason } if self.herdr_down.as_ref() != Some(&reason) => {
                self.tell("herdr", &reason)?;
                self.herdr_down = Some(reason);
            }
            Fact::Inventory(_) => self.herdr_down = None,
            _ => {}
        }
        Ok(None)
    }

    async fn stand(&mut self, standing: Standing) -> Result<Option<Ended>, Failure> {
        let before = std::mem::replace(&mut self.standing, standing);
        match &self.standing {
            Standing::Starting => {}
            // Refused before it comes so far.
            Standing::Barred { why, .. } => return Err(occupied(why, "Use the newer release")),
            Standing::Chief { lease, .. } => {
                let text = format!("Chief under lease {lease}");
                self.tell("standing", &text)?;
                if let Some(registration) = self.registration.take() {
                    self.registration(&registration)?;
                }
                if let Some(mail) = self.mail.take() {
                    self.mail(&mail)?;
                }
            }
            Standing::Observer { .. } if before.lease().is_some() => {
                self.tell("standing", "Chief mode was left by another process of yours")?;
                return Ok(Some(Ended::Left));
            }
            // Nobody has the lease: the outcome says what keeps it from us.
            Standing::Observer { chief, .. } | Standing::Suspended(chief)
                if before == Standing::Starting && (*chief == OtherChief::None || chief.is_in_progress()) =>
            {
                self.host.request(Request::BecomeChief { ticket: BECOME_CHIEF }).await;
            }
            Standing::Observer { chief, .. } if before == Standing::Starting => {
                return Err(occupied(&chief.sentence(), "Leave Chief mode there first"));
            }
            // Told by the outcome.
            Standing::Observer { .. } => {}
            Standing::Suspended(chief) if *chief == OtherChief::None || chief.is_in_progress() => {}
            Standing::Suspended(chief) => {
                return Err(occupied(&chief.sentence(), "Leave Chief mode there first"));
            }
            Standing::Lost { reason, chief } => {
                let message = format!("the Chief lease was lost: {reason}; {}", chief.sentence());
                return Err(occupied(&message, "Start it again once the lease is free"));
            }
        }
        Ok(None)
    }

    /// Only what is settled: on its way into Herdr's list nothing is wrong yet.
    fn registration(&mut self, registration: &Registration) -> Result<(), Failure> {
        match registration {
            Registration::Registering => Ok(()),
            Registration::NotTried { .. } if self.registers => Ok(()),
            settled => self.tell("registration", &settled.to_string()),
        }
    }

    fn mail(&mut self, mail: &Mail) -> Result<(), Failure> {
        if let Some(why) = &mail.stopped {
            return self.tell("received", &format!("nothing is received now: {why}"));
        }
        let received = (mail.total, mail.unread);
        if self.received.replace(received) == Some(received) {
            return Ok(());
        }
        let messages = if mail.total == 1 { "message" } else { "messages" };
        self.tell("received", &format!("{} {messages} in the journal, {} unread", mail.total, mail.unread))
    }

    fn tell(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        if self.out.is_json() {
            let object = ObjectWriter::new()
                .number("at", self.host.office.now().wall.as_number())
                .string("what", &what.into())
                .string("text", &text.into())
                .finish();
            return self.out.json(&String::from_utf8_lossy(&object));
        }
        self.out.text(text)
    }
}

fn occupied(message: &str, hint: &str) -> Failure {
    Failure::new(Exit::NotChief, "lease_occupied", format!("can't serve: {message}"), hint)
}
