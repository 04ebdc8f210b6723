//! The seven leads of the demo, and as many more as are wanted. Everything in it is made up.

mod variation;

use super::script::{Attachment, Character, Note, Question, Step, Tell};
use super::session::ToolCall;
use crate::herdr::Status;

/// How many are written out; the others are variations.
pub const WRITTEN: usize = 7;

/// The `nth` character, from 0.
pub fn character(nth: usize) -> Character {
    match nth {
        0 => auth(),
        1 => checkout(),
        2 => upgrade(),
        3 => flaky(),
        4 => translation(),
        5 => backfill(),
        6 => offline(),
        _ => variation::character(nth - WRITTEN),
    }
}

const fn call(
    say: &'static str,
    tool: &'static str,
    arguments: &'static str,
    result: &'static str,
) -> ToolCall<'static> {
    ToolCall { think: "", say, tool, arguments, result, failed: false }
}

const fn fails(say: &'static str, arguments: &'static str, result: &'static str) -> ToolCall<'static> {
    ToolCall { think: "", say, tool: "bash", arguments, result, failed: true }
}

const fn thinking(think: &'static str, call: ToolCall<'static>) -> ToolCall<'static> {
    ToolCall { think, ..call }
}

const fn ask(question: &'static str) -> Question {
    Question { question, attached: None, blocks: false }
}

const fn blocking(question: &'static str) -> Question {
    Question { question, attached: None, blocks: true }
}

const fn tell(text: &'static str) -> Tell {
    Tell { text, attached: None }
}

const fn tell_with(text: &'static str, attached: Attachment) -> Tell {
    Tell { text, attached: Some(attached) }
}

const fn file(name: &'static str, content: &'static str, times: usize) -> Attachment {
    Attachment { name, content, times }
}

const NOT_STUCK: ToolCall<'static> = fails("", r#"{"command":"false"}"#, "Command exited with code 1");

fn auth() -> Character {
    const HISTORY: &[ToolCall<'static>] = &[
        thinking(
            "Rotation needs to know the family of a token. If the store has no such thing, the table has to change first, and the old clients with it.",
            call(
                "Reading the token store first.",
                "read",
                r#"{"path":"src/auth/tokens.rs"}"#,
                "pub struct RefreshToken {\n    pub family: Uuid,\n    pub expires_at: Timestamp,\n}\n",
            ),
        ),
        call(
            "",
            "bash",
            r#"{"command":"rg -n 'expires_at' src/auth"}"#,
            "src/auth/tokens.rs:3\nsrc/auth/session.rs:41\nsrc/auth/session.rs:88\n",
        ),
        fails(
            "The session tests should show what expiry means today.",
            r#"{"command":"cargo test -p auth expiry"}"#,
            "test session::expiry_is_checked ... FAILED\n\nCommand exited with code 101",
        ),
    ];
    const WORK: &[ToolCall<'static>] = &[
        call(
            "Splitting the check out of the handler.",
            "edit",
            r#"{"path":"src/auth/session.rs","edits":[{"oldText":"if token.expired()","newText":"if check(&token)"}]}"#,
            "Successfully replaced 1 block(s) in src/auth/session.rs.",
        ),
        call("", "bash", r#"{"command":"cargo check -p auth"}"#, "    Finished in 4.21s\n"),
        call(
            "Now the rotation itself.",
            "write",
            r#"{"path":"src/auth/rotate.rs","content":"pub fn rotate(family: Uuid) -> Rotation {\n    todo!()\n}\n"}"#,
            "Successfully wrote 61 bytes to src/auth/rotate.rs.",
        ),
        call(
            "",
            "bash",
            r#"{"command":"cargo test -p auth"}"#,
            "running 42 tests\ntest result: ok. 42 passed; 0 failed\n",
        ),
    ];
    Character {
        name: "auth-rewrite".into(),
        repo: "orders-api".into(),
        branch: "auth-rewrite".into(),
        task:
            "Rewrite the session handling so that refresh tokens are rotated. Keep the old clients working."
                .into(),
        starts: Status::Working,
        taken_back: Some((
            "Begin with the database: write the migration.",
            "The migration is one column, but what it is for is only known once rotation stands. I would rather begin there.",
        )),
        summary: None,
        history: HISTORY,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                ask("Do we reject refresh tokens that have expired, or rotate them for one more day?"),
                ask(
                    "May I drop the `legacy_sessions` table in this migration, or does a report still read it?",
                ),
                blocking(
                    "Two of the old clients send the token in the query string. Break them, or keep a shim?",
                ),
            ]
        },
        tells: const {
            &[
                tell("The rotation is in behind a flag; 42 tests pass. I go on with the clock skew."),
                tell("Found that logout never revoked a token family. Fixed it in the same branch."),
            ]
        },
        notes: &[Note {
            to: "offline-sync",
            text: "The API answers 401 with a new code from today on: `token_reused`.",
        }],
        answers: &[
            "No, I only touch src/auth. But hold the ticket lock until my branch is in.",
            "Not this week. Ask me again once the upgrade note is written.",
        ],
        closes: &["Sessions are rotated now and the old clients keep working. Ready for a look."],
        prompts: &["Add a metric for reused tokens.", "Write the upgrade note for operators."],
        plan: &[
            Step::Ask,
            Step::Work(3),
            Step::Await,
            Step::Work(4),
            Step::Tell,
            Step::Write,
            Step::Work(3),
            Step::Close(15.0),
            Step::Prompt,
            Step::Work(2),
        ],
        resumes: 1,
    }
}

