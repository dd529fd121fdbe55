//! Bytes of all kinds, from a seed: nothing panics, and nothing that waits grows beyond the limits.

mod random;

use ordain_sql::error::SqlError;
use ordain_sql::protocol::copy::{CopyFormat, CopyOptions, Header, ROW_BYTES_MAX, Row, RowDecoder};
use ordain_sql::protocol::frontend::{
    Decoder, Frontend, MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX_BEFORE_AUTHENTICATION, SaslInitialResponse,
    Startup,
};
use ordain_sql::protocol::scram::{Exchange, Verifier};

use random::{BODIES, Generator, STARTUPS, message};

/// How many connections and streams there are: a few seconds' worth.
const CASES: u64 = 1_000_000;

/// A stream of messages, some of which are wrong, or of anything.
fn stream(generator: &mut Generator, authenticated: bool) -> Vec<u8> {
    if generator.one_in(8) {
        return generator.bytes(200);
    }
    let mut stream = Vec::new();
    for _ in 0..1 + generator.below(5) {
        let (kind, body) = match generator.below(4) {
            0 if !authenticated => BODIES[BODIES.len() - 1 - generator.below(2)],
            _ => BODIES[generator.below(BODIES.len())],
        };
        let mut body = body.to_vec();
        // Inside the border, so that what is wrong is the body.
        if generator.one_in(2) {
            generator.mutate(&mut body);
        }
        let mut bytes = message(kind, &body);
        if generator.one_in(6) {
            generator.mutate(&mut bytes);
        }
        stream.extend(bytes);
    }
    stream
}

/// What a message holds is no longer than the message.
fn check(message: &Frontend, fed: usize) {
    let held = match message {
        Frontend::Query(text) | Frontend::CopyFail(text) => text.len(),
        Frontend::Parse { name, query, parameter_types } => {
            name.len() + query.len() + 4 * parameter_types.len()
        }
        Frontend::Bind { portal, statement, parameter_formats, parameters, result_formats } => {
            let values = parameters.iter().map(|value| 4 + value.as_ref().map_or(0, |value| value.len()));
            let formats = parameter_formats.len() + result_formats.len();
            portal.len() + statement.len() + 2 * formats + values.sum::<usize>()
        }
        Frontend::Password(bytes) | Frontend::CopyData(bytes) => bytes.len(),
        Frontend::Describe { name, .. } | Frontend::Close { name, .. } => name.len(),
        Frontend::Execute { portal, .. } => portal.len(),
        Frontend::Sync
        | Frontend::Flush
        | Frontend::Terminate
        | Frontend::CopyDone
        | Frontend::FunctionCall
        | Frontend::Wrong { .. } => 0,
    };
    assert!(held <= fed, "{held} bytes in a message of {fed}");
}

/// A connection from its first packet on. How many messages were read, and whether it ended with an error.
fn connection(generator: &mut Generator) -> (u64, bool) {
    let mut decoder = Decoder::new();
    let mut in_startup = generator.one_in(2);
    let mut authenticated = generator.one_in(2) && !in_startup;
    let mut bytes = Vec::new();
    if in_startup {
        for _ in 0..1 + generator.below(2) {
            bytes.extend_from_slice(generator.pick(STARTUPS));
        }
        if generator.one_in(2) {
            generator.mutate(&mut bytes);
        }
    }
    if authenticated {
        decoder.set_authenticated();
    }
    bytes.extend(stream(generator, authenticated));
    let (mut rest, mut read) = (&bytes[..], 0);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(generator.piece(rest.len()));
        rest = later;
        decoder.feed(piece);
        let max = if authenticated { MESSAGE_BYTES_MAX } else { MESSAGE_BYTES_MAX_BEFORE_AUTHENTICATION };
        assert!(decoder.buffered() <= max + 1 + piece.len());
        loop {
            let before = decoder.buffered();
            let result = if in_startup {
                decoder.next_startup().map(|packet| {
                    in_startup &= !matches!(packet, Some(Startup::Start { .. }));
                    packet.is_some()
                })
            } else {
                decoder.next().map(|message| {
                    message.iter().for_each(|message| check(message, before - decoder.buffered()));
                    message.is_some()
                })
            };
            match result {
                Ok(true) => read += 1,
                Ok(false) => break,
                Err(error) => {
                    decoder.feed(b"Q\0\0\0\x05\0");
                    let again = if in_startup { decoder.next_startup().err() } else { decoder.next().err() };
                    assert_eq!((again, decoder.buffered()), (Some(error), 0));
                    return (read, true);
                }
            }
            if !in_startup && !authenticated && generator.one_in(4) {
                authenticated = true;
                decoder.set_authenticated();
            }
        }
        assert!(decoder.buffered() <= max, "what waits is one message at most");
    }
    (read, false)
}

