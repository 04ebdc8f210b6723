//! The projection against the golden vectors.

use std::collections::HashSet;

use headman::cli::roster::{Form, run};
use headman::contract::json::{Document, Json};
use headman::contract::{Untrusted, Uuid};
use headman::herd::{Evidence, State, order, project};

const VECTORS: &[u8] = include_bytes!("../fixtures/golden/vectors.json");

fn member<'a>(value: Json<'a>, key: &str) -> Option<Json<'a>> {
    value.object()?.into_iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn text(value: Json<'_>, key: &str) -> Untrusted {
    member(value, key).and_then(|value| value.string()).unwrap_or_else(|| panic!("no text {key}"))
}

/// Calls `check` on every case under `key`, with its name; returns how many there are.
fn each_case(key: &str, mut check: impl FnMut(Json<'_>)) -> usize {
    let document = Document::decode(VECTORS);
    let cases = member(document.value().unwrap(), key).unwrap().array().unwrap();
    cases.iter().for_each(|case| check(*case));
    cases.len()
}

fn evidence_of(case: Json<'_>) -> Evidence {
    Evidence::from_json(member(case, "input").unwrap().raw().as_bytes()).unwrap()
}

/// The same JSON text without white space between its tokens, member order kept.
fn compact(value: Json<'_>) -> String {
    let mut out = String::new();
    let (mut in_string, mut escaped) = (false, false);
    for character in value.raw().chars() {
        if in_string || !character.is_ascii_whitespace() {
            out.push(character);
        }
        if in_string {
            (in_string, escaped) = (escaped || character != '"', !escaped && character == '\\');
        } else {
            in_string = character == '"';
        }
    }
    out
}

#[test]
fn every_projection_is_serialised_exactly() {
    let count = each_case("projection", |case| {
        let expected = compact(member(case, "serialized").unwrap());
        let input = member(case, "input").unwrap().raw();
        let name = text(case, "name");
        assert_eq!(run(input.as_bytes(), Form::Json).unwrap(), expected, "{name:?}");
    });
    assert_eq!(count, 33);
}

#[test]
fn every_projected_lead_has_the_instance_and_file_of_the_snapshot() {
    let mut leads = 0;
    each_case("projection", |case| {
        let roster = project(&evidence_of(case));
        let expected = member(member(case, "snapshot").unwrap(), "leads").unwrap().array().unwrap();
        assert_eq!(roster.leads.len(), expected.len());
        for (lead, expected) in roster.leads.iter().zip(expected) {
            leads += 1;
            assert_eq!(*lead.session.as_untrusted(), text(expected, "lead"));
            assert_eq!(Uuid::from_untrusted(&text(expected, "instanceId")), Some(lead.instance));
            let file = member(expected, "piSessionFile").map(|file| file.string().unwrap());
            assert_eq!(lead.session_file, file);
        }
    });
    assert_eq!(leads, 26);
}

#[test]
fn every_display_name_is_as_recorded() {
    let count = each_case("display_name", |case| {
        let roster = project(&evidence_of(case));
        let [lead] = &roster.leads[..] else { panic!("{:?} gives no one lead", text(case, "name")) };
        assert_eq!(lead.display_name, text(case, "display_name"), "{:?}", text(case, "name"));
        assert_eq!(lead.workspace_label, text(case, "workspace_label"), "{:?}", text(case, "name"));
    });
    assert_eq!(count, 24);
}

#[test]
fn every_lifecycle_is_as_recorded() {
    let count = each_case("lifecycle", |case| {
        let status = member(case, "agent").and_then(|agent| member(agent, "agent_status")?.string());
        assert_eq!(text(case, "state"), State::of_lifecycle(status.as_ref()).as_str());
    });
    assert_eq!(count, 11);
}

#[test]
fn names_collate_as_icu_does() {
    let document = Document::decode(VECTORS);
    let collation = member(document.value().unwrap(), "collation").unwrap();
    let list = |key: &str| -> Vec<Untrusted> {
        let names = member(collation, key).unwrap().array().unwrap();
        names.iter().map(|name| name.string().unwrap()).collect()
    };
    let (unsorted, sorted) = (list("unsorted"), list("sorted"));
    assert_eq!((unsorted.len(), sorted.len()), (40, 40));
    let mut ours = unsorted.clone();
    ours.sort_by(order::collate);
    assert_eq!(ours, sorted);

    let mut pairs = HashSet::new();
    for pair in member(collation, "equal_pairs").unwrap().array().unwrap() {
        let pair: Vec<Untrusted> = pair.array().unwrap().iter().map(|name| name.string().unwrap()).collect();
        pairs.insert((pair[0].clone(), pair[1].clone()));
        pairs.insert((pair[1].clone(), pair[0].clone()));
    }
    assert_eq!(pairs.len(), 4);
    for a in &unsorted {
        for b in &unsorted {
            let equal = order::collate(a, b).is_eq();
            assert_eq!(equal, a == b || pairs.contains(&(a.clone(), b.clone())), "{a:?} {b:?}");
        }
    }
}
