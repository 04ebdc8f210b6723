//! What was found, as lines and as JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// How a finding is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// To know.
    Warn,
    /// To act on.
    Bad,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Bad => "bad",
        }
    }
}

/// Findings of one kind that are told one by one; more are counted.
pub(super) const TOLD: usize = 20;

/// One part of the report.
pub(super) struct Section {
    name: &'static str,
    title: &'static str,
    findings: Vec<(Level, String)>,
    data: Map<String, Value>,
    /// Whether Herdr or the disk could not be used for it.
    pub(super) unavailable: bool,
}

impl Section {
    pub(super) fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title, findings: Vec::new(), data: Map::new(), unavailable: false }
    }

    /// Adds a finding; its text need not be safe to print.
    pub(super) fn say(&mut self, level: Level, text: impl Into<String>) {
        self.findings.push((level, text.into()));
    }

    /// Adds several of one kind, the first of them told one by one.
    pub(super) fn say_each(&mut self, findings: Vec<(Level, String)>, what: &str) {
        let surplus = findings.len().saturating_sub(TOLD);
        let worst = findings.iter().skip(TOLD).map(|(level, _)| *level).max();
        self.findings.extend(findings.into_iter().take(TOLD));
        if let Some(level) = worst {
            self.say(level, format!("and {surplus} more {what}"));
        }
    }

    /// Adds a member to the JSON form.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.data.insert(key.to_owned(), value.into());
    }

    fn to_value(&self) -> Value {
        let findings: Vec<Value> = (self.findings.iter())
            .map(|(level, text)| json!({"level": level.word(), "message": text}))
            .collect();
        let mut object = self.data.clone();
        object.insert("findings".to_owned(), findings.into());
        object.into()
    }
}

/// The whole.
#[derive(Default)]
pub(super) struct Report(Vec<Section>);

impl Report {
    pub(super) fn add(&mut self, section: Section) {
        self.0.push(section);
    }

    pub(super) fn worst(&self) -> Level {
        let levels = self.0.iter().flat_map(|section| &section.findings).map(|(level, _)| *level);
        levels.max().unwrap_or(Level::Ok)
    }

    pub(super) fn is_unavailable(&self) -> bool {
        self.0.iter().any(|section| section.unavailable)
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for section in &self.0 {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{}", section.title);
            for (level, finding) in &section.findings {
                let _ = writeln!(text, "  {:<4}  {}", level.word(), crate::console::text::plain(finding));
            }
        }
        let of = |wanted| {
            let all = self.0.iter().flat_map(|section| &section.findings);
            all.filter(|(level, _)| *level == wanted).count()
        };
        let _ = write!(text, "{} bad, {} warn, {} ok", of(Level::Bad), of(Level::Warn), of(Level::Ok));
        text
    }

    pub(super) fn to_json(&self) -> String {
        let mut object = Map::new();
        object.insert("verdict".to_owned(), self.worst().word().into());
        object.insert("available".to_owned(), (!self.is_unavailable()).into());
        for section in &self.0 {
            object.insert(section.name.to_owned(), section.to_value());
        }
        Value::from(object).to_string()
    }
}
