//! A thread on which file work is done, in the order it was asked for.

use std::sync::mpsc;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A handle to such a thread. The thread ends when the last handle is dropped and its work done.
#[derive(Clone)]
pub struct DiskThread(mpsc::Sender<Job>);

/// The disk thread is gone: a job of it panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the disk thread ended; restart headman")]
pub struct DiskThreadGone;

impl DiskThread {
    /// Starts the thread.
    pub fn spawn() -> std::io::Result<Self> {
        Self::named("disk")
    }

    /// Starts another, for work that must not hold up that one's.
    pub fn named(name: &str) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            for job in queue {
                job();
            }
        })?;
        Ok(Self(jobs))
    }

    /// Has `work` done there, after everything asked for before, whether or not its result is
    /// awaited.
    pub fn run<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, DiskThreadGone>> + Send + use<T, W> {
        let (answer, result) = oneshot::channel();
        let job = Box::new(move || {
            // Whoever asked may have gone away: the work is done all the same.
            let _ = answer.send(work());
        });
        // A job that can't be sent drops its answer.
        let _ = self.0.send(job);
        async { result.await.map_err(|_| DiskThreadGone) }
    }
}
