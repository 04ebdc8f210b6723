//! Colours and glyphs.
//!
//! A theme gives a style to every [`Role`]; themes are TOML files in `assets/themes/`, embedded.
//! State is never told by colour alone: each [`Mark`] has a glyph and a word besides its role.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use serde::{Deserialize, Serialize};

/// What a piece of the screen is, as far as its style goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Ordinary text; its background is the screen's.
    Text,
    /// What matters less: ages, hints, what is out of date.
    Muted,
    /// The name of a group or section.
    Heading,
    /// The line at the top.
    Title,
    /// A pane's frame.
    Border,
    /// The frame of the pane that has the keys.
    BorderFocused,
    /// The row under the cursor.
    Selection,
    /// The same in a pane without the keys.
    SelectionUnfocused,
    /// A key in the footer or the help.
    Key,
    /// A lead that waits for the Chief.
    NeedsYou,
    /// A turn runs.
    Working,
    /// It waits for someone.
    Blocked,
    /// Its last result is not taken yet.
    Settling,
    /// Nothing to do.
    Idle,
    /// Nothing certain is known.
    Unknown,
    /// Its pane is gone.
    Lost,
    /// Something is as it should be.
    Good,
    /// Something to know.
    Notice,
    /// Something to look at.
    Warning,
    /// Something to act on.
    Alarm,
    /// A text field.
    Input,
    /// The cursor in a text field.
    Cursor,
    /// What a filter or search found.
    Match,
}

const ROLES: usize = Role::Match as usize + 1;

/// What a lead or agent shows of its state, beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// An ask waits for the Chief.
    NeedsYou,
    /// A turn runs.
    Working,
    /// It waits for someone.
    Blocked,
    /// Its last result or request is not taken yet.
    Settling,
    /// It is being launched.
    Starting,
    /// It waits for a prompt.
    Idle,
    /// It waits for a prompt, but agents of it are active.
    IdleActive,
    /// It finished and nobody has looked since.
    Done,
    /// Nothing certain is known.
    Unknown,
    /// Its pane is gone.
    Lost,
    /// It and another touched the same file not long ago.
    Collision,
    /// Its ask is put off.
    Snoozed,
    /// The operator marked it.
    Marked,
    /// The operator wants it first in its group.
    Pinned,
}

impl Mark {
    /// All of them, for a legend.
    pub const ALL: [Self; 14] = [
        Mark::NeedsYou,
        Mark::Working,
        Mark::Blocked,
        Mark::Settling,
        Mark::Starting,
        Mark::Idle,
        Mark::IdleActive,
        Mark::Done,
        Mark::Unknown,
        Mark::Lost,
        Mark::Collision,
        Mark::Snoozed,
        Mark::Marked,
        Mark::Pinned,
    ];

    /// The word that says the same as the glyph.
    pub fn word(self) -> &'static str {
        match self {
            Mark::NeedsYou => "needs you",
            Mark::Working => "working",
            Mark::Blocked => "blocked",
            Mark::Settling => "settling",
            Mark::Starting => "starting",
            Mark::Idle => "idle",
            Mark::IdleActive => "idle, agents active",
            Mark::Done => "done",
            Mark::Unknown => "unknown",
            Mark::Lost => "lost",
            Mark::Collision => "collision",
            Mark::Snoozed => "snoozed",
            Mark::Marked => "marked",
            Mark::Pinned => "pinned",
        }
    }

    /// Its style.
    pub fn role(self) -> Role {
        match self {
            Mark::NeedsYou => Role::NeedsYou,
            Mark::Working | Mark::IdleActive => Role::Working,
            Mark::Blocked => Role::Blocked,
            Mark::Settling | Mark::Starting => Role::Settling,
            Mark::Idle => Role::Idle,
            Mark::Done => Role::Good,
            Mark::Unknown => Role::Unknown,
            Mark::Lost => Role::Lost,
            Mark::Collision => Role::Warning,
            Mark::Snoozed => Role::Muted,
            Mark::Marked => Role::Key,
            Mark::Pinned => Role::Notice,
        }
    }
}

