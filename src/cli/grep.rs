//! `headman grep`: searches what was said in sessions. Needs no lease and writes nothing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::failure::{Exit, Failure};
use super::inbox::local;
use super::out::{Out, Tint, note};
use super::{duration, list, prefix};
use crate::chief::staff::path_of;
use crate::config::Places;
use crate::contract::json::ObjectWriter;
use crate::contract::{SessionId, Timestamp, Untrusted};
use crate::disk::durable;
use crate::herd::Lead;
use crate::pi::discover::{Chosen, Wanted};
use crate::pi::search::{Case, Filter, Group, Hit, Pattern, Search, Syntax, Target};
use crate::pi::session::read_header;

const WHAT: &str = "search the sessions";
/// Bytes of a line that are shown on each side of what was found, to a reader.
const SHOWN_AROUND: usize = 160;

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What is searched for: exactly this text; small letters find capitals unless there is one in it
    #[arg(value_name = "PATTERN")]
    pattern: OsString,
    /// PATTERN is a regular expression
    #[arg(short = 'e', long)]
    regex: bool,
    /// Letters find capitals, and capitals letters, whatever is in PATTERN
    #[arg(short, long)]
    ignore_case: bool,
    /// Search every session under Pi's agent directory, not only the leads'
    #[arg(long, conflicts_with_all = ["session", "file"])]
    all: bool,
    /// Search only this session: its id, or the beginning of one, 8 characters or more
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    session: Option<OsString>,
    /// Search only this session file; may be given several times
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Only what this one said
    #[arg(long, value_enum, value_name = "ROLE")]
    role: Option<Who>,
    /// Also what models thought
    #[arg(long)]
    thinking: bool,
    /// Only what is not older than this, as 90m, 2h or 3d
    #[arg(long, value_name = "TIME", value_parser = age)]
    since: Option<u64>,
    /// Stop after so many hits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Also copies of the same entry in several files, as forks have them
    #[arg(long)]
    all_copies: bool,
}

/// Whose words are searched.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Who {
    /// What users said
    User,
    /// What models said
    Assistant,
    /// What tools were called with and gave, and commands that users ran
    Tool,
    /// Summaries of compactions and branches
    Summary,
    /// Messages of extensions
    Custom,
}

impl Who {
    fn group(self) -> Group {
        match self {
            Who::User => Group::User,
            Who::Assistant => Group::Assistant,
            Who::Tool => Group::Tool,
            Who::Summary => Group::Summary,
            Who::Custom => Group::Custom,
        }
    }
}

