//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side, as PostgreSQL speaks it.
//!
//! The client proves that it knows the password, and the server that it knows the verifier; neither is sent. What differs from the
//! RFCs is what PostgreSQL does differently: the user is the one of the startup packet, and the name in the first message is not
//! looked at; a password that SASLprep refuses is taken as it is; and a failure is an `ErrorResponse` instead of an `e=` message.
//! Left out: channel binding (`SCRAM-SHA-256-PLUS`), extensions, authorization identities.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use super::body::violation;
use crate::error::{SqlError, SqlState};

/// The name of the mechanism, for [`authentication_sasl`](super::backend::Encoder::authentication_sasl).
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// How often a password is hashed if nothing else is said, as in PostgreSQL.
pub const ITERATIONS_DEFAULT: u32 = 4096;
/// How long a new salt should be, in bytes, as in PostgreSQL.
pub const SALT_BYTES: usize = 16;

const KEY_BYTES: usize = 32;

type Key = [u8; KEY_BYTES];

/// What the server keeps of a password. Whoever has it can guess passwords and pose as the server, but not as the user.
#[derive(Clone)]
pub struct Verifier {
    salt: Vec<u8>,
    iterations: u32,
    stored_key: Key,
    server_key: Key,
    /// There is no such user: no proof is right.
    mock: bool,
}

impl Verifier {
    /// That of a password. `iterations` is at least 1; the time that this takes grows with it. The salt is to be drawn at random, of
    /// [`SALT_BYTES`].
    pub fn from_password(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        let iterations = iterations.max(1);
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(normalized(password).as_bytes(), salt, iterations, &mut salted);
        Verifier {
            salt: salt.to_vec(),
            iterations,
            stored_key: Sha256::digest(keyed(&salted, &[b"Client Key"])).into(),
            server_key: keyed(&salted, &[b"Server Key"]),
            mock: false,
        }
    }

    /// One for a user that does not exist. Its salt depends on the name and on a secret of the server only, so that asking twice
    /// shows nothing; and no password fits.
    pub fn mock(user: &str, secret: &[u8], iterations: u32) -> Verifier {
        let derived = |purpose: &[u8]| keyed(secret, &[purpose, user.as_bytes()]);
        Verifier {
            salt: derived(b"salt ")[..SALT_BYTES].to_vec(),
            iterations: iterations.max(1),
            stored_key: derived(b"stored "),
            server_key: derived(b"server "),
            mock: true,
        }
    }

    /// Reads the text in which PostgreSQL stores it: `SCRAM-SHA-256$iterations:salt$stored key:server key`, all but the number in
    /// base64.
    ///
    /// # Errors
    ///
    /// 22023 if it has another form.
    pub fn from_text(text: &str) -> Result<Verifier, SqlError> {
        let invalid = || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid SCRAM secret");
        let read = || {
            let (iterations_and_salt, keys) =
                text.strip_prefix(MECHANISM)?.strip_prefix('$')?.split_once('$')?;
            let (iterations, salt) = iterations_and_salt.split_once(':')?;
            let (stored_key, server_key) = keys.split_once(':')?;
            let is_number = iterations.bytes().all(|byte| byte.is_ascii_digit());
            let iterations = iterations.parse().ok().filter(|number: &u32| is_number && *number > 0)?;
            Some(Verifier {
                salt: STANDARD.decode(salt).ok()?,
                iterations,
                stored_key: key(stored_key)?,
                server_key: key(server_key)?,
                mock: false,
            })
        };
        read().ok_or_else(invalid)
    }

    /// The text that [`from_text`](Verifier::from_text) reads. It is a secret.
    pub fn to_text(&self) -> String {
        let [salt, stored_key, server_key] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        format!("{MECHANISM}${}:{salt}${stored_key}:{server_key}", self.iterations)
    }

    /// Whether this is the verifier of that password, for authentication by a password in clear text. Takes as long as
    /// [`from_password`](Verifier::from_password).
    pub fn fits(&self, password: &str) -> bool {
        let other = Verifier::from_password(password, &self.salt, self.iterations);
        bool::from(self.stored_key.ct_eq(&other.stored_key) & !Choice::from(u8::from(self.mock)))
    }
}

/// Without the secrets.
impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// An authentication under way.
pub struct Exchange {
    verifier: Verifier,
    /// The header before the client's first message, which the last one repeats.
    header: String,
    nonce: String,
    /// The client's first message without its header, and the server's, with a comma behind each.
    messages: String,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exchange").finish_non_exhaustive()
    }
}

