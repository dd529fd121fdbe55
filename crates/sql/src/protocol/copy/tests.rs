//! Rows of all forms, byte for byte, in pieces of all sizes.

use super::*;
use crate::error::{SqlError, SqlState};

type Values = Vec<Vec<Option<Vec<u8>>>>;

fn options(format: CopyFormat, change: impl FnOnce(&mut CopyOptions)) -> CopyOptions {
    let mut options = CopyOptions::new(format);
    change(&mut options);
    options
}

/// The rows of this data, which comes in pieces of that size.
fn decoded_in(data: &[u8], options: &CopyOptions, piece: usize) -> Result<Values, SqlError> {
    let mut decoder = RowDecoder::new(options.clone()).unwrap();
    let mut rows = Vec::new();
    let mut take = |decoder: &mut RowDecoder| {
        while let Some(row) = decoder.next_row()? {
            rows.push(row.into_iter().map(|value| value.map(|value| value.to_vec())).collect());
        }
        Ok(())
    };
    for bytes in data.chunks(piece) {
        decoder.feed(bytes);
        take(&mut decoder)?;
    }
    decoder.finish();
    take(&mut decoder)?;
    assert_eq!((decoder.next_row(), decoder.buffered()), (Ok(None), 0));
    Ok(rows)
}

/// The same, however the data is cut.
#[track_caller]
fn decoded(data: &[u8], options: &CopyOptions) -> Result<Values, SqlError> {
    let whole = decoded_in(data, options, usize::MAX);
    for piece in 1..=data.len().min(8) {
        assert_eq!(decoded_in(data, options, piece), whole, "in pieces of {piece} bytes");
    }
    whole
}

