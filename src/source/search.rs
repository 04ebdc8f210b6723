//! A search in sessions as facts, for whom a query is given.
//!
//! One search is under way at a time, on a thread that blocks; another query ends it within a step.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::disk::durable;
use crate::fact::{Fact, FactSender, MAX_HITS, MAX_TROUBLES, SearchQuery, Searched};
use crate::pi::discover::{Chosen, SessionDirs};
use crate::pi::search::{Case, Filter, Pattern, Search, Syntax};

/// After so long without another query it is searched: nobody waits for what is typed amid a word.
const PAUSE: Duration = Duration::from_millis(120);
/// What was found is told so often at most.
const TELL: Duration = Duration::from_millis(50);

/// Ends a search when it is dropped.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Emits what the latest of `queries` finds, until the other end of it is dropped.
pub async fn run(
    dirs: SessionDirs,
    facts: FactSender,
    mut queries: watch::Receiver<Option<Arc<SearchQuery>>>,
) {
    loop {
        let query = queries.borrow_and_update().clone();
        let Some(query) = query else {
            match queries.changed().await {
                Ok(()) => continue,
                Err(_) => return,
            }
        };
        match tokio::time::timeout(PAUSE, queries.changed()).await {
            Ok(Ok(())) => continue,
            Ok(Err(_)) => return,
            Err(_) => {}
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Ends(Arc::clone(&is_over));
        let (dirs, facts) = (dirs.clone(), facts.clone());
        let mut work = tokio::task::spawn_blocking(move || search(&dirs, &query, &facts, &is_over));
        let changed = tokio::select! {
            _ = &mut work => queries.changed().await,
            changed = queries.changed() => {
                drop(ends);
                // What it told last must not come after what the next one tells.
                let _ = work.await;
                changed
            }
        };
        if changed.is_err() {
            return;
        }
    }
}

fn search(dirs: &SessionDirs, query: &SearchQuery, facts: &FactSender, is_over: &AtomicBool) {
    let mut searched = Searched { number: query.number, ..Searched::default() };
    let Ok(pattern) = Pattern::new(&query.text, Syntax::Literal, Case::Smart) else {
        searched.is_done = true;
        return facts.put(Fact::Searched(Arc::new(searched)));
    };
    let chosen = dirs.choose(&query.wanted);
    let mut troubles = troubles_of(&chosen);
    let mut search = Search::new(pattern, Filter::default(), false, chosen.targets);
    let mut told: Option<Instant> = None;
    while !is_over.load(Ordering::Relaxed) {
        let more = search.step(&mut |hit| {
            searched.hits.push(Arc::new(hit));
            searched.is_full = searched.hits.len() == MAX_HITS;
            if searched.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let failed = search.take_troubles().into_iter();
        troubles.extend(failed.map(|(path, why)| format!("{}: {why}", durable::shown(&path))));
        troubles.truncate(MAX_TROUBLES);
        if !more || told.is_none_or(|told| told.elapsed() >= TELL) {
            told = Some(Instant::now());
            searched.progress = search.progress();
            searched.troubles.clone_from(&troubles);
            searched.is_done = !more;
            facts.put(Fact::Searched(Arc::new(searched.clone())));
        }
        if !more {
            return;
        }
    }
}

fn troubles_of(chosen: &Chosen) -> Vec<String> {
    let without = chosen.without.iter();
    let several = chosen.several.iter();
    without
        .map(|session| format!("There is no file of session {} yet", session.escaped()))
        .chain(several.map(|(session, count)| {
            format!("{count} files are of session {}; all are searched", session.escaped())
        }))
        .chain(chosen.left_out.iter().map(|(path, why)| format!("{} {why}", durable::shown(path))))
        .collect()
}
