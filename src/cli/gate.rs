//! `headman gate`: whether what a lead claims to be done may be. Free checks first; then the evidence for a
//! verifier of the operator's, and what its answer is worth. Nothing is sent to the lead.

mod verify;

use std::path::{Path, PathBuf};

use clap::Args;

use super::configured;
use super::failure::{Exit, Failure};
use super::input;
use super::out::{Out, note};
use super::supervise::{Subject, Watched};
use crate::config::{Config, Places};
use crate::contract::Uuid;
use crate::contract::json::ObjectWriter;
use crate::disk::{durable, named};
use crate::herd::evidence::State as Doing;
use crate::signals::condense;
use crate::signals::delegation::{self, Child};
use crate::signals::dirty::Mark;
use crate::signals::fuse::Advice;
use crate::signals::gate::{self, Attempts, Evidence, Objection, Step, Verdict};
use crate::signals::git;
use crate::signals::plan::Plan;

const WHAT: &str = "check the claim";
/// Largest plan read, in bytes.
const MAX_PLAN: usize = 1 << 20;

/// What is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Hold the claim against this plan, in Markdown; what it assumes of files is looked for from here, or
    /// from --repo
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Let git say what changed in the working tree there; nothing that its configuration says is run
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Print the evidence that a verifier would be given, if nothing speaks against the claim
    #[arg(long, conflicts_with = "verdict")]
    dry_run: bool,
    /// Write what is folded in the evidence whole into this directory first
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    spill: Option<PathBuf>,
    /// Judge this answer of a verifier's; `-` is standard input
    #[arg(long, value_name = "FILE|-")]
    verdict: Option<PathBuf>,
    /// The answer that a verifier gave before
    #[arg(long, value_name = "FILE")]
    earlier: Option<PathBuf>,
    /// Only look for what speaks against the claim; ask no verifier
    #[arg(long, conflicts_with_all = ["dry_run", "verdict"])]
    no_verifier: bool,
    /// End the verifier once standard input ends, as a program wants it that starts this one
    #[arg(long, conflicts_with = "verdict")]
    ends_with_input: bool,
}

