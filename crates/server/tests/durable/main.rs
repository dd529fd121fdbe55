//! Real files, and embedded databases that are kept in them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod embedded;
mod files;

use std::path::PathBuf;

/// A folder that is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Folder {
        let name = format!("durable-{:016x}", getrandom::u64().unwrap());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
