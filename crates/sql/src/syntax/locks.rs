//! Locking clauses: `FOR UPDATE` and the like.

use sqlparser::ast::{LockType, Query, SetExpr, Statement, TableFactor, TableWithJoins};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::bind::names::{name_of, parts_of};
use crate::error::{SqlError, SqlState};

/// Writes `FOR UPDATE` for `FOR NO KEY UPDATE` and `FOR SHARE` for `FOR KEY SHARE`, and makes the tables after `OF` parts of one name:
/// the parser knows no more. Nothing is locked here, so that it makes no difference; see [`locking`].
pub(super) fn spell_plainly(tokens: &mut Vec<TokenWithSpan>) {
    let solid = tokens.iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let solid: Vec<(usize, &Token)> = solid.map(|(place, token)| (place, &token.token)).collect();
    let keyword = |at: usize| solid.get(at).map_or(Keyword::NoKeyword, |(_, token)| super::keyword(token));
    let (mut dropped, mut commas) = (Vec::new(), Vec::new());
    for at in (0..solid.len()).filter(|at| keyword(*at) == Keyword::FOR) {
        let left_out = match [1, 2, 3].map(|more| keyword(at + more)) {
            [Keyword::NO, Keyword::KEY, Keyword::UPDATE] => 2,
            [Keyword::KEY, Keyword::SHARE, _] => 1,
            [Keyword::UPDATE | Keyword::SHARE, ..] => 0,
            _ => continue,
        };
        dropped.extend(solid[at + 1..=at + left_out].iter().map(|(place, _)| *place));
        let end = at + left_out + 2;
        if keyword(end) != Keyword::OF {
            continue;
        }
        let mut last = end + 1;
        while let Some((place, separator @ (Token::Comma | Token::Period))) = solid.get(last + 1) {
            if matches!(separator, Token::Comma) {
                commas.push(*place);
            }
            last += 2;
        }
    }
    commas.into_iter().for_each(|place| tokens[place].token = Token::Period);
    super::drop_at(tokens, dropped);
}

/// Fails unless what a query asks to lock is named in its `FROM`.
///
/// # Errors
/// When it is not.
pub(crate) fn check_locked(query: &Query) -> Result<(), SqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    for clause in &query.locks {
        let Some(of) = &clause.of else { continue };
        for name in parts_of(of)? {
            if !select.from.iter().any(|from| has_relation(from, &name)) {
                let strength = &clause.lock_type;
                let message =
                    format!("relation \"{name}\" in FOR {strength} clause not found in FROM clause");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
        }
    }
    Ok(())
}

fn has_relation(from: &TableWithJoins, name: &str) -> bool {
    let joined = from.joins.iter().map(|join| &join.relation);
    std::iter::once(&from.relation).chain(joined).any(|factor| match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => name_of(&alias.name) == name,
        TableFactor::Table { name: written, .. } | TableFactor::Function { name: written, .. } => {
            parts_of(written).is_ok_and(|parts| parts.last().is_some_and(|last| last == name))
        }
        TableFactor::NestedJoin { table_with_joins, .. } => has_relation(table_with_joins, name),
        _ => false,
    })
}

/// How strong the locks are that a query asks for, if it does: its client relies on what it was shown.
pub fn locking(statement: &Statement) -> Option<LockType> {
    match statement {
        Statement::Query(query) => of_query(query),
        Statement::Declare { stmts, .. } => {
            stmts.iter().filter_map(|declare| declare.for_query.as_deref()).find_map(of_query)
        }
        _ => None,
    }
}

fn of_query(query: &Query) -> Option<LockType> {
    let first = query.locks.first().map(|clause| clause.lock_type);
    let with =
        || query.with.iter().flat_map(|with| &with.cte_tables).find_map(|table| of_query(&table.query));
    first.or_else(|| of_body(&query.body)).or_else(with)
}

fn of_body(body: &SetExpr) -> Option<LockType> {
    match body {
        SetExpr::Query(query) => of_query(query),
        SetExpr::SetOperation { left, right, .. } => of_body(left).or_else(|| of_body(right)),
        SetExpr::Select(select) => select.from.iter().find_map(|from| {
            let joined = from.joins.iter().map(|join| &join.relation);
            std::iter::once(&from.relation).chain(joined).find_map(of_factor)
        }),
        _ => None,
    }
}

fn of_factor(factor: &TableFactor) -> Option<LockType> {
    match factor {
        TableFactor::Derived { subquery, .. } => of_query(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => {
            let joined = table_with_joins.joins.iter().map(|join| &join.relation);
            std::iter::once(&table_with_joins.relation).chain(joined).find_map(of_factor)
        }
        _ => None,
    }
}
