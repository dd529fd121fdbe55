//! What is written is what is read, for messages and for the data of `COPY`, however the bytes are cut.

use bytes::Bytes;
use ordain_sql::protocol::backend::Encoder;
use ordain_sql::protocol::copy::{CopyFormat, CopyOptions, Header, RowDecoder, RowEncoder};
use ordain_sql::protocol::frontend::{Decoder, Format, Frontend, Startup, Target};
use ordain_sql::protocol::scram::Verifier;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Texts as messages may have them.
fn text() -> impl Strategy<Value = String> {
    "[^\0]{0,12}"
}

fn value() -> impl Strategy<Value = Option<Bytes>> {
    option::of(vec(any::<u8>(), 0..20).prop_map(Bytes::from))
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Text), Just(Format::Binary)]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![Just(Target::Statement), Just(Target::Portal)]
}

fn bind() -> impl Strategy<Value = Frontend> {
    (text(), text(), vec((value(), format()), 0..6), vec(format(), 0..4), any::<bool>()).prop_map(
        |(portal, statement, parameters, result_formats, one_format)| {
            let (parameters, mut parameter_formats): (Vec<_>, Vec<_>) = parameters.into_iter().unzip();
            if one_format {
                parameter_formats.truncate(1);
            }
            Frontend::Bind { portal, statement, parameter_formats, parameters, result_formats }
        },
    )
}

fn message() -> impl Strategy<Value = Frontend> {
    prop_oneof![
        text().prop_map(Frontend::Query),
        (text(), text(), vec(any::<u32>(), 0..5))
            .prop_map(|(name, query, parameter_types)| { Frontend::Parse { name, query, parameter_types } }),
        bind(),
        (target(), text()).prop_map(|(kind, name)| Frontend::Describe { kind, name }),
        (text(), 0..=i32::MAX as u32).prop_map(|(portal, max_rows)| Frontend::Execute { portal, max_rows }),
        (target(), text()).prop_map(|(kind, name)| Frontend::Close { kind, name }),
        Just(Frontend::Sync),
        Just(Frontend::Flush),
        Just(Frontend::Terminate),
        vec(any::<u8>(), 0..50).prop_map(|data| Frontend::CopyData(Bytes::from(data))),
        Just(Frontend::CopyDone),
        text().prop_map(Frontend::CopyFail),
        Just(Frontend::FunctionCall),
    ]
}

/// What a client sends for a message.
fn sent(message: &Frontend) -> Vec<u8> {
    let mut body = Vec::new();
    let text = |body: &mut Vec<u8>, text: &str| body.extend([text.as_bytes(), b"\0"].concat());
    let count = |body: &mut Vec<u8>, count: usize| body.extend((count as u16).to_be_bytes());
    let formats = |body: &mut Vec<u8>, formats: &[Format]| {
        count(body, formats.len());
        formats.iter().for_each(|format| body.extend(format.code().to_be_bytes()));
    };
    let subject = |body: &mut Vec<u8>, kind: Target, name: &str| {
        body.push(if kind == Target::Statement { b'S' } else { b'P' });
        text(body, name);
    };
    let kind = match message {
        Frontend::Query(query) => {
            text(&mut body, query);
            b'Q'
        }
        Frontend::Parse { name, query, parameter_types } => {
            text(&mut body, name);
            text(&mut body, query);
            count(&mut body, parameter_types.len());
            parameter_types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
            b'P'
        }
        Frontend::Bind { portal, statement, parameter_formats, parameters, result_formats } => {
            text(&mut body, portal);
            text(&mut body, statement);
            formats(&mut body, parameter_formats);
            count(&mut body, parameters.len());
            for parameter in parameters {
                body.extend(parameter.as_ref().map_or(-1, |value| value.len() as i32).to_be_bytes());
                body.extend(parameter.iter().flatten());
            }
            formats(&mut body, result_formats);
            b'B'
        }
        Frontend::Describe { kind, name } => {
            subject(&mut body, *kind, name);
            b'D'
        }
        Frontend::Execute { portal, max_rows } => {
            text(&mut body, portal);
            body.extend(max_rows.to_be_bytes());
            b'E'
        }
        Frontend::Close { kind, name } => {
            subject(&mut body, *kind, name);
            b'C'
        }
        Frontend::Wrong { .. } => panic!("nobody means to send it"),
        Frontend::CopyData(data) | Frontend::Password(data) => {
            body.extend(data);
            if matches!(message, Frontend::CopyData(_)) { b'd' } else { b'p' }
        }
        Frontend::CopyFail(why) => {
            text(&mut body, why);
            b'f'
        }
        Frontend::Sync => b'S',
        Frontend::Flush => b'H',
        Frontend::Terminate => b'X',
        Frontend::CopyDone => b'c',
        Frontend::FunctionCall => b'F',
    };
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat()
}

/// Cuts bytes into pieces of these lengths, over and over.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let length = lengths.next().map_or(bytes.len(), |length| *length.min(&bytes.len()));
        let (piece, rest) = bytes.split_at(length);
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