/// The characters a screen is made of; each is one column wide, branches three.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    marks: [&'static str; Mark::ALL.len()],
    /// Frames of panes.
    pub border: border::Set<'static>,
    /// An item of a tree that others follow.
    pub branch: &'static str,
    /// The last item of a tree.
    pub last_branch: &'static str,
    /// Beside the children of an item that others follow.
    pub stem: &'static str,
    /// A horizontal rule.
    pub rule: &'static str,
    /// Between parts of a line.
    pub separator: &'static str,
    /// Before the row under the cursor.
    pub cursor: &'static str,
    /// There is more above.
    pub more_above: &'static str,
    /// There is more below.
    pub more_below: &'static str,
    /// A connection or lease stands.
    pub on: &'static str,
    /// It doesn't.
    pub off: &'static str,
    /// Bars of a small chart, from low to high.
    pub bars: [&'static str; 8],
}

impl Glyphs {
    /// The glyph of a state.
    pub fn mark(&self, mark: Mark) -> &'static str {
        self.marks[mark as usize]
    }
}

/// For terminals that show Unicode.
pub const UNICODE: Glyphs = Glyphs {
    marks: ["!", "●", "◐", "◌", "◌", "○", "◉", "○", "?", "×", "⇄", "z", "✓", "▴"],
    border: border::PLAIN,
    branch: "├─ ",
    last_branch: "└─ ",
    stem: "│  ",
    rule: "─",
    separator: "·",
    cursor: "▸",
    more_above: "↑",
    more_below: "↓",
    on: "●",
    off: "○",
    bars: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
};

/// For the others.
pub const ASCII: Glyphs = Glyphs {
    marks: ["!", "*", "#", "~", "~", "o", "@", "o", "?", "x", "&", "z", "+", "^"],
    border: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    },
    branch: "|- ",
    last_branch: "`- ",
    stem: "|  ",
    rule: "-",
    separator: "|",
    cursor: ">",
    more_above: "^",
    more_below: "v",
    on: "*",
    off: "o",
    bars: ["_", ".", "-", "~", "=", "+", "*", "#"],
};

/// Which glyphs to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GlyphChoice {
    /// ASCII when `TERM` is `linux` or `dumb`, or the locale is not UTF-8.
    #[default]
    Auto,
    /// Always Unicode.
    Unicode,
    /// Always ASCII.
    Ascii,
}

/// Why there is no such theme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    /// The name is not among the embedded ones.
    #[error("no theme is named `{}`: choose one of {}", .name.escape_debug(), Theme::names().join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The theme's file is wrong.
    #[error("the theme `{name}` can't be used: {why}")]
    Broken {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Styles and glyphs in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    name: &'static str,
    styles: [Style; ROLES],
    glyphs: &'static Glyphs,
    ascii_text: bool,
}

/// The default comes first; `mono` is what NO_COLOR selects.
const THEMES: [(&str, &str); 5] = [
    ("default", include_str!("../../assets/themes/default.toml")),
    (MONO, include_str!("../../assets/themes/mono.toml")),
    ("dusk", include_str!("../../assets/themes/dusk.toml")),
    ("paper", include_str!("../../assets/themes/paper.toml")),
    ("contrast", include_str!("../../assets/themes/contrast.toml")),
];

const MONO: &str = "mono";

