//! The beginning of a connection: from its first byte to a client that is known.
//!
//! Whoever drives it feeds what was read and asks for the next [`Step`]; before each wait, and before the end, it sends what was
//! appended. A client is given neither more messages nor a better guess than PostgreSQL gives: a user that does not exist and one with
//! another password look alike, from the first answer to the last. Only while whoever comes from the server's own machine can be the
//! owner is it told which of both it is.

use std::fmt;

use crate::error::{SqlError, SqlState};
use crate::protocol::PROTOCOL_MINOR_NEWEST;
use crate::protocol::backend::{Encoder, Severity};
use crate::protocol::frontend::{Decoder, Frontend, SaslInitialResponse, Startup};
use crate::protocol::scram::{self, Exchange, ITERATIONS_DEFAULT, MECHANISM, Verifier};

/// The user of a new database, who is there without a definition. Its database has the same name, and is the only one.
pub const OWNER: &str = "ordain";

/// The name of the only database.
pub const DATABASE: &str = "ordain";

/// How many packets and messages a client may send before it is known. A usual one sends a request for encryption, the startup packet,
/// and two messages of SCRAM.
pub const MESSAGES_MAX: u32 = 8;

/// How long a nonce should be, in bytes.
pub const NONCE_BYTES: usize = 18;

/// How a user that exists proves to be one.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The text of the verifier of the password; `None` if the user has none.
    pub verifier: Option<String>,
    /// Whether it may connect once it has proved that.
    pub may_connect: bool,
}

/// Without the secret.
impl fmt::Debug for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("User")
            .field("has_password", &self.verifier.is_some())
            .field("may_connect", &self.may_connect)
            .finish()
    }
}

/// What the driver knows of the connection.
#[derive(Clone)]
pub struct Terms {
    /// Whether the client is on this machine: only then is a user without a password trusted.
    pub peer_is_loopback: bool,
    /// Whether TLS can be had.
    pub tls: bool,
    /// Random bytes that no other connection has, of [`NONCE_BYTES`].
    pub nonce: Vec<u8>,
    /// Random bytes that stay the same as long as the server runs: salts of users that do not exist follow from it.
    pub secret: Vec<u8>,
}

/// What the driver does next. What was appended is to be sent first.
#[derive(Debug)]
pub enum Step {
    /// Read more.
    Read,
    /// Begin TLS as the server, and go on with what comes through it.
    Upgrade,
    /// Cancel what another connection does, if the secret is right, and close this one.
    Cancel {
        /// The number of the session.
        process: i32,
        /// The secret; to be compared in constant time.
        secret: Vec<u8>,
    },
    /// The client is known: begin its session.
    Known(Known),
    /// Close the connection. The reason has been appended, if the client is to be told one.
    Close(Option<SqlError>),
}

/// A client that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// The other parameters that the client gave, in its order.
    pub parameters: Vec<(String, String)>,
    /// The minor version of the protocol; below 2 the secret of cancellations must have 4 bytes.
    pub minor: u16,
}

/// Where a handshake is.
enum State {
    /// No startup packet has come.
    Startup,
    /// The mechanism is to be chosen.
    Mechanism(Known, Verifier),
    /// The mechanism is chosen; its first message is to come.
    FirstMessage(Known, Verifier),
    /// The proof is to come.
    Proof(Known, Exchange),
    /// It has ended.
    Ended,
}

/// See the [module](self).
pub struct Handshake {
    terms: Terms,
    decoder: Decoder,
    state: State,
    messages: u32,
    encrypted: bool,
    /// Whether the user may not connect, which it is told once it is known.
    barred: bool,
}

impl Handshake {
    /// One for a new connection.
    pub fn new(terms: Terms) -> Handshake {
        let (decoder, state) = (Decoder::new(), State::Startup);
        Handshake { terms, decoder, state, messages: 0, encrypted: false, barred: false }
    }

