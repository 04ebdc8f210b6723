//! One session file as facts, read only while its transcript is on the screen.

mod reader;
mod search;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::fact::{Fact, FactSender, Wanted};
pub use reader::Reader;

/// Between two looks at a file of which everything is read. An unchanged one is not opened.
const PAUSE: Duration = Duration::from_millis(200);
/// Between two looks that have more to read: while a file is indexed, somebody has to draw, too.
const BREATH: Duration = Duration::from_millis(2);

/// Emits what is known of the file that `wanted` names, with everything that changes, until the other
/// end of it is dropped. Each step of the reading is bounded, and runs on a blocking thread of its
/// own: a file system that hangs holds up nothing else.
pub async fn run(facts: FactSender, mut wanted: watch::Receiver<Option<Wanted>>) {
    let mut reader: Option<Reader> = None;
    loop {
        let now_wanted = wanted.borrow_and_update().clone();
        let Some(now_wanted) = now_wanted else {
            reader = None;
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        };
        let mut current = match reader.take() {
            Some(reader) if *reader.file() == now_wanted.file => reader,
            _ => Reader::of(now_wanted.file.clone()),
        };
        let stepped = tokio::task::spawn_blocking(move || {
            let step = current.step(&now_wanted, Instant::now());
            (current, step)
        });
        let Ok((stepped, step)) = stepped.await else { return };
        reader = Some(stepped);
        if let Some(reading) = step.news {
            facts.put(Fact::Reading(Arc::new(reading)));
        }
        let pause = if step.has_more { BREATH } else { PAUSE };
        if let Ok(Err(_)) = tokio::time::timeout(pause, wanted.changed()).await {
            return;
        }
    }
}
