//! A plan in a file that the operator names: phases with boxes to tick, and what they assume.

/// What a plan takes for granted of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumption {
    /// The path, as it stands in the plan.
    pub path: String,
    /// Whether the file is assumed to be there, or not to be.
    pub exists: bool,
}

/// A part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its heading, or what its box is before.
    pub title: String,
    /// Whether a box of it is not ticked.
    pub open: bool,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// In order: the headings that have boxes below them, or the boxes themselves where there is no such
    /// heading.
    pub phases: Vec<Phase>,
    /// What it assumes.
    pub assumptions: Vec<Assumption>,
}

impl Plan {
    /// Reads a plan in Markdown.
    pub fn parse(text: &str) -> Self {
        let mut plan = Self::default();
        let mut heading: Option<String> = None;
        let mut below_heading = false;
        for line in text.lines() {
            let line = line.trim();
            if let Some(title) = line.strip_prefix('#') {
                heading = Some(title.trim_start_matches('#').trim().to_owned());
                below_heading = false;
            } else if let Some((title, open)) = ticked(line) {
                match (&heading, below_heading, plan.phases.last_mut()) {
                    (Some(_), true, Some(phase)) => phase.open |= open,
                    (Some(heading), ..) => {
                        plan.phases.push(Phase { title: heading.clone(), open });
                        below_heading = true;
                    }
                    (None, ..) => plan.phases.push(Phase { title: title.to_owned(), open }),
                }
            } else if let Some(assumption) = assumed(line) {
                plan.assumptions.push(assumption);
            }
        }
        plan
    }

    /// The phases that are open, besides the last.
    pub fn open_before_the_last(&self) -> impl Iterator<Item = &str> {
        let before = &self.phases[..self.phases.len().saturating_sub(1)];
        before.iter().filter(|phase| phase.open).map(|phase| phase.title.as_str())
    }
}

/// The text behind a box, and whether that is not ticked.
fn ticked(line: &str) -> Option<(&str, bool)> {
    let item = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let digits = line.trim_start_matches(|it: char| it.is_ascii_digit());
        (digits.len() < line.len()).then(|| digits.strip_prefix(['.', ')'])).flatten()
    })?;
    let behind = item.trim_start().strip_prefix('[')?;
    let mark = behind.chars().next()?;
    let title = behind[mark.len_utf8()..].strip_prefix(']')?;
    match mark {
        ' ' => Some((title.trim(), true)),
        'x' | 'X' => Some((title.trim(), false)),
        _ => None,
    }
}

fn assumed(line: &str) -> Option<Assumption> {
    let line = line.trim_start_matches(['-', '*', '+', ' ']);
    let (exists, path) = match line.split_once(':')? {
        ("file_exists", path) => (true, path),
        ("file_absent", path) => (false, path),
        _ => return None,
    };
    let path = path.trim().trim_matches('`').to_owned();
    (!path.is_empty()).then_some(Assumption { path, exists })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> (usize, Vec<String>) {
        let plan = Plan::parse(text);
        (plan.phases.len(), plan.open_before_the_last().map(str::to_owned).collect())
    }

    #[test]
    fn only_the_last_phase_may_be_open() {
        assert_eq!(
            open("# P\n## One\n- [x] a\n- [ ] b\n## Two\ntext\n- [ ] c\n"),
            (2, vec!["One".to_owned()])
        );
        assert_eq!(open("## One\n- [x] a\n## Two\n* [ ] c\n"), (2, vec![]));
        assert_eq!(open("1. [ ] a\n2) [X] b\n- [ ] c"), (3, vec!["a".to_owned()]));
        assert_eq!(open("no boxes\n- item\n- [?] x"), (0, vec![]));
    }

    #[test]
    fn assumptions_are_lines_of_their_own() {
        let plan =
            Plan::parse("file_exists: src/a.rs\n- file_absent: `b c`\nsays file_exists: x\nfile_exists:\n");
        let assumed: Vec<_> = plan.assumptions.iter().map(|it| (it.path.as_str(), it.exists)).collect();
        assert_eq!(assumed, [("src/a.rs", true), ("b c", false)]);
    }
}