    /// Takes what was read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.decoder.feed(bytes);
    }

    /// Goes on as far as what was read allows. `lookup` finds a user; its error ends the connection.
    pub fn step(
        &mut self,
        lookup: &mut dyn FnMut(&str) -> Result<Option<User>, SqlError>,
        out: &mut Vec<u8>,
    ) -> Step {
        loop {
            match self.advance(lookup, out) {
                Ok(Some(step)) => return step,
                Ok(None) => {}
                Err(error) => {
                    self.state = State::Ended;
                    Encoder::new(out).error(&error, Severity::Fatal);
                    return Step::Close(Some(error));
                }
            }
        }
    }

    /// The decoder, for the messages of the session: some may have come already.
    pub fn into_decoder(mut self) -> Decoder {
        self.decoder.set_authenticated();
        self.decoder
    }

    /// Takes one message; `None` if another one may be there.
    fn advance(
        &mut self,
        lookup: &mut dyn FnMut(&str) -> Result<Option<User>, SqlError>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, SqlError> {
        match &self.state {
            State::Ended => return Ok(Some(Step::Close(None))),
            State::Startup => {
                let Some(startup) = self.decoder.next_startup()? else { return Ok(Some(Step::Read)) };
                self.count()?;
                return self.started(startup, lookup, out);
            }
            State::Mechanism(..) | State::FirstMessage(..) | State::Proof(..) => {}
        }
        let Some(message) = self.decoder.next()? else { return Ok(Some(Step::Read)) };
        self.count()?;
        match message {
            Frontend::Password(body) => self.answered(&body, out),
            // Only that passes the decoder besides.
            _ => {
                self.state = State::Ended;
                Ok(Some(Step::Close(None)))
            }
        }
    }

    fn count(&mut self) -> Result<(), SqlError> {
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(violation("too many messages before the client is known"));
        }
        Ok(())
    }

    fn started(
        &mut self,
        startup: Startup,
        lookup: &mut dyn FnMut(&str) -> Result<Option<User>, SqlError>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, SqlError> {
        match startup {
            Startup::Ssl => {
                let granted = self.terms.tls && !self.encrypted;
                Encoder::new(out).ssl_answer(granted);
                self.encrypted |= granted;
                Ok(granted.then_some(Step::Upgrade))
            }
            Startup::GssEncryption => {
                Encoder::new(out).ssl_answer(false);
                Ok(None)
            }
            Startup::Cancel { process, secret } => {
                self.state = State::Ended;
                Ok(Some(Step::Cancel { process, secret }))
            }
            Startup::Start { minor, parameters, unknown_options } => {
                if minor > PROTOCOL_MINOR_NEWEST || !unknown_options.is_empty() {
                    Encoder::new(out)
                        .negotiate_protocol_version(minor.min(PROTOCOL_MINOR_NEWEST), &unknown_options);
                }
                let known = known(minor.min(PROTOCOL_MINOR_NEWEST), parameters)?;
                self.challenge(known, lookup, out)
            }
        }
    }

    /// Trusts the client, or asks for a proof. Who cannot get in is asked for one all the same, so that nobody learns which users there
    /// are.
    fn challenge(
        &mut self,
        known: Known,
        lookup: &mut dyn FnMut(&str) -> Result<Option<User>, SqlError>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, SqlError> {
        let owner = || User { verifier: None, may_connect: true };
        let user = lookup(&known.user)?.or_else(|| (known.user == OWNER).then(owner));
        if user.is_none() && self.terms.peer_is_loopback {
            // While whoever connects from here can be the owner, it is no secret which users there are.
            let is_open = lookup(OWNER)?.is_none_or(|owner| owner.verifier.is_none() && owner.may_connect);
            if is_open {
                let message = format!("role \"{}\" does not exist", known.user);
                return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
                    .with_hint(format!("There is the user \"{OWNER}\": psql -U {OWNER} {DATABASE}.")));
            }
        }
        self.barred = user.as_ref().is_some_and(|user| !user.may_connect);
        let verifier = match user {
            Some(User { verifier: None, .. }) if self.terms.peer_is_loopback => {
                return self.admit(known, out).map(Some);
            }
            // One that cannot be read fits no password.
            Some(User { verifier: Some(text), .. }) => Verifier::from_text(&text).ok(),
            Some(User { verifier: None, .. }) | None => None,
        };
        let mock = || Verifier::mock(&known.user, &self.terms.secret, ITERATIONS_DEFAULT);
        let verifier = verifier.unwrap_or_else(mock);
        Encoder::new(out).authentication_sasl(&[MECHANISM]);
        self.state = State::Mechanism(known, verifier);
        Ok(None)
    }

    /// Takes the body of an answer of the client.
    fn answered(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Option<Step>, SqlError> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Mechanism(known, verifier) => {
                let SaslInitialResponse { mechanism, response } = SaslInitialResponse::read(body)?;
                if mechanism != MECHANISM {
                    return Err(violation("client selected an invalid SASL authentication mechanism"));
                }
                match response {
                    Some(first) => self.begin(known, verifier, first, out)?,
                    None => {
                        Encoder::new(out).sasl_continue(b"");
                        self.state = State::FirstMessage(known, verifier);
                    }
                }
                Ok(None)
            }
            State::FirstMessage(known, verifier) => {
                self.begin(known, verifier, body, out)?;
                Ok(None)
            }
            State::Proof(known, exchange) => {
                let last = exchange.finish(body).map_err(|error| self.failed(&known, error))?;
                Encoder::new(out).sasl_final(last.as_bytes());
                self.admit(known, out).map(Some)
            }
            State::Startup | State::Ended => Ok(Some(Step::Close(None))),
        }
    }

    fn begin(
        &mut self,
        known: Known,
        verifier: Verifier,
        first: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let nonce = scram::nonce(&self.terms.nonce);
        let (exchange, answer) = Exchange::begin(first, verifier, &nonce)?;
        Encoder::new(out).sasl_continue(answer.as_bytes());
        self.state = State::Proof(known, exchange);
        Ok(())
    }

    /// The client is who it says; but what it wants may not be there.
    fn admit(&mut self, known: Known, out: &mut Vec<u8>) -> Result<Step, SqlError> {
        self.state = State::Ended;
        if self.barred {
            let message = format!("role \"{}\" is not permitted to log in", known.user);
            return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
        }
        Encoder::new(out).authentication_ok();
        if known.database != DATABASE {
            let message = format!("database \"{}\" does not exist", known.database);
            let hint = format!("The only database is \"{DATABASE}\".");
            return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message).with_hint(hint));
        }
        Ok(Step::Known(known))
    }

    /// What a client with a wrong proof is told. From elsewhere that may be since the user has no password; whoever has none, has
    /// another, or is none is told the same.
    fn failed(&self, known: &Known, error: SqlError) -> SqlError {
        if error.state != SqlState::INVALID_PASSWORD {
            return error;
        }
        let message = format!("password authentication failed for user \"{}\"", known.user);
        let error = SqlError::new(SqlState::INVALID_PASSWORD, message);
        if self.terms.peer_is_loopback {
            return error;
        }
        error.with_hint(
            "A user without a password can connect from the server's own machine only. Connect there and set one: ALTER USER name PASSWORD 'password'.",
        )
    }
}