impl Exchange {
    /// Takes the client's first message; gives what to answer with
    /// [`sasl_continue`](super::backend::Encoder::sasl_continue).
    ///
    /// The nonce of the server is to be drawn at random for each exchange, of 18 bytes or more, and made text by [`nonce`]. For a
    /// user that does not exist, or has no password, take [`Verifier::mock`].
    ///
    /// # Errors
    ///
    /// 08P01 for a message that is malformed, 0A000 for what is left out, XX000 for a nonce of the server that is none.
    pub fn begin(
        client_first: &[u8],
        verifier: Verifier,
        server_nonce: &str,
    ) -> Result<(Exchange, String), SqlError> {
        if server_nonce.is_empty() || !server_nonce.bytes().all(is_of_nonce) {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a nonce of the server is not printable"));
        }
        let message = text(client_first)?;
        let (binding, rest) = message.split_once(',').ok_or_else(|| malformed("no header"))?;
        check_binding(binding)?;
        let (identity, bare) = rest.split_once(',').ok_or_else(|| malformed("no header"))?;
        if identity.starts_with("a=") {
            return Err(unsupported("a SCRAM authorization identity"));
        }
        if !identity.is_empty() {
            return Err(malformed("unexpected attribute in the header"));
        }
        if bare.starts_with("m=") {
            return Err(unsupported("the SCRAM extension that the client requires"));
        }
        let mut attributes = bare.split(',');
        attribute(attributes.next(), "n=")?;
        let client_nonce = attribute(attributes.next(), "r=")?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(is_of_nonce) {
            return Err(malformed("non-printable characters in the nonce"));
        }
        let nonce = format!("{client_nonce}{server_nonce}");
        let salt = STANDARD.encode(&verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let header = message[..message.len() - bare.len()].to_owned();
        let messages = format!("{bare},{server_first},");
        Ok((Exchange { verifier, header, nonce, messages }, server_first))
    }

    /// Takes the client's last message; gives what to answer with [`sasl_final`](super::backend::Encoder::sasl_final), before
    /// `AuthenticationOk`.
    ///
    /// # Errors
    ///
    /// 28P01 if the proof is wrong, 08P01 if the message is malformed or belongs to another exchange. In both cases the connection
    /// must end.
    pub fn finish(self, client_final: &[u8]) -> Result<String, SqlError> {
        let message = text(client_final)?;
        let (without_proof, proof) =
            message.rsplit_once(',').ok_or_else(|| malformed("the proof is missing"))?;
        let mut attributes = without_proof.split(',');
        let binding = attribute(attributes.next(), "c=")?;
        if STANDARD.decode(binding).ok().as_deref() != Some(self.header.as_bytes()) {
            return Err(violation("unexpected SCRAM channel-binding attribute in client-final-message"));
        }
        if attribute(attributes.next(), "r=")? != self.nonce {
            return Err(violation("invalid SCRAM response: the nonce does not match"));
        }
        let proof = key(attribute(Some(proof), "p=")?).ok_or_else(|| malformed("the proof is no proof"))?;

        let Verifier { stored_key, server_key, mock, .. } = &self.verifier;
        let authenticated = [self.messages.as_bytes(), without_proof.as_bytes()];
        let signature = keyed(stored_key, &authenticated);
        let client_key: Key = std::array::from_fn(|at| proof[at] ^ signature[at]);
        let is_right = Key::from(Sha256::digest(client_key)).ct_eq(stored_key);
        if bool::from(is_right & !Choice::from(u8::from(*mock))) {
            Ok(format!("v={}", STANDARD.encode(keyed(server_key, &authenticated))))
        } else {
            Err(SqlError::new(SqlState::INVALID_PASSWORD, "password authentication failed"))
        }
    }
}

/// The text of a nonce.
pub fn nonce(random: &[u8]) -> String {
    STANDARD.encode(random)
}

fn check_binding(binding: &str) -> Result<(), SqlError> {
    match binding {
        // `y`: the client could, and believes that the server cannot, which is so.
        "n" | "y" => Ok(()),
        _ if binding.starts_with("p=") => {
            Err(unsupported("SCRAM channel binding").with_hint("Connect with channel_binding=disable."))
        }
        _ => Err(malformed("unexpected channel-binding flag")),
    }
}

fn attribute<'a>(attribute: Option<&'a str>, name: &str) -> Result<&'a str, SqlError> {
    let value = attribute.and_then(|attribute| attribute.strip_prefix(name));
    value.ok_or_else(|| malformed(&format!("attribute \"{}\" expected", &name[..1])))
}

