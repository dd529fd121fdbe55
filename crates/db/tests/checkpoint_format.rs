//! The bytes of a checkpoint: what is written is read, and nothing else is.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ordain_db::checkpoint::{
    Checkpoint, CheckpointError, CheckpointHeader, CheckpointIdentity, CheckpointReader, CheckpointSummary,
    CheckpointWriter, FORMAT_VERSION, HEADER_BYTES, PAGE_BYTES_WRITTEN_MAX, SECTION_NAME_BYTES_MAX,
    SECTIONS_MAX,
};
use ordain_db::data::{Direction, Key, KeyRange};
use ordain_db::hash::Digest;
use ordain_db::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use proptest::prelude::*;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Sections = BTreeMap<String, Vec<u8>>;

const IDENTITY: CheckpointIdentity =
    CheckpointIdentity { cluster: 0x0123_4567_89AB_CDEF, partition: PartitionId(2), partitions: 5 };

const HEADER: CheckpointHeader = CheckpointHeader { identity: IDENTITY, epoch: Epoch(7), log_index: 513 };

/// A checkpoint's chunks and numbers.
fn write<'a>(
    rows: impl IntoIterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
    sections: &Sections,
) -> (Vec<Vec<u8>>, CheckpointSummary) {
    let mut writer = CheckpointWriter::new(HEADER);
    rows.into_iter().for_each(|(key, row)| writer.row(key, row));
    sections.iter().for_each(|(name, bytes)| writer.section(name, bytes).unwrap());
    let mut chunks: Vec<_> = std::iter::from_fn(|| writer.take_chunk()).collect();
    assert_eq!(writer.pending_bytes(), 0, "all chunks are taken");
    let finished = writer.finish();
    chunks.extend(finished.chunks);
    assert!(chunks.iter().all(|chunk| chunk.len() <= PAGE_BYTES_WRITTEN_MAX), "chunks are limited");
    let bytes: usize = chunks.iter().map(Vec::len).sum();
    assert_eq!(finished.summary.bytes, bytes as u64, "the summary counts the bytes");
    (chunks, finished.summary)
}

/// Reads a checkpoint from pieces of some size.
fn read(bytes: &[u8], piece: usize) -> Result<Checkpoint<dyn Storage + Send>, CheckpointError> {
    let storage: Box<dyn Storage + Send> = Box::new(MemoryStorage::new());
    let mut reader = CheckpointReader::new(storage, IDENTITY);
    let pushed = bytes.chunks(piece).try_for_each(|piece| reader.push(piece));
    let finished = reader.finish();
    if let Err(error) = pushed {
        assert_eq!(finished.err(), Some(error.clone()), "what was refused once stays refused");
        return Err(error);
    }
    finished
}

fn refused(bytes: &[u8]) -> CheckpointError {
    match read(bytes, usize::MAX) {
        Err(error) => error,
        Ok(checkpoint) => panic!("a checkpoint that is wrong was read: {:?}", checkpoint.summary),
    }
}

/// All rows of a storage.
fn rows_of(storage: &mut (dyn Storage + Send), at: Position) -> Rows {
    let mut rows = Rows::new();
    let everything = KeyRange { start: Key::from_bytes(&[]), end: Key::from_bytes(&[0xFF; 4]) };
    storage.scan(&everything, Direction::Ascending, at, &mut |key, row| {
        rows.insert(key.to_vec(), row.to_vec());
        ControlFlow::Continue(())
    });
    rows
}

/// A few rows and sections, all of them short.
fn small() -> (Rows, Sections) {
    let rows = [("\0\u{1}a", "apple"), ("\0\u{1}b", ""), ("\0\u{2}", "pear")];
    let sections = [("sessions", "two words"), ("empty", "")];
    (
        rows.map(|(key, row)| (key.into(), row.into())).into(),
        sections.map(|(name, bytes)| (name.to_owned(), bytes.into())).into(),
    )
}

fn small_bytes() -> Vec<u8> {
    let (rows, sections) = small();
    write(&rows, &sections).0.concat()
}

#[test]
fn the_bytes_are_as_documented() {
    // The example of docs/checkpoint-format.md.
    let golden = "\
        4f52444e434b5054 0400 0000 efcdab8967452301 0200 0500 0700000000000000 0102000000000000 a986b57c \
        01 000000 21000000 da4b0001 03000000 \
        0300 0500 000161 6170706c65  0300 0000 000162  0200 0400 0002 70656172 \
        02 000000 07000000 31573a3a 01 05 656d707479 \
        02 000000 13000000 abdc7cd9 01 08 73657373696f6e73 74776f20776f726473 \
        03 000000 1c000000 26aba220 0300000000000000 02000000 78a2982314cfe7abda3c58859f5ac920";
    let bytes = small_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden.replace(' ', ""));
}

