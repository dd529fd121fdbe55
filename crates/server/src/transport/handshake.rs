//! The first frame in each direction: who is there, and whether they may talk. Pure: messages only.
//!
//! The side that connects sends a [`Hello`]; the side that listens answers with its own `Hello`, or with a [`Refusal`] and
//! closes. [`Membership`](super::Membership) holds the rules.
//!
//! A `Hello` has 36 bytes, little endian:
//!
//! | bytes | field             | meaning                                          |
//! |-------|-------------------|--------------------------------------------------|
//! | 0     | role              | 1 peer, 2 client                                 |
//! | 1     | reserved          | 0                                                |
//! | 2-3   | process           | of a peer; 0 from a client                       |
//! | 4-11  | cluster           | see [`Hello::cluster`]                           |
//! | 12-19 | incarnation       | see [`Hello::incarnation`]                       |
//! | 20-27 | known incarnation | see [`Hello::known_incarnation`]                 |
//! | 28-35 | receive next      | see [`Hello::receive_next`]                      |
//!
//! A `Refusal` is a [`RefusalCode`] as u16, followed by the reason as UTF-8 text.

use std::fmt;

use bytes::Bytes;

use super::frame::field;
use super::limits::REFUSAL_REASON_BYTES_MAX;

const HELLO_BYTES: usize = 36;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A process of the cluster. The one that connected sends payloads, the other acknowledges them.
    Peer {
        /// Which one.
        process: u16,
    },
    /// A client. Payloads go both ways.
    Client,
}

/// How a side introduces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// What the sender is.
    pub role: Role,
    /// The fingerprint of the sender's cluster configuration. A client that has none sends 0 and is let in.
    pub cluster: u64,
    /// Drawn at random when the sender's process started; never 0 from a process. Two of them from one process mean that
    /// it lost its memory in between.
    pub incarnation: u64,
    /// The incarnation of the receiver that the sender has met before; 0 if none. So a restarted process can tell a peer
    /// that remembers its predecessor from one that starts afresh.
    pub known_incarnation: u64,
    /// The sequence of the next payload that the sender expects from the receiver; payloads before it need not be sent
    /// again. 0 where no payloads flow that way, which is so from a peer that connects.
    pub receive_next: u64,
}

/// Why a payload is not a [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hello is malformed: run the same release of Ordain on both sides")]
pub struct HelloError;

impl Hello {
    /// The payload of the frame.
    pub fn encode(&self) -> Bytes {
        let (role, process) = match self.role {
            Role::Peer { process } => (1, process),
            Role::Client => (2, 0),
        };
        let mut out = Vec::with_capacity(HELLO_BYTES);
        out.extend_from_slice(&[role, 0]);
        out.extend_from_slice(&process.to_le_bytes());
        for word in [self.cluster, self.incarnation, self.known_incarnation, self.receive_next] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.into()
    }

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// If the length, the role or a reserved field is not as documented.
    pub fn decode(payload: &[u8]) -> Result<Hello, HelloError> {
        if payload.len() != HELLO_BYTES || payload[1] != 0 {
            return Err(HelloError);
        }
        let process = u16::from_le_bytes(field(payload, 2));
        let role = match payload[0] {
            1 => Role::Peer { process },
            2 if process == 0 => Role::Client,
            _ => return Err(HelloError),
        };
        let word = |at| u64::from_le_bytes(field(payload, at));
        Ok(Hello {
            role,
            cluster: word(4),
            incarnation: word(12),
            known_incarnation: word(20),
            receive_next: word(28),
        })
    }
}

/// The kind of a [`Refusal`], for programs; the reason is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// What arrived is no frame, or not one that may come at this point.
    Malformed,
    /// No hello arrived in time.
    HandshakeTimeout,
    /// The two sides have different cluster configurations.
    ConfigurationDiffers,
    /// The process is not in the configuration, or is not the one that was expected at this address.
    UnknownProcess,
    /// A process restarted without its memory; connections made before cannot be resumed.
    ProcessRestarted,
    /// The server has as many connections as it takes.
    TooManyConnections,
    /// The process still delivers what an earlier connection brought. To be tried again.
    Busy,
    /// The process is shutting down.
    Closing,
    /// A failure inside the process; its log says more.
    Failed,
    /// A code of a later release.
    Other(u16),
}

