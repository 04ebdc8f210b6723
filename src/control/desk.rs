//! One service for all: in this process if no other of ours has it, else through its socket. When
//! that one ends, the next takes its place.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::client::Ended;
use super::hub::Hub;
use super::server;
use super::socket::{ControlSocket, Door, Listening};
use super::wire::Hello;
use crate::chief::service::{self, Request, Setup};
use crate::fact::{Desk, Fact, FactSender, Standing};
use crate::herdr::Registration;

/// Requests of other processes that wait.
const OTHERS: usize = 8;
/// How long a process that served may take to be gone, once its connection is.
const GOES: Duration = Duration::from_secs(1);
/// How often one that serves nobody looks whether it may.
const LATER: Duration = Duration::from_secs(2);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What the desk needs beside the service's own setup.
pub(super) struct Open {
    /// The socket.
    pub socket: ControlSocket,
    /// The service, should it be ours.
    pub setup: Setup,
    /// Whether leads see us in Herdr, should the service be ours.
    pub registration: watch::Receiver<Registration>,
}

/// Sees to it that requests are served until one is to end.
pub(super) async fn run(open: Open, mut requests: mpsc::Receiver<Request>, facts: FactSender) {
    let why = loop {
        match open.socket.enter().await {
            Ok(Door::Ours(listening)) => {
                return serve(open, listening, requests, facts).await;
            }
            Ok(Door::Theirs(connection)) => {
                let pid = connection.hello().pid;
                match connection.pass(&mut requests, &facts).await {
                    Ended::Shutdown(done) => {
                        // Whoever asked may have given up waiting.
                        let _ = done.send(());
                        return;
                    }
                    Ended::Dropped => return,
                    Ended::Gone(why) => {
                        tracing::info!(pid, why, "the service of another process ended");
                        // What it was is not what we are.
                        facts.put(Fact::Standing(Standing::Starting));
                        until_gone(pid).await;
                    }
                }
            }
            Err(error) => break error.to_string(),
        }
    };
    // Whoever serves there may hold the lease; then we are told so and only watch, and take its place
    // on the socket once it is gone.
    let Open { socket, setup, registration } = open;
    facts.put(Fact::Desk(Desk::Alone(why)));
    let (hub, hello) = (Arc::new(Hub::default()), hello(&setup));
    let relayed = facts.relayed(hub.clone());
    let (sender, others) = mpsc::channel(OTHERS);
    let told = tell(registration, relayed.clone());
    tokio::select! {
        () = service::run(Setup { facts: relayed, ..setup }, &mut requests, others) => {}
        () = serve_later(&socket, hello, hub, sender, &facts) => {}
        () = told => {}
    }
}

/// Serves as soon as nobody else does.
async fn serve_later(
    socket: &ControlSocket,
    hello: Hello,
    hub: Arc<Hub>,
    requests: mpsc::Sender<Request>,
    facts: &FactSender,
) {
    loop {
        tokio::time::sleep(LATER).await;
        if let Ok(Door::Ours(listening)) = socket.enter().await {
            server::serve(listening, hello.clone(), Arc::clone(&hub), requests.clone(), facts).await;
        }
    }
}

fn hello(setup: &Setup) -> Hello {
    Hello {
        pid: std::process::id(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        session: setup.office.session().clone(),
        again_ms: None,
    }
}

/// Waits for the process that served to be gone, within bounds: until then its lease, if it left
/// one, is not free.
async fn until_gone(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let began = std::time::Instant::now();
    while began.elapsed() < GOES && pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()) {
        tokio::time::sleep(LOOK).await;
    }
}

async fn serve(open: Open, listening: Listening, mut requests: mpsc::Receiver<Request>, facts: FactSender) {
    let hub = Arc::new(Hub::default());
    let unrelayed = facts;
    let facts = unrelayed.relayed(hub.clone());
    let hello = hello(&open.setup);
    let (sender, others) = mpsc::channel(OTHERS);
    let served = server::serve(listening, hello, hub, sender, &unrelayed);
    let told = tell(open.registration, facts.clone());
    tokio::select! {
        () = service::run(Setup { facts, ..open.setup }, &mut requests, others) => {}
        () = served => {}
        () = told => {}
    }
}

/// Tells whether leads see us, and never ends.
async fn tell(mut registration: watch::Receiver<Registration>, facts: FactSender) {
    loop {
        let now = registration.borrow_and_update().clone();
        facts.put(Fact::Registration(now));
        if registration.changed().await.is_err() {
            std::future::pending().await
        }
    }
}
