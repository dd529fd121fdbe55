//! Words that say what is so anyway, where the parser does not know them.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{at, keyword};
use crate::bind::names::{known_collation, name_of};
use crate::error::{SqlError, SqlState};

/// The only tablespace.
const TABLESPACE: &str = "pg_default";

/// Leaves out `TABLESPACE pg_default` after `CREATE INDEX` and `CREATE TABLE`, and `COLLATE "C"` after the type that a column gets, and
/// fails for others.
pub(super) fn drop_places_and_orders(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let solid = super::solid(tokens);
    let mut dropped = Vec::new();
    for statement in solid.chunk_by(|place, _| tokens[*place].token != Token::SemiColon) {
        let word =
            |at: usize| statement.get(at).map_or(Keyword::NoKeyword, |place| keyword(&tokens[*place].token));
        let found = match (word(0), word(1)) {
            (Keyword::CREATE, _) => tablespace(tokens, statement)?,
            (Keyword::ALTER, Keyword::TABLE) => collations(tokens, statement)?,
            _ => continue,
        };
        dropped.extend(found);
    }
    super::drop_at(tokens, dropped);
    Ok(())
}

/// Where a new index or table is said to lie.
fn tablespace(tokens: &[TokenWithSpan], statement: &[usize]) -> Result<Vec<usize>, SqlError> {
    let token = |at: usize| statement.get(at).map(|place| &tokens[*place]);
    let word = |at: usize| token(at).map_or(Keyword::NoKeyword, |token| keyword(&token.token));
    let mut depth = 0_usize;
    for at in 1..statement.len() {
        match tokens[statement[at]].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        // What they have comes before it, in brackets.
        let follows = token(at - 1).is_some_and(|token| token.token == Token::RParen);
        if depth > 0 || word(at) != Keyword::TABLESPACE || !follows {
            continue;
        }
        let Some(TokenWithSpan { token: Token::Word(name), span }) = token(at + 1) else { continue };
        let name = name_of(&name.clone().into_ident(*span));
        if name != TABLESPACE {
            let message = format!("tablespace \"{name}\" does not exist");
            return Err(super::at(SqlError::new(SqlState::UNDEFINED_OBJECT, message), *span));
        }
        return Ok(statement[at..=at + 1].to_vec());
    }
    Ok(Vec::new())
}

/// How columns are said to be ordered that get another type.
fn collations(tokens: &[TokenWithSpan], statement: &[usize]) -> Result<Vec<usize>, SqlError> {
    let token = |at: usize| statement.get(at).map(|place| &tokens[*place].token);
    let word = |at: usize| token(at).map_or(Keyword::NoKeyword, keyword);
    let (mut dropped, mut next) = (Vec::new(), 2);
    while let Some(action) = (next..statement.len()).find(|at| word(*at) == Keyword::ALTER) {
        next = action + 1;
        let name = action + if word(action + 1) == Keyword::COLUMN { 2 } else { 1 };
        let kind =
            name + if [word(name + 1), word(name + 2)] == [Keyword::SET, Keyword::DATA] { 3 } else { 1 };
        if word(kind) != Keyword::TYPE {
            continue;
        }
        let mut depth = 0_usize;
        for at in kind + 1..statement.len() {
            next = at;
            match token(at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                Some(Token::Comma) if depth == 0 => break,
                _ if word(at) == Keyword::USING => break,
                _ if word(at) == Keyword::COLLATE => {
                    let mut last = at + 1;
                    while token(last + 1) == Some(&Token::Period) {
                        last += 2;
                    }
                    let Some(name) = statement.get(at + 1..=last) else { break };
                    known(tokens, name)?;
                    dropped.extend(&statement[at..=last]);
                    break;
                }
                _ => {}
            }
        }
    }
    Ok(dropped)
}

/// Fails unless there is the collation with a name.
fn known(tokens: &[TokenWithSpan], name: &[usize]) -> Result<(), SqlError> {
    let parts: Vec<Ident> = name
        .iter()
        .filter_map(|place| match &tokens[*place].token {
            Token::Word(word) => Some(word.clone().into_ident(tokens[*place].span)),
            _ => None,
        })
        .collect();
    let begin = tokens[name[0]].span;
    known_collation(&ObjectName::from(parts)).map_err(|error| at(error, begin))
}
