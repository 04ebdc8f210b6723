//! The logs of turns as a fact, looked at only while somebody looks at them on the screen. Long logs
//! are read on a thread for such, not on that of the disk: nothing waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::fact::{Fact, FactSender};
use crate::turn::history::{History, Picture};
use crate::turn::log::TurnLogs;

/// Between two looks.
const POLL: Duration = Duration::from_secs(2);

/// Emits what the logs say while `open` is true and it changed, until the other end of `open` is
/// dropped.
pub async fn run(logs: TurnLogs, facts: FactSender, mut open: watch::Receiver<bool>) {
    let logs = Arc::new(logs);
    let mut history = History::default();
    let mut told: Option<Arc<Picture>> = None;
    loop {
        if open.wait_for(|open| *open).await.is_err() {
            return;
        }
        let logs = Arc::clone(&logs);
        let looked = tokio::task::spawn_blocking(move || {
            let picture = history.look(&logs, None);
            (history, picture)
        });
        let Ok((read, picture)) = looked.await else { return };
        history = read;
        if told.as_deref() != Some(&picture) {
            let picture = Arc::new(picture);
            told = Some(Arc::clone(&picture));
            facts.put(Fact::Turns(picture));
        }
        // Closed meanwhile, it shall not wait for the next look.
        if let Ok(Err(_)) = tokio::time::timeout(POLL, open.changed()).await {
            return;
        }
    }
}
