//! `headman memory`: lessons and orientation, each quoted from what an operator wrote to a lead.

use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};
use super::located;
use super::out::{Out, note};
use super::supervise::{Subject, now};
use crate::chief::state_dir::StateDir;
use crate::config::Places;
use crate::contract::json::{ObjectWriter, number_text};
use crate::signals::memory::{Kind, Memory, Outcome, ranked, sanitised};
use crate::signals::quote::{self, NotKept, Wanted};
use crate::signals::store::{Kept, Store, StoreError};

/// What is wanted.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List what is kept, or what fits a text
    List(List),
    /// Print one, whole
    Show {
        /// Its name, or the end of it from a slash on
        name: String,
    },
    /// Keep what an operator wrote to a lead, word for word
    Add(Box<Add>),
    /// Learn how a run ended in which it was inserted, and put it away once it is spent
    Learn {
        /// Its name, or the end of it from a slash on
        name: String,
        /// `pass`, `exhausted` or `indeterminate`
        #[arg(value_parser = outcome)]
        outcome: Outcome,
    },
    /// Put one away; nothing is deleted
    Archive {
        /// Its name, or the end of it from a slash on
        name: String,
    },
}

/// Which are listed.
#[derive(Debug, Args)]
pub struct List {
    /// Only of this project, and what holds everywhere
    #[arg(long)]
    project: Option<String>,
    /// Only for this role, and what holds everywhere
    #[arg(long)]
    role: Option<String>,
    /// Only the five that fit this text best
    #[arg(long = "for", value_name = "TEXT")]
    text: Option<String>,
    /// Also what was put away
    #[arg(long, conflicts_with = "text")]
    archived: bool,
}

/// What is kept.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    subject: Subject,
    /// What the operator wrote, word for word as it stands in the session
    #[arg(long, value_name = "TEXT")]
    quote: String,
    /// What it is called
    #[arg(long)]
    title: String,
    /// `lesson` or `orientation`
    #[arg(long = "type", value_name = "KIND", default_value = "lesson", value_parser = kind)]
    kind: Kind,
    /// The project it is for [default: the session's directory, its last part]
    #[arg(long)]
    project: Option<String>,
    /// The role it is for
    #[arg(long, default_value = "lead")]
    role: String,
    /// It holds everywhere
    #[arg(long)]
    global: bool,
    /// A word to find it by; as often as needed
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
}

fn kind(text: &str) -> Result<Kind, String> {
    Kind::of(text).ok_or_else(|| "`lesson` or `orientation` is needed".to_owned())
}

