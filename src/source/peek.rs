//! The pane of one lead as facts, looked at only while it is on the screen.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::chief::inspection::{InspectError, Subject, Text, inspect};
use crate::fact::{Fact, FactSender, Inspection, Peek};
use crate::herdr::Client;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Emits what is on the pane of whom `subjects` names, with every look, until the other end of it is
/// dropped.
pub async fn run(client: Client, facts: FactSender, mut subjects: watch::Receiver<Option<Subject>>) {
    let mut last: Option<(Subject, Inspection)> = None;
    loop {
        let subject = subjects.borrow_and_update().clone();
        let Some(subject) = subject else {
            last = None;
            if subjects.changed().await.is_err() {
                return;
            }
            continue;
        };
        let looked = tokio::select! {
            looked = inspect(&client, &subject, Text::Visible) => looked,
            changed = subjects.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let trouble = match looked {
            Ok(seen) => {
                last = Some((subject.clone(), seen));
                None
            }
            Err(error) => {
                // What Herdr can't tell now is shown as it was; a pane that is another's is not.
                if !matches!(error, InspectError::Herdr(_)) {
                    last = None;
                }
                Some(error.to_string())
            }
        };
        let seen = last.as_ref().filter(|(of, _)| *of == subject).map(|(_, seen)| seen.clone());
        facts.put(Fact::Peek(Arc::new(Peek { session: subject.session().clone(), seen, trouble })));
        if let Ok(Err(_)) = tokio::time::timeout(PAUSE, subjects.changed()).await {
            return;
        }
    }
}
