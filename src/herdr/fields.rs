//! Looking into one reply: members, elements and scalars, each absent rather than wrong.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::contract::Untrusted;

pub(super) fn text(raw: &RawValue) -> Option<Untrusted> {
    if raw.get().starts_with('"') { serde_json::from_str(raw.get()).ok() } else { None }
}

pub(super) fn flag(raw: &RawValue) -> Option<bool> {
    raw.get().parse().ok()
}

/// A whole number from 0 that a double holds exactly.
pub(super) fn whole(raw: &RawValue) -> Option<u64> {
    let number: f64 = raw.get().parse().ok()?;
    (number.trunc() == number && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}

pub(super) fn text_map(raw: &RawValue) -> BTreeMap<Untrusted, Untrusted> {
    let mut map = BTreeMap::new();
    each(raw, |key, value| {
        match text(value) {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    });
    map
}

pub(super) fn member<'a>(raw: &'a RawValue, wanted: &[u8]) -> Option<&'a RawValue> {
    let mut found = None;
    members(raw, |key, value| {
        if key == wanted {
            found = Some(value);
        }
    });
    found
}

/// Calls `each` for every member; whether `raw` is an object at all.
pub(super) fn members<'a>(raw: &'a RawValue, mut each_member: impl FnMut(&[u8], &'a RawValue)) -> bool {
    each(raw, |key, value| each_member(key.as_wtf8(), value))
}

fn each<'a>(raw: &'a RawValue, found: impl FnMut(Untrusted, &'a RawValue)) -> bool {
    struct Each<F>(F);
    impl<'de, F: FnMut(Untrusted, &'de RawValue)> DeserializeSeed<'de> for Each<F> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }
    impl<'de, F: FnMut(Untrusted, &'de RawValue)> Visitor<'de> for Each<F> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((key, value)) = map.next_entry::<Untrusted, &RawValue>()? {
                (self.0)(key, value);
            }
            Ok(())
        }
    }
    raw.get().starts_with('{')
        && Each(found).deserialize(&mut serde_json::Deserializer::from_str(raw.get())).is_ok()
}

/// Most elements of a list that are looked at; no herd has so many.
pub(super) const MAX_ELEMENTS: usize = 10_000;

/// The first [`MAX_ELEMENTS`] of a list.
pub(super) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    first_elements(raw).map(|(elements, _)| elements)
}

/// The same, and how many follow.
pub(super) fn first_elements(raw: &RawValue) -> Option<(Vec<&RawValue>, usize)> {
    struct All;
    impl<'de> Visitor<'de> for All {
        type Value = (Vec<&'de RawValue>, usize);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while all.len() < MAX_ELEMENTS {
                match seq.next_element()? {
                    Some(element) => all.push(element),
                    None => return Ok((all, 0)),
                }
            }
            let mut further = 0;
            while seq.next_element::<IgnoredAny>()?.is_some() {
                further += 1;
            }
            Ok((all, further))
        }
    }
    if !raw.get().starts_with('[') {
        return None;
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(All).ok()
}
