//! What a key can ask for: the one table that dispatch, help and footer are made from.

/// What the operator wants. A key becomes one of these in the keymap; views act on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// Half a page up.
    HalfPageUp,
    /// Half a page down.
    HalfPageDown,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The keys go to the next pane.
    NextPane,
    /// The keys go to the previous pane.
    PreviousPane,
    /// Open what is under the cursor.
    Open,
    /// Unfold the entry under the cursor, or fold it again.
    Unfold,
    /// Back out of one layer; in a composer the draft is kept.
    Back,
    /// Write the reply to the selected lead's ask.
    Reply,
    /// Write a message to the selected lead.
    Message,
    /// The next ask, oldest first.
    NextAsk,
    /// The ask before.
    PreviousAsk,
    /// Show only leads that wait, or all again.
    WaitingOnly,
    /// Put the selected lead's ask off, or have it back.
    Snooze,
    /// Put it off for ten minutes.
    SnoozeShort,
    /// Put it off for an hour.
    SnoozeHour,
    /// Put it off until the lead asks something else.
    SnoozeChange,
    /// Mark the selected lead, or not any more.
    Mark,
    /// Mark no lead any more.
    UnmarkAll,
    /// Have the selected lead first in its group, or not any more.
    Pin,
    /// Write one message to all that are marked, or that the filter shows.
    Broadcast,
    /// Forget the broadcast that was not sent to all.
    Forget,
    /// Send again what the selected lead may not have.
    SendAgain,
    /// Show only what the lead of a message sent, or everything again.
    LeadOnly,
    /// Show what the selected lead sent.
    LeadInbox,
    /// Show only what is unread, or everything again.
    UnreadOnly,
    /// Count what was read as unread, or the other way round.
    ToggleRead,
    /// Mark all that this lead sent as read.
    ReadAll,
    /// The next place of what is searched for.
    NextMatch,
    /// The place before.
    PreviousMatch,
    /// Filter what is listed by what its rows say.
    Filter,
    /// Search in the whole texts of what leads sent.
    Search,
    /// Show what every key does.
    Help,
    /// Become the Chief, or leave.
    ToggleChief,
    /// Show what was left out, and why.
    Diagnostics,
    /// Show what leads sent.
    Inbox,
    /// Show the leads' peers and what is queued between them.
    Peers,
    /// Search what was said in the sessions of all leads.
    SearchSessions,
    /// Show how supervised turns went.
    Turns,
    /// Show what is on the selected lead's pane.
    Peek,
    /// Show what the leads' sessions show by themselves.
    Signals,
    /// Write the message that a signal of the selected lead suggests.
    Steer,
    /// Insert what the user of a session that was compacted said to hold.
    Recite,
    /// Show what happened.
    Timeline,
    /// Show what was said in the selected lead's session.
    Transcript,
    /// Hold the selected lead's claim against the gate, or end that.
    Gate,
    /// Show what lessons are kept.
    Lessons,
    /// Keep something of the message under the cursor as a lesson.
    Learn,
    /// Keep what was chosen.
    KeepLesson,
    /// A lesson or an orientation.
    LessonKind,
    /// For the project or everywhere.
    LessonScope,
    /// Put the lesson under the cursor away.
    ArchiveLesson,
    /// List the lessons that fit what is being written.
    OfferLessons,
    /// Insert the lesson under the cursor.
    InsertLesson,
    /// The user's message before.
    PreviousTurn,
    /// The next one.
    NextTurn,
    /// The failure before.
    PreviousError,
    /// The next one.
    NextError,
    /// List the session's branches.
    Branches,
    /// Show what models thought, or hide it again.
    Thoughts,
    /// Open it in the pager.
    Page,
    /// Draw everything anew.
    Redraw,
    /// Copy what is under the cursor.
    Copy,
    /// Focus the lead's pane in Herdr.
    FocusPane,
    /// Quit, at the root.
    Quit,
    /// Twice in a row: quit from anywhere.
    Interrupt,
    /// Stop the console and give the terminal back to the shell.
    Suspend,
    /// Send what was written.
    Send,
    /// A new line in what is written.
    Newline,
    /// Take back what was written last.
    Undo,
    /// Do again what was taken back.
    Redo,
    /// Go on writing in the operator's editor.
    Editor,
    /// Take the chosen path.
    Complete,
    /// Choose the next path.
    NextPath,
    /// Choose the path before.
    PreviousPath,
    /// Insert the snippet of this number.
    Snippet(u8),
    /// Leave the text field of filter or search, and keep what it says.
    KeepFilter,
    /// Yes to a question of the console's.
    Yes,
    /// No to it.
    No,
}

