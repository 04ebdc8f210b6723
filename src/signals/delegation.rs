//! Whether the work of a lead's agents counts as verified.

/// An agent of a lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// Whether it has finished.
    pub finished: bool,
    /// Whether its work was verified; nothing where nobody has judged.
    pub verified: Option<bool>,
}

/// Why it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// One still works: what it does is not known.
    #[error("an agent has not finished")]
    Unfinished,
    /// One was not verified, or nobody has judged.
    #[error("an agent's work is not verified")]
    Child,
    /// The lead changed something itself, which no verdict about its agents covers.
    #[error("the lead changed something itself")]
    Parent,
}

/// Why the work of all `children` does not count as verified; nothing where it does. `changed` is whether
/// the lead changed something itself in that round.
pub fn judge(children: &[Child], changed: bool) -> Option<Unverified> {
    if children.iter().any(|child| !child.finished) {
        Some(Unverified::Unfinished)
    } else if children.iter().any(|child| child.verified != Some(true)) {
        Some(Unverified::Child)
    } else {
        changed.then_some(Unverified::Parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_judged_and_left_alone_counts() {
        let child = |finished, verified| Child { finished, verified };
        let good = child(true, Some(true));
        assert_eq!(judge(&[good, good], false), None);
        assert_eq!(judge(&[good, good], true), Some(Unverified::Parent));
        assert_eq!(judge(&[good, child(true, None)], false), Some(Unverified::Child));
        assert_eq!(judge(&[good, child(true, Some(false))], false), Some(Unverified::Child));
        assert_eq!(judge(&[good, child(false, Some(true))], false), Some(Unverified::Unfinished));
    }
}
