//! Backup, restore and inspection of data directories (docs/backup.md).
//!
//! The state of a database is a checkpoint and the log after it, so that is what a backup is: it is taken from the files of a
//! data directory, beside the process that uses it, and costs that process nothing but reads of its disk. A restore goes to the
//! end of any epoch, and so to any time, as the log says what was ordered when.
//!
//! | module | what |
//! |---|---|
//! | [`store`] | objects by name: a directory, or a bucket of an S3-compatible service |
//! | [`manifest`] | what a backup consists of; written last |
//! | [`directory`] | the identity of a data directory |
//! | [`files`] | the files of a node as they are at a moment, while the node goes on |
//! | [`source`] | a node's checkpoints and log, read from these |
//! | [`send`] | taking a backup, once or again and again |
//! | [`archive`] | all that a store has of a data directory |
//! | [`restore`] | making a data directory of it |
//! | [`inspect`] | telling what there is, and verifying it |
//! | [`options`] | the commands |

pub mod archive;
pub mod directory;
pub mod files;
pub mod inspect;
pub mod manifest;
pub mod options;
pub mod restore;
pub mod send;
mod soundness;
pub mod source;
pub mod store;
pub mod time;
