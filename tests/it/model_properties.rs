//! The model is what was last said of each id, in whatever order the ids were spoken of.

use std::sync::Arc;
use std::time::Duration;

use headman::contract::{Kind, LeadRecord, PendingAsk, SessionId, Timestamp, Uuid};
use headman::fact::{AskTime, Fact, Fate, LeadRead, Mail, Now, Sent, Standing, Watching};
use headman::herd::evidence::{AgentSession, LiveAgent, State};
use headman::herd::inventory::Inventory;
use headman::herd::state_block;
use headman::herdr::Registration;
use headman::model::Model;
use proptest::prelude::*;

/// One moment for all: ages are of the order in which things were seen, and no part of this.
fn now() -> Now {
    Now { wall: Timestamp::from_millis(1_796_043_600_000), mono: Duration::from_secs(9) }
}

fn uuid(nth: u8) -> Uuid {
    Uuid::parse(&format!("aaaaaaaa-bbbb-4ccc-8ddd-0000000000{nth:02x}")).unwrap()
}

fn session(nth: u8) -> SessionId {
    SessionId::new(format!("s{nth}")).unwrap()
}

fn any_inventory() -> impl Strategy<Value = Fact> {
    prop::collection::vec((0..5_u8, 0..4_u8), 0..6).prop_map(|agents| {
        let agents = agents.into_iter().map(|(nth, state)| LiveAgent {
            workspace: Some("w".into()),
            tab: Some("t".into()),
            pane: Some(format!("p{nth}").as_str().into()),
            state: [State::Idle, State::Working, State::Blocked, State::Done][usize::from(state)],
            ..LiveAgent::new(AgentSession::Known(session(nth).as_untrusted().clone()))
        });
        Fact::Inventory(Arc::new(Inventory { agents: agents.collect(), ..Inventory::default() }))
    })
}

fn any_read() -> impl Strategy<Value = (String, LeadRead)> {
    (0..5_u8, 0..4_u8).prop_map(|(nth, what)| {
        let read = match what {
            0 => LeadRead::Absent,
            1 => LeadRead::Refused("no".to_owned()),
            _ => LeadRead::Valid(LeadRecord {
                instance: uuid(nth),
                session: session(nth),
                pending_ask: (what == 3).then(|| PendingAsk {
                    ask: uuid(nth + 16),
                    question: "q?".into(),
                    text: "t".into(),
                }),
                updated_at: Timestamp::from_millis(1_796_043_500_000),
            }),
        };
        (session(nth).hash(), read)
    })
}

fn any_sent() -> impl Strategy<Value = Fact> {
    (0..4_u8, prop::sample::select(Fate::ALL.to_vec())).prop_map(|(nth, fate)| {
        Fact::Sent(Sent {
            id: uuid(nth + 32),
            kind: Kind::ChiefReply,
            lead: session(nth),
            ask: Some(uuid(nth + 16)),
            text: "yes".into(),
            at: Timestamp::from_millis(u64::from(nth)),
            fate,
        })
    })
}

fn any_other() -> impl Strategy<Value = Fact> {
    prop_oneof![
        any::<bool>().prop_map(|one| Fact::Standing(if one {
            Standing::Starting
        } else {
            Standing::Chief { lease: uuid(1), since: Timestamp::from_millis(1) }
        })),
        (0..3_usize).prop_map(|unread| Fact::Mail(Arc::new(Mail { unread, ..Mail::default() }))),
        any::<bool>().prop_map(|one| Fact::Registration(if one {
            Registration::Registered
        } else {
            Registration::Registering
        })),
        Just(Fact::Watching(Watching::Notified)),
        // Always the same: a time that is told once is remembered, as its message leaves the inbox.
        Just(()).prop_map(|()| {
            let time = |nth| AskTime {
                lead: session(nth),
                ask: uuid(nth + 16),
                at: Timestamp::from_millis(1_796_043_400_000 + u64::from(nth)),
            };
            Fact::AskTimes(Arc::new((0..3).map(time).collect()))
        }),
    ]
}

/// Which facts replace each other.
fn id(fact: &Fact) -> String {
    match fact {
        Fact::Lead(hash, _) => hash.clone(),
        Fact::Sent(sent) => sent.id.to_string(),
        other => format!("{:?}", std::mem::discriminant(other)),
    }
}