/// Printable, and not the comma that ends the attribute (RFC 5802 §7).
fn is_of_nonce(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b','
}

fn text(message: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(message).map_err(|_| malformed("it is not UTF-8"))
}

fn key(text: &str) -> Option<Key> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        hmac.update(part);
    }
    hmac.finalize().into_bytes().into()
}

/// A password as RFC 4013 wants it, or as it is where that has nothing to say (as in PostgreSQL).
fn normalized(password: &str) -> Cow<'_, str> {
    match stringprep::saslprep(password) {
        Ok(normalized) if !normalized.is_empty() => normalized,
        _ => Cow::Borrowed(password),
    }
}

fn malformed(detail: &str) -> SqlError {
    violation("malformed SCRAM message").with_detail(detail)
}

fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7677 §3.
    const CLIENT_FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                                p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn verifier() -> Verifier {
        Verifier::from_password("pencil", &STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096)
    }

    fn begin(client_first: &str) -> Result<(Exchange, String), SqlError> {
        Exchange::begin(client_first.as_bytes(), verifier(), SERVER_NONCE)
    }

    /// What a client with that password sends last.
    fn client_final(password: &str, client_first_bare: &str, header: &str, server_first: &str) -> String {
        let mut attributes = server_first.split(',').map(|attribute| &attribute[2..]);
        let (nonce, salt, iterations) =
            (attributes.next().unwrap(), attributes.next().unwrap(), attributes.next().unwrap());
        let mut salted = Key::default();
        let salt = STANDARD.decode(salt).unwrap();
        let iterations = iterations.parse().unwrap();
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, iterations, &mut salted);
        let client_key = keyed(&salted, &[b"Client Key"]);
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(header));
        let authenticated = format!("{client_first_bare},{server_first},{without_proof}");
        let signature = keyed(&Sha256::digest(client_key), &[authenticated.as_bytes()]);
        let proof: Key = std::array::from_fn(|at| client_key[at] ^ signature[at]);
        format!("{without_proof},p={}", STANDARD.encode(proof))
    }

    #[test]
    fn the_example_of_the_rfc() {
        let (exchange, server_first) = begin(CLIENT_FIRST).unwrap();
        assert_eq!(server_first, SERVER_FIRST);
        assert_eq!(exchange.finish(CLIENT_FINAL.as_bytes()).unwrap(), SERVER_FINAL);
        let sent = client_final("pencil", "n=user,r=rOprNGfwEbeRWgbNEkqO", "n,,", SERVER_FIRST);
        assert_eq!(sent, CLIENT_FINAL);
    }

    #[test]
    fn a_client_that_could_bind_the_channel() {
        let (exchange, server_first) = begin("y,,n=,r=abc").unwrap();
        let sent = client_final("pencil", "n=,r=abc", "y,,", &server_first);
        assert!(exchange.finish(sent.as_bytes()).is_ok());
        let (exchange, server_first) = begin("y,,n=,r=abc").unwrap();
        let sent = client_final("pencil", "n=,r=abc", "n,,", &server_first);
        assert_eq!(exchange.finish(sent.as_bytes()).unwrap_err().state, SqlState::PROTOCOL_VIOLATION);
    }

    #[test]
    fn wrong_passwords_and_users_that_are_none_look_the_same() {
        let (exchange, server_first) = begin("n,,n=,r=abc").unwrap();
        let sent = client_final("pencils", "n=,r=abc", "n,,", &server_first);
        let wrong_password = exchange.finish(sent.as_bytes()).unwrap_err();
        assert_eq!(wrong_password.state, SqlState::INVALID_PASSWORD);

        let mock = || Verifier::mock("nobody", b"secret of the server", 4096);
        let (exchange, first) = Exchange::begin(b"n,,n=,r=abc", mock(), SERVER_NONCE).unwrap();
        assert_eq!(first.len(), server_first.len());
        let sent = client_final("pencil", "n=,r=abc", "n,,", &first);
        assert_eq!(exchange.finish(sent.as_bytes()).unwrap_err(), wrong_password);
        assert_eq!(mock().to_text(), mock().to_text());
        assert_ne!(mock().salt, Verifier::mock("nobody else", b"secret of the server", 4096).salt);
        assert_ne!(mock().salt, Verifier::mock("nobody", b"another secret", 4096).salt);
    }

    #[test]
    fn a_mock_is_never_right() {
        let mut mock = verifier();
        mock.mock = true;
        let (exchange, _) = Exchange::begin(CLIENT_FIRST.as_bytes(), mock.clone(), SERVER_NONCE).unwrap();
        let error = exchange.finish(CLIENT_FINAL.as_bytes()).unwrap_err();
        assert_eq!(error.state, SqlState::INVALID_PASSWORD);
        assert!(!mock.fits("pencil"));
    }

    #[test]
    fn first_messages_that_are_refused() {
        let state = |message: &str| begin(message).unwrap_err().state;
        let error = begin("p=tls-server-end-point,,n=,r=abc").unwrap_err();
        assert_eq!(error.message, "SCRAM channel binding is not supported");
        assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("n,a=me,n=,r=abc"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("n,,m=x,n=,r=abc"), SqlState::FEATURE_NOT_SUPPORTED);
        let malformed =
            ["", "n", "n,", "n,,", "x,,n=,r=a", "n,b=,n=,r=a", "n,,r=a", "n,,n=", "n,,n=,r=", "n,,n=,r=a b"];
        for message in malformed {
            assert_eq!(state(message), SqlState::PROTOCOL_VIOLATION, "{message}");
        }
        let nonce = |nonce| Exchange::begin(CLIENT_FIRST.as_bytes(), verifier(), nonce).unwrap_err().state;
        assert_eq!(nonce(""), SqlState::INTERNAL_ERROR);
        assert_eq!(nonce("a,b"), SqlState::INTERNAL_ERROR);
        assert_eq!(
            Exchange::begin(b"\xff", verifier(), "a").unwrap_err().state,
            SqlState::PROTOCOL_VIOLATION
        );
    }

    #[test]
    fn last_messages_that_are_refused() {
        let state = |message: &str| {
            let (exchange, _) = begin(CLIENT_FIRST).unwrap();
            exchange.finish(message.as_bytes()).unwrap_err().state
        };
        let nonce = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let malformed = [
            String::new(),
            format!("c=eSws,{nonce},{proof}"),
            format!("{nonce},{proof}"),
            format!("c=biws,r=rOprNGfwEbeRWgbNEkqO,{proof}"),
            format!("c=biws,{nonce}"),
            format!("c=biws,{nonce},p=abcd"),
            format!("c=biws,{nonce},p=*"),
            format!("c=biws,{nonce},{proof},x=y"),
        ];
        for message in malformed {
            assert_eq!(state(&message), SqlState::PROTOCOL_VIOLATION, "{message}");
        }
        let other = proof.replace('d', "e");
        assert_eq!(state(&format!("c=biws,{nonce},{other}")), SqlState::INVALID_PASSWORD);
        assert_eq!(state(&format!("c=biws,{nonce},x=y,{proof}")), SqlState::INVALID_PASSWORD);
    }

    #[test]
    fn the_text_of_a_verifier() {
        let text = verifier().to_text();
        let expected = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
                        wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(text, expected);
        assert_eq!(Verifier::from_text(&text).unwrap().to_text(), text);
        assert!(Verifier::from_text(&text).unwrap().fits("pencil"));
        assert!(!Verifier::from_text(&text).unwrap().fits("Pencil"));
        let wrong = [
            "",
            "md5abc",
            &text[1..],
            &text[..text.len() - 4],
            &text.replace("4096", "0"),
            &text.replace("4096", "+4096"),
            &text.replace("4096", "99999999999"),
            &text.replace("W22Z", "W2*Z"),
            &format!("{text}x"),
        ];
        for text in wrong {
            let error = Verifier::from_text(text).unwrap_err();
            assert_eq!(error.state, SqlState::INVALID_PARAMETER_VALUE, "{text}");
        }
        assert_eq!(format!("{:?}", verifier()), "Verifier { iterations: 4096, .. }");
    }

    #[test]
    fn passwords_are_normalized() {
        let text = |password: &str| Verifier::from_password(password, b"salt", 1).to_text();
        assert_eq!(text("IX"), text("I\u{ad}X"));
        assert_eq!(text("IX"), text("\u{2168}"));
        assert_ne!(text("user"), text("USER"));
        // Refused by SASLprep, and so taken as they are.
        assert_ne!(text("\u{7}"), text(""));
        assert_ne!(text("\u{ad}"), text(""));
        assert_ne!(text("\u{627}1"), text("1\u{627}"));
    }
}
