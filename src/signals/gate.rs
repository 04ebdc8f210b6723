//! The gate before a claim to be done is believed: free checks first, then the evidence that a verifier
//! of the operator's is given, and what its answer is worth. What is uncertain is never a pass.

use std::collections::BTreeSet;

use super::dirty::{Changes, Mark};
use super::plan::{Assumption, Plan};
use super::self_report::Report;
use crate::contract::Untrusted;
use crate::contract::json::{Document, Json, ObjectWriter};

/// Bytes of a verdict that are read at most.
pub const MAX_VERDICT: usize = 64 * 1024;
/// Gaps that a verdict may have.
const MAX_GAPS: usize = 32;
/// Characters of the evidence that a gap quotes at least.
pub const QUOTE: usize = 12;
/// Runs of the verifier for one claim.
pub const ATTEMPTS: u32 = 2;

/// Why a claim is not looked at any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// What was changed was neither checked nor read.
    #[error("changes were neither checked nor read again{}", of_paths(.0))]
    Unchecked(Vec<String>),
    /// The plan has open phases besides its last.
    #[error("phases of the plan are open: {}", .0.join(", "))]
    Plan(Vec<String>),
    /// The plan has no phases, so nothing is known of it.
    #[error("the plan has no boxes to tick")]
    NoPhases,
    /// Something that the plan assumes is not so: it has to be thought over.
    #[error("the plan assumes that {} {}: reassess", .0.path, if .0.exists { "exists" } else { "does not exist" })]
    Assumption(Assumption),
}

fn of_paths(paths: &[String]) -> String {
    if paths.is_empty() { String::new() } else { format!(": {}", paths.join(", ")) }
}

impl Objection {
    /// Its name.
    pub fn code(&self) -> &'static str {
        match self {
            Objection::Unchecked(_) => "mutation_without_check",
            Objection::Plan(_) => "open_phases",
            Objection::NoPhases => "no_phases",
            Objection::Assumption(_) => "assumption",
        }
    }
}

/// What speaks against a claim before anybody is asked. `exists` is whether a file of the plan's is there.
pub fn objections(changes: &Changes, plan: Option<&Plan>, exists: impl Fn(&str) -> bool) -> Vec<Objection> {
    let mut found = Vec::new();
    if changes.mark() == Mark::Dirty {
        found.push(Objection::Unchecked(changes.paths().map(str::to_owned).collect()));
    }
    if let Some(plan) = plan {
        let open: Vec<String> = plan.open_before_the_last().map(str::to_owned).collect();
        if plan.phases.is_empty() {
            found.push(Objection::NoPhases);
        } else if !open.is_empty() {
            found.push(Objection::Plan(open));
        }
        let broken = plan.assumptions.iter().filter(|it| exists(&it.path) != it.exists);
        found.extend(broken.cloned().map(Objection::Assumption));
    }
    found
}

/// What a verifier is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// What the user asked.
    pub request: String,
    /// What the lead ended its turn with.
    pub final_answer: String,
    /// The entry that holds it whole.
    pub final_entry: Option<String>,
    /// What it claims of itself.
    pub claim: Option<Report>,
    /// What was done, a row each.
    pub actions: Vec<String>,
    /// `git status`, where allowed.
    pub git_status: Option<String>,
    /// `git diff`, where allowed.
    pub git_diff: Option<String>,
    /// The gaps that an earlier run found.
    pub earlier_gaps: Vec<String>,
}

fn json_text(text: &str) -> Vec<u8> {
    let mut json = Vec::new();
    Untrusted::from(text).write_json(&mut json);
    json
}

/// Texts as a JSON array.
pub fn json_texts(texts: &[String]) -> Vec<u8> {
    let texts: Vec<Vec<u8>> = texts.iter().map(|text| json_text(text)).collect();
    [b"[", &texts.join(&b","[..])[..], b"]"].concat()
}

