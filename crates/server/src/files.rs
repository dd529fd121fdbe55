//! The directory of a partition on a real disk: [`Files`] over the operating system.
//!
//! Space that is reserved is not yet written, as the file system sees it: to write there changes its own tables, and it takes a sync
//! longer to have these durable as well. So whoever writes where nothing was written before fills a piece with zeros, and most of the
//! syncs that follow have nothing to make durable but bytes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ordain_consensus::files::{FileEntry, FileError, FileErrorKind, FileOperation, Files, is_name};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Zeros that are written at a time where space cannot be reserved otherwise.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Bytes that are filled with zeros at a time where space was reserved: so many that few syncs wait for them, and so few that these do
/// not wait for long.
const FILLED_BYTES: u64 = 256 * 1024;

/// A file that has been written to.
#[derive(Debug)]
struct OpenFile {
    file: File,
    /// From here on nothing has been written since the space was reserved; `None` if it is not known.
    untouched: Cell<Option<u64>>,
}

impl OpenFile {
    fn new(file: File) -> OpenFile {
        OpenFile { file, untouched: Cell::new(None) }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn write(&self, bytes: &[u8], offset: u64, length: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        let end = offset + bytes.len() as u64;
        if self.untouched.get().is_some_and(|untouched| end > untouched) {
            let to = end.next_multiple_of(FILLED_BYTES).min(length).max(end);
            zeros(&self.file, end, to)?;
            self.untouched.set(Some(to));
        }
        Ok(())
    }
}

/// See the [module](self). Errors name the whole path.
#[derive(Debug)]
pub struct RealFiles {
    directory: PathBuf,
    /// Files that have been written to and stay open.
    open: BTreeMap<String, OpenFile>,
    /// The most bytes that all files may have together.
    bytes_max: u64,
    /// The bytes that they have.
    bytes: u64,
}

impl RealFiles {
    /// The files of a directory, which is made, durably, if it is not there.
    ///
    /// # Errors
    /// When it cannot be made or read.
    pub fn open(directory: &Path) -> Result<RealFiles, FileError> {
        RealFiles::with_bytes_max(directory, u64::MAX)
    }

    /// The same with a limit: beyond it the disk counts as full.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn with_bytes_max(directory: &Path, bytes_max: u64) -> Result<RealFiles, FileError> {
        let mut files =
            RealFiles { directory: directory.to_owned(), open: BTreeMap::new(), bytes_max, bytes: 0 };
        create_directory(directory).map_err(|error| files.error(FileOperation::Create, "", error))?;
        files.bytes = files.list()?.iter().map(|entry| entry.length).sum();
        Ok(files)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn error(&self, operation: FileOperation, name: &str, error: io::Error) -> FileError {
        let errno = Errno::from_io_error(&error);
        let kind = match error.kind() {
            _ if errno == Some(Errno::NOSPC) || errno == Some(Errno::DQUOT) => FileErrorKind::Full,
            ErrorKind::NotFound => FileErrorKind::NotFound,
            ErrorKind::AlreadyExists => FileErrorKind::Exists,
            _ => FileErrorKind::Other(error.to_string()),
        };
        FileError { operation, name: self.path(name).display().to_string(), kind }
    }

    fn full(&self, operation: FileOperation, name: &str) -> FileError {
        let name = self.path(name).display().to_string();
        FileError { operation, name, kind: FileErrorKind::Full }
    }

    /// An open file.
    fn file(&mut self, operation: FileOperation, name: &str) -> Result<&OpenFile, FileError> {
        if !self.open.contains_key(name) {
            let file = OpenOptions::new().read(true).write(true).open(self.path(name));
            let file = file.map_err(|error| self.error(operation, name, error))?;
            self.open.insert(name.to_owned(), OpenFile::new(file));
        }
        Ok(&self.open[name])
    }

    fn length(&mut self, operation: FileOperation, name: &str) -> Result<u64, FileError> {
        let length = self.file(operation, name)?.length();
        length.map_err(|error| self.error(operation, name, error))
    }

    /// Makes a file that has `from` bytes longer, with space for what is new.
    fn reserve(&mut self, operation: FileOperation, name: &str, from: u64, to: u64) -> Result<(), FileError> {
        if self.bytes.saturating_add(to - from) > self.bytes_max {
            return Err(self.full(operation, name));
        }
        let open = self.file(operation, name)?;
        let reserved = reserve(&open.file, from, to);
        let is_promised = reserved.as_ref().is_ok_and(|is_promised| *is_promised);
        open.untouched.set(open.untouched.get().or(Some(from)).filter(|_| is_promised));
        reserved.map_err(|error| self.error(operation, name, error))?;
        self.bytes += to - from;
        Ok(())
    }
}

/// Makes a directory with all that are above it, durably.
///
/// # Errors
/// Those of the operating system.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_directory(above)?;
    match std::fs::create_dir(directory) {
        // Another may have made it in the meantime.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => created?,
    }
    sync_directory(above)
}