#[test]
fn a_header_is_read_by_itself() {
    let bytes = small_bytes();
    assert_eq!(CheckpointHeader::decode(&bytes), Ok(HEADER));
    assert_eq!(CheckpointHeader::decode(&bytes[..HEADER_BYTES]), Ok(HEADER));
    assert_eq!(HEADER.position(), Position::end_of(Epoch(7)));
}

#[test]
fn what_was_written_is_read_in_pieces_of_any_size() {
    let (rows, sections) = small();
    let (chunks, summary) = write(&rows, &sections);
    for piece in 1..300 {
        let mut checkpoint = read(&chunks.concat(), piece).unwrap();
        assert_eq!((checkpoint.header, checkpoint.summary), (HEADER, summary));
        assert_eq!(checkpoint.sections, sections);
        assert_eq!(rows_of(&mut *checkpoint.storage, Position::LATEST), rows);
        assert_eq!(rows_of(&mut *checkpoint.storage, HEADER.position()), rows, "rows are of the boundary");
        assert_eq!(rows_of(&mut *checkpoint.storage, Position::end_of(Epoch(6))), Rows::new());
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = small_bytes();
    for end in 0..bytes.len() {
        for piece in [1, 7, usize::MAX] {
            let refused = read(&bytes[..end], piece).err();
            assert_eq!(refused, Some(CheckpointError::Truncated { bytes: end as u64 }), "cut at {end}");
        }
    }
}

#[test]
fn every_flip_of_a_bit_is_refused() {
    let bytes = small_bytes();
    let mut kinds = BTreeMap::new();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let kind = match refused(&flipped) {
            CheckpointError::NotACheckpoint => "no checkpoint",
            CheckpointError::UnknownVersion { .. } => "version",
            CheckpointError::Damaged { .. } => "damaged",
            CheckpointError::Truncated { .. } => "truncated",
            other => panic!("bit {bit}: {other}"),
        };
        *kinds.entry(kind).or_insert(0) += 1;
    }
    // A length that becomes larger waits for bytes that never come; everything else is found out by its page.
    assert_eq!((kinds["no checkpoint"], kinds["version"]), (64, 16));
    assert!(kinds["truncated"] < 100, "{kinds:?}");
}

#[test]
fn pages_fit_only_where_they_were_written() {
    let (rows, sections) = small();
    let (chunks, _) = write(&rows, &sections);
    let [header, row_page, first, second, footer] = &chunks[..] else { panic!("{} chunks", chunks.len()) };
    let exchanged = refused(&[&header[..], row_page, second, first, footer].concat());
    let damaged = |byte: usize| CheckpointError::Damaged { byte: byte as u64, what: "its checksum is wrong" };
    let after_rows = header.len() + row_page.len();
    assert_eq!(exchanged, damaged(after_rows));
    assert_eq!(refused(&[&header[..], row_page, first, footer].concat()), damaged(after_rows + first.len()));
    assert_eq!(
        refused(&[&header[..], row_page, row_page, first, second, footer].concat()),
        damaged(after_rows)
    );
    let mut other_rows = rows.clone();
    other_rows.insert(b"\0\x03".to_vec(), b"plum".to_vec());
    let (others, _) = write(&other_rows, &sections);
    let mixed = [&header[..], row_page, first, second, &others[4]].concat();
    assert_eq!(refused(&mixed), damaged(after_rows + first.len() + second.len()), "a page of another file");
    let (later, _) = {
        let mut writer = CheckpointWriter::new(CheckpointHeader { epoch: Epoch(8), ..HEADER });
        rows.iter().for_each(|(key, row)| writer.row(key, row));
        (writer.finish().chunks, ())
    };
    let mixed = [&later[0][..], row_page, first, second, footer].concat();
    assert_eq!(refused(&mixed), damaged(HEADER_BYTES), "the header of another file");
    let twice = [small_bytes(), small_bytes()].concat();
    let byte = small_bytes().len() as u64;
    assert_eq!(refused(&twice), CheckpointError::TrailingBytes { byte });
    assert_eq!(refused(&[&small_bytes()[..], &[0]].concat()), CheckpointError::TrailingBytes { byte });
}

