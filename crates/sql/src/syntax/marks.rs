//! Marks: what the parser does not know is written in forms that it knows, in which a name begins with one of these. Clients cannot write such
//! names themselves.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::positions;
use crate::error::{SqlError, SqlState};

/// The name of a column that stands for those of the relation which its type names; the last part of that begins so, and holds options.
pub(super) const LIKE: &str = "\u{1f}like";
pub(super) const OPTIONS: char = '\u{1f}';

/// What begins the name of a column in which an insertion may conflict and that is an expression; then it is the text.
pub(super) const CONFLICTING: char = '\u{1f}';

/// The parameter that `SET CONSTRAINTS` sets.
pub(super) const CONSTRAINTS: &str = "\u{1f}constraints";

/// What begins the last part of the name of a column that a comment is on and that is a constraint; then it says which.
pub(super) const COMMENTED: char = '\u{1f}';

/// What begins the last part of the name of a sequence that is changed; then it says where it begins anew.
pub(super) const SEQUENCE_CHANGED: char = '\u{1e}';

/// What begins the last part of the name of what is altered and was called no table; then it says what.
pub(super) const ALTERED: char = '\u{1d}';

/// What begins the name that is the default of an identity column which is changed; then it says how.
pub(super) const IDENTITY_CHANGED: char = '\u{1c}';

/// Fails if a client has written a name with a mark.
pub(super) fn refuse(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let is_mark = |character| ('\u{1c}'..='\u{1f}').contains(&character);
    let marked = tokens.iter().find(
        |token| matches!(&token.token, Token::Word(word) if word.quote_style.is_some() && word.value.contains(is_mark)),
    );
    marked.map_or(Ok(()), |token| {
        let message = "a name with one of the characters U+001C to U+001F, which are the server's own";
        Err(positions::at(SqlError::new(SqlState::INVALID_NAME, message), token.span))
    })
}

#[cfg(test)]
mod tests {
    use crate::syntax::parse;

    #[test]
    fn no_client_can_write_a_mark() {
        for text in [
            "CREATE SEQUENCE s.\"\u{1e}7\"",
            "ALTER TABLE t ALTER COLUMN a SET DEFAULT \"\u{1c}drop\"",
            "SET \"\u{1f}constraints\" TO 5",
            "INSERT INTO t VALUES (1) ON CONFLICT (\"\u{1f}a\") DO NOTHING",
            "COMMENT ON COLUMN t.\"\u{1f}a\" IS 'x'",
            "COMMENT ON CONSTRAINT \"\u{1f}a\" ON t IS 'x'",
            "SELECT 1 AS \"a\u{1d}\"",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains("U+001C"), "{text:?}: {error}");
        }
        assert!(parse("SELECT 'a\u{1f}' AS \"a\u{1b}\"").is_ok());
        assert!(parse("SET CONSTRAINTS ALL DEFERRED").is_ok());
    }
}
