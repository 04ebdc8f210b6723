//! What a key can be bound to: the actions, where each works, and their keys unless configured otherwise.

use super::intent::{Context, Intent};

/// One line of the table.
#[derive(Debug)]
pub struct Action {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its keys unless configured, in the configuration's notation.
    pub keys: &'static [&'static str],
    /// Where it can be asked for.
    pub scope: &'static [Context],
    /// In the footer; nothing when it is not shown there. Those that follow each other with the same
    /// label share it.
    pub label: &'static str,
    /// In the help.
    pub help: &'static str,
    /// What it means.
    pub intent: Intent,
}

use Context::{
    Ask, Branches, Broadcast, Composer, Confirm, Detail, Filter, Global, Help, Inbox, Lessons, Offered,
    Paths, Peek, Peers, Quote, Roster, Search, Signals, Snooze, Timeline, Transcript, Turns,
};

const ANYWHERE: &[Context] = &[Global, Composer, Paths, Filter, Snooze, Confirm];
const BROWSING: &[Context] = &[Global];
const PAGING: &[Context] = &[Global, Composer, Paths];
const FIELD: &[Context] = &[Composer, Paths];
const LISTED: &[Context] = &[Roster, Detail];
const LEADS: &[Context] = &[Roster, Detail, Ask];
const AT_PANE: &[Context] = &[Roster, Detail, Ask, Signals, Peek, Transcript];
const TO_READ: &[Context] = &[Roster, Detail, Ask, Inbox, Signals, Peek, Transcript];
const WRITING: &[Context] = &[Roster, Detail, Ask, Inbox, Signals, Peek, Transcript];
const STEERING: &[Context] = &[Roster, Detail, Signals, Peek, Transcript];

const fn action(
    name: &'static str,
    keys: &'static [&'static str],
    scope: &'static [Context],
    label: &'static str,
    help: &'static str,
    intent: Intent,
) -> Action {
    Action { name, keys, scope, label, help, intent }
}