impl Evidence {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        let or_null =
            |text: &Option<String>| text.as_ref().map_or_else(|| b"null".to_vec(), |text| json_text(text));
        let object = ObjectWriter::new()
            .raw("request", &json_text(&self.request))
            .raw("final_answer", &json_text(&self.final_answer))
            .raw("final_entry", &or_null(&self.final_entry))
            .raw("claim", &self.claim.as_ref().map_or_else(|| b"null".to_vec(), Report::to_json))
            .raw("actions", &json_texts(&self.actions))
            .raw("git_status", &or_null(&self.git_status))
            .raw("git_diff", &or_null(&self.git_diff))
            .raw("earlier_gaps", &json_texts(&self.earlier_gaps))
            .finish();
        String::from_utf8_lossy(&object).into_owned()
    }

    /// Whether `quote` stands in it, verbatim. What an earlier verifier said is no evidence.
    fn holds(&self, quote: &str) -> bool {
        let claim = self.claim.iter().flat_map(|claim| {
            [Some(claim.focus.as_str()), claim.next.as_deref()]
                .into_iter()
                .flatten()
                .chain(claim.carry.iter().map(String::as_str))
        });
        let git = [&self.git_status, &self.git_diff].into_iter().flatten().map(String::as_str);
        let texts = [self.request.as_str(), self.final_answer.as_str()].into_iter();
        texts
            .chain(git)
            .chain(claim)
            .chain(self.actions.iter().map(String::as_str))
            .any(|text| text.contains(quote))
    }
}

/// What a verifier's answer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It found nothing missing.
    Pass,
    /// It found this missing.
    Gaps(Vec<String>),
    /// It is worth nothing.
    Indeterminate(Worthless),
}

/// Why an answer is worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Worthless {
    /// The command ended with this exit code.
    #[error("the verifier ended with exit code {0}")]
    Exit(i32),
    /// A signal ended it, and not ours.
    #[error("signal {0} ended the verifier")]
    Signal(i32),
    /// It took too long, and was ended.
    #[error("the verifier took too long and was ended")]
    TooLong,
    /// More than [`MAX_VERDICT`] bytes.
    #[error("the answer has more than {MAX_VERDICT} bytes")]
    TooLarge,
    /// Not the one JSON object that is due.
    #[error("the answer is not of the form {{\"verdict\":\"pass\"|\"gaps\",\"gaps\":[…]}}")]
    Form,
    /// A pass with gaps, or gaps without one.
    #[error("the answer contradicts itself")]
    Contradiction,
    /// No gap quotes what stands in the evidence.
    #[error("no gap quotes {QUOTE} characters or more of the evidence")]
    Unfounded,
}

/// Judges what a verifier wrote. `ended` is why its end alone makes that worth nothing. Gaps that quote
/// nothing of the evidence are left out.
pub fn verdict(ended: Result<(), Worthless>, answer: &[u8], evidence: &Evidence) -> Verdict {
    ended.and_then(|()| judge(answer, evidence)).unwrap_or_else(Verdict::Indeterminate)
}

fn judge(answer: &[u8], evidence: &Evidence) -> Result<Verdict, Worthless> {
    if answer.len() > MAX_VERDICT {
        return Err(Worthless::TooLarge);
    }
    let (verdict, gaps) = answered(answer).ok_or(Worthless::Form)?;
    match (verdict.as_str(), gaps.is_empty()) {
        ("pass", true) => Ok(Verdict::Pass),
        ("pass", false) | ("gaps", true) => Err(Worthless::Contradiction),
        ("gaps", false) => {
            let founded: Vec<String> =
                gaps.into_iter().filter(|gap| quotes(gap).any(|it| evidence.holds(it))).collect();
            if founded.is_empty() { Err(Worthless::Unfounded) } else { Ok(Verdict::Gaps(founded)) }
        }
        _ => Err(Worthless::Form),
    }
}

/// Verdict and gaps of an answer that has the form; other keys are none of it.
fn answered(answer: &[u8]) -> Option<(String, Vec<String>)> {
    let text = std::str::from_utf8(answer).ok()?;
    let document = Document::decode(text.as_bytes());
    let members = document.value().ok()?.object()?;
    if members.len() != 2 {
        return None;
    }
    let get = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
    let string = |value: Json<'_>| value.string().map(|text| text.to_str_lossy().into_owned());
    let gaps: Option<Vec<String>> = get("gaps")?.array()?.into_iter().map(string).collect();
    let gaps = gaps.filter(|gaps| gaps.len() <= MAX_GAPS)?;
    Some((string(get("verdict")?)?, gaps))
}