fn copy_options() -> impl Strategy<Value = CopyOptions> {
    let header = prop_oneof![
        Just(Header::Absent),
        Just(Header::Present),
        Just(Header::Match(vec!["a\tb,\"\n".into(), "\\.".into()]))
    ];
    let csv = (prop_oneof![Just(b'"'), Just(b'\''), Just(b'\\')], prop_oneof![Just(b'"'), Just(b'\\')]);
    let text = prop_oneof![Just(b'\t'), Just(b'|'), Just(b','), Just(b'N')];
    (0..3, header, csv, text, prop_oneof![Just("\\N"), Just("-"), Just("")]).prop_map(
        |(format, header, (quote, escape), delimiter, null)| match format {
            0 => {
                // Values that look like null are told from it by a backslash, and so null needs one.
                let null = if delimiter == b'N' { "\\-" } else { "\\N" }.to_owned();
                CopyOptions { header, delimiter, null, ..CopyOptions::new(CopyFormat::Text) }
            }
            1 => {
                let null = if quote == b'\\' { "" } else { null }.to_owned();
                let delimiter = if delimiter == b'\t' { b';' } else { delimiter };
                let null = if null.as_bytes().contains(&delimiter) { String::new() } else { null };
                CopyOptions { header, quote, escape, delimiter, null, ..CopyOptions::new(CopyFormat::Csv) }
            }
            _ => CopyOptions::new(CopyFormat::Binary),
        },
    )
}

/// Rows full of characters that mean something.
fn rows() -> impl Strategy<Value = Vec<Vec<Option<String>>>> {
    (1_usize..4)
        .prop_flat_map(|columns| vec(vec(option::of("([\\\\.N,\"'|\t\n\r\u{8}äa]|-){0,6}"), columns), 0..5))
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were_sent(
        messages in vec(message(), 0..8),
        lengths in vec(1_usize..40, 0..6),
    ) {
        let bytes = messages.iter().flat_map(sent).collect::<Vec<_>>();
        let mut decoder = Decoder::new();
        decoder.set_authenticated();
        let mut read = Vec::new();
        for piece in pieces(&bytes, &lengths) {
            decoder.feed(piece);
            while let Some(message) = decoder.next().unwrap() {
                read.push(message);
            }
        }
        prop_assert_eq!(read, messages);
        prop_assert_eq!(decoder.buffered(), 0);
    }

    #[test]
    fn startup_packets_are_read_as_they_were_sent(
        parameters in vec(("[^\0_][^\0]{0,8}", text()), 0..5),
        options in vec("_pq_\\.[a-z]{0,5}", 0..3),
        minor in any::<u16>(),
        lengths in vec(1_usize..40, 0..6),
    ) {
        let mut body = (3_u32 << 16 | u32::from(minor)).to_be_bytes().to_vec();
        for (name, value) in &parameters {
            body.extend(format!("{name}\0{value}\0").bytes());
        }
        for option in &options {
            body.extend(format!("{option}\0on\0").bytes());
        }
        body.push(0);
        let bytes = [&(body.len() as u32 + 4).to_be_bytes(), &body[..]].concat();
        let mut decoder = Decoder::new();
        for piece in pieces(&bytes, &lengths) {
            prop_assert_eq!(decoder.next_startup(), Ok(None));
            decoder.feed(piece);
        }
        let expected = Startup::Start { minor, parameters, unknown_options: options };
        prop_assert_eq!(decoder.next_startup(), Ok(Some(expected)));
    }

    #[test]
    fn rows_are_written_as_they_are(values in vec(value(), 0..8)) {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        let mut row = encoder.data_row(values.len());
        for value in &values {
            match value {
                Some(value) => row.value(|buffer| buffer.extend_from_slice(value)),
                None => row.null(),
            }
        }
        row.finish().unwrap();
        // The body is like the parameters of a Bind message between two texts and no formats.
        let body = [b"\0\0\0\0", &out[5..], b"\0\0"].concat();
        let bytes = [b"B", &(body.len() as u32 + 4).to_be_bytes()[..], &body].concat();
        let mut decoder = Decoder::new();
        decoder.set_authenticated();
        decoder.feed(&bytes);
        let Ok(Some(Frontend::Bind { parameters, .. })) = decoder.next() else { panic!("no Bind") };
        prop_assert_eq!(parameters, values);
        prop_assert_eq!(&out[1..5], &(out.len() as u32 - 1).to_be_bytes()[..]);
    }

    #[test]
    fn copied_rows_are_read_as_they_were_written(
        options in copy_options(),
        rows in rows(),
        lengths in vec(1_usize..20, 0..6),
    ) {
        let encoder = RowEncoder::new(options.clone()).unwrap();
        let mut data = Vec::new();
        encoder.begin(&mut data, ["a\tb,\"\n", "\\."]).unwrap();
        for row in &rows {
            encoder.row(&mut data, row.iter().map(|value| value.as_ref().map(|value| value.as_bytes()))).unwrap();
        }
        encoder.end(&mut data);

        let mut decoder = RowDecoder::new(options).unwrap();
        let mut read = Vec::new();
        let mut take = |decoder: &mut RowDecoder| {
            while let Some(row) = decoder.next_row().unwrap() {
                let text = |value: Bytes| String::from_utf8(value.to_vec()).unwrap();
                read.push(row.into_iter().map(|value| value.map(text)).collect::<Vec<_>>());
            }
        };
        for piece in pieces(&data, &lengths) {
            decoder.feed(piece);
            take(&mut decoder);
        }
        decoder.finish();
        take(&mut decoder);
        prop_assert_eq!(read, rows);
        prop_assert_eq!(decoder.buffered(), 0);
    }

    #[test]
    fn verifiers_fit_their_password(password in "\\PC{1,10}", salt in vec(any::<u8>(), 0..20)) {
        let text = Verifier::from_password(&password, &salt, 2).to_text();
        let verifier = Verifier::from_text(&text).unwrap();
        prop_assert_eq!(verifier.to_text(), text);
        prop_assert!(verifier.fits(&password));
        let other = format!("{password}x");
        prop_assert!(!verifier.fits(&other));
    }
}