#[test]
fn connections() {
    let mut generator = Generator(1);
    let (mut read, mut failed) = (0, 0);
    for _ in 0..CASES {
        let (messages, has_failed) = connection(&mut generator);
        read += messages;
        failed += u64::from(has_failed);
    }
    // Neither is all that is made refused, nor is it all accepted.
    assert!(read > CASES / 2, "{read} messages were read");
    assert!(failed > CASES / 10 && failed < CASES * 9 / 10, "{failed} connections failed");
}

const LINES: &[&[u8]] = &[
    b"a\tb\n",
    b"a,b\n",
    b"\\N\t\\x41\n",
    b"\"a\nb\",\"\"\"\"\n",
    b"\\.\n",
    b"\r\n",
    b"\r",
    b"\\",
    b"\"",
    b"\xc3\xa4",
    b"\0",
];

/// Data of `COPY`, which is read the same however it is cut. How many rows were read, and whether there was an error.
fn copy(generator: &mut Generator) -> (u64, bool) {
    let format = [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary][generator.below(3)];
    let mut options = CopyOptions::new(format);
    let mut data = Vec::new();
    if format == CopyFormat::Binary {
        data.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        for _ in 0..generator.below(4) {
            data.extend_from_slice(b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0");
        }
        data.extend_from_slice(generator.pick(&[b"\xff\xff", b""]));
    } else {
        options.header = [Header::Absent, Header::Present, Header::Match(vec!["a".into(), "b".into()])]
            [generator.below(3)]
        .clone();
        options.escape = [b'"', b'\\', b'.'][generator.below(3)];
        options.quote = [b'"', b'\'', b'\\', b'.'][generator.below(4)];
        for _ in 0..generator.below(10) {
            data.extend_from_slice(generator.pick(LINES));
        }
    }
    if generator.one_in(2) {
        generator.mutate(&mut data);
    }
    let in_pieces = rows_of(&data, &options, |rest| generator.piece(rest));
    assert_eq!(in_pieces, rows_of(&data, &options, |rest| rest), "{options:?} {data:?}");
    (in_pieces.0.len() as u64, in_pieces.1.is_some())
}

/// The rows of this data, and the error behind them.
fn rows_of(
    data: &[u8],
    options: &CopyOptions,
    mut piece: impl FnMut(usize) -> usize,
) -> (Vec<Row>, Option<SqlError>) {
    let mut decoder = RowDecoder::new(options.clone()).expect("the options go together");
    let (mut rest, mut rows) = (data, Vec::new());
    loop {
        let ended = rest.is_empty();
        if ended {
            decoder.finish();
        } else {
            let (piece, later) = rest.split_at(piece(rest.len()));
            rest = later;
            decoder.feed(piece);
            assert!(decoder.buffered() <= ROW_BYTES_MAX + 4 + piece.len());
        }
        loop {
            match decoder.next_row() {
                Ok(Some(row)) => {
                    assert!(row.iter().flatten().map(|value| value.len()).sum::<usize>() <= data.len());
                    rows.push(row);
                }
                Ok(None) if ended => return (rows, None),
                Ok(None) => break,
                Err(error) => {
                    decoder.feed(b"a\n");
                    assert_eq!((decoder.next_row(), decoder.buffered()), (Err(error.clone()), 0));
                    return (rows, Some(error));
                }
            }
        }
    }
}

#[test]
fn data_of_copy() {
    let mut generator = Generator(2);
    let (mut read, mut failed) = (0, 0);
    for _ in 0..CASES {
        let (rows, has_failed) = copy(&mut generator);
        read += rows;
        failed += u64::from(has_failed);
    }
    assert!(read > CASES / 2, "{read} rows were read");
    assert!(failed > CASES / 10 && failed < CASES * 9 / 10, "{failed} streams failed");
}

#[test]
fn authentication() {
    let mut generator = Generator(3);
    let text = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
                wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    let verifier = Verifier::from_text(text).unwrap();
    let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    let mut right = 0;
    for _ in 0..CASES / 10 {
        let (mut client_first, mut client_final) = (first.to_vec(), last.to_vec());
        generator.mutate(&mut client_first);
        if let Ok((exchange, _)) = Exchange::begin(&client_first, verifier.clone(), nonce) {
            generator.mutate(&mut client_final);
            if exchange.finish(&client_final).is_ok() {
                // The name is part of what is signed, and so nothing may have changed.
                assert_eq!((&client_first[..], &client_final[..]), (&first[..], &last[..]));
                right += 1;
            }
        }
        let mut body = BODIES[BODIES.len() - 1 - generator.below(2)].1.to_vec();
        generator.mutate(&mut body);
        let _ = SaslInitialResponse::read(&body).map(|read| read.response.map(<[u8]>::len));
        let mut stored = text.as_bytes().to_vec();
        generator.mutate(&mut stored);
        let _ = Verifier::from_text(&String::from_utf8_lossy(&stored));
    }
    assert!(right > CASES / 500, "{right} were right");
}
