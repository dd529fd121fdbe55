//! PostgreSQL's protocol, version 3: messages to and from bytes, and authentication.
//!
//! Nothing here waits, reads or draws: whoever has the socket feeds a [`frontend::Decoder`] with what it read and sends what an
//! [`backend::Encoder`] wrote, and random numbers are arguments of [`scram`]. What clients send is not trusted: each length is held
//! against a limit and against the bytes that are there before anything is allocated for it, and no sequence of bytes panics. See
//! `docs/protocol-postgresql.md`.

pub mod backend;
mod body;
pub mod copy;
pub mod frontend;
mod intake;
pub mod scram;

/// Which newest minor version of protocol 3 is spoken. Clients that ask for a newer one are told by
/// [`negotiate_protocol_version`](backend::Encoder::negotiate_protocol_version); those that ask for an older one get it.
pub const PROTOCOL_MINOR_NEWEST: u16 = 2;

/// The form of a value, in messages and in `COPY`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Format {
    /// As text, in UTF-8.
    #[default]
    Text,
    /// In the binary form of its type.
    Binary,
}

impl Format {
    /// The number that stands for it in messages.
    pub fn code(self) -> u16 {
        match self {
            Format::Text => 0,
            Format::Binary => 1,
        }
    }
}
