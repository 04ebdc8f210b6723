//! What the supervisor reads of what leads, verifiers and people write.

use headman::signals::gate::{self, Evidence, Verdict};
use headman::signals::keys::normalised;
use headman::signals::memory::Memory;
use headman::signals::plan::Plan;
use headman::signals::recite::{self, Constraints};
use headman::signals::secrets::masked;
use headman::signals::self_report;
use headman::signals::shell::Guess;
use serde_json::Value;

/// A message with its report, a command, a verdict, a lesson, a plan: whatever the bytes are.
pub fn supervisor(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let message = self_report::read(&text);
    let again = self_report::read(&message.text);
    assert_eq!(
        (again.text.as_str(), again.report),
        (message.text.as_str(), None),
        "taken out once and for all"
    );
    assert!(text.starts_with(message.text.as_str()), "only taken from its end");
    if let Some(report) = message.report {
        let json: Value = serde_json::from_slice(&report.to_json()).expect("a report is JSON");
        assert_eq!(json["state"], report.state.as_str());
        let plain = format!("<sup>{}</sup>", String::from_utf8_lossy(&report.to_json()));
        if plain.len() < 16 * 1024 && !plain[5..].contains("<sup>") {
            let back = self_report::read(&plain).report.expect("what is written is understood");
            assert_eq!((back.state, &back.focus, &back.next), (report.state, &report.focus, &report.next));
        }
    }
    let guess = Guess::of(&text);
    assert!(!text.trim().is_empty() || !guess.mutates && guess.verb.is_none(), "nothing does nothing");
    assert!(normalised(&text).len() <= text.len() + 2, "only taken away");
    masked(&text);
    if let Some(memory) = Memory::parse(&text) {
        assert_eq!(Memory::parse(&memory.to_file()), Some(memory), "what is written is understood");
    }
    let plan = Plan::parse(&text);
    assert!(plan.open_before_the_last().count() <= plan.phases.len());
    let mut constraints = Constraints::default();
    constraints.turn(&text);
    for kept in constraints.all() {
        assert!(text.contains(kept) && kept.chars().count() <= recite::LONGEST, "{kept:?} is quoted");
    }
    verdict(bytes);
}

/// By a plainer rule: a pass says so, and nothing else.
fn verdict(bytes: &[u8]) {
    let evidence = Evidence { request: "the request that a gap quotes".to_owned(), ..Evidence::default() };
    let passes = serde_json::from_slice::<Value>(bytes).is_ok_and(|it| {
        it.as_object().is_some_and(|it| it.len() == 2 && it.get("verdict") == Some(&"pass".into()))
            && it["gaps"].as_array().is_some_and(Vec::is_empty)
    });
    let found = gate::verdict(Ok(()), bytes, &evidence);
    assert!(found != Verdict::Pass || passes, "{:?}", String::from_utf8_lossy(bytes));
    if let Verdict::Gaps(gaps) = found {
        assert!(!gaps.is_empty() && gaps.len() <= 32);
    }
}