#[test]
fn others_checkpoints_are_refused_with_what_to_do() {
    let write_as = |identity| {
        let writer = CheckpointWriter::new(CheckpointHeader { identity, ..HEADER });
        writer.finish().chunks.into_iter().collect::<Vec<_>>().concat()
    };
    assert_eq!(read(&write_as(IDENTITY), 9).unwrap().summary.rows, 0);
    for found in [
        CheckpointIdentity { cluster: 1, ..IDENTITY },
        CheckpointIdentity { partition: PartitionId(3), ..IDENTITY },
        CheckpointIdentity { partitions: 4, ..IDENTITY },
    ] {
        let refused = refused(&write_as(found));
        assert_eq!(refused, CheckpointError::OtherIdentity { found, expected: IDENTITY });
        assert!(refused.to_string().contains("check the directory"), "{refused}");
    }
    assert_eq!(refused(b"something else"), CheckpointError::NotACheckpoint);
    let mut newer = small_bytes();
    newer[8] += 1;
    assert_eq!(refused(&newer), CheckpointError::UnknownVersion { found: FORMAT_VERSION + 1 });
}

/// A checkpoint with rows as they come, whose checksums are right.
fn written_wrongly(rows: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = CheckpointWriter::new(HEADER);
    rows.iter().for_each(|(key, row)| writer.row(key.as_bytes(), row.as_bytes()));
    writer.finish().chunks.into_iter().collect::<Vec<_>>().concat()
}

/// Changes bytes of the last page and makes its checksum right again.
fn forge_footer(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    let footer = bytes.len() - 40;
    let before: Vec<u8> = {
        // All that the checksum of the footer goes on from, but for the checksums: one header and one page of rows.
        let page = &bytes[HEADER_BYTES..footer];
        [&bytes[..HEADER_BYTES - 4], &page[..8], &page[12..]].concat()
    };
    bytes[footer + 12 + at] = byte;
    let checksum = crc32c::crc32c(&[&before[..], &bytes[footer..footer + 8], &bytes[footer + 12..]].concat());
    bytes[footer + 8..footer + 12].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn a_wrong_writer_is_found_out() {
    let twice = written_wrongly(&[("key", "row"), ("other", "row"), ("key", "row")]);
    let what = "a key stands in the checkpoint twice";
    assert_eq!(refused(&twice), CheckpointError::Damaged { byte: HEADER_BYTES as u64, what });
    let bytes = written_wrongly(&[("key", "row"), ("other", "row")]);
    assert!(read(&forge_footer(bytes.clone(), 0, 2), 100).is_ok(), "a footer that was forged into the same");
    assert_eq!(
        refused(&forge_footer(bytes.clone(), 0, 3)),
        CheckpointError::RowCount { found: 2, stated: 3 }
    );
    assert_eq!(
        refused(&forge_footer(bytes.clone(), 8, 1)),
        CheckpointError::SectionCount { found: 0, stated: 1 }
    );
    let mut digest = Digest::default();
    digest.add(b"key", b"row");
    digest.add(b"other", b"row");
    let stated = Digest(digest.0 ^ (digest.0 & 0xFF) ^ u128::from(!digest.0 as u8));
    let forged = forge_footer(bytes, 12, stated.0 as u8);
    assert_eq!(refused(&forged), CheckpointError::ContentDigest { found: digest, stated });
}

/// Kind and content.
type Page<'a> = (u8, &'a [u8]);

