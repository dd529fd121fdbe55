//! The codec, without sockets.

use bytes::Bytes;
use ordain::transport::frame::{Decoder, FRAME_HEADER_BYTES, Frame, FrameError, FrameKind};
use ordain::transport::limits::{FRAME_PAYLOAD_BYTES_MAX, HANDSHAKE_PAYLOAD_BYTES_MAX, READ_AHEAD_BYTES_MAX};

use super::support::{Random, encoded};

const KINDS: [FrameKind; 5] =
    [FrameKind::Hello, FrameKind::Refusal, FrameKind::Data, FrameKind::Ack, FrameKind::Heartbeat];

fn open_decoder() -> Decoder {
    let mut decoder = Decoder::new();
    decoder.handshake_done();
    decoder
}

fn decode(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    let mut decoder = open_decoder();
    decoder.push(bytes);
    decoder.next_frame()
}

#[test]
fn golden_bytes_of_a_frame() {
    let bytes = encoded(FrameKind::Data, 0x0102_0304_0506_0708, Bytes::from_static(b"order"));
    let golden = [
        &b"ORDN"[..],              // magic
        &[1, 0],                   // version
        &[3],                      // kind: data
        &[0],                      // reserved
        &[5, 0, 0, 0],             // length
        &[8, 7, 6, 5, 4, 3, 2, 1], // sequence
        &[0xcf, 0x8b, 0xca, 0x85], // checksum
        b"order",
    ];
    assert_eq!(bytes, golden.concat());
}

#[test]
fn the_checksum_is_crc32c_of_header_and_payload() {
    let castagnoli = |bytes: &[u8]| {
        !bytes.iter().fold(!0u32, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
        })
    };
    assert_eq!(castagnoli(b"123456789"), 0xe306_9283, "the standard's check value");
    let bytes = encoded(FrameKind::Ack, 9, Bytes::from_static(b"xyz"));
    assert_eq!(bytes[20..24], castagnoli(&[&bytes[..20], b"xyz"].concat()).to_le_bytes());
}

#[test]
fn frames_round_trip_whatever_pieces_they_arrive_in() {
    let mut random = Random(1);
    let frames: Vec<Frame> = (0..500)
        .map(|i| {
            let bytes_max = if i % 100 == 0 { 3 << 20 } else { 300 };
            let payload = Bytes::from(vec![i as u8; random.below(bytes_max)]);
            Frame { kind: KINDS[random.below(KINDS.len())], sequence: random.next(), payload }
        })
        .collect();
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode_into(&mut bytes));

    let mut decoder = open_decoder();
    let mut decoded = Vec::new();
    let (mut rest, mut not_taken) = (&bytes[..], 0);
    while !rest.is_empty() {
        let piece_max = [1, 30, 500, 100_000][random.below(4)];
        let (piece, later) = rest.split_at(random.below(piece_max + 1).min(rest.len()));
        rest = later;
        decoder.push(piece);
        not_taken += piece.len();
        assert!(decoder.capacity() <= not_taken + READ_AHEAD_BYTES_MAX);
        while let Some(frame) = decoder.next_frame().unwrap() {
            not_taken -= FRAME_HEADER_BYTES + frame.payload.len();
            decoded.push(frame);
        }
    }
    assert!(decoded == frames);
    assert!(!decoder.is_inside_frame());
}

#[test]
fn each_fault_has_its_error() {
    let good = encoded(FrameKind::Data, 1, Bytes::from_static(b"payload"));
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        decode(&bad).unwrap_err()
    };
    assert_eq!(with(0, b'X'), FrameError::BadMagic { found: *b"XRDN" });
    assert_eq!(with(5, 7), FrameError::UnsupportedVersion { theirs: 0x0701, ours: 1 });
    assert_eq!(with(6, 0), FrameError::UnknownKind { kind: 0 });
    assert_eq!(with(6, 6), FrameError::UnknownKind { kind: 6 });
    assert_eq!(with(7, 0x80), FrameError::ReservedBits { bits: 0x80 });
    let bytes = 0xff00_0007;
    assert_eq!(with(11, 0xff), FrameError::TooLong { bytes, bytes_max: FRAME_PAYLOAD_BYTES_MAX });
    assert!(matches!(with(15, 1), FrameError::BadChecksum { .. }), "the sequence is covered");
    assert!(matches!(with(30, 1), FrameError::BadChecksum { .. }), "the payload is covered");
}

