//! Bytes that are passed on to standard output or error, by a thread: a reader that does not take
//! them holds up neither the clock nor the ladder.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use tokio::sync::{mpsc, oneshot};

/// Chunks that wait for the thread.
const QUEUED: usize = 8;

/// The way to one reader.
#[derive(Debug)]
pub struct Passage {
    chunks: Option<mpsc::Sender<Vec<u8>>>,
    /// What came after the run, and does not wait for its turn.
    rest: VecDeque<Vec<u8>>,
    written: Arc<AtomicU64>,
    ended: oneshot::Receiver<bool>,
}

impl Passage {
    /// To whoever reads what `to` is a descriptor of.
    ///
    /// # Errors
    /// The system's.
    pub fn to(to: impl AsFd) -> io::Result<Self> {
        let mut file = File::from(rustix::io::dup(to)?);
        let (chunks, mut queue) = mpsc::channel::<Vec<u8>>(QUEUED);
        let (end, ended) = oneshot::channel();
        let written = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&written);
        std::thread::Builder::new().name("passage".to_owned()).spawn(move || {
            let mut arrived = true;
            while let Some(chunk) = queue.blocking_recv() {
                arrived = write_all(&mut file, &chunk, &count).is_ok();
                if !arrived {
                    break;
                }
            }
            // Nobody may wait for it any more.
            let _ = end.send(arrived);
        })?;
        Ok(Self { chunks: Some(chunks), rest: VecDeque::new(), written, ended })
    }

    /// Room for a chunk, once there is some; none where the reader has gone.
    pub(super) async fn room(&self) -> Option<mpsc::Permit<'_, Vec<u8>>> {
        self.chunks.as_ref()?.reserve().await.ok()
    }

    /// Keeps a chunk for the end.
    pub(super) fn keep(&mut self, chunk: Vec<u8>) {
        self.rest.push_back(chunk);
    }

    /// Hands over what was kept, and waits until everything is written: for as long as every
    /// `patience` something is. Whether it all was.
    pub async fn finish(mut self, patience: Duration) -> bool {
        let handed_over = async {
            if let Some(chunks) = self.chunks.take() {
                for chunk in std::mem::take(&mut self.rest) {
                    if chunks.send(chunk).await.is_err() {
                        break;
                    }
                }
            }
            (&mut self.ended).await.unwrap_or(false)
        };
        tokio::pin!(handed_over);
        loop {
            let before = self.written.load(Ordering::Relaxed);
            match tokio::time::timeout(patience, &mut handed_over).await {
                Ok(arrived) => return arrived,
                Err(_) if self.written.load(Ordering::Relaxed) == before => return false,
                Err(_) => {}
            }
        }
    }
}

fn write_all(file: &mut File, mut chunk: &[u8], written: &AtomicU64) -> io::Result<()> {
    while !chunk.is_empty() {
        match file.write(chunk) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => {
                chunk = &chunk[length..];
                written.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Whoever shares it with us may have set it so.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                rustix::event::poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