/// Milliseconds; also in days.
fn age(text: &str) -> Result<u64, String> {
    let millis = match text.strip_suffix('d').map(str::parse::<u64>) {
        Some(Ok(days)) => days.checked_mul(24 * 3_600_000).ok_or("that is too long".to_owned())?,
        _ => u64::try_from(duration(text)?.as_millis()).unwrap_or(u64::MAX),
    };
    Ok(millis)
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the pattern is none, nothing can be searched, or Herdr is asked and does not answer.
pub fn run(
    places: impl FnOnce() -> Result<Places, Failure>,
    arguments: &Arguments,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let text = arguments.pattern.to_string_lossy();
    let syntax = if arguments.regex { Syntax::Regex } else { Syntax::Literal };
    let case = if arguments.ignore_case { Case::Ignored } else { Case::Smart };
    let pattern = Pattern::new(&text, syntax, case).map_err(|error| {
        let hint =
            if arguments.regex { "Without --regex it is taken as exactly this text" } else { "Give a text" };
        Failure::new(Exit::Usage, "pattern", format!("can't {WHAT}: the pattern is wrong: {error}"), hint)
    })?;
    let mut printer = Printer::default();
    let targets = targets(places, arguments, &mut printer.names)?;
    let filter = Filter {
        only: arguments.role.map(Who::group),
        thinking: arguments.thinking,
        since: arguments.since.map(|age| Timestamp::from_millis(now().saturating_sub(age))),
    };
    let mut search = Search::new(pattern, filter, arguments.all_copies, targets);
    let mut hits = 0;
    loop {
        let mut printed = Ok(());
        let more = search.step(&mut |hit| {
            hits += 1;
            printed = printer.print(&hit, out);
            if printed.is_err() || out.is_closed() || Some(hits) == arguments.limit {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        printed?;
        for (path, why) in search.take_troubles() {
            note(&format!("{} is not searched: {why}", durable::shown(&path)));
        }
        if !more || out.has_lost_its_reader() {
            break;
        }
    }
    let progress = search.progress();
    let told = [
        (progress.bad_lines, "that may have it", "no JSON"),
        (progress.long_lines, "of session files", "too long to be searched"),
    ];
    for (count, which, what) in told.into_iter().filter(|(count, ..)| *count > 0) {
        let (lines, are) = if count == 1 { ("line", "is") } else { ("lines", "are") };
        note(&format!("{count} {lines} {which} {are} {what}"));
    }
    if progress.copies > 0 {
        note(&format!(
            "copies of {} are not shown; --all-copies shows them",
            counted(progress.copies, "entry", "entries")
        ));
    }
    match hits {
        0 if progress.searched == 0 => Err(nothing("none of the files is a session's that can be read")),
        0 => Ok(Exit::No),
        _ => Ok(Exit::Done),
    }
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn nothing(why: &str) -> Failure {
    let hint = "Search every session with --all, or name a file with --file";
    Failure::new(Exit::Usage, "nothing_to_search", format!("can't {WHAT}: {why}"), hint)
}

fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// The files that are to be searched; also what their sessions are called, as far as that is known.
fn targets(
    places: impl FnOnce() -> Result<Places, Failure>,
    arguments: &Arguments,
    names: &mut HashMap<SessionId, Untrusted>,
) -> Result<Vec<Target>, Failure> {
    if !arguments.file.is_empty() {
        let target = |file: &PathBuf| Target { file: file.clone(), session: None };
        return Ok(arguments.file.iter().map(target).collect());
    }
    let places = places()?;
    if arguments.all {
        let discovered = places.sessions.files(&[]);
        tell_left_out(&discovered.left_out);
        if discovered.files.is_empty() {
            return Err(nothing("there are no session files"));
        }
        let target = |file| Target { file, session: None };
        return Ok(discovered.files.into_iter().map(target).collect());
    }
    if let Some(session) = &arguments.session {
        return of_session(&places, session, names);
    }
    let seen = list::look(&places, WHAT)?;
    let leads = seen.roster.leads;
    if leads.is_empty() {
        return Err(nothing("there are no leads"));
    }
    let chosen = places.sessions.choose(&leads.iter().map(wanted).collect::<Vec<_>>());
    let of = |session: &SessionId| {
        let lead = leads.iter().find(|lead| lead.session == *session);
        lead.map_or_else(|| session.as_untrusted().clone(), |lead| lead.display_name.clone())
    };
    tell(&chosen, of);
    names.extend(leads.iter().map(|lead| (lead.session.clone(), lead.display_name.clone())));
    if chosen.targets.is_empty() {
        return Err(nothing("no lead has a session file yet"));
    }
    Ok(chosen.targets)
}

/// What is known of a lead's session file.
fn wanted(lead: &Lead) -> Wanted {
    Wanted {
        session: lead.session.clone(),
        file: lead.session_file.as_ref().map(path_of),
        cwd: lead.cwd.as_ref().map(path_of),
    }
}

fn tell(chosen: &Chosen, name: impl Fn(&SessionId) -> Untrusted) {
    for session in &chosen.without {
        note(&format!("there is no session file of {} yet", name(session).escaped()));
    }
    for (session, count) in &chosen.several {
        tell_several(session, *count);
    }
    tell_left_out(&chosen.left_out);
}

fn tell_several(session: &SessionId, count: usize) {
    if count > 1 {
        note(&format!("{count} files are of session {}; all are searched", session.escaped()));
    }
}

fn tell_left_out(left_out: &[(PathBuf, String)]) {
    for (path, why) in left_out {
        note(&format!("{} is not searched: it {why}", durable::shown(path)));
    }
}

/// The files of one session: of the lead that is meant, where Herdr answers and there is one, else of
/// the only session under the agent directory that is so or begins so.
fn of_session(
    places: &Places,
    meant: &OsString,
    names: &mut HashMap<SessionId, Untrusted>,
) -> Result<Vec<Target>, Failure> {
    let meant = Untrusted::from_bytes_lossy(meant.as_encoded_bytes());
    let session = SessionId::new(meant.clone()).ok_or_else(|| {
        Failure::usage(format!("can't {WHAT}: that is no session id"), "See `headman list`")
    })?;
    // Whether Herdr answers or not.
    let seen = list::look(places, WHAT).ok();
    let lead = seen.as_ref().and_then(|seen| prefix::lead_of(&seen.roster, &session).ok());
    if let Some(lead) = lead {
        names.insert(lead.session.clone(), lead.display_name.clone());
        let chosen = places.sessions.choose(&[wanted(lead)]);
        tell(&chosen, |session| session.as_untrusted().clone());
        if !chosen.targets.is_empty() {
            return Ok(chosen.targets);
        }
    }
    let discovered = places.sessions.files(&[]);
    tell_left_out(&discovered.left_out);
    let mut found = discovered.of_sessions(|it| prefix::is_meant(it, &meant));
    if found.iter().any(|(it, _)| *it == session) {
        found.retain(|(it, _)| *it == session);
    }
    let mut sessions: Vec<&SessionId> = found.iter().map(|(it, _)| it).collect();
    sessions.sort();
    sessions.dedup();
    match sessions[..] {
        [] => Err(nothing(&format!("there is no file of session {}", meant.escaped()))),
        [session] => {
            tell_several(session, found.len());
            Ok(found.into_iter().map(|(session, file)| Target { file, session: Some(session) }).collect())
        }
        _ => {
            let sessions: Vec<_> = sessions.into_iter().map(|it| it.escaped().to_string()).collect();
            Err(nothing(&format!("{} sessions begin so: {}", sessions.len(), sessions.join(", "))))
        }
    }
}

/// How hits are printed.
#[derive(Default)]
struct Printer {
    /// What sessions are called: those of leads, and those looked for in their files.
    names: HashMap<SessionId, Untrusted>,
}

impl Printer {
    fn print(&mut self, hit: &Hit, out: &mut Out) -> Result<(), Failure> {
        let name = self.names.entry(hit.session.clone()).or_insert_with(|| name_of(&hit.file, &hit.session));
        let (line, place) = hit.line();
        if out.is_json() {
            return out.json(&json(hit, name, line, place.start, place.end));
        }
        let name = name.to_str_lossy();
        let at = hit.at.map_or_else(|| "no time".to_owned(), local);
        let role = match &hit.tool {
            Some(tool) => format!("{} {}", hit.role.word(), tool.to_str_lossy()),
            None => hit.role.word().to_owned(),
        };
        let from = line.floor_char_boundary(place.start.saturating_sub(SHOWN_AROUND));
        let to = line.ceil_char_boundary((place.end + SHOWN_AROUND).min(line.len()));
        let end = place.end.min(to);
        let (before, after) = (&line[from..place.start], &line[end..to]);
        let before = format!("{}{}", if from > 0 { "\u{2026}" } else { "" }, before.trim_start());
        let after = format!("{}{}", after, if to < line.len() { "\u{2026}" } else { "" });
        out.tinted(&[
            (&name, Some(Tint::Name)),
            (" \u{b7} ", None),
            (&at, Some(Tint::Quiet)),
            (" \u{b7} ", None),
            (&role, Some(Tint::Quiet)),
            (" \u{b7} ", None),
            (&before, None),
            (&line[place.start..end], Some(Tint::Match)),
            (after.trim_end(), None),
        ])
    }
}

/// What the session calls itself, else its id.
fn name_of(file: &Path, session: &SessionId) -> Untrusted {
    let name = read_header(file).ok().and_then(|header| header.name);
    name.unwrap_or_else(|| session.as_untrusted().clone())
}

fn json(hit: &Hit, name: &Untrusted, line: &str, start: usize, end: usize) -> String {
    let literal = |text: Option<&Untrusted>| {
        let mut literal = Vec::new();
        match text {
            Some(text) => text.write_json(&mut literal),
            None => literal.extend_from_slice(b"null"),
        }
        literal
    };
    let at = hit.at.map_or_else(|| "null".to_owned(), |at| at.as_millis().to_string());
    let object = ObjectWriter::new()
        .string("session", hit.session.as_untrusted())
        .string("name", name)
        .string("file", &Untrusted::from_bytes_lossy(hit.file.as_os_str().as_encoded_bytes()))
        .raw("entry", &literal(hit.entry.as_ref()))
        .number("offset", hit.offset as f64)
        .raw("timestamp", at.as_bytes())
        .string("role", &hit.role.as_str().into())
        .raw("tool", &literal(hit.tool.as_ref()))
        .string("text", &line.into())
        .raw("match", format!("[{start},{end}]").as_bytes())
        .number("matches", hit.places as f64)
        .finish();
    String::from_utf8_lossy(&object).into_owned()
}
