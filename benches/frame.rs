//! What a frame costs with 200 leads and with 2,000: only rows in sight may matter.
//!
//! Times depend on the machine, so only the ratio within one run can fail.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headman::console::app::{App, Settings};
use headman::console::files::Place;
use headman::console::keymap::Keymap;
use headman::console::snippets::Snippets;
use headman::console::theme::{GlyphChoice, Theme};
use headman::console::view::frame;
use headman::contract::{LeadRecord, PendingAsk, SessionId, Timestamp, Uuid};
use headman::fact::{Fact, LeadRead, Now};
use headman::herd::evidence::{AgentSession, LiveAgent, State};
use headman::herd::inventory::Inventory;
use headman::herdr::Registration;
use headman::model::Model;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// How much more a frame may cost with ten times as many leads.
const RATIO: f64 = 1.3;
const ROUNDS: usize = 15;
const FRAMES: u32 = 40;

fn now() -> Now {
    Now { wall: Timestamp::from_millis(1_796_029_920_000), mono: Duration::from_secs(1000) }
}

/// A console with so many leads, of which each tenth asks.
fn console(leads: usize) -> App {
    let mut inventory = Inventory::default();
    let mut records = Vec::new();
    for nth in 0..leads {
        let session = SessionId::new(format!("lead-{nth}")).unwrap();
        let on = |what: &str| Some(format!("{what}{nth}").as_str().into());
        inventory.agents.push(LiveAgent {
            workspace: on("w"),
            tab: on("t"),
            pane: on("p"),
            state: [State::Working, State::Idle, State::Blocked][nth % 3],
            ..LiveAgent::new(AgentSession::Known(session.as_untrusted().clone()))
        });
        let id = |kind: usize| Uuid::parse(&format!("0000000{kind}-0000-4000-8000-{nth:012}")).unwrap();
        let ask = PendingAsk { ask: id(1), question: "Which one?".into(), text: "Which one?".into() };
        let record = LeadRecord {
            instance: id(2),
            session: session.clone(),
            pending_ask: (nth % 10 == 0).then_some(ask),
            updated_at: Timestamp::from_millis(1),
        };
        records.push((session.hash(), LeadRead::Valid(record)));
    }
    let settings = Settings {
        herdr_session: "default".into(),
        looked_for: "/run/h.sock".to_owned(),
        keymap: Keymap::new(&BTreeMap::new()).unwrap(),
        theme: Theme::load(None, GlyphChoice::Unicode, |_| None).unwrap(),
        clock: |_| "09:12".to_owned(),
        supervision: Default::default(),
        guided: false,
        snippets: Snippets::default(),
        place: Place { from: "/".into(), home: None },
    };
    let model = Model::new(SessionId::new("chief").unwrap(), Registration::Registered);
    let mut app = App::new(model, settings, []);
    app.facts(vec![Fact::Inventory(Arc::new(inventory)), Fact::Leads(Arc::new(records))], now());
    assert_eq!(app.model.roster().leads.len(), leads);
    app
}

fn main() -> ExitCode {
    let consoles = [console(200), console(2000)];
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (app, best) in consoles.iter().zip(&mut best) {
            let started = Instant::now();
            for _ in 0..FRAMES {
                terminal
                    .draw(|frame| {
                        frame::draw(app, now(), frame);
                    })
                    .unwrap();
            }
            *best = (started.elapsed() / FRAMES).min(*best);
        }
    }
    let ratio = best[1].as_secs_f64() / best[0].as_secs_f64();
    println!("a frame of 120 × 40 with   200 leads {:>10.1?}", best[0]);
    println!("a frame of 120 × 40 with 2,000 leads {:>10.1?}, {ratio:.2} times as much", best[1]);
    if ratio > RATIO {
        println!("more than {RATIO} times");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