/// Rows that are written with a space between values, and null as `-`.
#[track_caller]
fn rows(data: &str, options: &CopyOptions) -> Vec<String> {
    let rows = decoded(data.as_bytes(), options).unwrap();
    let text = |value: &Option<Vec<u8>>| match value {
        Some(value) => format!("{:?}", String::from_utf8(value.clone()).unwrap()),
        None => "-".into(),
    };
    rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn refused(data: &[u8], options: &CopyOptions, state: SqlState, message: &str, line: u64) {
    let error = decoded(data, options).unwrap_err();
    assert_eq!((error.state, error.message.as_str()), (state, message));
    assert_eq!(error.detail.unwrap(), format!("In line {line} of the data."));
}

const BAD: SqlState = SqlState::BAD_COPY_FILE_FORMAT;

#[test]
fn text() {
    let text = CopyOptions::new(CopyFormat::Text);
    assert_eq!(rows("a\tb\n\\N\t\n", &text), ["\"a\" \"b\"", "- \"\""]);
    assert_eq!(rows("", &text), [""; 0]);
    assert_eq!(rows("\n", &text), ["\"\""]);
    assert_eq!(rows("a", &text), ["\"a\""]);
    assert_eq!(rows("a\t", &text), ["\"a\" \"\""]);
    assert_eq!(rows("\\b\\f\\n\\r\\t\\v\\\\\\q\n", &text), ["\"\\u{8}\\u{c}\\n\\r\\t\\u{b}\\\\q\""]);
    assert_eq!(rows("\\101\\1018\\60\\x41\\x4142\\xg\n", &text), ["\"AA80AA42xg\""]);
    assert_eq!(rows("a\\\nb\t\\\tc\n", &text), ["\"a\\nb\" \"\\tc\""]);
    assert_eq!(rows("\\\\N\t\\N\n", &text), ["\"\\\\N\" -"]);
    assert_eq!(rows("a\\", &text), ["\"a\""]);
    assert_eq!(rows("\\303\\244\n", &text), ["\"ä\""]);
    assert_eq!(rows("\\501\n", &text), ["\"A\""]);
}

#[test]
fn ends_of_lines() {
    let text = CopyOptions::new(CopyFormat::Text);
    let csv = CopyOptions::new(CopyFormat::Csv);
    for options in [&text, &csv] {
        assert_eq!(rows("a\nb\n", options), ["\"a\"", "\"b\""]);
        assert_eq!(rows("a\r\nb\r\n", options), ["\"a\"", "\"b\""]);
        assert_eq!(rows("a\rb\r", options), ["\"a\"", "\"b\""]);
        assert_eq!(rows("a\rb", options), ["\"a\"", "\"b\""]);
    }
    refused(b"a\nb\r\nc", &text, BAD, "literal carriage return found in data", 2);
    refused(b"a\r\nb\nc", &text, BAD, "literal newline found in data", 2);
    refused(b"a\r\nb\rc", &text, BAD, "literal carriage return found in data", 2);
    refused(b"a\rb\nc", &text, BAD, "literal newline found in data", 2);
    refused(b"a\nb\rc", &csv, BAD, "unquoted carriage return found in data", 2);
    refused(b"a\r\nb\nc", &csv, BAD, "unquoted newline found in data", 2);
}

#[test]
fn the_marker_in_text() {
    let text = CopyOptions::new(CopyFormat::Text);
    for end in ["\\.", "\\.\n", "\\.\r\n", "\\.\nb\\.\n\tx"] {
        assert_eq!(rows(&format!("a\n{end}"), &text), ["\"a\""]);
    }
    let message = "end-of-copy marker is not alone on its line";
    refused(b"a\nb\\.\n", &text, BAD, message, 2);
    refused(b"a\n\\.b\n", &text, BAD, message, 2);
    assert_eq!(rows("a\\\\.\n", &text), ["\"a\\\\.\""]);
}

#[test]
fn text_that_is_none() {
    let text = CopyOptions::new(CopyFormat::Text);
    let state = SqlState::CHARACTER_NOT_IN_REPERTOIRE;
    let zero = "invalid byte sequence for encoding \"UTF8\": 0x00";
    let ff = "invalid byte sequence for encoding \"UTF8\": 0xff";
    refused(b"a\tb\xff\n", &text, state, ff, 1);
    refused(b"\\377\n", &text, state, ff, 1);
    refused(b"a\n\\0\n", &text, state, zero, 2);
    // Not even if undoing the escape would make it a character.
    let c3 = "invalid byte sequence for encoding \"UTF8\": 0xc3 0x5c";
    refused(b"\xc3\\244\n", &text, state, c3, 1);
    refused(b"a\0\n", &CopyOptions::new(CopyFormat::Csv), state, zero, 1);
}

#[test]
fn text_with_options() {
    let with_null = options(CopyFormat::Text, |options| {
        options.delimiter = b'|';
        options.null = "null".into();
    });
    assert_eq!(rows("null|\\null|\\||\\N\n", &with_null), ["- \"\\null\" \"|\" \"N\""]);
    let empty = options(CopyFormat::Text, |options| options.null = String::new());
    assert_eq!(rows("\ta\n", &empty), ["- \"a\""]);
}

#[test]
fn csv() {
    let csv = CopyOptions::new(CopyFormat::Csv);
    assert_eq!(rows("a,b\n,\"\"\n", &csv), ["\"a\" \"b\"", "- \"\""]);
    assert_eq!(rows("\n", &csv), ["-"]);
    assert_eq!(rows("\"a,\"\"b\"\"\nc\r\",d\n", &csv), ["\"a,\\\"b\\\"\\nc\\r\" \"d\""]);
    assert_eq!(rows("a\"b,\"c,\\.\n", &csv), ["\"ab,c\" \"\\\\.\""]);
    assert_eq!(rows("\\.a\n\"\\.\"\n\\.\nb", &csv), ["\"\\\\.a\"", "\"\\\\.\""]);
    assert_eq!(rows("a\n\\.", &csv), ["\"a\""]);
    assert_eq!(rows("\\", &csv), ["\"\\\\\""]);
    refused(b"a\n\"b\n\n", &csv, BAD, "unterminated CSV quoted field", 2);
}

#[test]
fn csv_with_options() {
    let csv = options(CopyFormat::Csv, |options| {
        (options.delimiter, options.quote, options.escape) = (b';', b'\'', b'\\');
        options.null = "NULL".into();
    });
    assert_eq!(rows("NULL;'NULL';;'a\\'b\\\\c\\d'\n", &csv), ["- \"NULL\" \"\" \"a'b\\\\c\\\\d\""]);
    assert_eq!(rows("'a\\'\nb';\\;\n", &csv), ["\"a'\\nb\" \"\\\\\" \"\""]);
}

#[test]
fn headers() {
    for format in [CopyFormat::Text, CopyFormat::Csv] {
        let present = options(format, |options| options.header = Header::Present);
        assert_eq!(rows("\\q\"x\"\nb\n", &present), ["\"b\""]);
        assert_eq!(rows("", &present), [""; 0]);
        let message = "invalid byte sequence for encoding \"UTF8\": 0xff";
        refused(b"a\xff\n", &present, SqlState::CHARACTER_NOT_IN_REPERTOIRE, message, 1);
    }
    let names = Header::Match(vec!["a".into(), "b".into()]);
    let text = options(CopyFormat::Text, |options| options.header = names.clone());
    assert_eq!(rows("a\tb\nc\td\n", &text), ["\"c\" \"d\""]);
    let message = "wrong number of fields in header line: got 1, expected 2";
    refused(b"a\n", &text, BAD, message, 1);
    let message = "column name mismatch in header line field 2: got \"c\", expected \"b\"";
    refused(b"a\tc\n", &text, BAD, message, 1);
    let message = "column name mismatch in header line field 1: got null value (\"\\N\"), expected \"a\"";
    refused(b"\\N\tb\n", &text, BAD, message, 1);
}

const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

fn binary(rest: &[u8]) -> Vec<u8> {
    [BINARY_HEADER, rest].concat()
}

#[test]
fn the_binary_form() {
    let options = CopyOptions::new(CopyFormat::Binary);
    let row = b"\0\x03\0\0\0\x02a\xff\xff\xff\xff\xff\0\0\0\0";
    let values = vec![Some(b"a\xff".to_vec()), None, Some(Vec::new())];
    let two = [&row[..], row, b"\xff\xff"].concat();
    assert_eq!(decoded(&binary(&two), &options), Ok(vec![values.clone(), values.clone()]));
    assert_eq!(decoded(&binary(row), &options), Ok(vec![values.clone()]));
    assert_eq!(decoded(&binary(b"\0\0\xff\xff"), &options), Ok(vec![vec![]]));
    let extended = [&BINARY_HEADER[..18], b"\x05extra", row].concat();
    assert_eq!(decoded(&extended, &options), Ok(vec![values]));
}

#[test]
fn binary_data_that_is_wrong() {
    let options = CopyOptions::new(CopyFormat::Binary);
    let refused = |data: &[u8], message, line| refused(data, &options, BAD, message, line);
    let signature = "COPY file signature not recognized";
    refused(b"", signature, 1);
    refused(&BINARY_HEADER[..18], signature, 1);
    refused(&[b'Q'; 20], signature, 1);
    let flags = |flags: u8| [&BINARY_HEADER[..12], &[flags], &BINARY_HEADER[13..]].concat();
    refused(&flags(1), "invalid COPY file header (WITH OIDS)", 1);
    refused(&flags(2), "unrecognized critical flags in COPY file header", 1);
    let length = "invalid COPY file header (wrong length)";
    refused(&[&BINARY_HEADER[..15], b"\xff\0\0\0"].concat(), length, 1);
    refused(&[&BINARY_HEADER[..18], b"\x05extr"].concat(), length, 1);
    let eof = "unexpected EOF in COPY data";
    refused(&binary(b"\0"), eof, 1);
    refused(&binary(b"\0\0\0\x01\0\0\0\x02a"), eof, 2);
    refused(&binary(b"\0\x01\xff\xff"), eof, 1);
    refused(&binary(b"\0\x01\xff\xff\xff\xfe"), "invalid field size", 1);
    let count = "a row has a number of fields that is not possible";
    refused(&binary(b"\xff\xfe"), count, 1);
    refused(&binary(b"\x7f\xff"), count, 1);
    refused(&binary(b"\xff\xff\0"), "received copy data after EOF marker", 1);
}

#[test]
fn rows_are_limited() {
    for (format, data) in [
        (CopyFormat::Text, vec![b'a'; 1 << 20]),
        (CopyFormat::Csv, vec![b'"'; (1 << 20) + 1]),
        (CopyFormat::Binary, binary(b"\0\x01\x01\0\0\0")),
    ] {
        let mut decoder = RowDecoder::new(CopyOptions::new(format)).unwrap();
        let error = loop {
            decoder.feed(&data);
            if let Err(error) = decoder.next_row() {
                break error;
            }
            assert!(decoder.buffered() <= ROW_BYTES_MAX + 4);
        };
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        decoder.feed(&data);
        assert_eq!((decoder.next_row(), decoder.buffered()), (Err(error), 0));
    }
    let columns = vec![b'\t'; COLUMNS_MAX];
    let text = CopyOptions::new(CopyFormat::Text);
    assert_eq!(decoded(&columns[1..], &text).unwrap()[0].len(), COLUMNS_MAX);
    assert_eq!(decoded(&columns, &text).unwrap_err().state, BAD);
    let longest = vec![b'a'; ROW_BYTES_MAX];
    assert_eq!(decoded_in(&longest, &text, 1 << 20).unwrap()[0][0].as_ref().unwrap().len(), ROW_BYTES_MAX);
}

#[test]
fn who_feeds_without_taking_is_stopped() {
    let mut decoder = RowDecoder::new(CopyOptions::new(CopyFormat::Text)).unwrap();
    for _ in 0..20 {
        decoder.feed(&vec![b'\n'; 1 << 20]);
        assert!(decoder.buffered() <= ROW_BYTES_MAX + 4 + (1 << 20));
    }
    assert_eq!(decoder.next_row().unwrap_err().state, SqlState::INTERNAL_ERROR);
}

fn encoded(options: &CopyOptions, values: &[&[Option<&str>]]) -> String {
    let encoder = RowEncoder::new(options.clone()).unwrap();
    let mut out = Vec::new();
    encoder.begin(&mut out, ["a", "b,c"]).unwrap();
    for row in values {
        encoder.row(&mut out, row.iter().map(|value| value.map(str::as_bytes))).unwrap();
    }
    encoder.end(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn encoding_text() {
    let text = CopyOptions::new(CopyFormat::Text);
    let row = [Some("a\tb\\c\u{8}\u{c}\n\r\u{b}\u{1}ä"), None, Some(""), Some("\\N"), Some("\\.")];
    assert_eq!(encoded(&text, &[&row]), "a\\tb\\\\c\\b\\f\\n\\r\\v\u{1}ä\t\\N\t\t\\\\N\t\\\\.\n");
    let with_options = options(CopyFormat::Text, |options| {
        options.delimiter = b',';
        options.header = Header::Present;
    });
    assert_eq!(encoded(&with_options, &[&[Some("a,b"), Some("\t")]]), "a,b\\,c\na\\,b,\\t\n");
}

#[test]
fn encoding_csv() {
    let csv = options(CopyFormat::Csv, |options| options.header = Header::Present);
    let row = [Some("a"), None, Some(""), Some("b\"c"), Some("d,e"), Some("f\ng"), Some("\\.")];
    assert_eq!(encoded(&csv, &[&row]), "a,\"b,c\"\na,,\"\",\"b\"\"c\",\"d,e\",\"f\ng\",\\.\n");
    let csv = options(CopyFormat::Csv, |options| {
        options.escape = b'\\';
        options.null = "NULL".into();
    });
    let row = [Some("NULL"), None, Some("a\\\"b"), Some("c\\")];
    assert_eq!(encoded(&csv, &[&row, &[Some("\\.")]]), "\"NULL\",NULL,\"a\\\\\\\"b\",c\\\n\"\\\\.\"\n");
}

#[test]
fn encoding_the_binary_form() {
    let encoder = RowEncoder::new(CopyOptions::new(CopyFormat::Binary)).unwrap();
    let mut out = Vec::new();
    encoder.begin(&mut out, ["a"]).unwrap();
    encoder.row(&mut out, [Some(&b"a\xff"[..]), None, Some(b"")]).unwrap();
    encoder.end(&mut out);
    let row = b"\0\x03\0\0\0\x02a\xff\xff\xff\xff\xff\0\0\0\0\xff\xff";
    assert_eq!(out, binary(row));
}

#[test]
fn rows_that_are_too_wide_are_taken_back() {
    for format in [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary] {
        let encoder = RowEncoder::new(CopyOptions::new(format)).unwrap();
        let mut out = b"before".to_vec();
        let error = encoder.row(&mut out, vec![None; COLUMNS_MAX + 1]).unwrap_err();
        assert_eq!((error.state, &out[..]), (SqlState::PROGRAM_LIMIT_EXCEEDED, &b"before"[..]));
    }
}