impl RefusalCode {
    const ALL: [(u16, RefusalCode); 9] = [
        (1, RefusalCode::Malformed),
        (2, RefusalCode::HandshakeTimeout),
        (3, RefusalCode::ConfigurationDiffers),
        (4, RefusalCode::UnknownProcess),
        (5, RefusalCode::ProcessRestarted),
        (6, RefusalCode::TooManyConnections),
        (7, RefusalCode::Busy),
        (8, RefusalCode::Closing),
        (9, RefusalCode::Failed),
    ];

    fn to_u16(self) -> u16 {
        match self {
            RefusalCode::Other(number) => number,
            known => Self::ALL.iter().find(|(_, code)| *code == known).expect("ALL lists every code").0,
        }
    }

    fn from_u16(number: u16) -> RefusalCode {
        Self::ALL.iter().find(|(n, _)| *n == number).map_or(RefusalCode::Other(number), |(_, code)| *code)
    }
}

/// Why one side ends a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people: what is wrong and what to do.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Refusal {
    pub(crate) fn new(code: RefusalCode, reason: impl Into<String>) -> Refusal {
        Refusal { code, reason: reason.into() }
    }

    /// The payload of the frame; the reason is cut at [`REFUSAL_REASON_BYTES_MAX`].
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(2 + self.reason.len());
        out.extend_from_slice(&self.code.to_u16().to_le_bytes());
        out.extend_from_slice(
            &self.reason.as_bytes()[..self.reason.floor_char_boundary(REFUSAL_REASON_BYTES_MAX)],
        );
        out.into()
    }

    /// Reads the payload of a frame, leniently: this is the last thing that the other side says. The reason will be
    /// logged, so control characters are replaced.
    pub fn decode(payload: &[u8]) -> Refusal {
        let (code, reason) = match payload.split_first_chunk::<2>() {
            Some((code, reason)) => (RefusalCode::from_u16(u16::from_le_bytes(*code)), reason),
            None => (RefusalCode::Malformed, payload),
        };
        let reason = &reason[..reason.len().min(REFUSAL_REASON_BYTES_MAX)];
        let reason = String::from_utf8_lossy(reason).replace(char::is_control, "\u{fffd}");
        Refusal { code, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_round_trips_and_rejects_every_other_length() {
        for role in [Role::Peer { process: 0x1234 }, Role::Client] {
            let hello =
                Hello { role, cluster: 1, incarnation: u64::MAX, known_incarnation: 3, receive_next: 4 };
            let bytes = hello.encode();
            assert_eq!(Hello::decode(&bytes), Ok(hello));
            for cut in 0..bytes.len() {
                assert_eq!(Hello::decode(&bytes[..cut]), Err(HelloError));
            }
            assert_eq!(Hello::decode(&[&bytes[..], b"x"].concat()), Err(HelloError));
        }
    }

    #[test]
    fn refusal_round_trips_and_is_read_leniently() {
        for (number, code) in RefusalCode::ALL.into_iter().chain([(77, RefusalCode::Other(77))]) {
            let refusal = Refusal::new(code, "because");
            assert_eq!(refusal.encode()[..2], u16::to_le_bytes(number));
            assert_eq!(Refusal::decode(&refusal.encode()), refusal);
        }
        assert_eq!(Refusal::decode(b"").code, RefusalCode::Malformed);
        assert_eq!(Refusal::decode(b"\x01\x00a\nb\xff").reason, "a\u{fffd}b\u{fffd}");
        let long = Refusal::new(RefusalCode::Busy, "é".repeat(REFUSAL_REASON_BYTES_MAX));
        assert_eq!(Refusal::decode(&long.encode()).reason, "é".repeat(REFUSAL_REASON_BYTES_MAX / 2));
    }
}