/// Everything the screens are made of.
fn seen(model: &Model) -> String {
    let sent: Vec<_> =
        (0..5).map(|nth| model.sent_to(&session(nth)).into_iter().cloned().collect::<Vec<_>>()).collect();
    let ages: Vec<_> = model.roster().leads.iter().map(|lead| model.ask_age(lead, now())).collect();
    let block = state_block::block(model.observed());
    let rest = (model.standing(), model.registration(), model.mail(), model.herdr(), model.records_problem());
    format!("{:?}\n{sent:?}\n{ages:?}\n{block}\n{rest:?}\n{}", model.roster(), model.queued())
}

fn fresh() -> Model {
    Model::new(SessionId::new("chief").unwrap(), Registration::Registering)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Facts of one id keep their order; those of different ids come in any, singly or together, and
    /// some of them twice.
    #[test]
    fn any_interleaving_of_reads_gives_the_model_of_a_cold_scan(
        leads in prop::collection::vec(any_read().prop_map(|(hash, read)| Fact::Lead(hash, read)), 0..12),
        inventories in prop::collection::vec(any_inventory(), 1..3),
        sent in prop::collection::vec(any_sent(), 0..8),
        others in prop::collection::vec(any_other(), 0..8),
        turns in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 32),
    ) {
        let mut streams: Vec<(String, Vec<Fact>)> = Vec::new();
        for fact in leads.into_iter().chain(inventories).chain(sent).chain(others) {
            let id = id(&fact);
            match streams.iter_mut().find(|(known, _)| *known == id) {
                Some((_, stream)) => stream.push(fact),
                None => streams.push((id, vec![fact])),
            }
        }
        let nothing = Fact::Leads(Arc::default());

        // What each id said last, at once.
        let last: Vec<Fact> = streams.iter().map(|(_, stream)| stream.last().unwrap().clone()).collect();
        let mut cold = fresh();
        let records = last.iter().filter_map(|fact| match fact {
            Fact::Lead(hash, read) => Some((hash.clone(), read.clone())),
            _ => None,
        });
        let scan = Fact::Leads(Arc::new(records.collect()));
        cold.fold([scan].into_iter().chain(last.iter().filter(|it| !matches!(it, Fact::Lead(..))).cloned()), now());

        let mut live = fresh();
        live.fold([nothing], now());
        let mut waiting: Vec<Fact> = Vec::new();
        let mut turns = turns.iter().cycle();
        for stream in &mut streams {
            stream.1.reverse();
        }
        while !streams.is_empty() {
            let (which, twice, together) = turns.next().unwrap();
            let at = which.index(streams.len());
            let fact = streams[at].1.pop().unwrap();
            if streams[at].1.is_empty() {
                streams.swap_remove(at);
            }
            waiting.extend(twice.then(|| fact.clone()));
            waiting.push(fact);
            if !together {
                live.fold(waiting.drain(..), now());
            }
        }
        live.fold(waiting, now());
        prop_assert_eq!(seen(&live), seen(&cold));
        // And once more everything, as after a queue that overflowed.
        live.fold(last, now());
        prop_assert_eq!(seen(&live), seen(&cold));
    }
}

/// All records as they stand now take the place of all that were known: what is not among them is gone.
#[test]
fn a_lead_that_vanished_while_events_were_lost_is_gone_after_the_next_scan() {
    let record = |nth: u8| (session(nth).hash(), LeadRead::Refused("broken".to_owned()));
    let scan = |all: &[u8]| Fact::Leads(Arc::new(all.iter().map(|nth| record(*nth)).collect()));
    let (mut live, mut cold) = (fresh(), fresh());
    live.fold([Fact::Inventory(Arc::default())], now());
    cold.fold([Fact::Inventory(Arc::default())], now());
    live.fold([scan(&[1, 2, 3])], now());
    let before = seen(&live);
    live.fold([scan(&[2])], now());
    cold.fold([scan(&[2])], now());
    assert_eq!(seen(&live), seen(&cold));
    assert_ne!(seen(&live), before);
}
