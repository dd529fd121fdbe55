//! Bytes that have come in and wait to be whole.

/// What stays allocated when nothing is buffered, in bytes: an idle connection does not keep the room of its largest message.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// A queue of bytes.
#[derive(Debug, Default)]
pub(super) struct Intake {
    bytes: Vec<u8>,
    /// How many of them have been taken.
    taken: usize,
}

impl Intake {
    /// Appends.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// What has not been taken.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// How many bytes have not been taken.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Takes that many bytes, or all if there are fewer.
    pub(super) fn take(&mut self, count: usize) {
        self.taken = self.bytes.len().min(self.taken + count);
        if self.taken == self.bytes.len() {
            self.clear();
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.taken = 0;
    }
}
