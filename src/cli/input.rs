//! Files the user names: read bounded, `-` is standard input.

use std::io::Read;
use std::path::Path;

use super::failure::Failure;

/// Reads at most `limit` bytes of `path`, or of standard input where it is `-`; one more where it
/// has more, so that the caller sees it.
///
/// # Errors
/// [`Failure`] where it can't be read.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = limit as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let what = if path == Path::new("-") { "standard input" } else { &*path.to_string_lossy() };
            Err(Failure::disk(&format!("read {what}"), &error, "Name a readable file, or `-`"))
        }
    }
}
