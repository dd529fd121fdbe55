//! `ON CONFLICT` after a query that reads no table.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::definitions::keyword;

/// Writes `WHERE TRUE` before `ON CONFLICT` where the query of an `INSERT` has a list of columns and nothing after it: the parser would
/// take `ON` for a name of the last one.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let (mut depth, mut inserts, mut is_bare) = (0_usize, false, false);
    let mut before = (0, Keyword::NoKeyword);
    let mut places = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let word = match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => {
                (depth, inserts, is_bare) = (0, false, false);
                Keyword::NoKeyword
            }
            Token::LParen => {
                depth += 1;
                Keyword::NoKeyword
            }
            Token::RParen => {
                depth = depth.saturating_sub(1);
                Keyword::NoKeyword
            }
            other => keyword(other),
        };
        match (before.1, word) {
            _ if depth > 0 => {}
            (Keyword::INSERT, Keyword::INTO) => inserts = true,
            (_, Keyword::SELECT) => is_bare = inserts,
            // It compares.
            (Keyword::DISTINCT, Keyword::FROM) => {}
            (Keyword::ON, Keyword::CONFLICT) if is_bare => {
                places.push(before.0);
                is_bare = false;
            }
            (_, word) if ends_columns(word) => is_bare = false,
            _ => {}
        }
        before = (place, word);
    }
    for place in places.into_iter().rev() {
        let span = tokens[place].span;
        let spelled = ["WHERE", "TRUE"].map(|word| TokenWithSpan { token: Token::make_keyword(word), span });
        tokens.splice(place..place, spelled);
    }
}

/// Whether what a query selects ends where a word stands.
fn ends_columns(word: Keyword) -> bool {
    matches!(
        word,
        Keyword::FROM
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::WINDOW
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::FOR
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::VALUES
    )
}