/// What came of it.
struct Gated {
    objections: Vec<Objection>,
    content_only: bool,
    judged: Option<(Verdict, Step)>,
    /// Where a verifier might have been asked: how many runs there were of how many, or why it was not.
    asked: Option<Result<(u32, u32), verify::Why>>,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the session, the plan, the answers or the working tree can't be read.
pub fn run(
    places: impl Fn() -> Result<Places, Failure>,
    arguments: &Arguments,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let config = configured(&places()?)?;
    let watched = arguments.subject.watch(WHAT, &places)?;
    let standing = watched.standing();
    let claims = standing.advice == Some(Advice::Gate);
    warn(&config, &watched);
    let plan = arguments.plan.as_deref().map(read_plan).transpose()?;
    let base = arguments.repo.clone().unwrap_or_default();
    let exists = |path: &str| base.join(path).exists();
    let objections = gate::objections(watched.watch.changes(), plan.as_ref(), exists);
    let content_only = watched.watch.mark() == Mark::ContentOnly;
    let mut gated = Gated { objections, content_only, judged: None, asked: None };
    if gated.objections.is_empty() && (arguments.dry_run || arguments.verdict.is_some()) {
        let earlier = arguments.earlier.as_deref().map(read_earlier).transpose()?.unwrap_or_default();
        let evidence = evidence(&config, &watched, arguments, earlier)?;
        match &arguments.verdict {
            None => {
                if !claims {
                    note(&verify::Why::NoClaim.to_string());
                }
                out.json(&evidence.to_json())?;
                return Ok(Exit::Done);
            }
            Some(path) => gated.judged = Some(judge(&config, &watched, &evidence, path)?),
        }
    } else if gated.objections.is_empty() && !arguments.no_verifier {
        let asking = verify::Asking { places: &places()?, config: &config, watched: &watched, claims };
        match asking.ask(arguments.ends_with_input, |earlier| {
            let earlier = match &arguments.earlier {
                Some(path) => read_earlier(path)?,
                None => earlier,
            };
            evidence(&config, &watched, arguments, earlier)
        })? {
            verify::Came::NotAsked(why) => gated.asked = Some(Err(why)),
            verify::Came::Ended(exit) => return Ok(exit),
            verify::Came::Judged { verdict, step, used, most } => {
                gated.judged = Some((verdict, step));
                gated.asked = Some(Ok((used, most)));
            }
        }
    }
    if !claims && !matches!(gated.asked, Some(Err(verify::Why::NoClaim))) {
        note(&verify::Why::NoClaim.to_string());
    }
    if out.is_json() {
        out.json(&gated.to_json())?;
    } else {
        out.text(&gated.plain())?;
    }
    let passed = match (&gated.judged, &gated.asked) {
        (Some((_, step)), _) => *step == Step::Verified,
        (None, Some(Err(why))) => why.is_no_objection(),
        (None, _) => gated.objections.is_empty(),
    };
    Ok(if passed { Exit::Done } else { Exit::No })
}

/// What is to be known before anybody believes a verdict.
fn warn(config: &Config, watched: &Watched) {
    let models: Vec<String> =
        watched.watch.models().map(|model| model.id.to_str_lossy().into_owned()).collect();
    let command =
        config.supervisor.as_ref().map(|supervisor| &supervisor.gate.command[..]).unwrap_or_default();
    if let Some(model) = gate::related(command, models.iter().map(String::as_str)) {
        note(&format!("the verifier's command names the family of the lead's own model, {model}"));
    }
    let agents = watched.lead.as_ref().map(|lead| &lead.agents[..]).unwrap_or_default();
    let finished = |doing| matches!(doing, Doing::Idle | Doing::Done);
    // Nobody judges agents yet, so none is verified.
    let children: Vec<Child> =
        agents.iter().map(|agent| Child { finished: finished(agent.state), verified: None }).collect();
    if let Some(why) =
        delegation::judge(&children, watched.watch.mark() != Mark::Clean).filter(|_| !children.is_empty())
    {
        note(&format!("what the lead's agents did does not count as verified: {why}"));
    }
}

fn read_plan(path: &Path) -> Result<Plan, Failure> {
    let bytes = named::read(path, MAX_PLAN)
        .map_err(|error| Failure::disk(&format!("{WHAT}: the plan"), &error, "Name a readable file"))?;
    Ok(Plan::parse(&String::from_utf8_lossy(&bytes)))
}

fn read_earlier(path: &Path) -> Result<Vec<String>, Failure> {
    let bytes = input::read(path, gate::MAX_VERDICT)?;
    gate::gaps_of(&bytes).ok_or_else(|| {
        Failure::new(
            Exit::No,
            "verdict",
            format!("can't {WHAT}: the earlier answer is no verdict"),
            "Leave it out",
        )
    })
}

fn evidence(
    config: &Config,
    watched: &Watched,
    arguments: &Arguments,
    earlier_gaps: Vec<String>,
) -> Result<Evidence, Failure> {
    let watch = &watched.watch;
    let work = arguments.repo.as_deref().map(git::look).transpose().map_err(|error| {
        Failure::disk(&format!("{WHAT}: what changed"), &error, "Leave --repo out to go on without it")
    })?;
    let condense = config.supervisor.as_ref().map(|supervisor| &supervisor.condense).filter(|it| it.enabled);
    let shown = |name: &str, text: &str| {
        let folded = condense
            .and_then(|it| condense::fold(text, &condense::ends(text), it.tokens_threshold.get().into()));
        let Some(folded) = folded else { return Ok(text.to_owned()) };
        if let Some(directory) = &arguments.spill {
            let path = directory.join(format!("{name}-{}.txt", Uuid::random()));
            durable::create(&path, text.as_bytes()).map_err(|error| {
                Failure::disk(
                    &format!("{WHAT}: keep what is folded"),
                    &error,
                    "Name another directory with --spill",
                )
            })?;
            note(&format!("{name} is whole in {}", durable::shown(&path)));
        }
        Ok(folded)
    };
    let answer = watch.answer();
    Ok(Evidence {
        request: shown("request", watch.request())?,
        final_answer: answer
            .map(|answer| shown("final_answer", &answer.text))
            .transpose()?
            .unwrap_or_default(),
        final_entry: answer.map(|answer| answer.entry.clone()),
        claim: watched.standing().report,
        actions: watch.rows().map(str::to_owned).collect(),
        git_status: work.as_ref().map(|work| work.status.clone()),
        git_diff: work.map(|work| work.diff),
        earlier_gaps,
    })
}

fn judge(
    config: &Config,
    watched: &Watched,
    evidence: &Evidence,
    path: &Path,
) -> Result<(Verdict, Step), Failure> {
    let answer = input::read(path, gate::MAX_VERDICT)?;
    let most = config.supervisor.as_ref().map_or(gate::ATTEMPTS, |it| it.gate.max_attempts.get());
    let mut attempts = Attempts::default();
    if !evidence.earlier_gaps.is_empty() {
        attempts.take(Verdict::Gaps(evidence.earlier_gaps.clone()), 0, most);
    }
    let verdict = gate::verdict(Ok(()), &answer, evidence);
    // The lead has worked on since the earlier answer, or it would not be asked about again.
    let step = attempts.take(verdict.clone(), watched.watch.count().max(1), most);
    Ok((verdict, step))
}

impl Gated {
    fn to_json(&self) -> String {
        let objections: Vec<Vec<u8>> = self
            .objections
            .iter()
            .map(|objection| {
                let message = objection.to_string();
                let mut object = ObjectWriter::new();
                object.string("code", &objection.code().into()).string("message", &message.as_str().into());
                object.finish()
            })
            .collect();
        let mut object = ObjectWriter::new();
        object
            .raw("objections", &[b"[", &objections.join(&b","[..])[..], b"]"].concat())
            .raw("content_only", if self.content_only { b"true" } else { b"false" });
        if let Some(Ok((used, most))) = &self.asked {
            object.number("attempt", (*used).into()).number("of", (*most).into());
        } else if let Some(Err(why)) = &self.asked {
            object.raw("verdict", b"null").string("next", &why.code().into());
        }
        let Some((verdict, step)) = &self.judged else {
            return String::from_utf8_lossy(&object.finish()).into_owned();
        };
        let (name, gaps, why) = match verdict {
            Verdict::Pass => ("pass", &[][..], None),
            Verdict::Gaps(gaps) => ("gaps", &gaps[..], None),
            Verdict::Indeterminate(why) => ("indeterminate", &[][..], Some(why.to_string())),
        };
        object.string("verdict", &name.into()).raw("gaps", &gate::json_texts(gaps));
        object.optional("why", why.as_deref().map(Into::into).as_ref()).string("next", &step.as_str().into());
        String::from_utf8_lossy(&object.finish()).into_owned()
    }

    fn plain(&self) -> String {
        let mut lines: Vec<String> =
            self.objections.iter().map(|it| format!("{}: {it}", it.code())).collect();
        if lines.is_empty() && !matches!(self.asked, Some(Err(verify::Why::NoClaim))) {
            lines.push("Nothing speaks against the claim.".to_owned());
        }
        if self.content_only {
            lines
                .push("What was changed was read again, but not checked: content, not behaviour.".to_owned());
        }
        match &self.judged {
            None => {
                if let Some(Err(why)) = &self.asked {
                    lines.push(format!("Not verified: {why}."));
                }
            }
            Some((Verdict::Pass, _)) => lines.push("Verdict: pass".to_owned()),
            Some((Verdict::Indeterminate(why), step)) => {
                lines.push(format!("Verdict: indeterminate, {why} ({})", step.as_str()));
            }
            Some((Verdict::Gaps(gaps), step)) => {
                lines.push(format!("Verdict: gaps ({})", step.as_str()));
                lines.push(format!("Draft: {}", gate::draft(gaps)));
            }
        }
        if let Some(Ok((used, most))) = self.asked {
            lines.push(format!("The verifier was asked {used} of {most} times in this turn of the user's."));
        }
        lines.join("\n")
    }
}