fn outcome(text: &str) -> Result<Outcome, String> {
    match text {
        "pass" => Ok(Outcome::Pass),
        "exhausted" => Ok(Outcome::Exhausted),
        "indeterminate" => Ok(Outcome::Indeterminate),
        _ => Err("`pass`, `exhausted` or `indeterminate` is needed".to_owned()),
    }
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where it is not found, can't be read or written, or the quote does not stand in the session.
pub fn run(places: &Places, verb: &Verb, out: &mut Out) -> Result<Exit, Failure> {
    match verb {
        Verb::List(wanted) => list(&reading(places), wanted, out),
        Verb::Show { name } => {
            let kept = reading(places).find(name).map_err(|error| failed("show the memory", &error))?;
            match &kept.memory {
                Ok(memory) if out.is_json() => out.json(&to_json(&kept.name, memory, kept.is_archived))?,
                Ok(memory) => out.text(memory.to_file().trim_end())?,
                Err(why) => return Err(failed("show the memory", &StoreError::Unusable(why.clone()))),
            }
            Ok(Exit::Done)
        }
        Verb::Add(added) => add(places, added, out),
        Verb::Learn { name, outcome } => {
            let what = "learn from the run";
            let store = writing(places, what)?;
            let fail = |error: StoreError| failed(what, &error);
            let kept = store.find(name).map_err(fail)?;
            let learnt = store.learn(&kept, *outcome, now()).map_err(fail)?;
            let memory = learnt.memory.map_err(|why| fail(StoreError::Unusable(why)))?;
            told(&learnt.name, &memory, learnt.is_archived, out)
        }
        Verb::Archive { name } => {
            let what = "put the memory away";
            let store = writing(places, what)?;
            let kept = store.find(name).map_err(|error| failed(what, &error))?;
            let name = store.archive(&kept).map_err(|error| failed(what, &error))?;
            if out.is_json() {
                let object = ObjectWriter::new().string("name", &name.as_str().into()).finish();
                out.json(&String::from_utf8_lossy(&object))?;
            } else {
                out.text(&name)?;
            }
            Ok(Exit::Done)
        }
    }
}

/// The store, to look at: nothing is made.
fn reading(places: &Places) -> Store {
    let state = StateDir::at(&places.state_dir, std::ffi::OsStr::new(""));
    Store::new(state.root(), state.learning())
}

/// The store, to write to: as any state of ours, only where this release wrote it.
fn writing(places: &Places, what: &str) -> Result<Store, Failure> {
    let socket = located(places, what)?;
    let state = StateDir::open(&places.state_dir, &socket.path)
        .map_err(|error| Failure::disk(what, &error, "See `headman doctor`"))?;
    Ok(Store::new(state.root(), state.learning()))
}

fn failed(what: &str, error: &StoreError) -> Failure {
    let (exit, code, hint) = match error {
        StoreError::Disk(_) | StoreError::Unreadable { .. } => {
            (Exit::Unavailable, "disk", "See `headman doctor`")
        }
        StoreError::Ambiguous(_) => (Exit::No, "not_found", "See `headman memory list --archived`"),
        StoreError::Unusable(_) | StoreError::TooMany => {
            (Exit::No, "unusable", "See `headman memory list --archived`")
        }
    };
    Failure::new(exit, code, format!("can't {what}: {error}"), hint)
}

fn list(store: &Store, wanted: &List, out: &mut Out) -> Result<Exit, Failure> {
    let all = store.list().map_err(|error| failed("list the memories", &error))?;
    let mut kept: Vec<(&Kept, &Memory)> = Vec::new();
    for it in all.iter().filter(|it| wanted.archived || !it.is_archived) {
        match &it.memory {
            Ok(memory) => kept.push((it, memory)),
            Err(why) => note(&format!("{} can't be used: {why}", it.name)),
        }
    }
    let is_of =
        |wanted: &Option<String>, of: &str| wanted.as_ref().is_none_or(|it| sanitised(it) == sanitised(of));
    kept.retain(|(_, memory)| {
        let role = memory.role.split(':').next().unwrap_or_default();
        memory.is_global || is_of(&wanted.project, &memory.project) && is_of(&wanted.role, role)
    });
    if let Some(text) = &wanted.text {
        let memories: Vec<Memory> = kept.iter().map(|(_, memory)| (*memory).clone()).collect();
        kept = ranked(&memories, text, now(), true).into_iter().map(|at| kept[at]).collect();
    }
    if out.is_json() {
        for (it, memory) in &kept {
            out.json(&to_json(&it.name, memory, it.is_archived))?;
        }
    } else if kept.is_empty() {
        let is_asked = wanted.text.is_some() || wanted.project.is_some() || wanted.role.is_some();
        out.text(if is_asked { "Nothing that is kept fits." } else { "Nothing is kept." })?;
    } else {
        let lines: Vec<String> = kept
            .iter()
            .map(|(it, memory)| {
                let away = if it.is_archived { ", put away" } else { "" };
                let kind = memory.kind.as_str();
                format!(
                    "{:.2}  {kind}{away}  {}\n      {}\n      {}",
                    memory.importance, memory.title, it.name, memory.content
                )
            })
            .collect();
        out.text(&lines.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn add(places: &Places, added: &Add, out: &mut Out) -> Result<Exit, Failure> {
    let what = "keep the quote";
    let wanted = Wanted {
        quote: added.quote.clone(),
        title: added.title.clone(),
        kind: added.kind,
        project: added.project.clone(),
        role: added.role.clone(),
        is_global: added.global,
        tags: added.tags.clone(),
    };
    let (path, session) = added.subject.file(what, || Ok(places.clone()))?;
    let memory = quote::quoted(&wanted, &path, session.as_ref(), now()).map_err(|why| not_kept(what, why))?;
    let name = quote::keep(&writing(places, what)?, &memory).map_err(|why| not_kept(what, why))?;
    told(&name, &memory, false, out)
}

fn not_kept(what: &str, why: NotKept) -> Failure {
    let no = |code, hint: &str| Failure::new(Exit::No, code, format!("can't {what}: {why}"), hint);
    match &why {
        NotKept::Length => Failure::usage(format!("can't {what}: {why}"), "Quote a sentence or two"),
        NotKept::NoTitle => Failure::usage(format!("can't {what}: {why}"), "Give one with --title"),
        NotKept::Secret => no("secret", "Quote less of it"),
        NotKept::NotQuoted => no("not_quoted", "Copy it from `headman transcript --full`"),
        NotKept::Enough(_) => no("enough", "Keep what will matter in other sessions"),
        NotKept::Session(error) => super::transcript::unread(what, error),
        NotKept::Store(error) => failed(what, error),
    }
}

fn told(name: &str, memory: &Memory, is_archived: bool, out: &mut Out) -> Result<Exit, Failure> {
    if out.is_json() {
        out.json(&to_json(name, memory, is_archived))?;
    } else {
        let away = if is_archived { ", put away" } else { "" };
        out.text(&format!("{name} (importance {:.2}{away})", memory.importance))?;
    }
    Ok(Exit::Done)
}

fn to_json(name: &str, memory: &Memory, is_archived: bool) -> String {
    let mut object = ObjectWriter::new();
    object
        .string("name", &name.into())
        .string("title", &memory.title.as_str().into())
        .string("content", &memory.content.as_str().into())
        .string("memory_type", &memory.kind.as_str().into())
        .raw("importance", number_text(memory.importance).as_bytes())
        .raw("confidence", number_text(memory.confidence).as_bytes())
        .raw("tags", &crate::signals::gate::json_texts(&memory.tags))
        .string("source", &memory.source.as_str().into())
        .string("role", &memory.role.as_str().into())
        .string("project", &memory.project.as_str().into())
        .string("scope", &if memory.is_global { "global" } else { "project" }.into())
        .raw("created", number_text(memory.created as f64).as_bytes())
        .raw("archived", if is_archived { b"true" } else { b"false" });
    String::from_utf8_lossy(&object.finish()).into_owned()
}
