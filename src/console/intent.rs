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
