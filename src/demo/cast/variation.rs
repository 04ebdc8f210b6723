//! As many more leads as are wanted, of a few kinds.

use std::borrow::Cow;

use super::{NOT_STUCK, ask, blocking, call, tell};
use crate::demo::script::{Character, Step};
use crate::demo::session::ToolCall;
use crate::herdr::Status;

/// One more, of a few kinds; its name tells its number.
pub(super) fn character(nth: usize) -> Character {
    const REPOS: [&str; 10] = [
        "search-index",
        "billing",
        "mailer",
        "image-proxy",
        "gateway",
        "inventory",
        "reports",
        "design-system",
        "audit-log",
        "scheduler",
    ];
    const TASKS: [(&str, &str); 8] = [
        ("retry", "Make every outgoing call retry with a growing pause."),
        ("metrics", "Count what is slow and show it."),
        ("cleanup", "Remove what nobody calls any more."),
        ("docs", "Describe every public function."),
        ("paging", "Give all lists pages."),
        ("timeouts", "Give every request a time-out."),
        ("caching", "Cache what never changes."),
        ("types", "Replace the loose maps by types."),
    ];
    const WORK: &[ToolCall<'static>] = &[
        call(
            "",
            "bash",
            r#"{"command":"git diff --stat"}"#,
            " 4 files changed, 71 insertions(+), 22 deletions(-)\n",
        ),
        call(
            "One place is left.",
            "edit",
            r#"{"path":"src/lib.rs","edits":[{"oldText":"old","newText":"new"}]}"#,
            "Successfully replaced 1 block(s) in src/lib.rs.",
        ),
        call("", "bash", r#"{"command":"make test"}"#, "ok\n"),
    ];
    const BUSY: &[Step] =
        &[Step::Work(6), Step::Ask, Step::Work(4), Step::Await, Step::Close(30.0), Step::Prompt];
    const CALM: &[Step] = &[Step::Close(60.0), Step::Prompt, Step::Work(8), Step::Ask, Step::Await];
    const STEADY: &[Step] = &[
        Step::Work(12),
        Step::Tell,
        Step::Close(20.0),
        Step::Prompt,
        Step::Blocked(15.0),
        Step::Work(4),
        Step::Ask,
    ];
    let (topic, task) = TASKS[nth % TASKS.len()];
    let repo = REPOS[(nth / 3) % REPOS.len()];
    let plan = [BUSY, CALM, STEADY][nth % 3];
    Character {
        name: format!("{topic}-{}", nth + 1).into(),
        repo: repo.into(),
        branch: Cow::Owned(format!("{topic}-{}", nth + 1)),
        task: task.into(),
        starts: if plan == CALM { Status::Idle } else { Status::Working },
        taken_back: None,
        summary: None,
        history: WORK,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                ask("This touches a public name. Keep the old one as well, or break it now?"),
                ask("There are two ways, a small one and a right one. Which?"),
                ask("The tests here take eleven minutes. May I run only those of this part?"),
                blocking("I need to change a file another lead is working on. Go ahead?"),
            ]
        },
        tells: const { &[tell("Half way through; nothing unexpected so far."), tell("Done with the first part.")] },
        notes: &[],
        answers: &["Not from my side."],
        closes: &["That part is done.", "Finished, with tests."],
        prompts: &["Go on with the next part.", "Now the same for the rest."],
        plan,
        resumes: 0,
    }
}
