//! What clients send.
//!
//! The texts and codes of errors are PostgreSQL's, so that drivers and people recognise them. There is one difference: PostgreSQL
//! goes on after a message whose body is malformed, and here it ends the connection, since a client that cannot build its messages
//! is not to be trusted with the borders between them.

use bytes::Bytes;

use super::body::{Body, violation};
use super::intake::Intake;
use crate::error::{SqlError, SqlState};

pub use super::Format;

/// How long a message may be before the client is known, in bytes, its type not counted.
pub const MESSAGE_BYTES_MAX_BEFORE_AUTHENTICATION: usize = 64 << 10;
/// How long a message may be afterwards, in bytes, its type not counted.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// How long the packet that begins a connection may be, in bytes, its length not counted.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// How long the secret of a cancel request may be, in bytes: 4 in protocol 3.0, 4 to 256 in 3.2.
pub const SECRET_BYTES: std::ops::RangeInclusive<usize> = 4..=256;

const CANCEL: u32 = 1234 << 16 | 5678;
const SSL: u32 = 1234 << 16 | 5679;
const GSS_ENCRYPTION: u32 = 1234 << 16 | 5680;

/// What a connection begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Startup {
    /// The client asks for TLS. Answer with [`ssl_answer`](super::backend::Encoder::ssl_answer); then another packet follows.
    Ssl,
    /// The client asks for encryption by GSSAPI. Answer as for [`Startup::Ssl`].
    GssEncryption,
    /// The client asks to cancel what another connection does. There is no answer.
    Cancel {
        /// The number that `BackendKeyData` named.
        process: i32,
        /// The secret that it named, of 4 to 256 bytes. Compare it in constant time.
        secret: Vec<u8>,
    },
    /// A session begins.
    Start {
        /// The minor version of protocol 3 that the client asks for. If it is above [`PROTOCOL_MINOR_NEWEST`](super::PROTOCOL_MINOR_NEWEST)
        /// or there are unknown options, say so with `NegotiateProtocolVersion`.
        minor: u16,
        /// Names and values in the client's order, `user` and `database` among them. The last of the same name holds.
        parameters: Vec<(String, String)>,
        /// The names that begin with `_pq_.`: options of the protocol, none of which is known here.
        unknown_options: Vec<String>,
    },
}

/// What [`Frontend::Describe`] and [`Frontend::Close`] are about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frontend {
    /// Statements to run one after the other.
    Query(String),
    /// Prepare a statement.
    Parse {
        /// The name of the statement; empty for the unnamed one.
        name: String,
        /// One statement.
        query: String,
        /// The types of the first parameters; 0 where the client leaves it open.
        parameter_types: Vec<u32>,
    },
    /// Make a portal of a prepared statement and values.
    Bind {
        /// The name of the portal; empty for the unnamed one.
        portal: String,
        /// The name of the statement.
        statement: String,
        /// The forms of the parameters: none for text, one for all, or one for each (nothing else gets here).
        parameter_formats: Vec<Format>,
        /// The values, of which `None` is null. They share one allocation, as long as the message.
        parameters: Vec<Option<Bytes>>,
        /// The forms of the columns of the result: none for text, one for all, or one for each column.
        result_formats: Vec<Format>,
    },
    /// Describe a statement or portal.
    Describe {
        /// Which of them.
        kind: Target,
        /// Its name.
        name: String,
    },
    /// Run a portal.
    Execute {
        /// Its name.
        portal: String,
        /// How many rows to give at most; 0 for all.
        max_rows: u32,
    },
    /// Forget a statement or portal.
    Close {
        /// Which of them.
        kind: Target,
        /// Its name.
        name: String,
    },
    /// The end of a run of messages of the extended protocol.
    Sync,
    /// Send what there is to send.
    Flush,
    /// The client goes.
    Terminate,
    /// The raw body of an answer to a request for authentication: see [`SaslInitialResponse`]; later SASL messages are the body itself.
    Password(Bytes),
    /// A piece of the data of `COPY`. Rows may begin and end anywhere in it.
    CopyData(Bytes),
    /// The end of the data of `COPY`.
    CopyDone,
    /// The client gives up its `COPY`, and says why.
    CopyFail(String),
    /// A call of a function by its number: answer that it is not supported. The body is not looked at.
    FunctionCall,
    /// A message with something in it that is wrong and does not hide where the next one begins: a text that is none (22021), or an
    /// unknown format of a value (22023). Answer with the error, and go on.
    Wrong {
        /// What is wrong.
        error: SqlError,
        /// Whether it was a [`Frontend::Query`], which is answered by itself.
        is_query: bool,
    },
}