const fn snippet(name: &'static str, keys: &'static [&'static str], number: u8) -> Action {
    action(name, keys, FIELD, "", "Insert what [snippets] configures", Intent::Snippet(number))
}

/// The table, in the order of footer and help.
pub const ACTIONS: &[Action] = &[
    action("send", &["enter"], FIELD, "send", "Send", Intent::Send),
    action(
        "newline",
        &["ctrl-j", "alt-enter", "shift-enter"],
        FIELD,
        "new line",
        "New line (so does Enter amid a paste)",
        Intent::Newline,
    ),
    action("undo", &["ctrl-u", "alt-u"], FIELD, "", "Undo what was written last", Intent::Undo),
    action("redo", &["ctrl-r", "alt-r"], FIELD, "", "Do again what was undone", Intent::Redo),
    action("editor", &["ctrl-g"], FIELD, "editor", "Go on writing in $VISUAL or $EDITOR", Intent::Editor),
    action(
        "recite",
        &["alt-c"],
        FIELD,
        "",
        "Insert what a compacted session's user said to hold",
        Intent::Recite,
    ),
    action(
        "offer-lessons",
        &["alt-l"],
        FIELD,
        "lessons",
        "List the lessons that fit what is written",
        Intent::OfferLessons,
    ),
    action("complete", &["tab"], &[Paths], "take", "Take the chosen path", Intent::Complete),
    action("next-path", &["down", "ctrl-n"], &[Paths], "choose", "Choose the next path", Intent::NextPath),
    action("previous-path", &["up", "ctrl-p"], &[Paths], "", "Choose the path before", Intent::PreviousPath),
    snippet("snippet-1", &["alt-1"], 1),
    snippet("snippet-2", &["alt-2"], 2),
    snippet("snippet-3", &["alt-3"], 3),
    snippet("snippet-4", &["alt-4"], 4),
    snippet("snippet-5", &["alt-5"], 5),
    snippet("snippet-6", &["alt-6"], 6),
    snippet("snippet-7", &["alt-7"], 7),
    snippet("snippet-8", &["alt-8"], 8),
    snippet("snippet-9", &["alt-9"], 9),
    action(
        "keep-filter",
        &["enter"],
        &[Filter],
        "keep",
        "Keep the filter, or what is searched for",
        Intent::KeepFilter,
    ),
    action("yes", &["y"], &[Confirm], "yes", "Yes", Intent::Yes),
    action("no", &["n"], &[Confirm], "no", "No", Intent::No),
    action("next-ask", &["n"], LEADS, "next ask", "Next ask, the oldest first", Intent::NextAsk),
    action("previous-ask", &["N"], LEADS, "", "Previous ask", Intent::PreviousAsk),
    action("reply", &["r"], WRITING, "reply", "Reply to the ask of the selected lead", Intent::Reply),
    action("message", &["m"], WRITING, "message", "Write a message to the selected lead", Intent::Message),
    action(
        "steer",
        &["s"],
        STEERING,
        "steer",
        "Write what a signal of the selected lead suggests; you send it",
        Intent::Steer,
    ),
    action(
        "broadcast",
        &["b"],
        &[Roster, Detail, Broadcast],
        "broadcast",
        "Write one message to the marked leads, or to the filter's",
        Intent::Broadcast,
    ),
    action(
        "send-again",
        &["R"],
        &[Roster, Detail, Ask, Broadcast],
        "",
        "Send again what the lead may not have; of a broadcast, what was refused",
        Intent::SendAgain,
    ),
    action(
        "open",
        &["enter"],
        &[Roster, Detail, Inbox, Peers, Search, Branches, Timeline, Turns, Signals, Lessons],
        "open",
        "Open what is selected",
        Intent::Open,
    ),
    action("keep-lesson", &["enter"], &[Quote], "keep", "Keep it, word for word", Intent::KeepLesson),
    action("lesson-kind", &["K"], &[Quote], "kind", "A lesson or an orientation", Intent::LessonKind),
    action(
        "lesson-scope",
        &["S"],
        &[Quote],
        "where",
        "For the session's project or everywhere",
        Intent::LessonScope,
    ),
    action(
        "insert-lesson",
        &["enter"],
        &[Offered],
        "insert",
        "Insert the lesson into the message",
        Intent::InsertLesson,
    ),
    action(
        "archive-lesson",
        &["a"],
        &[Lessons],
        "put away",
        "Put the lesson away; nothing is deleted",
        Intent::ArchiveLesson,
    ),
    action("unfold", &["enter"], &[Transcript], "unfold", "Unfold the entry, or fold it", Intent::Unfold),
    action(
        "transcript",
        &["t"],
        TO_READ,
        "transcript",
        "What was said in the lead's session, read only",
        Intent::Transcript,
    ),
    action(
        "filter",
        &["/"],
        &[Roster, Help],
        "filter",
        "Filter the list by what its rows say",
        Intent::Filter,
    ),
    action("back", &["esc"], ANYWHERE, "back", "Back out of one layer; a draft is kept", Intent::Back),
    action(
        "search",
        &["/"],
        &[Inbox, Transcript, Search],
        "search",
        "Search in the whole texts",
        Intent::Search,
    ),
    action(
        "next-match",
        &["n"],
        &[Inbox, Transcript],
        "next match",
        "Next place of what is searched for",
        Intent::NextMatch,
    ),
    action(
        "previous-match",
        &["N"],
        &[Inbox, Transcript],
        "",
        "Previous place of what is searched for",
        Intent::PreviousMatch,
    ),
    action(
        "previous-turn",
        &["["],
        &[Transcript],
        "turns",
        "The user's message before",
        Intent::PreviousTurn,
    ),
    action("next-turn", &["]"], &[Transcript], "turns", "The user's next message", Intent::NextTurn),
    action("previous-error", &["{"], &[Transcript], "errors", "The failure before", Intent::PreviousError),
    action("next-error", &["}"], &[Transcript], "errors", "The next failure", Intent::NextError),
    action(
        "branches",
        &["b"],
        &[Transcript, Branches],
        "branches",
        "The branches of the session; enter shows one",
        Intent::Branches,
    ),
    action(
        "unread-only",
        &["u"],
        &[Inbox],
        "unread only",
        "Only what is unread, or everything",
        Intent::UnreadOnly,
    ),
    action(
        "lead-only",
        &["l"],
        &[Inbox],
        "this lead",
        "Only what the lead of this message sent, or everything",
        Intent::LeadOnly,
    ),
    action("toggle-read", &["U"], &[Inbox], "", "Mark as unread, or as read", Intent::ToggleRead),
    action("read-all", &["A"], &[Inbox], "", "Mark all that this lead sent as read", Intent::ReadAll),
    action(
        "waiting-only",
        &["w"],
        &[Roster],
        "waiting only",
        "Only leads that wait, or all",
        Intent::WaitingOnly,
    ),
    action(
        "gate",
        &["V"],
        LISTED,
        "gate",
        "Hold the lead's claim against the gate, or end that",
        Intent::Gate,
    ),
    action("snooze", &["z"], LEADS, "", "Put the ask off, or have it back", Intent::Snooze),
    action("snooze-short", &["m"], &[Snooze], "10 minutes", "For ten minutes", Intent::SnoozeShort),
    action("snooze-hour", &["h"], &[Snooze], "1 hour", "For an hour", Intent::SnoozeHour),
    action(
        "snooze-change",
        &["c"],
        &[Snooze],
        "until it changes",
        "Until the lead asks something else",
        Intent::SnoozeChange,
    ),
    action("mark", &["space"], LISTED, "", "Mark the lead for a broadcast, or not", Intent::Mark),
    action("unmark-all", &["u"], LISTED, "", "Mark no lead any more", Intent::UnmarkAll),
    action(
        "forget",
        &["x"],
        &[Broadcast],
        "forget",
        "Forget it, for those it was not sent to",
        Intent::Forget,
    ),
    action("pin", &["P"], LISTED, "", "Pin the lead: first in its group, or not", Intent::Pin),
    action("peek", &["p"], AT_PANE, "peek", "What is on the lead's pane, read only", Intent::Peek),
    action("thoughts", &["T"], &[Transcript], "thoughts", "What models thought, or not", Intent::Thoughts),
    action(
        "learn",
        &["L"],
        &[Transcript],
        "lesson",
        "Keep something of what you wrote as a lesson",
        Intent::Learn,
    ),
    action("pager", &["e"], &[Transcript], "pager", "Open a copy of it in the pager", Intent::Page),
    action("copy", &["y"], BROWSING, "copy", "Copy what is selected", Intent::Copy),
    action("up", &["k", "up"], BROWSING, "", "Up", Intent::Up),
    action("down", &["j", "down"], BROWSING, "", "Down", Intent::Down),
    action("first", &["g g", "home"], BROWSING, "", "First row", Intent::First),
    action("last", &["G", "end"], BROWSING, "", "Last row", Intent::Last),
    action("half-page-up", &["ctrl-u"], BROWSING, "", "Half a page up", Intent::HalfPageUp),
    action("half-page-down", &["ctrl-d"], BROWSING, "", "Half a page down", Intent::HalfPageDown),
    action("page-up", &["pageup"], PAGING, "", "Page up; while writing, in the question", Intent::PageUp),
    action(
        "page-down",
        &["pagedown"],
        PAGING,
        "read on",
        "Page down; while writing, in the question",
        Intent::PageDown,
    ),
    action("next-pane", &["tab"], BROWSING, "", "Next pane", Intent::NextPane),
    action("previous-pane", &["shift-tab"], BROWSING, "", "Previous pane", Intent::PreviousPane),
    action("chief", &["c"], BROWSING, "chief", "Become the Chief, or leave", Intent::ToggleChief),
    action("diagnostics", &["d"], BROWSING, "", "What was left out, and why", Intent::Diagnostics),
    action("inbox", &["i"], BROWSING, "inbox", "What leads sent, read and unread", Intent::Inbox),
    action("focus-pane", &["f"], AT_PANE, "go to pane", "Focus the lead's pane in Herdr", Intent::FocusPane),
    action("lead-inbox", &["l"], LEADS, "", "What the selected lead sent", Intent::LeadInbox),
    action("peers", &["v"], BROWSING, "", "The leads' peers, and what is queued for them", Intent::Peers),
    action(
        "timeline",
        &["g a"],
        BROWSING,
        "",
        "What happened: while you were away, and before",
        Intent::Timeline,
    ),
    action(
        "search-sessions",
        &["g /"],
        BROWSING,
        "",
        "Search what was said in the sessions of all leads",
        Intent::SearchSessions,
    ),
    action("lessons", &["M"], BROWSING, "", "What lessons are kept", Intent::Lessons),
    action("turns", &["o"], BROWSING, "", "How supervised turns went, and what runs", Intent::Turns),
    action(
        "signals",
        &["g s"],
        BROWSING,
        "",
        "Loops, no progress, failing checks, unverified work",
        Intent::Signals,
    ),
    action("help", &["?"], BROWSING, "help", "What every key does", Intent::Help),
    action("quit", &["q"], BROWSING, "quit", "Quit, at the root", Intent::Quit),
    action("redraw", &["ctrl-l"], ANYWHERE, "", "Redraw the screen", Intent::Redraw),
    action("suspend", &["ctrl-z"], ANYWHERE, "", "Suspend, back to the shell", Intent::Suspend),
    action("interrupt", &["ctrl-c"], ANYWHERE, "", "Twice: quit from anywhere", Intent::Interrupt),
];

/// The action that must stay as it is: the way out when everything else is bound wrongly.
pub const FIXED: &str = "interrupt";