/// The gaps of an earlier answer, whatever they quote.
pub fn gaps_of(answer: &[u8]) -> Option<Vec<String>> {
    answered(answer).map(|(_, gaps)| gaps)
}

/// What stands in quotation marks in `gap`, if it is long enough.
fn quotes(gap: &str) -> impl Iterator<Item = &str> {
    const MARKS: [(char, char); 5] =
        [('"', '"'), ('\'', '\''), ('`', '`'), ('\u{201c}', '\u{201d}'), ('\u{ab}', '\u{bb}')];
    MARKS
        .into_iter()
        .flat_map(move |(open, close)| {
            // Between any two marks: which of them open, where they look alike, is not known.
            let after = gap
                .char_indices()
                .filter(move |(_, it)| *it == open)
                .map(move |(at, it)| &gap[at + it.len_utf8()..]);
            after.filter_map(move |rest| rest.find(close).map(|end| rest[..end].trim()))
        })
        .filter(|quote| quote.chars().count() >= QUOTE)
}

/// The runs for one claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    used: u32,
    /// The gaps found before, normalised, and after how many actions.
    before: Option<(BTreeSet<String>, u64)>,
}

/// What a verdict leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The run is verified.
    Verified,
    /// These gaps become a draft; the lead may claim again.
    Draft(Vec<String>),
    /// The verifier may be asked again.
    Again(Worthless),
    /// The budget is used up.
    Exhausted,
    /// The lead has worked on, and the same is missing: another run would say it once more.
    SameGaps,
}

impl Attempts {
    /// Those of before: so many runs, the last gaps, and the rounds of the lead that these came after.
    pub fn resumed(used: u32, gaps: &[String], actions: u64) -> Self {
        let set: BTreeSet<String> = gaps.iter().map(|gap| normalised(gap)).collect();
        Self { used, before: (!set.is_empty()).then_some((set, actions)) }
    }

    /// Runs so far.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Counts a verdict that was given after `actions` rounds of the lead.
    pub fn take(&mut self, verdict: Verdict, actions: u64, most: u32) -> Step {
        self.used = self.used.saturating_add(1);
        match verdict {
            Verdict::Pass => Step::Verified,
            Verdict::Gaps(gaps) => {
                let set: BTreeSet<String> = gaps.iter().map(|gap| normalised(gap)).collect();
                let same = self.before.as_ref().is_some_and(|(before, at)| *before == set && actions > *at);
                self.before = Some((set, actions));
                if same {
                    Step::SameGaps
                } else if self.used >= most {
                    Step::Exhausted
                } else {
                    Step::Draft(gaps)
                }
            }
            Verdict::Indeterminate(why) => {
                if self.used >= most {
                    Step::Exhausted
                } else {
                    Step::Again(why)
                }
            }
        }
    }
}

impl Step {
    /// Its name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Step::Verified => "verified",
            Step::Draft(_) => "draft",
            Step::Again(_) => "again",
            Step::Exhausted => "exhausted",
            Step::SameGaps => "same_gaps",
        }
    }
}

/// A gap by its words.
fn normalised(gap: &str) -> String {
    let words = gap.split(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The draft that tells a lead of gaps.
pub fn draft(gaps: &[String]) -> String {
    let mut text = "The work is not done yet. What is missing:".to_owned();
    for gap in gaps {
        text.push_str("\n- ");
        text.push_str(&gap.replace('\n', " "));
    }
    text
}

/// The family of a model, as its name tells: what it is called before versions and sizes.
fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    name.chars().take_while(|it| it.is_ascii_alphabetic()).collect()
}

/// The lead's model, of those in `models`, whose family a word of the verifier's command names: such a
/// verifier may share the lead's blind spots.
pub fn related<'a>(command: &[String], models: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let command = command.join(" ").to_lowercase();
    let words: Vec<&str> = command.split(|it: char| !it.is_ascii_alphabetic()).collect();
    models.into_iter().find(|model| {
        let family = family(model);
        family.len() >= 2 && words.contains(&family.as_str())
    })
}