/// Makes the names in a directory durable.
///
/// # Errors
/// Those of the operating system; not to be tried again.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Reserves space; whether it is only promised, and nothing was written there.
fn reserve(file: &File, from: u64, to: u64) -> io::Result<bool> {
    if to == from {
        return Ok(false);
    }
    match fallocate(file, FallocateFlags::empty(), from, to - from) {
        // The file system cannot reserve: zeros take the space.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => zeros(file, from, to).map(|()| false),
        result => Ok(result.map(|()| true)?),
    }
}

fn zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    let mut offset = from;
    while offset < to {
        let bytes = (to - offset).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..bytes as usize], offset)?;
        offset += bytes;
    }
    Ok(())
}

impl Files for RealFiles {
    fn list(&self) -> Result<Vec<FileEntry>, FileError> {
        let wrong = |error| self.error(FileOperation::List, "", error);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let metadata = entry.metadata().map_err(wrong)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // What has no name of ours is not ours.
            if metadata.is_file() && is_name(&name) {
                entries.push(FileEntry { name, length: metadata.len() });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn read(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        let wrong = |error| self.error(FileOperation::Read, name, error);
        let file = File::open(self.path(name)).map_err(wrong)?;
        let there = file.metadata().map_err(wrong)?.len();
        let mut bytes = vec![0; there.saturating_sub(offset).min(length) as usize];
        file.read_exact_at(&mut bytes, offset).map_err(wrong)?;
        Ok(bytes)
    }

    fn create(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path(name));
        let file = file.map_err(|error| self.error(FileOperation::Create, name, error))?;
        self.open.insert(name.to_owned(), OpenFile::new(file));
        let reserved = self.reserve(FileOperation::Create, name, 0, length);
        if reserved.is_err() {
            self.open.remove(name);
            // The name of a file that could not be made; if it cannot be removed either, opening will find it.
            let _ = std::fs::remove_file(self.path(name));
        }
        reserved
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let length = self.length(FileOperation::Write, name)?;
        let end = offset + bytes.len() as u64;
        let grown = end.saturating_sub(length);
        if self.bytes.saturating_add(grown) > self.bytes_max {
            return Err(self.full(FileOperation::Write, name));
        }
        let written = self.file(FileOperation::Write, name)?.write(bytes, offset, length);
        written.map_err(|error| self.error(FileOperation::Write, name, error))?;
        self.bytes += grown;
        Ok(())
    }

    fn set_length(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        let before = self.length(FileOperation::SetLength, name)?;
        if length > before {
            let reserved = self.reserve(FileOperation::SetLength, name, before, length);
            if reserved.is_err() {
                let cut = self.file(FileOperation::SetLength, name)?.file.set_len(before);
                cut.map_err(|error| self.error(FileOperation::SetLength, name, error))?;
            }
            return reserved;
        }
        let open = self.file(FileOperation::SetLength, name)?;
        open.untouched.set(open.untouched.get().map(|untouched| untouched.min(length)));
        let cut = open.file.set_len(length);
        cut.map_err(|error| self.error(FileOperation::SetLength, name, error))?;
        self.bytes = self.bytes.saturating_sub(before - length);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let replaced = std::fs::metadata(self.path(to)).map_or(0, |metadata| metadata.len());
        std::fs::rename(self.path(from), self.path(to))
            .map_err(|error| self.error(FileOperation::Rename, from, error))?;
        self.bytes = self.bytes.saturating_sub(replaced);
        self.open.remove(to);
        if let Some(file) = self.open.remove(from) {
            self.open.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), FileError> {
        let length = self.length(FileOperation::Remove, name)?;
        self.open.remove(name);
        std::fs::remove_file(self.path(name))
            .map_err(|error| self.error(FileOperation::Remove, name, error))?;
        self.bytes = self.bytes.saturating_sub(length);
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<(), FileError> {
        let synced = self.file(FileOperation::Sync, name)?.file.sync_data();
        synced.map_err(|error| self.error(FileOperation::Sync, name, error))
    }

    fn sync_directory(&mut self) -> Result<(), FileError> {
        sync_directory(&self.directory).map_err(|error| self.error(FileOperation::SyncDirectory, "", error))
    }
}