/// Where keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// Every screen that has neither a text field nor a question open.
    Global,
    /// The list of leads.
    Roster,
    /// One lead.
    Detail,
    /// One ask, while its composer is closed.
    Ask,
    /// Writing a reply.
    Composer,
    /// The same while paths to attach are listed.
    Paths,
    /// The text field of filter or search.
    Filter,
    /// The help.
    Help,
    /// The diagnostics.
    Diagnostics,
    /// What leads sent.
    Inbox,
    /// The peers.
    Peers,
    /// How turns went.
    Turns,
    /// What the leads' sessions show.
    Signals,
    /// A lead's pane.
    Peek,
    /// What happened.
    Timeline,
    /// What was said in a session.
    Transcript,
    /// The list of a session's branches.
    Branches,
    /// The search in sessions.
    Search,
    /// What lessons are kept.
    Lessons,
    /// What of a message is to become a lesson.
    Quote,
    /// The lessons that fit what is being written.
    Offered,
    /// What became of a broadcast.
    Broadcast,
    /// For how long an ask is put off.
    Snooze,
    /// A question of the console's.
    Confirm,
}

impl Context {
    /// All of them, in the help's order.
    pub const ALL: [Self; 24] = [
        Context::Global,
        Context::Roster,
        Context::Detail,
        Context::Ask,
        Context::Composer,
        Context::Paths,
        Context::Filter,
        Context::Help,
        Context::Diagnostics,
        Context::Inbox,
        Context::Peers,
        Context::Turns,
        Context::Signals,
        Context::Peek,
        Context::Timeline,
        Context::Transcript,
        Context::Branches,
        Context::Search,
        Context::Lessons,
        Context::Quote,
        Context::Offered,
        Context::Broadcast,
        Context::Snooze,
        Context::Confirm,
    ];

    /// Its heading in the help.
    pub fn title(self) -> &'static str {
        match self {
            Context::Global => "Outside text fields",
            Context::Roster => "Leads",
            Context::Detail => "Lead",
            Context::Ask => "Ask",
            Context::Composer => "Writing",
            Context::Paths => "Writing, with paths listed",
            Context::Filter => "Filter or search",
            Context::Help => "Help",
            Context::Diagnostics => "Diagnostics",
            Context::Inbox => "Inbox",
            Context::Peers => "Peers",
            Context::Turns => "Turns",
            Context::Signals => "Signals",
            Context::Peek => "Peek",
            Context::Timeline => "Timeline",
            Context::Transcript => "Transcript",
            Context::Branches => "Branches",
            Context::Search => "Search in sessions",
            Context::Lessons => "Lessons",
            Context::Quote => "What is to be kept",
            Context::Offered => "Lessons that fit",
            Context::Broadcast => "Broadcast",
            Context::Snooze => "Snooze",
            Context::Confirm => "Question",
        }
    }

    /// Whether characters are text here: they can't be keys, and a burst of them is no accident.
    pub fn takes_text(self) -> bool {
        matches!(self, Context::Composer | Context::Paths | Context::Filter)
    }

    /// Whether an action of `scope` can be asked for here. Text fields and questions have only
    /// their own.
    pub fn is_in(self, scope: &[Context]) -> bool {
        let modal = self.takes_text() || matches!(self, Context::Confirm | Context::Snooze);
        scope.contains(&self) || (!modal && scope.contains(&Context::Global))
    }
}

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
        LEADS,
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
