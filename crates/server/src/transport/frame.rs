//! Frames: how payloads travel over a byte stream. Pure: bytes in, frames out; no sockets.
//!
//! A frame is a header of 24 bytes followed by the payload. Integers are little endian.
//!
//! | bytes | field    | meaning                                                                             |
//! |-------|----------|-------------------------------------------------------------------------------------|
//! | 0-3   | magic    | `"ORDN"`: tells a stranger that speaks another protocol from a peer                  |
//! | 4-5   | version  | [`FRAME_VERSION`]; another version may mean another layout from byte 6 on            |
//! | 6     | kind     | a [`FrameKind`]                                                                     |
//! | 7     | reserved | 0                                                                                   |
//! | 8-11  | length   | of the payload, in bytes                                                            |
//! | 12-19 | sequence | [`FrameKind`] says what it counts                                                   |
//! | 20-23 | checksum | CRC32C (Castagnoli) of bytes 0-19 followed by the payload                           |
//! | 24-   | payload  |                                                                                     |
//!
//! TCP has a checksum of its own, but one of 16 bits that network cards often verify and rewrite; CRC32C covers the way
//! from memory to memory.

use bytes::{Bytes, BytesMut};

use super::limits::{
    FRAME_PAYLOAD_BYTES_MAX, HANDSHAKE_PAYLOAD_BYTES_MAX, HANDSHAKE_READ_BYTES, READ_AHEAD_BYTES_MAX,
    READ_BYTES,
};

/// The version of the layout that this build writes and reads.
pub const FRAME_VERSION: u16 = 1;

/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 24;

const MAGIC: [u8; 4] = *b"ORDN";
const CHECKSUM_AT: usize = 20;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The first frame in each direction, a [`Hello`](super::Hello). The sequence is 0.
    Hello,
    /// The sender ends the connection; the payload is a [`Refusal`](super::Refusal). The sequence is 0.
    Refusal,
    /// A payload of the caller's. The sequence counts them from 1: on a link over all its connections, between client
    /// and server on each connection and in each direction.
    Data,
    /// Everything below the sequence has been delivered; it is the next one expected. No payload.
    Ack,
    /// The sender is alive and has nothing to say. The sequence is 0, no payload.
    Heartbeat,
}

impl FrameKind {
    fn to_byte(self) -> u8 {
        match self {
            FrameKind::Hello => 1,
            FrameKind::Refusal => 2,
            FrameKind::Data => 3,
            FrameKind::Ack => 4,
            FrameKind::Heartbeat => 5,
        }
    }

    fn from_byte(byte: u8) -> Option<FrameKind> {
        match byte {
            1 => Some(FrameKind::Hello),
            2 => Some(FrameKind::Refusal),
            3 => Some(FrameKind::Data),
            4 => Some(FrameKind::Ack),
            5 => Some(FrameKind::Heartbeat),
            _ => None,
        }
    }
}

/// One frame, as sent and received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// A counter; [`FrameKind`] says of what.
    pub sequence: u64,
    /// The payload. A received one is a slice of the buffer it arrived in (at least 4 KiB) and keeps that alive.
    pub payload: Bytes,
}

impl Frame {
    /// Appends the frame's bytes to `out`.
    ///
    /// # Panics
    /// If the payload is longer than [`FRAME_PAYLOAD_BYTES_MAX`]; the queues refuse such payloads before.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&encode_header(self.kind, self.sequence, &self.payload));
        out.extend_from_slice(&self.payload);
    }
}

/// The header of a frame with this payload.
pub(crate) fn encode_header(kind: FrameKind, sequence: u64, payload: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    assert!(payload.len() <= FRAME_PAYLOAD_BYTES_MAX, "queues refuse payloads above the limit");
    let mut header = [0; FRAME_HEADER_BYTES];
    header[0..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&FRAME_VERSION.to_le_bytes());
    header[6] = kind.to_byte();
    header[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[12..20].copy_from_slice(&sequence.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKSUM_AT]), payload);
    header[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Why bytes are not a frame. Nothing after such bytes can be trusted: the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes do not begin a frame.
    #[error(
        "the other side does not speak Ordain's protocol (its first bytes are {found:?}): check the address and the port"
    )]
    BadMagic {
        /// The first four bytes that arrived.
        found: [u8; 4],
    },
    /// The other side runs another version of the protocol.
    #[error(
        "the other side speaks version {theirs} of the protocol, this side version {ours}: run the same release of Ordain on both"
    )]
    UnsupportedVersion {
        /// The version in the frame.
        theirs: u16,
        /// [`FRAME_VERSION`].
        ours: u16,
    },
    /// A kind that this version does not have.
    #[error("a frame has the unknown kind {kind}: run the same release of Ordain on both sides")]
    UnknownKind {
        /// The byte in the frame.
        kind: u8,
    },
    /// The reserved byte is not 0.
    #[error("a frame has reserved bits set ({bits:#04x}): run the same release of Ordain on both sides")]
    ReservedBits {
        /// The byte in the frame.
        bits: u8,
    },
    /// The header announces more than is allowed at this point.
    #[error(
        "a frame announces {bytes} bytes where at most {bytes_max} are allowed: split the message, or connect with Ordain's client"
    )]
    TooLong {
        /// The length in the header.
        bytes: u32,
        /// The limit, which is lower until the handshake is complete.
        bytes_max: usize,
    },
    /// Header or payload were changed on the way.
    #[error(
        "a frame's checksum is {found:#010x} where {computed:#010x} was computed: it was damaged on the way; connect again, and check the network if it persists"
    )]
    BadChecksum {
        /// The checksum in the header.
        found: u32,
        /// The checksum of what arrived.
        computed: u32,
    },
}

