//! `ON CONFLICT` after a query that reads no table, and with expressions.

use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::keyword;
use super::marks::CONFLICTING;

/// The text of the expression that the name of a column in which an insertion may conflict stands for, if it does.
pub fn conflicting_expression(name: &Ident) -> Option<&str> {
    name.value.strip_prefix(CONFLICTING)
}

/// Writes names for the expressions after `ON CONFLICT`, where the parser takes nothing else.
pub(super) fn name_expressions(tokens: &mut Vec<TokenWithSpan>) {
    let named = expressions(tokens).into_iter().map(|(from, until)| {
        let span = tokens[from].span;
        let text: String = tokens[from..until].iter().map(|token| token.token.to_string()).collect();
        let value = format!("{CONFLICTING}{}", text.trim());
        let name = Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
        (from..until, vec![TokenWithSpan { token: name, span }])
    });
    let named = named.collect();
    super::replace(tokens, named);
}

/// From where until where expressions stand in which insertions may conflict.
pub(super) fn expressions(tokens: &[TokenWithSpan]) -> Vec<(usize, usize)> {
    let (mut found, mut place) = (Vec::new(), 0);
    while let Some(open) = next_target(tokens, place) {
        let Some(close) = closing(tokens, open) else { break };
        place = close;
        let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let elements = elements(tokens, open, close).into_iter();
        found.extend(
            elements.filter(|(from, until)| tokens[*from..*until].iter().filter(is_word).count() > 1),
        );
    }
    found
}

/// Where the next list of columns after `ON CONFLICT` begins.
fn next_target(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut before = [Keyword::NoKeyword; 2];
    for (place, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::LParen if before == [Keyword::ON, Keyword::CONFLICT] => return Some(place),
            other => before = [before[1], keyword(other)],
        }
    }
    None
}

/// Where brackets are closed that are opened at a place.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let closes = |token: &TokenWithSpan| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    tokens[open..].iter().position(closes).map(|place| open + place)
}

/// From where until where each element of a list in brackets stands.
fn elements(tokens: &[TokenWithSpan], open: usize, close: usize) -> Vec<(usize, usize)> {
    let (mut elements, mut from, mut depth) = (Vec::new(), open + 1, 0_usize);
    for (place, token) in tokens.iter().enumerate().take(close).skip(open + 1) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                elements.push((from, place));
                from = place + 1;
            }
            _ => {}
        }
    }
    elements.push((from, close));
    elements
}

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
    let spelled = places.into_iter().map(|place| {
        let span = tokens[place].span;
        let words = ["WHERE", "TRUE"].map(|word| TokenWithSpan { token: Token::make_keyword(word), span });
        (place..place, words.to_vec())
    });
    let spelled = spelled.collect();
    super::replace(tokens, spelled);
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