/// Takes bytes as they are read and gives messages.
///
/// After each [`feed`](Decoder::feed), take messages until there is none. Then the buffer holds at most the limit of one message
/// plus what the last read brought; a driver that goes on to feed without taking is stopped by an error at that border.
///
/// All errors are final: the same error comes again whatever is fed, and the connection must be closed.
#[derive(Debug, Default)]
pub struct Decoder {
    intake: Intake,
    authenticated: bool,
    asked_for_ssl: bool,
    asked_for_gss: bool,
    failed: Option<SqlError>,
}

impl Decoder {
    /// One for a new connection.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Takes what was read. Bytes after a final error are dropped.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        // A message and its type byte are the most that waits when all that is whole has been taken.
        if self.intake.len() > self.message_bytes_max() + 1 {
            let error = violation("more was read than the messages that wait allow");
            self.fail(error);
            return;
        }
        self.intake.feed(bytes);
    }

    /// The client is known: from now on its messages may have [`MESSAGE_BYTES_MAX`] bytes, and be of all types.
    pub fn set_authenticated(&mut self) {
        self.authenticated = true;
    }

    /// How many bytes wait, in bytes.
    pub fn buffered(&self) -> usize {
        self.intake.len()
    }

    /// The next packet of those that begin a connection, or `None` if it is not whole yet. Call it until it gives
    /// [`Startup::Start`], and [`next`](Decoder::next) from then on.
    ///
    /// # Errors
    ///
    /// 08P01 for packets that are malformed or too long, and for data behind a request for encryption, which somebody between
    /// client and server might have put there; 0A000 for versions of the protocol other than 3; 22021 for what is no text. All are
    /// final.
    pub fn next_startup(&mut self) -> Result<Option<Startup>, SqlError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.startup().inspect_err(|error| self.fail(error.clone()))
    }

    /// The next message, or `None` if it is not whole yet.
    ///
    /// # Errors
    ///
    /// 08P01, which is final, for messages that are malformed, too long, unknown or sent at the wrong time. What is wrong without
    /// hiding the next message is [`Frontend::Wrong`].
    #[expect(clippy::should_implement_trait, reason = "not an iterator: it goes on after `None`")]
    pub fn next(&mut self) -> Result<Option<Frontend>, SqlError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.message().inspect_err(|error| self.fail(error.clone()))
    }

    fn fail(&mut self, error: SqlError) {
        self.intake.clear();
        self.failed = Some(error);
    }

    fn message_bytes_max(&self) -> usize {
        if self.authenticated { MESSAGE_BYTES_MAX } else { MESSAGE_BYTES_MAX_BEFORE_AUTHENTICATION }
    }

    fn message(&mut self) -> Result<Option<Frontend>, SqlError> {
        let rest = self.intake.rest();
        let Some((kind, rest)) = rest.split_first() else { return Ok(None) };
        self.check_kind(*kind)?;
        let Some(length) = rest.first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        self.check_length(*kind, length)?;
        let Some(body) = rest.get(4..length) else { return Ok(None) };
        let (message, is_query) = (decode(*kind, body), *kind == b'Q');
        self.intake.take(1 + length);
        match message {
            Err(error) if error.state != SqlState::PROTOCOL_VIOLATION => {
                Ok(Some(Frontend::Wrong { error, is_query }))
            }
            message => message.map(Some),
        }
    }

    /// Refuses a type as soon as it is there, so that nobody waits for a message that is none.
    fn check_kind(&self, kind: u8) -> Result<(), SqlError> {
        match kind {
            b'X' => Ok(()),
            b'p' if !self.authenticated => Ok(()),
            _ if !self.authenticated => {
                Err(violation(format!("expected password response, got message type {kind}")))
            }
            b'Q' | b'P' | b'B' | b'D' | b'E' | b'C' | b'S' | b'H' | b'd' | b'c' | b'f' | b'F' => Ok(()),
            _ => Err(violation(format!("invalid frontend message type {kind}"))),
        }
    }

    fn check_length(&self, kind: u8, length: usize) -> Result<(), SqlError> {
        let max = self.message_bytes_max();
        if length < 4 {
            return Err(violation("invalid message length"));
        }
        if length > max {
            let message = format!("message of type {kind} has {length} bytes, which is more than {max}");
            return Err(violation(message).with_hint("Send large data in parts, as COPY does."));
        }
        Ok(())
    }

    fn startup(&mut self) -> Result<Option<Startup>, SqlError> {
        let Some(length) = self.intake.rest().first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(8..=4 + STARTUP_BYTES_MAX).contains(&length) {
            return Err(violation("invalid length of startup packet"));
        }
        let Some(packet) = self.intake.rest().get(4..length) else { return Ok(None) };
        let mut body = Body::new(packet);
        let startup = match body.u32()? {
            CANCEL => cancel(body)?,
            SSL if !self.asked_for_ssl => {
                body.end()?;
                self.asked_for_ssl = true;
                Startup::Ssl
            }
            GSS_ENCRYPTION if !self.asked_for_gss => {
                body.end()?;
                self.asked_for_gss = true;
                Startup::GssEncryption
            }
            version => start(version, body)?,
        };
        self.intake.take(length);
        let encryption = match startup {
            Startup::Ssl => "SSL",
            Startup::GssEncryption => "GSSAPI encryption",
            Startup::Cancel { .. } | Startup::Start { .. } => return Ok(Some(startup)),
        };
        if self.intake.len() > 0 {
            let detail = "This could be either a client-software bug or evidence of an attempted \
                          man-in-the-middle attack.";
            let message = format!("received unencrypted data after {encryption} request");
            return Err(violation(message).with_detail(detail));
        }
        Ok(Some(startup))
    }
}