struct Header {
    kind: FrameKind,
    sequence: u64,
    payload_bytes: usize,
    checksum: u32,
}

/// Makes frames of bytes that arrive in pieces of any size.
///
/// Memory: at most what has arrived and not been taken, plus [`READ_AHEAD_BYTES_MAX`]. The length in a header is believed
/// only as far as bytes follow it.
pub struct Decoder {
    buffer: BytesMut,
    /// Of the frame at the start of `buffer`, once its header has arrived and been validated.
    header: Option<Header>,
    payload_bytes_max: usize,
    /// The least to allocate at once.
    chunk_bytes: usize,
    failed: Option<FrameError>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder with the limits that hold before the handshake: nothing is allocated until bytes arrive.
    pub fn new() -> Decoder {
        Decoder {
            buffer: BytesMut::new(),
            header: None,
            payload_bytes_max: HANDSHAKE_PAYLOAD_BYTES_MAX,
            chunk_bytes: 4 * HANDSHAKE_READ_BYTES,
            failed: None,
        }
    }

    /// Allows payloads up to [`FRAME_PAYLOAD_BYTES_MAX`] from here on. To be called between two frames.
    pub fn handshake_done(&mut self) {
        assert!(self.header.is_none(), "the limit changes between frames");
        self.payload_bytes_max = FRAME_PAYLOAD_BYTES_MAX;
        self.chunk_bytes = READ_BYTES;
    }

    /// Appends what has arrived.
    pub fn push(&mut self, arrived: &[u8]) {
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < arrived.len() && !self.buffer.try_reclaim(arrived.len()) {
            self.grow(arrived.len());
        }
        self.buffer.extend_from_slice(arrived);
    }

    /// Makes room for `arrived_bytes` and, inside a long frame, for as much again as has arrived already: so a long frame
    /// is moved few times, and a lying header gains little.
    fn grow(&mut self, arrived_bytes: usize) {
        let have = self.buffer.len();
        let frame_bytes = self.header.as_ref().map_or(0, |header| FRAME_HEADER_BYTES + header.payload_bytes);
        let ahead = frame_bytes.saturating_sub(have).min(have).min(READ_AHEAD_BYTES_MAX);
        let mut larger = BytesMut::with_capacity(have + ahead.max(arrived_bytes).max(self.chunk_bytes));
        larger.extend_from_slice(&self.buffer);
        self.buffer = larger;
    }

    /// Takes the next whole frame; `None` means that more bytes must arrive first.
    ///
    /// # Errors
    /// A [`FrameError`], as early as it can be known: a wrong header is reported before its payload has arrived, wrong
    /// magic bytes before the header has. After an error every call repeats it.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.decode();
        self.failed = result.as_ref().err().copied();
        result
    }

    fn decode(&mut self) -> Result<Option<Frame>, FrameError> {
        let header = match self.header.take() {
            Some(header) => header,
            None => match decode_header(&self.buffer, self.payload_bytes_max)? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        if self.buffer.len() < FRAME_HEADER_BYTES + header.payload_bytes {
            self.header = Some(header);
            return Ok(None);
        }
        let mut bytes = self.buffer.split_to(FRAME_HEADER_BYTES + header.payload_bytes).freeze();
        let payload = bytes.split_off(FRAME_HEADER_BYTES);
        let computed = crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECKSUM_AT]), &payload);
        if computed != header.checksum {
            return Err(FrameError::BadChecksum { found: header.checksum, computed });
        }
        Ok(Some(Frame { kind: header.kind, sequence: header.sequence, payload }))
    }

    /// Whether the beginning of a frame has arrived whose end has not. Meaningful once
    /// [`next_frame`](Decoder::next_frame) has returned `None`.
    pub fn is_inside_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Bytes of memory held at the moment.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Validates the header at the start of `bytes`; `None` if it has not arrived whole and is not wrong so far.
fn decode_header(bytes: &[u8], payload_bytes_max: usize) -> Result<Option<Header>, FrameError> {
    if let Some(&found) = bytes.first_chunk::<4>()
        && found != MAGIC
    {
        return Err(FrameError::BadMagic { found });
    }
    let Some(header) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
    let theirs = u16::from_le_bytes(field(header, 4));
    if theirs != FRAME_VERSION {
        return Err(FrameError::UnsupportedVersion { theirs, ours: FRAME_VERSION });
    }
    if header[7] != 0 {
        return Err(FrameError::ReservedBits { bits: header[7] });
    }
    let kind = FrameKind::from_byte(header[6]).ok_or(FrameError::UnknownKind { kind: header[6] })?;
    let payload_bytes = u32::from_le_bytes(field(header, 8));
    if payload_bytes as usize > payload_bytes_max {
        return Err(FrameError::TooLong { bytes: payload_bytes, bytes_max: payload_bytes_max });
    }
    Ok(Some(Header {
        kind,
        sequence: u64::from_le_bytes(field(header, 12)),
        payload_bytes: payload_bytes as usize,
        checksum: u32::from_le_bytes(field(header, CHECKSUM_AT)),
    }))
}

/// The `N` bytes from `at` on; the caller has made sure that they are there.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the length has been checked")
}