fn checkout() -> Character {
    const PLAN_FILE: &str = "# Moving carts to the new schema\n\n1. Write both schemas for a week.\n2. Copy old carts at night, 5,000 at a time.\n3. Read the new one, compare, count differences.\n4. Stop writing the old one.\n\nRollback: step 3 keeps the old table untouched.\n";
    const WORK: &[ToolCall<'static>] = &[
        call(
            "",
            "read",
            r#"{"path":"src/checkout/cart.ts"}"#,
            "export interface Cart {\n  id: string;\n  lines: Line[];\n  coupon?: string;\n}\n",
        ),
        call(
            "The totals are computed in two places; one will do.",
            "edit",
            r#"{"path":"src/checkout/totals.ts","edits":[{"oldText":"sum(lines)","newText":"cart.total()"}]}"#,
            "Successfully replaced 1 block(s) in src/checkout/totals.ts.",
        ),
        call("", "bash", r#"{"command":"npm test -- checkout"}"#, "Tests: 118 passed, 118 total\n"),
        call(
            "Carts are merged in the app, too: the same rule there.",
            "edit",
            r#"{"path":"../storefront.offline-sync/lib/sync/merge.dart","edits":[{"oldText":"keep(cart)","newText":"join(cart)"}]}"#,
            "Successfully replaced 1 block(s) in ../storefront.offline-sync/lib/sync/merge.dart.",
        ),
        fails(
            "",
            r#"{"command":"npm run lint"}"#,
            "src/checkout/totals.ts\n  12:7  error  'sum' is never used\n\nCommand exited with code 1",
        ),
    ];
    Character {
        name: "checkout".into(),
        repo: "storefront".into(),
        branch: "checkout-v2".into(),
        task: "Bring the new checkout behind a flag, carts included.".into(),
        starts: Status::Working,
        taken_back: None,
        summary: None,
        history: WORK,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                Question {
                    question: "The carts need a new schema, and there are three ways to get there:\n\n\
                           a) write both schemas for a week, then switch (plan attached)\n\
                           b) convert a cart when it is next opened; the last ones never are\n\
                           c) stop the shop for about twenty minutes at night\n\n\
                           (a) is safest but keeps the coupon bug alive for that week.\n\
                           Which one, and may I start the copy tonight?",
                    attached: Some(file("docs/cart-migration.md", PLAN_FILE, 1)),
                    blocks: true,
                },
                ask("Guests can't keep a coupon over a reload. Is that on purpose?"),
                blocking("The payment form needs the new address field. Required, or optional at first?"),
            ]
        },
        tells: const { &[tell("The new checkout is reachable with ?checkout=2 on the preview.")] },
        notes: &[Note {
            to: "offline-sync",
            text: "I rename Cart.lines to Cart.items tonight. Does anything of yours still read the old name?",
        }],
        answers: &["The flag goes in with today's preview; rebase after that."],
        closes: &["The flag is in and off by default."],
        prompts: &["Make the summary readable on small screens.", "Handle a sold-out line at the last step."],
        plan: &[
            Step::Work(1),
            Step::Ask,
            Step::Write,
            Step::Await,
            Step::Work(4),
            Step::Close(20.0),
            Step::Prompt,
            Step::Work(3),
            Step::Tell,
        ],
        resumes: 3,
    }
}