fn cancel(mut body: Body<'_>) -> Result<Startup, SqlError> {
    let process = body.i32()?;
    let secret = body.remainder();
    if !SECRET_BYTES.contains(&secret.len()) {
        return Err(violation("invalid length of cancel request packet"));
    }
    Ok(Startup::Cancel { process, secret: secret.to_vec() })
}

fn start(version: u32, mut body: Body<'_>) -> Result<Startup, SqlError> {
    let (major, minor) = (version >> 16, version as u16);
    if major != 3 {
        let newest = super::PROTOCOL_MINOR_NEWEST;
        let message =
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{newest}");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let (mut parameters, mut unknown_options) = (Vec::new(), Vec::new());
    loop {
        let layout = || violation("invalid startup packet layout: expected terminator as last byte");
        if body.remainder().is_empty() {
            return Err(layout());
        }
        let name = body.text()?;
        if name.is_empty() {
            body.end().map_err(|_| layout())?;
            return Ok(Startup::Start { minor, parameters, unknown_options });
        }
        let value = body.text()?;
        if name.starts_with("_pq_.") {
            unknown_options.push(name.to_owned());
        } else {
            parameters.push((name.to_owned(), value.to_owned()));
        }
    }
}

fn decode(kind: u8, bytes: &[u8]) -> Result<Frontend, SqlError> {
    let mut body = Body::new(bytes);
    let message = match kind {
        b'Q' => Frontend::Query(body.text()?.to_owned()),
        b'P' => parse(&mut body)?,
        // The values are slices of one copy, so that keeping a portal keeps its message and no more.
        b'B' => return bind(&Bytes::copy_from_slice(bytes)),
        b'D' => Frontend::Describe { kind: target(&mut body, "DESCRIBE")?, name: body.text()?.to_owned() },
        b'E' => {
            let portal = body.text()?.to_owned();
            // PostgreSQL takes negative numbers for "all", as it does 0.
            Frontend::Execute { portal, max_rows: u32::try_from(body.i32()?).unwrap_or(0) }
        }
        b'C' => Frontend::Close { kind: target(&mut body, "CLOSE")?, name: body.text()?.to_owned() },
        b'S' => Frontend::Sync,
        b'H' => Frontend::Flush,
        b'X' => Frontend::Terminate,
        b'p' => return Ok(Frontend::Password(Bytes::copy_from_slice(bytes))),
        b'd' => return Ok(Frontend::CopyData(Bytes::copy_from_slice(bytes))),
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail(body.text()?.to_owned()),
        b'F' => return Ok(Frontend::FunctionCall),
        _ => return Err(violation(format!("invalid frontend message type {kind}"))),
    };
    body.end()?;
    Ok(message)
}

fn parse(body: &mut Body<'_>) -> Result<Frontend, SqlError> {
    let (name, query) = (body.text()?.to_owned(), body.text()?.to_owned());
    let count = body.count(4)?;
    let parameter_types = (0..count).map(|_| body.u32()).collect::<Result<_, _>>()?;
    Ok(Frontend::Parse { name, query, parameter_types })
}

fn bind(bytes: &Bytes) -> Result<Frontend, SqlError> {
    let mut body = Body::new(bytes);
    let (portal, statement) = (body.text()?.to_owned(), body.text()?.to_owned());
    let parameter_formats = formats(&mut body)?;
    let count = body.count(4)?;
    let mut parameters = Vec::with_capacity(count);
    for _ in 0..count {
        parameters.push(body.value()?.map(|value| bytes.slice_ref(value)));
    }
    let result_formats = formats(&mut body)?;
    body.end()?;
    let stated = parameter_formats.len();
    if stated > 1 && stated != count {
        let message = format!("bind message has {stated} parameter formats but {count} parameters");
        return Err(violation(message));
    }
    Ok(Frontend::Bind { portal, statement, parameter_formats, parameters, result_formats })
}

fn formats(body: &mut Body<'_>) -> Result<Vec<Format>, SqlError> {
    let count = body.count(2)?;
    let format = |_| match body.u16()? {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        code => {
            let message = format!("unsupported format code: {}", code as i16);
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    };
    (0..count).map(format).collect()
}

fn target(body: &mut Body<'_>, message: &str) -> Result<Target, SqlError> {
    match body.u8()? {
        b'S' => Ok(Target::Statement),
        b'P' => Ok(Target::Portal),
        other => Err(violation(format!("invalid {message} message subtype {other}"))),
    }
}

/// The body of [`Frontend::Password`] after `AuthenticationSASL`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SaslInitialResponse<'a> {
    /// The mechanism that the client has chosen.
    pub mechanism: &'a str,
    /// The first message of the mechanism, if the client sent it along.
    pub response: Option<&'a [u8]>,
}

impl SaslInitialResponse<'_> {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// 08P01 if it is malformed, 22021 if the name of the mechanism is no text.
    pub fn read(body: &[u8]) -> Result<SaslInitialResponse<'_>, SqlError> {
        let mut body = Body::new(body);
        let mechanism = body.text()?;
        let response = body.value()?;
        body.end()?;
        Ok(SaslInitialResponse { mechanism, response })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn decoder(bytes: &[u8], authenticated: bool) -> Decoder {
        let mut decoder = Decoder::new();
        if authenticated {
            decoder.set_authenticated();
        }
        decoder.feed(bytes);
        decoder
    }

    /// The message in these bytes, which come one by one; nothing may be left.
    fn decoded(bytes: &[u8]) -> Result<Frontend, SqlError> {
        let mut decoder = decoder(b"", true);
        for (at, byte) in bytes.iter().enumerate() {
            decoder.feed(&[*byte]);
            if let Some(message) = decoder.next()? {
                assert_eq!((at + 1, decoder.buffered()), (bytes.len(), 0));
                return Ok(message);
            }
        }
        panic!("the message is not whole");
    }

    #[track_caller]
    fn refused(kind: u8, body: &[u8], state: SqlState, text: &str) {
        let mut bytes = message(kind, body);
        bytes.extend(message(b'S', b""));
        let mut decoder = decoder(&bytes, true);
        let error = match decoder.next() {
            Ok(Some(Frontend::Wrong { error, is_query })) => {
                assert_eq!(is_query, kind == b'Q');
                error
            }
            other => other.unwrap_err(),
        };
        assert_eq!((error.state, error.message.as_str()), (state, text));
        let after = decoder.next();
        if state == SqlState::PROTOCOL_VIOLATION {
            assert_eq!((after.unwrap_err(), decoder.buffered()), (error.clone(), 0));
            decoder.feed(&message(b'S', b""));
            assert_eq!((decoder.next().unwrap_err(), decoder.buffered()), (error, 0));
        } else {
            assert_eq!(after.unwrap(), Some(Frontend::Sync));
        }
    }

    const VIOLATION: SqlState = SqlState::PROTOCOL_VIOLATION;

    #[test]
    fn query() {
        let bytes = b"Q\0\0\0\x0eselect 1;\0";
        assert_eq!(decoded(bytes), Ok(Frontend::Query("select 1;".into())));
        assert_eq!(decoded(b"Q\0\0\0\x05\0"), Ok(Frontend::Query(String::new())));
        refused(b'Q', b"select 1", VIOLATION, "invalid string in message");
        refused(b'Q', b"", VIOLATION, "invalid string in message");
        refused(b'Q', b"a\0b", VIOLATION, "invalid message format");
        let text = "invalid byte sequence for encoding \"UTF8\": 0xff";
        refused(b'Q', b"a\xff\0", SqlState::CHARACTER_NOT_IN_REPERTOIRE, text);
    }

    #[test]
    fn parse() {
        let body = b"s1\0select $1\0\0\x02\0\0\0\x17\0\0\0\0";
        let (name, query) = ("s1".to_owned(), "select $1".to_owned());
        let expected = Frontend::Parse { name, query, parameter_types: vec![23, 0] };
        assert_eq!(decoded(&message(b'P', body)), Ok(expected));
        refused(b'P', &body[..body.len() - 1], VIOLATION, "insufficient data left in message");
        refused(b'P', b"\0\0\xff\xff", VIOLATION, "insufficient data left in message");
        refused(b'P', b"\0\0\0\0\0", VIOLATION, "invalid message format");
        refused(b'P', b"\0\0", VIOLATION, "insufficient data left in message");
    }

    #[test]
    fn bind() {
        let body = b"p\0s\0\0\x01\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\x02\0\0\0\x01";
        let Ok(Frontend::Bind { portal, statement, parameter_formats, parameters, result_formats }) =
            decoded(&message(b'B', body))
        else {
            panic!("no Bind");
        };
        assert_eq!((portal.as_str(), statement.as_str()), ("p", "s"));
        assert_eq!(parameter_formats, [Format::Binary]);
        assert_eq!(parameters, [Some(Bytes::from_static(b"ab")), None, Some(Bytes::new())]);
        assert_eq!(result_formats, [Format::Text, Format::Binary]);
        assert!(decoded(&message(b'B', b"\0\0\0\0\0\0\0\0")).is_ok());
        for length in 0..body.len() {
            assert_eq!(decoded(&message(b'B', &body[..length])).unwrap_err().state, VIOLATION);
        }
    }

    #[test]
    fn bind_that_is_wrong() {
        let insufficient = "insufficient data left in message";
        refused(b'B', b"\0\0\0\0\xff\xff", VIOLATION, insufficient);
        refused(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0", VIOLATION, insufficient);
        refused(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0", VIOLATION, insufficient);
        refused(b'B', b"\0\0\0\x02\0\0\0\0\0\x01\xff\xff\xff\xff\0\0", VIOLATION, {
            "bind message has 2 parameter formats but 1 parameters"
        });
        let code = SqlState::INVALID_PARAMETER_VALUE;
        refused(b'B', b"\0\0\0\x01\0\x02\0\0\0\0", code, "unsupported format code: 2");
        refused(b'B', b"\0\0\0\0\0\0\0\x01\xff\xff", code, "unsupported format code: -1");
    }

    #[test]
    fn messages_with_a_name() {
        let describe = |kind, name: &str| Frontend::Describe { kind, name: name.into() };
        let close = |kind, name: &str| Frontend::Close { kind, name: name.into() };
        assert_eq!(decoded(b"D\0\0\0\x07Ss\0"), Ok(describe(Target::Statement, "s")));
        assert_eq!(decoded(b"D\0\0\0\x06P\0"), Ok(describe(Target::Portal, "")));
        assert_eq!(decoded(b"C\0\0\0\x06S\0"), Ok(close(Target::Statement, "")));
        assert_eq!(decoded(b"C\0\0\0\x07Pp\0"), Ok(close(Target::Portal, "p")));
        refused(b'D', b"T\0", VIOLATION, "invalid DESCRIBE message subtype 84");
        refused(b'C', b"\0\0", VIOLATION, "invalid CLOSE message subtype 0");
        refused(b'C', b"", VIOLATION, "insufficient data left in message");
    }

    #[test]
    fn execute() {
        let execute = |max_rows| Ok(Frontend::Execute { portal: "p".into(), max_rows });
        assert_eq!(decoded(b"E\0\0\0\x0ap\0\0\0\x01\0"), execute(256));
        assert_eq!(decoded(b"E\0\0\0\x0ap\0\0\0\0\0"), execute(0));
        assert_eq!(decoded(b"E\0\0\0\x0ap\0\xff\xff\xff\xff"), execute(0));
        refused(b'E', b"p\0\0\0\0", VIOLATION, "insufficient data left in message");
    }

    #[test]
    fn messages_without_a_body() {
        let expected = [
            (b'S', Frontend::Sync),
            (b'H', Frontend::Flush),
            (b'X', Frontend::Terminate),
            (b'c', Frontend::CopyDone),
        ];
        for (kind, expected) in expected {
            assert_eq!(decoded(&message(kind, b"")), Ok(expected));
            refused(kind, b"\0", VIOLATION, "invalid message format");
        }
    }

    #[test]
    fn copy_and_function_call() {
        assert_eq!(decoded(b"d\0\0\0\x06a\0"), Ok(Frontend::CopyData(Bytes::from_static(b"a\0"))));
        assert_eq!(decoded(b"f\0\0\0\x08why\0"), Ok(Frontend::CopyFail("why".into())));
        assert_eq!(decoded(b"F\0\0\0\x06ab"), Ok(Frontend::FunctionCall));
    }

    #[test]
    fn before_authentication_there_are_passwords_only() {
        let mut before = decoder(b"p\0\0\0\x08abc\0X\0\0\0\x04Q", false);
        assert_eq!(before.next(), Ok(Some(Frontend::Password(Bytes::from_static(b"abc\0")))));
        assert_eq!(before.next(), Ok(Some(Frontend::Terminate)));
        let error = before.next().unwrap_err();
        assert_eq!(error.message, "expected password response, got message type 81");
        let error = decoder(b"p", true).next().unwrap_err();
        assert_eq!(error.message, "invalid frontend message type 112");
    }

    #[test]
    fn lengths_are_held_against_the_limit_at_once() {
        let header =
            |kind: u8, length: usize| [&[kind][..], &u32::try_from(length).unwrap().to_be_bytes()].concat();
        assert_eq!(decoder(&header(b'p', 64 << 10), false).next(), Ok(None));
        let error = decoder(&header(b'p', (64 << 10) + 1), false).next().unwrap_err();
        assert_eq!(error.message, "message of type 112 has 65537 bytes, which is more than 65536");
        assert_eq!(decoder(&header(b'Q', 16 << 20), true).next(), Ok(None));
        assert_eq!(decoder(&header(b'Q', (16 << 20) + 1), true).next().unwrap_err().state, VIOLATION);
        assert_eq!(decoder(b"Q\xff\xff\xff\xff", true).next().unwrap_err().state, VIOLATION);
        assert_eq!(decoder(b"Q\0\0\0\x03", true).next().unwrap_err().message, "invalid message length");
        assert_eq!(decoder(b"z", true).next().unwrap_err().message, "invalid frontend message type 122");
    }

    #[test]
    fn the_longest_message_arrives() {
        let body = vec![7; MESSAGE_BYTES_MAX - 4];
        let mut decoder = decoder(b"", true);
        for part in message(b'd', &body).chunks(100_000) {
            assert_eq!(decoder.next(), Ok(None));
            decoder.feed(part);
        }
        assert_eq!(decoder.next(), Ok(Some(Frontend::CopyData(Bytes::from(body)))));
        assert_eq!(decoder.buffered(), 0);
    }

    #[test]
    fn who_feeds_without_taking_is_stopped() {
        let mut decoder = Decoder::new();
        for _ in 0..100 {
            decoder.feed(&message(b'p', &[0; 10_000]));
            assert!(decoder.buffered() <= MESSAGE_BYTES_MAX_BEFORE_AUTHENTICATION + 1 + 10_005);
        }
        assert_eq!(decoder.next().unwrap_err().state, VIOLATION);
    }

    fn packet(code: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()
    }

    #[track_caller]
    fn refused_startup(bytes: &[u8], state: SqlState, text: &str) {
        let mut decoder = decoder(bytes, false);
        let error = decoder.next_startup().unwrap_err();
        assert_eq!((error.state, error.message.as_str()), (state, text));
        decoder.feed(&packet(SSL, b""));
        assert_eq!((decoder.next_startup().unwrap_err(), decoder.buffered()), (error, 0));
    }

    #[test]
    fn startup() {
        let bytes = packet(3 << 16 | 2, b"user\0me\0_pq_.x\0y\0database\0\0\0");
        let mut decoder = Decoder::new();
        for byte in &bytes {
            assert_eq!(decoder.next_startup(), Ok(None));
            decoder.feed(&[*byte]);
        }
        let parameters = vec![("user".into(), "me".into()), ("database".into(), String::new())];
        let expected = Startup::Start { minor: 2, parameters, unknown_options: vec!["_pq_.x".into()] };
        assert_eq!(decoder.next_startup(), Ok(Some(expected)));
        assert_eq!(decoder.buffered(), 0);
    }

    #[test]
    fn startup_that_is_wrong() {
        let layout = "invalid startup packet layout: expected terminator as last byte";
        for body in [&b""[..], b"user\0me\0", b"\0\0", b"user\0me\0\0x"] {
            refused_startup(&packet(3 << 16, body), VIOLATION, layout);
        }
        refused_startup(&packet(3 << 16, b"user\0me"), VIOLATION, "invalid string in message");
        let text = "invalid byte sequence for encoding \"UTF8\": 0xff";
        let state = SqlState::CHARACTER_NOT_IN_REPERTOIRE;
        refused_startup(&packet(3 << 16, b"user\0\xff\0\0"), state, text);
        let length = "invalid length of startup packet";
        refused_startup(&10_005_u32.to_be_bytes(), VIOLATION, length);
        refused_startup(&7_u32.to_be_bytes(), VIOLATION, length);
        refused_startup(b"\x16\x03\x01\x02", VIOLATION, length);
        refused_startup(b"GET / HTTP/1.1", VIOLATION, length);
        let versions = [
            (2 << 16, "unsupported frontend protocol 2.0: server supports 3.0 to 3.2"),
            (4 << 16 | 1, "unsupported frontend protocol 4.1: server supports 3.0 to 3.2"),
        ];
        for (version, text) in versions {
            refused_startup(&packet(version, b"\0"), SqlState::FEATURE_NOT_SUPPORTED, text);
        }
        let longest = [&b"user\0"[..], &[b'a'; STARTUP_BYTES_MAX - 11], b"\0\0"].concat();
        assert!(decoder(&packet(3 << 16, &longest), false).next_startup().unwrap().is_some());
    }

    #[test]
    fn encryption_is_asked_for_once() {
        let mut decoder = decoder(&packet(GSS_ENCRYPTION, b""), false);
        assert_eq!(decoder.next_startup(), Ok(Some(Startup::GssEncryption)));
        decoder.feed(b"\0\0\0\x08\x04\xd2\x16\x2f");
        assert_eq!(decoder.next_startup(), Ok(Some(Startup::Ssl)));
        decoder.feed(&packet(SSL, b""));
        let error = decoder.next_startup().unwrap_err();
        assert_eq!(error.message, "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2");
    }

    #[test]
    fn nothing_may_follow_a_request_for_encryption() {
        let behind = |code| [packet(code, b""), packet(3 << 16, b"\0")].concat();
        refused_startup(&behind(SSL), VIOLATION, "received unencrypted data after SSL request");
        let text = "received unencrypted data after GSSAPI encryption request";
        refused_startup(&behind(GSS_ENCRYPTION), VIOLATION, text);
    }

    #[test]
    fn cancel() {
        let cancel = |secret: &[u8]| {
            let body = [&(-5_i32).to_be_bytes(), secret].concat();
            decoder(&packet(CANCEL, &body), false).next_startup()
        };
        for length in [4, 32, 256] {
            let secret = vec![9; length];
            assert_eq!(cancel(&secret), Ok(Some(Startup::Cancel { process: -5, secret })));
        }
        for length in [0, 3, 257] {
            let error = cancel(&vec![9; length]).unwrap_err();
            assert_eq!(error.message, "invalid length of cancel request packet");
        }
    }

    #[test]
    fn bodies_of_answers_to_sasl() {
        let read = SaslInitialResponse::read(b"SCRAM-SHA-256\0\0\0\0\x02n,").unwrap();
        assert_eq!((read.mechanism, read.response), ("SCRAM-SHA-256", Some(&b"n,"[..])));
        assert_eq!(SaslInitialResponse::read(b"X\0\xff\xff\xff\xff").unwrap().response, None);
        assert_eq!(SaslInitialResponse::read(b"X\0\0\0\0\x02n").unwrap_err().state, VIOLATION);
        assert_eq!(SaslInitialResponse::read(b"X\0\0\0\0\x01n,").unwrap_err().state, VIOLATION);
    }
}
