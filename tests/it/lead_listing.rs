//! Leads that are no Pi, and whether Herdr lists them: what is said where it does not, and the demo's
//! free pane, where it does.

use std::process::{Command, Stdio};

use headman::demo::{Options, World};
use headman::herdr::Client;
use rustix::process::Signal;

use crate::lead_scene::{A, B, Open, Scene};
use crate::support::until;

const NOTE: &str = "this lead is not listed in Herdr: the Chief refuses what it sends until it is";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_listed_is_told_that_the_chief_refuses_what_it_sends() {
    let scene = Scene::new().await;
    let (_lease, _program) = scene.chief().await;
    let _outside = scene.open(A, &[]);
    scene.opened(A).await;
    for verb in ["message", "ask"] {
        let sent = scene.lead(verb, A, &["Go?", "--json"]);
        assert_eq!(sent.code, 0, "{}", sent.stderr);
        assert!(sent.stderr.contains(NOTE), "{}", sent.stderr);
    }
    // One that is just being opened is waited for.
    let _inside = scene.open_in(&scene.panes[0], B, &[]);
    scene.opened(B).await;
    let sent = scene.lead("message", B, &["Go?"]);
    assert_eq!((sent.code, sent.stderr.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_has_a_free_pane_for_a_lead_of_ones_own() {
    let directory = tempfile::Builder::new().prefix("hm-").tempdir_in("/tmp").unwrap();
    let options = Options {
        dir: Some(directory.path().join("d")),
        program: Some(env!("CARGO_BIN_EXE_headman").into()),
        speed: 0.0,
        leads: 1,
        ..Options::default()
    };
    let world = World::start(&options).await.unwrap();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "eval \"$HEADMAN_DEMO_FREE_PANE\"; exec \"$0\" lead open --session try-1 --name try"])
        .arg(env!("CARGO_BIN_EXE_headman"))
        .env_clear()
        .env("HOME", directory.path())
        .env("TMUX", "/tmp/tmux,1,0")
        .envs(world.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut lead = Open::start(&mut shell, true);
    lead.says("listed in Herdr: the Chief sees this lead").await;
    let client = Client::new(world.server().socket().to_owned());
    let listed = async || client.agent_list().await.unwrap().0.len();
    let with_it = listed().await;
    lead.signal(Signal::TERM);
    assert_eq!(lead.ended().await, Some(0));
    until("the pane is free again", async || listed().await < with_it).await;
    world.end().await;
}
