//! What the screens say can be done: only what the keys do, and to whom.

use std::sync::Arc;

use headman::console::app::{App, Effect};
use headman::fact::{Desk, Fact, OtherChief, Standing};
use headman::herd::evidence::{AgentSession, LiveAgent};
use headman::herdr::Registration;

use crate::screens::{LEADS, Lead, app, at, inventory, press, records, session, shown};

fn observes(app: &mut App) {
    let standing = Standing::Observer { chief: OtherChief::None, refused: None };
    app.facts(vec![Fact::Standing(standing)], at(1));
}

/// The last line of the screen.
fn key_bar(app: &App, width: u16) -> String {
    shown(app, width, 24, at(2)).lines().last().unwrap().to_owned()
}

#[test]
fn who_is_not_chief_is_told_the_way_instead_of_a_promise() {
    let mut app = app();
    press(&mut app, "nr", at(1));
    assert!(key_bar(&app, 80).contains("enter send"));
    assert!(!shown(&app, 80, 24, at(2)).contains("Only a Chief"));
    observes(&mut app);
    for (width, height) in [(120, 40), (80, 24)] {
        let screen = shown(&app, width, height, at(2));
        assert!(screen.contains("press esc, then c to become Chief and answer"), "{screen}");
        assert!(screen.contains("Only a Chief can send; a draft is kept."), "{screen}");
        assert!(!screen.contains("enter send") && !screen.contains("press c "), "{screen}");
    }
    press(&mut app, "\u{1b}", at(2));
    let screen = shown(&app, 80, 24, at(2));
    assert!(screen.contains("press c to become Chief and answer"), "{screen}");
}

#[test]
fn the_key_bar_names_what_the_keys_do() {
    let mut app = app();
    assert!(key_bar(&app, 200).contains("q quit"));
    for open in ["?", "d", "v", "i", "n\n"] {
        press(&mut app, open, at(1));
        let bar = key_bar(&app, 200);
        assert!(bar.contains("esc back") && !bar.contains("q quit"), "{open}: {bar}");
        press(&mut app, "q", at(1));
        assert!(key_bar(&app, 200).contains("q quit"), "{open}");
    }
    assert!(app.take_effects().iter().all(|effect| !matches!(effect, Effect::Quit)));
    press(&mut app, "i", at(1));
    let bar = key_bar(&app, 120);
    assert!(bar.contains("l this lead") && !bar.contains("n next match"), "{bar}");
    press(&mut app, "/rows\n", at(1));
    assert!(key_bar(&app, 80).contains("n next match"));
}

#[test]
fn no_key_in_the_help_is_cut() {
    let mut app = app();
    press(&mut app, "?", at(1));
    let wide = shown(&app, 80, 200, at(1));
    assert!(wide.contains("ctrl-j, alt-enter, shift-enter  New line (so does"), "{wide}");
    for width in [20, 40, 60] {
        let screen = shown(&app, width, 200, at(1));
        assert!(screen.lines().skip(1).all(|line| !line.contains('\u{2026}')), "{screen}");
        assert!(screen.contains("Become the Chief") || width < 40, "{screen}");
    }
    for width in [40, 60] {
        assert!(shown(&app, width, 200, at(1)).contains("shift-enter"));
    }
}

#[test]
fn the_chief_that_is_us_is_called_so_in_the_diagnostics() {
    let mut app = app();
    let mut inventory = inventory(LEADS);
    inventory.agents.push(LiveAgent {
        workspace: Some("w9".into()),
        tab: Some("w9:t1".into()),
        pane: Some("w9:p1".into()),
        ..LiveAgent::new(AgentSession::Known("chief".into()))
    });
    app.facts(vec![Fact::Inventory(Arc::new(inventory))], at(1));
    press(&mut app, "d", at(1));
    let told = |app: &App| shown(app, 200, 40, at(1));
    let said = "The agent \"chief\" in pane \"w9:p1\" is this console. Nothing needs to be done.";
    assert!(told(&app).contains(said), "{}", told(&app));
    // Whether it is, is not known where Herdr does not list us as it should.
    app.facts(vec![Fact::Registration(Registration::Registering)], at(1));
    assert!(told(&app).contains("in pane \"w9:p1\" is the Chief itself."), "{}", told(&app));
    let desk = Desk::Of { pid: 4_711, answers: true };
    app.facts(vec![Fact::Registration(Registration::Registered), Fact::Desk(desk)], at(1));
    assert!(told(&app).contains("is the Chief that this console uses, process 4711."), "{}", told(&app));
}

#[test]
fn of_those_gone_a_bounded_number_of_names_is_kept() {
    let mut app = app();
    let many = (0..600).map(|nth| Lead { session: format!("many-{nth:03}").leak(), ..LEADS[2] });
    let mut leads: Vec<Lead> = LEADS.to_vec();
    leads.extend(many);
    let mut all = inventory(&leads);
    for (nth, agent) in all.agents.iter_mut().enumerate() {
        agent.pane = Some(format!("w3:p{nth}").as_str().into());
    }
    app.facts(vec![Fact::Leads(Arc::new(records(&leads))), Fact::Inventory(Arc::new(all))], at(1));
    assert_eq!(app.model.roster().leads.len(), 605);
    app.facts(vec![Fact::Inventory(Arc::new(inventory(LEADS)))], at(2));
    let kept = leads.iter().filter(|lead| app.model.last_names(&session(lead.session)).is_some());
    assert_eq!(kept.count(), 500);
    // Who is listed has its name there.
    assert!(app.model.last_names(&session("s-tf")).is_none());
}