/// What the startup packet asks for.
fn known(minor: u16, parameters: Vec<(String, String)>) -> Result<Known, SqlError> {
    let (mut user, mut database) = (String::new(), String::new());
    let mut others = Vec::with_capacity(parameters.len());
    for (name, value) in parameters {
        match name.as_str() {
            "user" => user = value,
            "database" => database = value,
            "replication" if !matches!(value.as_str(), "false" | "off" | "no" | "0") => {
                return Err(SqlError::unsupported("streaming replication"));
            }
            "replication" => {}
            _ => others.push((name, value)),
        }
    }
    if user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
    }
    if database.is_empty() {
        database.clone_from(&user);
    }
    Ok(Known { user, database, parameters: others, minor })
}

fn violation(message: &str) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use sha2::{Digest as _, Sha256};

    use super::*;

    const SSL: u32 = 1234 << 16 | 5679;
    const GSS: u32 = 1234 << 16 | 5680;
    const CANCEL: u32 = 1234 << 16 | 5678;

    fn packet(code: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()
    }

    fn start(minor: u32, parameters: &[&str]) -> Vec<u8> {
        let mut body: Vec<u8> =
            parameters.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        body.push(0);
        packet(3 << 16 | minor, &body)
    }

    fn password(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [b"p", &length.to_be_bytes()[..], body].concat()
    }

    fn initial(mechanism: &str, first: &str) -> Vec<u8> {
        let length = u32::try_from(first.len()).unwrap();
        password(&[mechanism.as_bytes(), b"\0", &length.to_be_bytes(), first.as_bytes()].concat())
    }

    fn handshake(peer_is_loopback: bool) -> Handshake {
        let (nonce, secret) = (vec![7; NONCE_BYTES], b"a secret of the server".to_vec());
        Handshake::new(Terms { peer_is_loopback, tls: true, nonce, secret })
    }

    /// There is `me`, whose password is `pencil`, and `open`, who has none.
    fn users(name: &str) -> Result<Option<User>, SqlError> {
        let pencil = || Verifier::from_password("pencil", b"salt of 16 bytes", 4096).to_text();
        Ok(match name {
            "me" => Some(User { verifier: Some(pencil()), may_connect: true }),
            "open" => Some(User { verifier: None, may_connect: true }),
            "barred" => Some(User { verifier: None, may_connect: false }),
            "proved" => Some(User { verifier: Some(pencil()), may_connect: false }),
            "broken" => Some(User { verifier: Some("md5abc".to_owned()), may_connect: true }),
            _ => None,
        })
    }

    /// Feeds bytes; the step, and what was sent.
    fn feed(handshake: &mut Handshake, bytes: &[u8]) -> (Step, Vec<u8>) {
        let mut out = Vec::new();
        handshake.feed(bytes);
        let step = handshake.step(&mut users, &mut out);
        (step, out)
    }

    #[track_caller]
    fn refused(step: Step, sent: &[u8], state: &str) -> SqlError {
        let Step::Close(Some(error)) = step else { panic!("{step:?}") };
        assert_eq!(error.state.as_str(), state, "{error}");
        let shown = String::from_utf8_lossy(sent).into_owned();
        assert!(shown.contains("FATAL") && shown.contains(&error.message), "{shown}");
        error
    }

    fn keyed(key: &[u8], message: &[u8]) -> [u8; 32] {
        let mut hmac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        hmac.update(message);
        hmac.finalize().into_bytes().into()
    }

    /// What a client with that password answers to the server's first message.
    fn proof(password: &str, server_first: &str) -> String {
        let attributes: Vec<&str> = server_first.split(',').map(|attribute| &attribute[2..]).collect();
        let salt = STANDARD.decode(attributes[1]).unwrap();
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(
            password.as_bytes(),
            &salt,
            attributes[2].parse().unwrap(),
            &mut salted,
        );
        let client_key = keyed(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={}", attributes[0]);
        let signed = format!("n=,r=abc,{server_first},{without_proof}");
        let signature = keyed(&Sha256::digest(client_key), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, mask)| key ^ mask).collect();
        format!("{without_proof},p={}", STANDARD.encode(proof))
    }

    /// Authenticates; the last step, and all that was sent.
    fn authenticate(handshake: &mut Handshake, user: &str, secret: &str) -> (Step, Vec<u8>) {
        let (step, mut sent) = feed(handshake, &start(0, &["user", user, "database", DATABASE]));
        assert!(matches!(step, Step::Read), "{step:?}");
        assert_eq!(sent, b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0");
        let (step, challenge) = feed(handshake, &initial(MECHANISM, "n,,n=,r=abc"));
        assert!(matches!(step, Step::Read), "{step:?}");
        let server_first = String::from_utf8(challenge[9..].to_vec()).unwrap();
        let (step, last) = feed(handshake, &password(proof(secret, &server_first).as_bytes()));
        sent.extend_from_slice(&challenge);
        sent.extend_from_slice(&last);
        (step, sent)
    }

    #[test]
    fn a_user_without_a_password_is_trusted_on_this_machine() {
        for user in ["open", OWNER] {
            let startup = start(0, &["user", user, "database", DATABASE, "application_name", "x"]);
            let (step, sent) = feed(&mut handshake(true), &startup);
            let Step::Known(known) = step else { panic!("{step:?}") };
            assert_eq!((known.user.as_str(), known.database.as_str(), known.minor), (user, DATABASE, 0));
            assert_eq!(known.parameters, [("application_name".to_owned(), "x".to_owned())]);
            assert_eq!(sent, b"R\0\0\0\x08\0\0\0\0");
        }
    }

    #[test]
    fn who_may_not_connect_is_told_so_once_it_has_proved_who_it_is() {
        let startup = start(0, &["user", "barred", "database", DATABASE]);
        let (step, sent) = feed(&mut handshake(true), &startup);
        let error = refused(step, &sent, "28000");
        assert_eq!(error.message, "role \"barred\" is not permitted to log in");
        let (step, sent) = authenticate(&mut handshake(false), "proved", "pencil");
        refused(step, &sent, "28000");
        let (step, sent) = authenticate(&mut handshake(false), "proved", "pencils");
        refused(step, &sent, "28P01");
    }

    #[test]
    fn byte_by_byte_it_is_the_same() {
        let mut handshake = handshake(true);
        let bytes = start(2, &["user", OWNER]);
        let (last, first) = bytes.split_last().unwrap();
        for byte in first {
            let (step, sent) = feed(&mut handshake, &[*byte]);
            assert!(matches!(step, Step::Read) && sent.is_empty());
        }
        assert!(matches!(feed(&mut handshake, &[*last]).0, Step::Known(Known { minor: 2, .. })));
        let mut decoder = handshake.into_decoder();
        decoder.feed(b"S\0\0\0\x04");
        assert_eq!(decoder.next(), Ok(Some(Frontend::Sync)));
    }

    #[test]
    fn the_right_password_is_accepted_from_everywhere() {
        for loopback in [true, false] {
            let mut handshake = handshake(loopback);
            let (step, sent) = authenticate(&mut handshake, "me", "pencil");
            assert!(matches!(step, Step::Known(_)), "{step:?}");
            assert!(sent.ends_with(b"R\0\0\0\x08\0\0\0\0"));
            assert!(matches!(feed(&mut handshake, b"X\0\0\0\x04").0, Step::Close(None)));
        }
    }

    #[test]
    fn wrong_passwords_missing_ones_and_missing_users_look_alike() {
        for loopback in [true, false] {
            let mut told = Vec::new();
            let mut lengths = Vec::new();
            for user in ["me", "no", "broken", "open"] {
                if loopback && ["open", "no"].contains(&user) {
                    continue;
                }
                let (step, sent) = authenticate(&mut handshake(loopback), user, "pencils");
                let error = refused(step, &sent, "28P01");
                told.push((error.message.replace(user, "?"), error.hint));
                lengths.push(sent.len() - user.len());
            }
            assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
            assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
            assert_eq!(told[0].1.is_some(), !loopback, "from elsewhere a hint says what to do");
        }
    }

    #[test]
    fn on_this_machine_users_are_no_secret_as_long_as_the_owner_is_open() {
        let startup = start(0, &["user", "no", "database", DATABASE]);
        let (step, sent) = feed(&mut handshake(true), &startup);
        let error = refused(step, &sent, "28000");
        assert_eq!(error.message, "role \"no\" does not exist");
        assert!(error.hint.is_some_and(|hint| hint.contains("-U ordain")));
        let mut handshake = handshake(true);
        handshake.feed(&startup);
        let mut secured = |name: &str| users(if name == OWNER { "me" } else { name });
        let mut out = Vec::new();
        assert!(matches!(handshake.step(&mut secured, &mut out), Step::Read));
        assert!(out.starts_with(b"R"), "it is asked for a password: {out:?}");
    }

    #[test]
    fn the_owner_without_a_password_is_not_trusted_from_elsewhere() {
        let (step, sent) = authenticate(&mut handshake(false), OWNER, "");
        let error = refused(step, &sent, "28P01");
        assert!(error.hint.is_some_and(|hint| hint.contains("ALTER USER")));
    }

    #[test]
    fn encryption_is_granted_once_and_gss_never() {
        let mut handshake = handshake(true);
        let (step, sent) = feed(&mut handshake, &packet(GSS, b""));
        assert!(matches!(step, Step::Read) && sent == b"N");
        let (step, sent) = feed(&mut handshake, &packet(SSL, b""));
        assert!(matches!(step, Step::Upgrade) && sent == b"S" && handshake.encrypted);
        assert!(matches!(feed(&mut handshake, &start(0, &["user", OWNER])).0, Step::Known(_)));

        let mut without = Handshake::new(Terms { tls: false, ..handshake.terms });
        let (step, sent) = feed(&mut without, &packet(SSL, b""));
        assert!(matches!(step, Step::Read) && sent == b"N" && !without.encrypted);
        let (step, sent) = feed(&mut without, &packet(SSL, b""));
        refused(step, &sent, "0A000");
    }

    #[test]
    fn requests_to_cancel_are_passed_on() {
        let (step, sent) = feed(&mut handshake(false), &packet(CANCEL, b"\0\0\0\x05abcd"));
        assert!(matches!(step, Step::Cancel { process: 5, secret } if secret == b"abcd"));
        assert!(sent.is_empty());
    }

    #[test]
    fn newer_versions_and_options_are_negotiated() {
        let (step, sent) = feed(&mut handshake(true), &start(9, &["user", OWNER, "_pq_.x", "1"]));
        assert!(matches!(step, Step::Known(Known { minor: 2, .. })), "{step:?}");
        let answer = b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0";
        assert!(sent.starts_with(answer), "{sent:?}");
        let (step, sent) = feed(&mut handshake(true), &start(2, &["user", OWNER]));
        assert!(matches!(step, Step::Known(Known { minor: 2, .. })) && sent.starts_with(b"R"));
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let refused = |bytes: &[u8], state: &str| {
            let (step, sent) = feed(&mut handshake(true), bytes);
            refused(step, &sent, state)
        };
        let error = refused(&start(0, &["user", OWNER, "database", "shop"]), "3D000");
        assert_eq!(error.message, "database \"shop\" does not exist");
        refused(&start(0, &["user", "open"]), "3D000");
        refused(&start(0, &["database", DATABASE]), "28000");
        refused(&start(0, &["user", OWNER, "replication", "database"]), "0A000");
        refused(b"GET / HTTP/1.1\r\n\r\n", "08P01");
        let (step, sent) = feed(&mut handshake(false), &start(0, &["user", "me", "database", "shop"]));
        assert!(matches!(step, Step::Read) && sent.starts_with(b"R"), "a stranger learns of no database");
    }

    #[test]
    fn an_error_of_the_lookup_is_told() {
        let mut out = Vec::new();
        let mut handshake = handshake(true);
        handshake.feed(&start(0, &["user", OWNER]));
        let full = |_: &str| Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry"));
        let step = handshake.step(&mut { full }, &mut out);
        refused(step, &out, "53300");
        assert!(matches!(feed(&mut handshake, b"").0, Step::Close(None)));
    }

    #[test]
    fn messages_of_sasl_that_are_wrong() {
        let asked = || {
            let mut handshake = handshake(false);
            feed(&mut handshake, &start(0, &["user", "me"]));
            handshake
        };
        let (step, sent) = feed(&mut asked(), &initial("SCRAM-SHA-256-PLUS", "p=x,,n=,r=abc"));
        refused(step, &sent, "08P01");
        let (step, sent) = feed(&mut asked(), b"Q\0\0\0\x05\0");
        refused(step, &sent, "08P01");
        assert!(matches!(feed(&mut asked(), b"X\0\0\0\x04").0, Step::Close(None)));

        let mut later = asked();
        let (step, sent) = feed(&mut later, &password(b"SCRAM-SHA-256\0\xff\xff\xff\xff"));
        assert!(matches!(step, Step::Read) && sent == b"R\0\0\0\x08\0\0\0\x0b");
        let (step, sent) = feed(&mut later, &password(b"n,,n=,r=abc"));
        assert!(matches!(step, Step::Read) && sent.starts_with(b"R"), "{step:?}");
    }
}
