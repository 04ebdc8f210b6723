//! Going to what is searched for in a transcript.

use super::{Anchor, Spot, State};
use crate::console::text;
use crate::fact::{Reading, Sheet};
use crate::pi::body::{Body, Folding, PartKind};

impl State {
    /// Goes to the next place of what is searched for, or the one before, over either end.
    pub(super) fn next_match(&mut self, reading: &Reading, forward: bool) -> Option<&'static str> {
        let spot = self.spot(reading)?;
        let hits = reading.hits.as_deref().filter(|hits| hits.text == self.search.text());
        let Some(hits) = hits.filter(|_| self.needle.is_some()) else {
            return Some("Nothing is searched for.");
        };
        let (Some(first), Some(last)) = (hits.hits.first(), hits.hits.last()) else {
            return Some(if hits.percent < 100 {
                "Nothing was found so far."
            } else {
                "It stands nowhere here."
            });
        };
        let here = reading.items[spot.item].offset;
        let (offset, nth) = match self.current.filter(|(offset, _)| *offset == here) {
            Some(current) => current,
            // From here on, and not at the place in this very entry that was left.
            None if forward => (here, usize::MAX),
            None => (here, 0),
        };
        let at = hits.hits.partition_point(|hit| hit.offset < offset);
        let same = hits.hits.get(at).filter(|hit| hit.offset == offset);
        let next = if forward {
            match same {
                Some(hit) if nth.saturating_add(1) < hit.count as usize => (offset, nth + 1),
                same => hits
                    .hits
                    .get(at + usize::from(same.is_some()))
                    .map_or((first.offset, 0), |hit| (hit.offset, 0)),
            }
        } else if nth > 0 && same.is_some() {
            (offset, nth - 1)
        } else {
            let hit = at.checked_sub(1).map_or(last, |at| &hits.hits[at]);
            (hit.offset, (hit.count as usize).saturating_sub(1))
        };
        self.current = Some(next);
        self.jumps = true;
        self.jump(reading);
        None
    }

    /// Chooses the place nearest before the cursor, or the first after it.
    pub(super) fn seek(&mut self, reading: &Reading) {
        if !self.seeks {
            return;
        }
        let Some(spot) = self.spot(reading) else { return };
        let Some(hits) = reading.hits.as_deref().filter(|hits| hits.text == self.search.text()) else {
            return;
        };
        let here = reading.items[spot.item].offset;
        let before = hits.hits.partition_point(|hit| hit.offset <= here);
        let hit = match before.checked_sub(1) {
            Some(at) => &hits.hits[at],
            None if hits.percent < 100 => return,
            None => match hits.hits.first() {
                Some(hit) => hit,
                None => return self.seeks = false,
            },
        };
        self.current = Some((hit.offset, (hit.count as usize).saturating_sub(1)));
        (self.seeks, self.jumps) = (false, true);
        self.jump(reading);
    }

    /// Which place of its entry the one in the wanted line is; none where that is not in sight.
    fn place_in_line(&self, body: &Body, folding: Folding) -> Option<usize> {
        let (line, needle) = (self.line.as_deref()?, self.needle.as_ref()?);
        let wanted = text::line(line);
        let mut before = 0;
        for part in body.parts.iter().filter(|part| self.thoughts || part.kind != PartKind::Thought) {
            // A folded call is cut to one row.
            let is_shown = folding == Folding::Whole || part.kind != PartKind::Call;
            for part_line in [&part.head, &part.tail].into_iter().flat_map(text::lines) {
                if is_shown && part_line.as_str().contains(wanted.as_str()) {
                    return Some(before);
                }
                before += needle.places(part_line.as_str()).len();
            }
        }
        None
    }

    /// Puts the cursor on the current place, once its entry is read far enough.
    pub(super) fn jump(&mut self, reading: &Reading) {
        let Some((offset, mut nth)) = self.current.filter(|_| self.jumps) else { return };
        if self.line.is_some()
            && let Some(Sheet::Body(body, folding)) = reading.sheets.get(&offset).map(|sheet| &**sheet)
        {
            match self.place_in_line(body, *folding) {
                Some(place) => nth = place,
                None if *folding == Folding::Folded && body.is_folded => {
                    self.unfolded.insert(offset);
                    return;
                }
                None => {}
            }
            self.line = None;
            self.current = Some((offset, nth));
        }
        let Ok(item) = reading.items.binary_search_by_key(&offset, |item| item.offset) else { return };
        let row = match reading.sheets.get(&offset).map(|sheet| &**sheet) {
            None => {
                // It is read where the screen is.
                return self.put(Anchor { offset, row: 0 });
            }
            Some(Sheet::Gone) => 0,
            Some(sheet) => {
                let places = &self.layout(reading, item).places;
                let is_folded = match sheet {
                    Sheet::Body(body, _) => body.is_folded,
                    Sheet::Large | Sheet::Gone => true,
                };
                if places.len() <= nth && is_folded {
                    self.unfolded.insert(offset);
                    return;
                }
                places.get(nth).or(places.last()).copied().unwrap_or(0)
            }
        };
        self.jumps = false;
        let spot = Spot { item, row };
        self.put(self.anchor(reading, spot));
        let top = self.moved(reading, spot, -(self.page() / 3));
        self.top.set(self.anchor(reading, top));
    }
}