fn upgrade() -> Character {
    const LONG_PLAN: &str = "module.network.aws_vpc.main: Refreshing state\nmodule.network.aws_subnet.a: Refreshing state\nmodule.network.aws_subnet.b: Refreshing state\nmodule.network.aws_route_table.main: Refreshing state\nmodule.storage.aws_s3_bucket.backups: Refreshing state\nmodule.storage.aws_s3_bucket.logs: Refreshing state\n\nOpenTofu will perform the following actions:\n\n  + module.network.aws_subnet.spare\n  ~ module.network.aws_route_table.main\n  ~ module.storage.aws_s3_bucket.backups\n  ~ module.storage.aws_s3_bucket.logs\n\nPlan: 3 to add, 11 to change, 0 to destroy.\n";
    const PLAN: &str = "Plan: 3 to add, 11 to change, 0 to destroy.\n\n  + module.network.aws_subnet.spare\n  ~ module.network.aws_route_table.main\n  ~ module.storage.aws_s3_bucket.backups\n";
    const WORK: &[ToolCall<'static>] = &[
        call("", "bash", r#"{"command":"tofu plan -no-color"}"#, LONG_PLAN),
        call(
            "The provider renamed this argument.",
            "edit",
            r#"{"path":"modules/network/main.tf","edits":[{"oldText":"enable_ipv6","newText":"ipv6_enabled"}]}"#,
            "Successfully replaced 1 block(s) in modules/network/main.tf.",
        ),
        call("", "bash", r#"{"command":"tofu validate"}"#, "Success! The configuration is valid.\n"),
    ];
    Character {
        name: "tf-upgrade".into(),
        repo: "infra".into(),
        branch: "provider-upgrade".into(),
        task: "Upgrade the providers, one module at a time. Never apply without asking.".into(),
        starts: Status::Working,
        taken_back: None,
        summary: None,
        history: WORK,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                blocking(
                    "The plan replaces the staging database instead of changing it. Apply with a snapshot, or wait?",
                ),
                ask("Pin the providers exactly, or to a minor version?"),
            ]
        },
        tells: const {
            &[
                tell_with(
                    "Network and storage are planned; nothing is replaced. The plan goes along.",
                    file("plan.txt", PLAN, 1),
                ),
                tell("Network and storage are done, no resource was replaced."),
            ]
        },
        notes: &[],
        answers: &["Nothing is applied before Monday."],
        closes: &["All modules validate. Nothing was applied."],
        prompts: &["Go on with the monitoring module.", "Check what the plan says for production."],
        plan: &[
            Step::Work(2),
            Step::Tell,
            Step::Blocked(18.0),
            Step::Work(2),
            Step::Ask,
            Step::Await,
            Step::Work(2),
            Step::Tell,
            Step::Close(30.0),
            Step::Prompt,
        ],
        resumes: 0,
    }
}

