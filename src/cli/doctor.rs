//! `headman doctor`: what is found where. Looks only: nothing is written, moved or repaired.

mod files;
mod herdr;
mod inboxes;
mod records;
mod report;
mod terminal;

use std::collections::BTreeMap;

use super::failure::{Exit, Failure};
use super::out::Out;
use crate::chief::state_dir::StateDir;
use crate::config::{Config, Environment, Places};
use crate::contract::SessionId;
use crate::disk::{AgentDir, Runtime};
use crate::herdr::Located;
use report::{Level, Report, Section};

/// What is looked at on one socket.
struct Patient<'a> {
    agent_dir: &'a AgentDir,
    socket: &'a Located,
    runtime: Runtime,
    state: StateDir,
    /// Our own session there, if we ever had one.
    us: Option<SessionId>,
    /// Sessions by their hash, as far as records tell them.
    sessions: BTreeMap<String, SessionId>,
}

impl Patient<'_> {
    fn learn(&mut self, session: &SessionId) {
        self.sessions.insert(session.hash(), session.clone());
    }

    /// A session's name where its hash is known, else the hash.
    fn named(&self, hash: &str) -> String {
        match self.sessions.get(hash) {
            Some(session) => session.escaped().to_string(),
            None => hash.to_owned(),
        }
    }
}

/// Runs the verb; `register` is what the command line says of it.
///
/// # Errors
/// [`Failure`] where the answer can't be written. What is found to be wrong is the answer.
pub fn run(
    places: &Places,
    register: bool,
    environment: &Environment<'_>,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let mut report = Report::default();
    let config = Config::load(&places.config, places.config_is_named);
    report.add(terminal::configuration(places, &config));
    let register = register && config.as_ref().map_or(true, |config| config.register);
    match &places.socket {
        Ok(socket) => on_socket(places, socket, environment, &mut report)?,
        Err(error) => {
            let mut section = Section::new("herdr", "Herdr");
            section.say(Level::Bad, format!("{error}. {}", error.hint()));
            section.unavailable = true;
            report.add(section);
            report.add(files::agent_dir(&places.agent_dir));
        }
    }
    report.add(terminal::terminal(environment, register));
    if out.is_json() {
        out.json(&report.to_json())?
    } else {
        out.text(&report.to_text())?
    }
    Ok(match report.worst() {
        _ if report.is_unavailable() => Exit::Unavailable,
        Level::Bad => Exit::No,
        Level::Warn | Level::Ok => Exit::Done,
    })
}

fn on_socket(
    places: &Places,
    socket: &Located,
    environment: &Environment<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let state = StateDir::at(&places.state_dir, &socket.path);
    let mut patient = Patient {
        agent_dir: &places.agent_dir,
        socket,
        runtime: places.agent_dir.runtime(&socket.path),
        us: state.known_identity().ok().flatten().map(|identity| identity.session()),
        state,
        sessions: BTreeMap::new(),
    };
    if let Some(us) = patient.us.clone() {
        patient.learn(&us);
    }
    let (section, snapshot) = herdr::herdr(socket)?;
    report.add(section);
    report.add(files::agent_dir(patient.agent_dir));
    report.add(records::lease(&mut patient, snapshot.as_ref()));
    report.add(records::leads(&mut patient));
    report.add(records::peers(&mut patient));
    report.add(records::mailboxes(&mut patient));
    report.add(inboxes::inboxes(&patient));
    report.add(files::permissions(&patient));
    report.add(files::newer_generations(&patient));
    report.add(herdr::other_spellings(&patient, snapshot.as_ref(), environment));
    report.add(terminal::watching(&patient));
    report.add(files::state_dir(&patient));
    Ok(())
}
