//! What is on its way to a client.

use std::ops::{Deref, DerefMut};

use crate::error::SqlError;

/// Sends bytes and takes them out of the buffer.
pub type Send<'s> = dyn FnMut(&mut Vec<u8>) -> Result<(), SqlError> + 's;

/// Bytes that come together before they are sent while a statement still gives rows.
const SENT_TOGETHER: usize = 64 * 1024;

/// Messages for a client, and who sends them while a statement still runs.
pub(super) struct Out<'s> {
    bytes: &'s mut Vec<u8>,
    send: &'s mut Send<'s>,
}

impl<'s> Out<'s> {
    pub(super) fn new(bytes: &'s mut Vec<u8>, send: &'s mut Send<'s>) -> Out<'s> {
        Out { bytes, send }
    }

    /// Sends what is there if it is much. All of it are whole messages.
    ///
    /// # Errors
    /// When the client is gone.
    pub(super) fn relieve(&mut self) -> Result<(), SqlError> {
        if self.bytes.len() < SENT_TOGETHER { Ok(()) } else { (self.send)(self.bytes) }
    }
}

impl Deref for Out<'_> {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        self.bytes
    }
}

impl DerefMut for Out<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.bytes
    }
}