/// A checkpoint of pages with any content, whose lengths and checksums are right.
fn of_pages(pages: &[Page<'_>]) -> Vec<u8> {
    let mut bytes = CheckpointWriter::new(HEADER).take_chunk().unwrap();
    let mut summed = bytes[..HEADER_BYTES - 4].to_vec();
    for (kind, content) in pages {
        let start = [&[*kind, 0, 0, 0], &(content.len() as u32).to_le_bytes()[..]].concat();
        summed.extend_from_slice(&[&start, *content].concat());
        bytes.extend_from_slice(&[&start[..], &crc32c::crc32c(&summed).to_le_bytes(), *content].concat());
    }
    bytes
}

#[test]
fn pages_whose_content_makes_no_sense_are_refused() {
    let row = b"\x01\0\0\0\x01\0\x01\0kr";
    let [begun, ended] = [b"\0\x01sone", b"\x01\x01stwo"];
    let mut footer = [0; 28];
    footer[8] = 1;
    let whole = of_pages(&[(2, begun), (2, ended), (3, &footer)]);
    assert_eq!(read(&whole, 10).unwrap().sections["s"], b"onetwo", "pages that do make sense");
    let cases: [(&[Page<'_>], &str); 14] = [
        (&[(1, b"\x01\0\0")], "how many rows"),
        (&[(1, b"\x02\0\0\0\x01\0\x01\0kr")], "another number of rows"),
        (&[(1, b"\x01\0\0\0\x01\0\x01\0k")], "inside of a row"),
        (&[(1, b"\x01\0\0\0\x01\0\x01")], "inside of a row"),
        (&[(1, b"\x01\0\0\0\x01\x04\x01\0kr")], "longer than any row"),
        (&[(2, begun), (1, row)], "between the pages of a section"),
        (&[(2, begun), (3, &footer)], "between the pages of a section"),
        (&[(2, begun), (2, b"\x01\x01tone")], "one too many"),
        (&[(2, ended), (2, ended)], "one too many"),
        (&[(2, b"\x01\x05name")], "no name"),
        (&[(2, b"\x01\x01\xFF")], "no name"),
        (&[(2, b"\x02\x01s")], "named or marked"),
        (&[(3, &footer[1..])], "the footer has another length"),
        (&[(4, row)], "no page has this kind"),
    ];
    for (pages, expected) in cases {
        match refused(&of_pages(pages)) {
            CheckpointError::Damaged { what, .. } if what.contains(expected) => {}
            other => panic!("{expected} is missing in: {other}"),
        }
    }
}

#[test]
fn sections_have_limits() {
    let mut writer = CheckpointWriter::new(HEADER);
    let name = |name: &str| Err(CheckpointError::SectionName { name: name.to_owned() });
    assert_eq!(writer.section("", b""), name(""));
    let long = "n".repeat(SECTION_NAME_BYTES_MAX + 1);
    assert_eq!(writer.section(&long, b""), name(&long));
    assert_eq!(writer.section(&long[1..], b""), Ok(()));
    assert_eq!(writer.section(&long[1..], b""), name(&long[1..]));
    for number in 1..SECTIONS_MAX {
        assert_eq!(writer.section(&number.to_string(), b"."), Ok(()));
    }
    assert_eq!(writer.section("more", b""), name("more"));
    let bytes = writer.finish().chunks.into_iter().collect::<Vec<_>>().concat();
    assert_eq!(read(&bytes, 1000).unwrap().sections.len(), SECTIONS_MAX);
}

#[test]
fn pages_are_filled_and_not_more() {
    let mut rows = Rows::new();
    for number in 0..40_u8 {
        rows.insert(vec![number; KEY_BYTES_MAX], vec![number; ROW_BYTES_MAX]);
    }
    let sections: Sections =
        [0, PAGE_BYTES_WRITTEN_MAX - 20, PAGE_BYTES_WRITTEN_MAX, 3 * PAGE_BYTES_WRITTEN_MAX]
            .map(|size| (size.to_string(), vec![7; size]))
            .into();
    let (chunks, summary) = write(&rows, &sections);
    assert_eq!(chunks.len(), 1 + 10 + 1 + 1 + 2 + 4 + 1, "header, rows, sections, footer");
    let mut checkpoint = read(&chunks.concat(), 100_000).unwrap();
    assert_eq!((checkpoint.summary, summary.rows), (summary, 40));
    assert!(checkpoint.sections == sections, "large sections");
    assert!(rows_of(&mut *checkpoint.storage, Position::LATEST) == rows, "large rows");
}

#[test]
#[should_panic(expected = "a checkpoint is loaded into an empty storage")]
fn a_storage_with_rows_is_not_loaded_into() {
    let mut storage = MemoryStorage::new();
    storage.put(b"key", ordain_db::hash::key_hash(b"key"), b"row", Position::LOADED);
    drop(CheckpointReader::new(Box::new(storage), IDENTITY));
}

proptest! {
    /// Any rows and sections, in any order, in pieces of any size.
    #[test]
    fn what_was_written_is_read(
        rows in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 0..20), prop::collection::vec(any::<u8>(), 0..300), 0..200),
        sections in prop::collection::btree_map("[a-zé]{1,9}", prop::collection::vec(any::<u8>(), 0..300), 0..5),
        backwards in any::<bool>(),
        piece in 1..5000_usize,
    ) {
        // The empty range of a scan has no end above all keys of table 0xFFFF, which no schema has.
        let rows: Rows = rows.into_iter().filter(|(key, _)| key.first() != Some(&0xFF)).collect();
        let (chunks, summary) = if backwards { write(rows.iter().rev(), &sections) } else { write(&rows, &sections) };
        let mut checkpoint = read(&chunks.concat(), piece).unwrap();
        prop_assert_eq!(checkpoint.summary, summary);
        prop_assert_eq!(&checkpoint.sections, &sections);
        prop_assert_eq!(rows_of(&mut *checkpoint.storage, Position::LATEST), rows.clone());
        let mut digest = Digest::default();
        rows.iter().for_each(|(key, row)| digest.add(key, row));
        prop_assert_eq!(summary.digest, digest, "the digest does not depend on the order");
    }

    /// Bytes that are no checkpoint, with a right beginning or without, are refused and do no harm.
    #[test]
    fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..400), keep in 0..200_usize, piece in 1..500_usize) {
        let bytes = small_bytes();
        let mut forged = bytes[..keep.min(bytes.len())].to_vec();
        forged.extend_from_slice(&noise);
        prop_assume!(forged != bytes);
        prop_assert!(read(&forged, piece).is_err());
    }
}
