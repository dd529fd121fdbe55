//! Files as the log and the checkpoints need them: one flat directory, and exactly what a crash may do to it.
//!
//! The crate has no file system. The server implements [`Files`] over a directory of the operating system; simulator and
//! tests use [`MemoryFiles`], which loses everything that this page allows it to lose.
//!
//! # What is durable when
//!
//! A *crash* is a loss of power, or a stop of the operating system. (A process that stops loses nothing that it wrote.)
//!
//! | done | durable after |
//! |---|---|
//! | [`write`](Files::write), [`set_length`](Files::set_length), the length of [`create`](Files::create) | [`sync`](Files::sync) of that file |
//! | the name of [`create`](Files::create), [`rename`](Files::rename), [`remove`](Files::remove) | [`sync_directory`](Files::sync_directory) |
//!
//! Neither implies the other: a synced file whose name is not durable is gone after a crash, and a durable name may lead to a
//! file of which nothing was written. Until then a crash may do the following, and a user of the trait must be ready for all
//! of it:
//!
//! - **Contents.** Each sector of 512 bytes that was written to has its old contents, or its new ones, or those of any write
//!   between, independently of the other sectors: later writes may be there where earlier ones are not. A sector may be
//!   *torn*: the first part of a write is there, the rest of it is not. A sector that never was synced before may hold
//!   anything: zeros, noise, or what another file once had there.
//! - **Lengths.** A file may have any of the lengths that it had since it was last synced.
//! - **Names.** Each creation, renaming and removal may have happened or not, independently of each other and in any order
//!   between different names. One of them is never half done: after a crash the target of a renaming is the old file or the
//!   new one.
//!
//! What a crash may not do, and what an implementation must see to:
//!
//! - Bytes that are durable stay, also those that share a sector with bytes being written. (SQLite's documentation calls this
//!   property of disks "powersafe overwrite".) A durable byte that is overwritten has the old or the new value.
//! - A part of a file that was never written reads as zeros.
//!
//! # Errors
//!
//! After an error of [`sync`](Files::sync), nothing is known about what was written since the last one that succeeded, and
//! another sync must not be tried: it may succeed although the bytes never reached the disk. (Linux marks a page as clean when
//! its writing failed. PostgreSQL found this in 2018, after twenty years of trying again, and panics since; see also
//! Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.) So who meets such an error stops.

use std::fmt;

mod memory;

pub use memory::{LostWrite, MemoryFiles, Mistakes, SECTOR_BYTES, SyncTicket};

/// The most bytes of a name.
pub const NAME_BYTES_MAX: usize = 255;

/// A file of the directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
}

/// One directory without subdirectories, used by one owner. The [module](self) says what is durable when.
///
/// Names have 1 to [`NAME_BYTES_MAX`] bytes: letters, digits, `-`, `_` and `.`, the last one not at the beginning
/// ([`is_name`]).
pub trait Files {
    /// All files, in ascending order of their names.
    ///
    /// # Errors
    /// [`FileErrorKind::Other`].
    fn list(&self) -> Result<Vec<FileEntry>, FileError>;

    /// Up to `length` bytes from `offset` on: fewer where the file ends, none beyond its end.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`], or [`FileErrorKind::Other`] when the disk cannot read them.
    fn read(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>, FileError>;

    /// Makes a new file of `length` zeros, and reserves the space for them: writes within this length need none later. (On a
    /// file system that copies on write they may, and are refused as [`FileErrorKind::Full`] then.)
    ///
    /// # Errors
    /// [`FileErrorKind::Full`]: there is no file of this name then. [`FileErrorKind::Exists`], [`FileErrorKind::Other`].
    fn create(&mut self, name: &str, length: u64) -> Result<(), FileError>;

    /// Writes all bytes from `offset` on. A write that ends beyond the file's end makes it longer; a gap is filled with zeros.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`], [`FileErrorKind::Full`], [`FileErrorKind::Other`]. A part of the bytes may be written.
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), FileError>;

    /// Cuts a file, or makes it longer by zeros, for which space is reserved as by [`create`](Files::create).
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`], [`FileErrorKind::Full`] (the length is as before), [`FileErrorKind::Other`].
    fn set_length(&mut self, name: &str, length: u64) -> Result<(), FileError>;

    /// Gives a file another name. A file that had that name is replaced, in one indivisible step.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`], [`FileErrorKind::Other`].
    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError>;

    /// Removes a file.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`], [`FileErrorKind::Other`].
    fn remove(&mut self, name: &str) -> Result<(), FileError>;

    /// Makes durable what was written to the file, and its length: `fdatasync`.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`], [`FileErrorKind::Other`]: never to be tried again, see the [module](self).
    fn sync(&mut self, name: &str) -> Result<(), FileError>;

    /// Makes all names durable: `fsync` of the directory.
    ///
    /// # Errors
    /// [`FileErrorKind::Other`]: never to be tried again.
    fn sync_directory(&mut self) -> Result<(), FileError>;
}

impl<F: Files + ?Sized> Files for &mut F {
    fn list(&self) -> Result<Vec<FileEntry>, FileError> {
        (**self).list()
    }

    fn read(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        (**self).read(name, offset, length)
    }

    fn create(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        (**self).create(name, length)
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        (**self).write(name, offset, bytes)
    }

    fn set_length(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        (**self).set_length(name, length)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        (**self).rename(from, to)
    }

    fn remove(&mut self, name: &str) -> Result<(), FileError> {
        (**self).remove(name)
    }

    fn sync(&mut self, name: &str) -> Result<(), FileError> {
        (**self).sync(name)
    }

    fn sync_directory(&mut self) -> Result<(), FileError> {
        (**self).sync_directory()
    }
}

/// Whether a string can be the name of a file, on every file system.
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.')
}

/// An operation on files that failed. The message says what the operator must do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot {operation} {}: {kind}", described(name))]
pub struct FileError {
    /// What was tried.
    pub operation: FileOperation,
    /// The file; empty for an operation on the directory itself.
    pub name: String,
    /// Why it failed.
    pub kind: FileErrorKind,
}

fn described(name: &str) -> String {
    if name.is_empty() { "the directory".into() } else { format!("the file `{name}`") }
}

/// The operations of [`Files`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FileOperation {
    /// [`Files::list`].
    List,
    /// [`Files::read`].
    Read,
    /// [`Files::create`].
    Create,
    /// [`Files::write`].
    Write,
    /// [`Files::set_length`].
    SetLength,
    /// [`Files::rename`].
    Rename,
    /// [`Files::remove`].
    Remove,
    /// [`Files::sync`].
    Sync,
    /// [`Files::sync_directory`].
    SyncDirectory,
}

impl fmt::Display for FileOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileOperation::List => "list",
            FileOperation::Read => "read",
            FileOperation::Create => "create",
            FileOperation::Write => "write",
            FileOperation::SetLength => "set the length of",
            FileOperation::Rename => "rename",
            FileOperation::Remove => "remove",
            FileOperation::Sync | FileOperation::SyncDirectory => "sync",
        })
    }
}

/// Why an operation on files failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileErrorKind {
    /// There is no space.
    #[error("the disk is full: give it space")]
    Full,
    /// There is no file of this name.
    #[error("it does not exist: put back what was removed by other hands")]
    NotFound,
    /// There is a file of this name already.
    #[error("it exists already: another process uses the same directory, stop one of the two")]
    Exists,
    /// Anything else, in the words of the operating system.
    #[error("{0}; look at the disk and at the system's log, then start the node again")]
    Other(String),
}