impl Theme {
    /// The names that [`Theme::load`] takes.
    pub fn names() -> Vec<&'static str> {
        THEMES.iter().map(|(name, _)| *name).collect()
    }

    /// The theme of that name (`None` is the default) for the terminal that `environment`
    /// describes. NO_COLOR, when set to anything but nothing, overrides the name; the glyphs
    /// follow `TERM` and the locale (`LC_ALL`, `LC_CTYPE`, `LANG`) unless chosen.
    pub fn load(
        name: Option<&str>,
        glyphs: GlyphChoice,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ThemeError> {
        let set = |key: &str| environment(key).filter(|value| !value.is_empty());
        let name = name.unwrap_or(THEMES[0].0);
        let known = |name: &str| THEMES.iter().find(|(known, _)| *known == name);
        let Some(mut theme) = known(name) else {
            return Err(ThemeError::Unknown { name: name.to_owned() });
        };
        let term = set("TERM").unwrap_or_default();
        if set("NO_COLOR").is_some() || term == "dumb" {
            theme = known(MONO).unwrap_or(theme);
        }
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        let ascii = match glyphs {
            GlyphChoice::Auto => !utf8 || matches!(term.as_str(), "linux" | "dumb"),
            GlyphChoice::Unicode => false,
            GlyphChoice::Ascii => true,
        };
        Ok(Self {
            name: theme.0,
            styles: parse(theme.1).map_err(|why| ThemeError::Broken { name: theme.0.to_owned(), why })?,
            glyphs: if ascii { &ASCII } else { &UNICODE },
            // The Linux console shows some of Unicode, a terminal without UTF-8 none.
            ascii_text: !utf8 && glyphs != GlyphChoice::Unicode,
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// The style of a state.
    pub fn mark_style(&self, mark: Mark) -> Style {
        self.style(mark.role())
    }

    /// The glyphs to draw with.
    pub fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    /// Whether text from outside must go through `Visible::to_ascii`.
    pub fn ascii_text(&self) -> bool {
        self.ascii_text
    }
}

/// A role's entry in a theme's file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

fn parse(text: &str) -> Result<[Style; ROLES], String> {
    let entries: BTreeMap<Role, Entry> = toml::from_str(text).map_err(|error| error.to_string())?;
    if entries.len() != ROLES {
        return Err(format!("{} of {ROLES} roles have a style", entries.len()));
    }
    let colour = |colour: String| {
        colour.parse::<Color>().map_err(|_| format!("`{colour}` is no colour: write a name or #rrggbb"))
    };
    let mut styles = [Style::new(); ROLES];
    for (role, entry) in entries {
        let mut style = Style::new();
        style.fg = entry.fg.map(colour).transpose()?;
        style.bg = entry.bg.map(colour).transpose()?;
        for (wanted, modifier) in [
            (entry.bold, Modifier::BOLD),
            (entry.dim, Modifier::DIM),
            (entry.italic, Modifier::ITALIC),
            (entry.underline, Modifier::UNDERLINED),
            (entry.reverse, Modifier::REVERSED),
        ] {
            if wanted {
                style = style.add_modifier(modifier);
            }
        }
        styles[role as usize] = style;
    }
    Ok(styles)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ratatui::buffer::CellWidth;

    use super::*;

    fn environment<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |key| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned())
    }

    const UTF8: &[(&str, &str)] = &[("LANG", "en_GB.UTF-8"), ("TERM", "xterm-256color")];

    fn load(name: &str) -> Theme {
        Theme::load(Some(name), GlyphChoice::Auto, environment(UTF8)).unwrap()
    }

    #[test]
    fn every_embedded_theme_is_whole() {
        for name in Theme::names() {
            assert_eq!(load(name).name(), name);
        }
        assert_eq!(Theme::load(None, GlyphChoice::Auto, environment(UTF8)).unwrap().name(), "default");
    }

    #[test]
    fn a_wrong_name_or_file_says_what_to_do() {
        let error = Theme::load(Some("dsuk"), GlyphChoice::Auto, environment(UTF8)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no theme is named `dsuk`: choose one of default, mono, dusk, paper, contrast"
        );
        assert!(parse("[text]\n").unwrap_err().contains("1 of 23 roles"));
        assert!(parse("[text]\nfg = 3\n").is_err());
        assert!(parse("[txet]\n").is_err());
        assert!(parse("[text]\nblink = true\n").is_err());
        let wrong = THEMES[0].1.replacen("\"cyan\"", "\"cyann\"", 1);
        assert!(parse(&wrong).unwrap_err().contains("`cyann` is no colour"));
    }

    #[test]
    fn no_color_leaves_no_colour_and_keeps_the_cursor_visible() {
        let pairs = [("LANG", "C.UTF-8"), ("NO_COLOR", "1")];
        let theme = Theme::load(Some("dusk"), GlyphChoice::Auto, environment(&pairs)).unwrap();
        for style in theme.styles {
            assert_eq!((style.fg, style.bg, style.underline_color), (None, None, None));
        }
        for role in [Role::Selection, Role::Cursor, Role::Alarm] {
            assert!(theme.style(role).add_modifier.contains(Modifier::REVERSED));
        }
        let empty = [("LANG", "C.UTF-8"), ("NO_COLOR", "")];
        assert_eq!(Theme::load(Some("dusk"), GlyphChoice::Auto, environment(&empty)).unwrap().name(), "dusk");
    }

    #[test]
    fn state_can_be_told_without_colour() {
        for glyphs in [&UNICODE, &ASCII] {
            // Settling and starting share one, as do idle and done: the word tells them apart.
            let distinct: HashSet<_> = Mark::ALL.map(|mark| glyphs.mark(mark)).into();
            assert_eq!(distinct.len(), Mark::ALL.len() - 2);
        }
        let words: HashSet<_> = Mark::ALL.map(Mark::word).into();
        assert_eq!(words.len(), Mark::ALL.len());
        assert_eq!(UNICODE.mark(Mark::NeedsYou), "!");
        assert_eq!(UNICODE.mark(Mark::IdleActive), "◉");
        assert_eq!(UNICODE.mark(Mark::Lost), "×");
    }

    #[test]
    fn glyphs_have_the_width_the_layout_counts_on() {
        for glyphs in [&UNICODE, &ASCII] {
            let border = glyphs.border;
            let single = [
                border.top_left,
                border.horizontal_top,
                border.vertical_right,
                glyphs.rule,
                glyphs.separator,
                glyphs.cursor,
                glyphs.more_above,
                glyphs.more_below,
                glyphs.on,
                glyphs.off,
            ];
            for glyph in single.into_iter().chain(glyphs.marks) {
                assert_eq!(glyph.cell_width(), 1, "{glyph}");
            }
            for branch in [glyphs.branch, glyphs.last_branch, glyphs.stem] {
                assert_eq!(branch.cell_width(), 3, "{branch}");
            }
        }
        let all = format!("{ASCII:?}");
        assert!(all.is_ascii(), "{all}");
    }

    #[test]
    fn ascii_comes_by_itself_where_unicode_would_not_show() {
        type Case<'a> = (&'a [(&'a str, &'a str)], bool, bool);
        let cases: [Case<'_>; 8] = [
            (UTF8, false, false),
            (&[("LANG", "en_GB.utf8")], false, false),
            (&[("LANG", "en_GB.UTF-8"), ("TERM", "linux")], true, false),
            (&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")], true, true),
            (&[("LANG", "C"), ("LC_CTYPE", "UTF-8")], false, false),
            (&[("LANG", "de_DE.ISO-8859-1")], true, true),
            (&[("LC_ALL", ""), ("LANG", "C.UTF-8")], false, false),
            (&[], true, true),
        ];
        for (pairs, ascii, ascii_text) in cases {
            let theme = Theme::load(None, GlyphChoice::Auto, environment(pairs)).unwrap();
            assert_eq!(theme.glyphs() == &ASCII, ascii, "{pairs:?}");
            assert_eq!(theme.ascii_text(), ascii_text, "{pairs:?}");
        }
        let theme = Theme::load(None, GlyphChoice::Unicode, environment(&[])).unwrap();
        assert!(theme.glyphs() == &UNICODE && !theme.ascii_text());
        let theme = Theme::load(None, GlyphChoice::Ascii, environment(UTF8)).unwrap();
        assert!(theme.glyphs() == &ASCII && !theme.ascii_text());
    }

    #[test]
    fn true_colour_themes_can_be_read() {
        fn luminance(colour: Color) -> f64 {
            let Color::Rgb(red, green, blue) = colour else { panic!("{colour} is not 24-bit") };
            let linear = |part: u8| (f64::from(part) / 255.0).powf(2.2);
            0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
        }
        for name in ["dusk", "paper", "contrast"] {
            let theme = load(name);
            let ground = theme.style(Role::Text).bg.unwrap();
            for (role, style) in theme.styles.iter().enumerate() {
                let (fore, back) = (luminance(style.fg.unwrap()), luminance(style.bg.unwrap_or(ground)));
                let ratio = (fore.max(back) + 0.05) / (fore.min(back) + 0.05);
                let least = if role == Role::Border as usize { 3.0 } else { 4.5 };
                assert!(ratio >= least, "{name}: role {role} has a contrast of {ratio:.1}");
            }
        }
    }
}
