//! Reading what is kept: on disks, in the log, in arguments.
//!
//! The form of each thing is that of its type, so whoever changes a type that is kept raises the version of the file or record that it is in:
//!
//! | what | its version |
//! |---|---|
//! | [`LoggedBatch`](crate::node::ordering::LoggedBatch), [`TwoPhaseRecord`](crate::engine::two_phase::message::TwoPhaseRecord) | that of a log record, in `ordain-consensus` |
//! | [`SavedNode`](crate::node::SavedNode) | [`FORMAT_VERSION`](crate::checkpoint::FORMAT_VERSION) of a checkpoint |
//!
//! A test has their forms (`tests/kept_forms.rs`), and fails when one has changed.

use serde::de::DeserializeOwned;

/// Decodes what is the whole of some bytes. Bytes that are left over are a mistake: they are what a form looks like of which this program knows
/// too little.
///
/// # Errors
/// Says what is wrong.
pub fn decode_whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((decoded, [])) => Ok(decoded),
        Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}