fn flaky() -> Character {
    const STUCK_ON: ToolCall<'static> = fails(
        "Running it once more.",
        r#"{"command":"cargo test -p orders --test replay -- --exact replays_in_order"}"#,
        "test replays_in_order ... FAILED\n\nthread 'replays_in_order' panicked at tests/replay.rs:73:5:\nassertion `left == right` failed\n  left: [1, 3, 2]\n right: [1, 2, 3]\n\nCommand exited with code 101",
    );
    const HISTORY: &[ToolCall<'static>] = &[READ, STUCK_ON, STUCK_ON, STUCK_ON];
    const RECOVERY: &[ToolCall<'static>] = &[
        call(
            "Running it again shows nothing new. Each worker gets a ticket.",
            "edit",
            r#"{"path":"src/orders/replay.rs","edits":[{"oldText":"queue.pop()","newText":"queue.take(ticket)"}]}"#,
            "Successfully replaced 1 block(s) in src/orders/replay.rs.",
        ),
        call(
            "",
            "bash",
            r#"{"command":"cargo test -p orders --test replay -- --exact replays_in_order"}"#,
            "test replays_in_order ... ok\n",
        ),
    ];
    const READ: ToolCall<'static> = call(
        "",
        "read",
        r#"{"path":"tests/replay.rs"}"#,
        "#[test]\nfn replays_in_order() {\n    let events = replay(&[1, 2, 3]);\n    assert_eq!(events, [1, 2, 3]);\n}\n",
    );
    const WORK: &[ToolCall<'static>] = &[
        READ,
        call(
            "Perhaps the queue is drained by two workers.",
            "bash",
            r#"{"command":"rg -n 'spawn' src/orders"}"#,
            "src/orders/replay.rs:29\nsrc/orders/replay.rs:34\n",
        ),
    ];
    Character {
        name: "flaky-tests".into(),
        repo: "orders-api".into(),
        branch: "flaky-replay".into(),
        task: "Find out why replays_in_order fails now and then, and fix the cause, not the test.".into(),
        starts: Status::Working,
        taken_back: None,
        summary: None,
        history: HISTORY,
        work: WORK,
        stuck_on: STUCK_ON,
        recovery: Some((RECOVERY, "It was two workers on one queue. With a ticket each the test passes.")),
        asks: const {
            &[
                ask(
                    "replays_in_order failed six times in a row without a change. Serialize the workers, or sort at the end?",
                ),
                ask("Is the order within one customer enough? Then the lock can go."),
            ]
        },
        tells: const { &[tell("It only fails with two workers. With one it passed 200 times.")] },
        notes: &[
            Note {
                to: "auth-rewrite",
                text: "replays_in_order fails since this morning. Does your branch touch src/orders?",
            },
            Note {
                to: "auth-rewrite",
                text: "Found it: two workers drain one queue. May I take the ticket lock?",
            },
        ],
        answers: &["It is the order of the workers, not your change."],
        closes: &["The workers share a ticket now; 500 runs without a failure."],
        prompts: &["Look at the other tests marked as flaky."],
        plan: &[
            Step::Work(1),
            Step::Write,
            Step::Loop(6),
            Step::Work(1),
            Step::Loop(5),
            Step::Ask,
            Step::Loop(4),
            Step::Await,
            Step::Work(2),
            Step::Tell,
            Step::Close(25.0),
            Step::Prompt,
        ],
        resumes: 0,
    }
}

fn translation() -> Character {
    const WORK: &[ToolCall<'static>] = &[
        call("", "bash", r#"{"command":"rg -c '^msgid' locale/ja/LC_MESSAGES/site.po"}"#, "214\n"),
        call(
            "„Warenkorb“ fehlt noch an drei Stellen.",
            "edit",
            r#"{"path":"locale/de/LC_MESSAGES/site.po","edits":[{"oldText":"msgstr \"\"","newText":"msgstr \"Warenkorb\""}]}"#,
            "Successfully replaced 3 block(s) in locale/de/LC_MESSAGES/site.po.",
        ),
        call("", "bash", r#"{"command":"make check-po"}"#, "de: 214 ✓  ja: 209 ✓ (5 fuzzy)  pt: 214 ✓\n"),
    ];
    Character {
        name: "übersetzung-翻訳".into(),
        repo: "docs-site".into(),
        branch: "i18n/日本語".into(),
        task: "Complete the German and Japanese texts of the shop pages. Keep the tone of the existing ones."
            .into(),
        starts: Status::Idle,
        taken_back: None,
        summary: None,
        history: WORK,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                ask(
                    "„Warenkorb“ oder „Einkaufswagen“? And in Japanese: keep 「カート」 🛒, or 「買い物かご」?",
                ),
                ask(
                    "Prices: write “1.299,00 €” in German everywhere, or only where the shop's currency is EUR?",
                ),
            ]
        },
        tells: const { &[tell("Alle 214 Texte sind übersetzt; 5 japanische sind noch unsicher (fuzzy).")] },
        notes: &[],
        answers: &["Texte nur noch über locale/, bitte. ありがとう。"],
        closes: &["Beide Sprachen sind vollständig. 確認をお願いします。"],
        prompts: &["Now the help pages, same tone.", "Check the five fuzzy ones again."],
        plan: &[
            Step::Close(8.0),
            Step::Prompt,
            Step::Work(2),
            Step::Ask,
            Step::Work(2),
            Step::Await,
            Step::Work(1),
            Step::Tell,
            Step::Close(40.0),
        ],
        resumes: 1,
    }
}

