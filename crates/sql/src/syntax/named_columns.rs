//! `CREATE TABLE name (column, …) AS query`, which the parser knows without the names of columns only.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword;

/// Writes `CREATE TABLE t (a, b) AS query` as `CREATE TABLE t AS SELECT * FROM (query) t (a, b)`.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| keyword(&token.token) == Keyword::CREATE) {
        return;
    }
    let statements: Vec<Vec<TokenWithSpan>> = tokens
        .split_inclusive(|token| token.token == Token::SemiColon)
        .map(<[TokenWithSpan]>::to_vec)
        .collect();
    *tokens = statements.into_iter().flat_map(spelled).collect();
}

fn spelled(statement: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let solid = super::solid(&statement);
    let Some((list, query)) = parts(&statement, &solid) else { return statement };
    let end = solid.iter().rev().find(|place| !is_end(&statement[**place].token));
    let Some(mut end) = end.map(|last| last + 1) else { return statement };
    // `WITH [NO] DATA` is of the table.
    let last: Vec<usize> = solid.iter().copied().filter(|place| *place < end).collect();
    let words = last.iter().rev().take(3).map(|place| keyword(&statement[*place].token));
    match words.collect::<Vec<_>>().as_slice() {
        [Keyword::DATA, Keyword::NO, Keyword::WITH] => end = last[last.len() - 3],
        [Keyword::DATA, Keyword::WITH, _] => end = last[last.len() - 2],
        _ => {}
    }
    let span = statement[query].span;
    let at = |token| TokenWithSpan { token, span };
    let (head, columns) = (&statement[..list.0], &statement[list.0..=list.1]);
    let mut spelled = head.to_vec();
    spelled.extend(statement[list.1 + 1..query].iter().cloned());
    spelled.extend([at(Token::make_keyword("SELECT")), at(Token::Mul), at(Token::make_keyword("FROM"))]);
    spelled.push(at(Token::LParen));
    spelled.extend(statement[query..end].iter().cloned());
    spelled.extend([at(Token::RParen), statement[list.2].clone()]);
    spelled.extend(columns.iter().cloned());
    spelled.extend(statement[end..].iter().cloned());
    spelled
}

fn is_end(token: &Token) -> bool {
    matches!(token, Token::SemiColon | Token::EOF)
}

/// The places of the first and the last bracket of the names of columns and of the table's name before, and where the query begins; `None` for
/// another statement.
fn parts(statement: &[TokenWithSpan], solid: &[usize]) -> Option<((usize, usize, usize), usize)> {
    let token = |at: usize| solid.get(at).map(|place| &statement[*place].token);
    if token(0).map(keyword) != Some(Keyword::CREATE) {
        return None;
    }
    let first = (1..solid.len()).find(|at| token(*at) == Some(&Token::LParen))?;
    let before = (1..first).filter_map(|at| token(at).map(keyword));
    // Something else is made, or the names belong to something else.
    let is_table = before.clone().any(|word| word == Keyword::TABLE);
    if !is_table || before.clone().any(|word| matches!(word, Keyword::AS | Keyword::WITH | Keyword::LIKE)) {
        return None;
    }
    let mut last = first + 1;
    while let Token::Word(_) = token(last)? {
        match token(last + 1)? {
            Token::Comma => last += 2,
            Token::RParen => {
                let begins =
                    (last + 2..solid.len()).find(|at| token(*at).map(keyword) == Some(Keyword::AS))?;
                let query = *solid.get(begins + 1)?;
                return Some(((solid[first], solid[last + 1], solid[first - 1]), query));
            }
            _ => return None,
        }
    }
    None
}
