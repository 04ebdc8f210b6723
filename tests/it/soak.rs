//! Leads that send all the time while Chiefs come, go and crash: every message is in the journal, once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use headman::demo::random::Random;
use headman::disk::durable;
use headman::disk::layout::InboxDir;
use headman::lead::Coordination;
use headman::lead::session::SessionFile;

use crate::programs::{Program, Setting};
use crate::stage::{Post, Stage};

const LEADS: usize = 10;

/// What happened beside the sending.
#[derive(Debug, Default)]
struct Figures {
    leases: usize,
    kills: usize,
    handovers: usize,
    /// Messages that came under a lease that had ended.
    late: usize,
    took: Duration,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_leads_send_while_chiefs_come_go_and_crash() {
    let figures = soak(60, 7).await;
    assert!(figures.kills >= 2 && figures.leases > figures.kills, "{figures:?}");
}

/// The same for longer; prints what happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn ten_leads_send_a_thousand_messages_each_while_chiefs_come_go_and_crash() {
    println!("{:?}", soak(1_000, 11).await);
}

async fn soak(each: usize, seed: u64) -> Figures {
    let stage = Stage::new().await;
    let home = stage.home("home");
    let posts: Vec<Post> = (0..LEADS).map(|nth| stage.post(&format!("lead-{nth}"))).collect();
    for post in &posts {
        let header = format!(
            r#"{{"type":"session","version":3,"id":"{}","timestamp":"2026-11-30T08:00:00.000Z","cwd":"/"}}"#,
            post.session.as_untrusted().to_str_lossy()
        );
        std::fs::write(&post.session_file, header + "\n").unwrap();
        stage.list_lead(post).await;
    }
    let mut figures = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for (nth, post) in posts.iter().enumerate() {
                let (stage, home) = (&stage, &home);
                scope.spawn(move || {
                    let file = SessionFile::new(&post.session_file, post.session.clone());
                    let lead = Coordination::open(stage.opening(home, post), file);
                    send(lead.unwrap(), nth, each, &stage.our_inbox(home));
                });
            }
            let setting = stage.chief_setting(&home, true);
            reign(&stage, &setting, Random::new(seed, 0), LEADS * each)
        })
    });
    let journal = stage.journal(&home);
    let mut texts: BTreeMap<String, usize> = BTreeMap::new();
    for received in journal.index().received() {
        *texts.entry(journal.text(received).unwrap().to_str_lossy().into_owned()).or_default() += 1;
        if let Some(why) = &received.refused {
            assert!(why.contains("earlier lease"), "{why}");
            figures.late += 1;
        }
    }
    for nth in 0..LEADS {
        for count in 0..each {
            assert_eq!(texts.remove(&text(nth, count)), Some(1), "{}", text(nth, count));
        }
    }
    assert_eq!(texts, BTreeMap::new(), "nobody wrote these");
    assert_eq!(journal.damaged(), 0);
    figures
}

fn text(nth: usize, count: usize) -> String {
    format!("message {count} of lead {nth}")
}

/// Sends as a lead does: if there is no Chief to write to, it tries again. While much waits, it waits
/// too, so that there is sending for as long as there are Chiefs.
fn send(mut lead: Coordination, nth: usize, each: usize, inbox: &InboxDir) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pause = || tokio::time::sleep(Duration::from_millis(10));
    tokio.block_on(async {
        for count in 0..each {
            while durable::list(inbox.path()).unwrap().len() > 4 * LEADS {
                pause().await;
            }
            while lead.tell(text(nth, count)).await.is_err() {
                pause().await;
            }
        }
    });
}

/// Chiefs one after another, until everything is received. Each ends soon after it received some more.
fn reign(stage: &Stage, setting: &Setting, mut random: Random, all: usize) -> Figures {
    let started = Instant::now();
    let mut figures = Figures::default();
    let mut heir: Option<Program> = None;
    let mut received = 0;
    loop {
        let mut chief = heir.take().unwrap_or_else(|| Program::chief(setting, None));
        stage.herdr.server.attach(&stage.chief.pane, chief.pid(), true);
        // One that came while the one before was still Chief waits to be told.
        chief.does("become").unwrap();
        figures.leases += 1;
        received = all.min(received + usize::try_from(random.between(30, 150)).unwrap());
        let told = chief.does(&format!("mail {received}")).unwrap();
        received = told.split(' ').next().unwrap().parse().unwrap();
        if received == all {
            chief.does("settled").unwrap();
            chief.quit();
            figures.took = started.elapsed();
            return figures;
        }
        if random.between(0, 3) == 0 {
            let next = Program::chief(setting, None);
            next.hear("standing").unwrap();
            figures.handovers += 1;
            heir = Some(next);
        }
        // In the middle of anything.
        std::thread::sleep(Duration::from_micros(random.between(0, 20_000)));
        if random.between(0, 3) == 0 {
            chief.quit();
        } else {
            figures.kills += 1;
            chief.kill();
        }
    }
}
