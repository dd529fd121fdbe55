//! The files of a node as they are at a moment, while the node goes on.
//!
//! A node never changes what it has written: checkpoints and closed segments stay as they are until they are removed, and the
//! active segment only grows. So all files are opened at once. What is removed from then on stays readable, and what is added
//! is not seen.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ordain_consensus::files::{FileEntry, FileError, FileErrorKind, FileOperation, Files, is_name};

/// How often the files are listed anew, because one was removed before it was opened.
const ATTEMPTS_MAX: u32 = 16;

/// See the [module](self).
///
/// The log repairs what a crash has left when it opens files, and nothing may be repaired here, beside the process that the
/// files belong to. So changes are made only in the eye of the reader: they are taken, and forgotten.
#[derive(Debug)]
pub struct FrozenFiles {
    directory: PathBuf,
    files: BTreeMap<String, File>,
}

impl FrozenFiles {
    /// Opens all files of a directory.
    ///
    /// # Errors
    /// When the directory or a file cannot be read.
    pub fn open(directory: &Path) -> Result<FrozenFiles, FileError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match open_all(directory) {
                Ok(files) => return Ok(FrozenFiles { directory: directory.to_owned(), files }),
                Err((_, error))
                    if error.kind() == io::ErrorKind::NotFound
                        && attempts < ATTEMPTS_MAX
                        && directory.is_dir() => {}
                Err((name, error)) => {
                    let path = directory.join(&name).display().to_string();
                    return Err(FileError { operation: FileOperation::Read, name: path, kind: kind(&error) });
                }
            }
        }
    }

    /// Makes durable what was read of the files whose names end like this: what a backup has, its source must not lose.
    ///
    /// # Errors
    /// When the disk cannot keep it.
    pub fn make_durable(&self, suffix: &str) -> Result<(), FileError> {
        for (name, file) in self.files.iter().filter(|(name, _)| name.ends_with(suffix)) {
            file.sync_data().map_err(|error| self.error(FileOperation::Sync, name, &error))?;
        }
        Ok(())
    }

    fn file(&self, operation: FileOperation, name: &str) -> Result<&File, FileError> {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        self.files.get(name).ok_or_else(|| self.error(operation, name, &missing))
    }

    fn error(&self, operation: FileOperation, name: &str, error: &io::Error) -> FileError {
        let name = self.directory.join(name).display().to_string();
        FileError { operation, name, kind: kind(error) }
    }
}

fn kind(error: &io::Error) -> FileErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => FileErrorKind::NotFound,
        _ => FileErrorKind::Other(error.to_string()),
    }
}

fn open_all(directory: &Path) -> Result<BTreeMap<String, File>, (String, io::Error)> {
    let of_directory = |error| (String::new(), error);
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(of_directory)? {
        let name = entry.map_err(of_directory)?.file_name().to_string_lossy().into_owned();
        if is_name(&name) {
            let file = File::open(directory.join(&name)).map_err(|error| (name.clone(), error))?;
            files.insert(name, file);
        }
    }
    Ok(files)
}

impl Files for FrozenFiles {
    fn list(&self) -> Result<Vec<FileEntry>, FileError> {
        let entry = |(name, file): (&String, &File)| {
            let metadata = file.metadata().map_err(|error| self.error(FileOperation::List, name, &error))?;
            Ok(FileEntry { name: name.clone(), length: metadata.len() })
        };
        self.files.iter().map(entry).collect()
    }

    fn read(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        let wrong = |error: io::Error| self.error(FileOperation::Read, name, &error);
        let file = self.file(FileOperation::Read, name)?;
        let there = file.metadata().map_err(wrong)?.len();
        let mut bytes = vec![0; there.saturating_sub(offset).min(length) as usize];
        file.read_exact_at(&mut bytes, offset).map_err(wrong)?;
        Ok(bytes)
    }

    fn create(&mut self, _name: &str, _length: u64) -> Result<(), FileError> {
        Ok(())
    }

    fn write(&mut self, _name: &str, _offset: u64, _bytes: &[u8]) -> Result<(), FileError> {
        Ok(())
    }

    fn set_length(&mut self, _name: &str, _length: u64) -> Result<(), FileError> {
        Ok(())
    }

    fn rename(&mut self, _from: &str, _to: &str) -> Result<(), FileError> {
        Ok(())
    }

    fn remove(&mut self, _name: &str) -> Result<(), FileError> {
        Ok(())
    }

    fn sync(&mut self, _name: &str) -> Result<(), FileError> {
        Ok(())
    }

    fn sync_directory(&mut self) -> Result<(), FileError> {
        Ok(())
    }
}