#[test]
fn errors_are_found_early_and_stay() {
    assert!(matches!(decode(b"GET /"), Err(FrameError::BadMagic { .. })), "before a header has arrived");
    assert_eq!(decode(b"ORDN"), Ok(None));
    let mut decoder = open_decoder();
    decoder.push(b"garbage");
    let error = decoder.next_frame().unwrap_err();
    decoder.push(&encoded(FrameKind::Ack, 1, Bytes::new()));
    assert_eq!(decoder.next_frame(), Err(error));
}

#[test]
fn the_limit_is_low_until_the_handshake_is_done() {
    let at_limit = encoded(FrameKind::Hello, 0, vec![0; HANDSHAKE_PAYLOAD_BYTES_MAX].into());
    let above = encoded(FrameKind::Data, 1, vec![0; HANDSHAKE_PAYLOAD_BYTES_MAX + 1].into());
    let mut decoder = Decoder::new();
    decoder.push(&at_limit);
    assert!(decoder.next_frame().unwrap().is_some());
    decoder.handshake_done();
    decoder.push(&above);
    assert!(decoder.next_frame().unwrap().is_some());

    let mut decoder = Decoder::new();
    decoder.push(&above[..FRAME_HEADER_BYTES]);
    assert!(matches!(decoder.next_frame(), Err(FrameError::TooLong { .. })));
}

#[test]
fn a_lying_length_allocates_little() {
    let mut header = encoded(FrameKind::Data, 1, Bytes::new());
    header[8..12].copy_from_slice(&(FRAME_PAYLOAD_BYTES_MAX as u32).to_le_bytes());
    let mut decoder = open_decoder();
    assert_eq!(decoder.capacity(), 0);
    decoder.push(&header);
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.capacity() <= 256 << 10, "{} bytes for a header", decoder.capacity());
    for _ in 0..200 {
        decoder.push(&[0; 1000]);
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    assert!(decoder.capacity() <= 1 << 20, "{} bytes for 200 kB", decoder.capacity());
}

#[test]
fn ten_thousand_random_and_ten_thousand_mutated_frames_are_never_taken_for_good() {
    let mut random = Random(2);
    for _ in 0..10_000 {
        let garbage = random_frame(&mut random);
        assert!(!matches!(decode(&garbage), Ok(Some(_))));
    }
    for _ in 0..10_000 {
        let mutated = mutated_frame(&mut random);
        assert!(!matches!(decode(&mutated), Ok(Some(_))), "{mutated:?}");
    }
}

/// Random bytes, half of the time behind a header that is right up to a random field.
pub(crate) fn random_frame(random: &mut Random) -> Vec<u8> {
    let count = 1 + random.below(200);
    let mut bytes = random.bytes(count);
    let good = encoded(KINDS[random.below(KINDS.len())], random.next(), Bytes::new());
    let right = [0, 0, 0, 4, 6, 8, 12][random.below(7)].min(bytes.len());
    bytes[..right].copy_from_slice(&good[..right]);
    bytes
}

/// A good frame with one to three bits flipped, or cut short.
pub(crate) fn mutated_frame(random: &mut Random) -> Vec<u8> {
    let count = random.below(200);
    let payload = random.bytes(count);
    let mut bytes = encoded(KINDS[random.below(KINDS.len())], random.below(5) as u64, payload.into());
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len()));
        return bytes;
    }
    let mut flipped = Vec::new();
    for _ in 0..=random.below(3) {
        let bit = random.below(bytes.len() * 8);
        // The same bit twice would restore the frame.
        if !flipped.contains(&bit) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            flipped.push(bit);
        }
    }
    bytes
}