fn backfill() -> Character {
    const DAY: &str = "2026-03-14,orders,14209551,14209551,0\n";
    const WORK: &[ToolCall<'static>] = &[
        call(
            "",
            "bash",
            r#"{"command":"python -m backfill --day 2026-03-14 --dry-run"}"#,
            "14,209,551 rows read, 14,209,551 would be written, 0 skipped\n",
        ),
        call(
            "Memory grows with each partition: reading them one by one instead.",
            "edit",
            r#"{"path":"backfill/reader.py","edits":[{"oldText":"read_all(day)","newText":"read_parts(day)"}]}"#,
            "Successfully replaced 1 block(s) in backfill/reader.py.",
        ),
        fails(
            "",
            r#"{"command":"python -m backfill --day 2026-03-15"}"#,
            "Killed\n\nCommand exited with code 137",
        ),
    ];
    Character {
        name: "backfill".into(),
        repo: "data-pipeline".into(),
        branch: "backfill-march".into(),
        task: "Fill in the days of March that are missing, without starving the nightly jobs.".into(),
        starts: Status::Working,
        taken_back: None,
        summary: Some(
            "## Goal\nFill in the missing days of March.\n\n## Done\n- The reader was rewritten once; partitions are counted twice.\n\n## Next\n1. Go on with March 15, part by part.",
        ),
        history: WORK,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                ask("March 29 has only 23 hours. Leave the missing hour empty, or mark it as not existing?"),
                ask("The nightly job wants the same tables at 02:00. Pause mine, or let them share?"),
            ]
        },
        tells: const {
            &[
                tell_with(
                    "The counts of every partition so far go along, for whoever wants to check them.",
                    file("reports/march.csv", DAY, 6_000),
                ),
                tell("Fourteen of eighteen days are filled in. Memory stays below 2 GB now."),
            ]
        },
        notes: &[],
        answers: &["The tables are mine until 02:00, then yours."],
        closes: &["All missing days are filled in and counted twice."],
        prompts: &["Compare the sums with the old warehouse."],
        plan: &[
            Step::Work(2),
            Step::Tell,
            Step::Work(1),
            Step::Ask,
            Step::Work(3),
            Step::Die,
            Step::Work(2),
            Step::Await,
            Step::Work(3),
            Step::Tell,
            Step::Close(45.0),
            Step::Prompt,
        ],
        resumes: 6,
    }
}

fn offline() -> Character {
    const WORK: &[ToolCall<'static>] = &[
        call(
            "",
            "read",
            r#"{"path":"lib/sync/queue.dart"}"#,
            "class SyncQueue {\n  final List<Change> pending;\n}\n",
        ),
        call(
            "A change that was sent twice must win once.",
            "edit",
            r#"{"path":"lib/sync/merge.dart","edits":[{"oldText":"apply(change)","newText":"applyOnce(change)"}]}"#,
            "Successfully replaced 1 block(s) in lib/sync/merge.dart.",
        ),
        call("", "bash", r#"{"command":"flutter test test/sync"}"#, "00:07 +63: All tests passed!\n"),
    ];
    Character {
        name: "offline-sync".into(),
        repo: "storefront".into(),
        branch: "offline-sync".into(),
        task: "Let the app work without a network and merge later.".into(),
        starts: Status::Working,
        taken_back: None,
        summary: None,
        history: WORK,
        work: WORK,
        stuck_on: NOT_STUCK,
        recovery: None,
        asks: const {
            &[
                ask("Two phones changed the same address. Keep the later one, or ask the customer?"),
                ask("How long may a change wait offline before we drop it: a week, or for ever?"),
            ]
        },
        tells: const { &[tell("Done: the app works offline, 63 tests pass. The branch is ready to merge.")] },
        notes: &[],
        answers: &["Only lib/sync/merge.dart, and I am changing that anyway. Go ahead."],
        closes: &["Finished. The branch is ready to merge; nothing is left open from my side."],
        prompts: &["One more thing: show how many changes wait.", "Rebase it, please."],
        plan: &[
            Step::Work(3),
            Step::Tell,
            Step::Close(45.0),
            Step::Prompt,
            Step::Work(3),
            Step::Ask,
            Step::Await,
            Step::Work(2),
            Step::Close(60.0),
        ],
        resumes: 0,
    }
}
