//! Forms of definitions that the parser does not know.

use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{Expr, ObjectName, SetExpr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword;
use super::marks::{ALTERED, SEQUENCE_CHANGED};
use crate::error::{SqlError, SqlState};

/// Where a sequence begins anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// It goes on.
    No,
    /// At its first number.
    First,
    /// At this number.
    At(i64),
}

impl Restart {
    /// As it is kept in a name: `no`, `first`, or the number.
    pub(super) fn of(kept: &str) -> Result<Restart, SqlError> {
        Ok(match kept {
            "no" => Restart::No,
            "first" => Restart::First,
            number => Restart::At(number.parse().map_err(|_| {
                let message = format!("value \"{number}\" is out of range for type bigint");
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
            })?),
        })
    }
}

/// Writes `REINDEX INDEX name` as `VACUUM REINDEX name`, and `REINDEX TABLE name` as `VACUUM REINDEX name BOOST`, which the parser knows;
/// leaves out `CONCURRENTLY`, as which an index is always made and dropped.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let mut words: Vec<Keyword> = Vec::new();
    let mut spelled = Vec::with_capacity(tokens.len());
    let mut is_table = false;
    for mut token in std::mem::take(tokens) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::SemiColon | Token::EOF => {
                words.clear();
                if std::mem::take(&mut is_table) {
                    spelled.push(TokenWithSpan { token: Token::make_keyword("BOOST"), span: token.span });
                }
            }
            other => {
                let word = keyword(other);
                match words.as_slice() {
                    [] if word == Keyword::REINDEX => token.token = Token::make_keyword("VACUUM"),
                    [Keyword::REINDEX] => {
                        is_table = word == Keyword::TABLE;
                        if !is_table && word != Keyword::INDEX {
                            return Err(SqlError::unsupported(format!("REINDEX {}", token.token)));
                        }
                        token.token = Token::make_keyword("REINDEX");
                    }
                    [Keyword::REINDEX, Keyword::INDEX | Keyword::TABLE] | [Keyword::DROP, Keyword::INDEX]
                        if word == Keyword::CONCURRENTLY =>
                    {
                        continue;
                    }
                    _ => {}
                }
                words.push(word);
            }
        }
        spelled.push(token);
    }
    if let Some(last) = spelled.last().filter(|_| is_table) {
        let span = last.span;
        spelled.push(TokenWithSpan { token: Token::make_keyword("BOOST"), span });
    }
    *tokens = spelled;
    Ok(())
}

/// Writes `SELECT * FROM name` for `TABLE name` where a query may begin, as it may anywhere in an `INSERT`.
pub(super) fn spell_out_tables(tokens: &mut Vec<TokenWithSpan>) {
    let mut before = Keyword::NoKeyword;
    let (mut begins, mut inserts, mut is_part) = (true, false, false);
    let mut places = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let this = keyword(&token.token);
        let is_after = matches!(
            before,
            Keyword::AS
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::ALL
                | Keyword::EXPLAIN
        );
        inserts |= this == Keyword::INTO && before == Keyword::INSERT;
        // A column may be called so after a period, or after `AS`, and no name comes then.
        let is_column = is_part || before == Keyword::AS && !comes_name(&tokens[place + 1..]);
        if this == Keyword::TABLE && (begins || is_after || inserts) && !is_column {
            places.push(place);
        }
        inserts &= token.token != Token::SemiColon;
        is_part = token.token == Token::Period;
        begins = matches!(token.token, Token::SemiColon | Token::LParen | Token::RParen);
        before = this;
    }
    let spelled = places.into_iter().map(|place| {
        let span = tokens[place].span;
        let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
        (place..place + 1, words.map(|token| TokenWithSpan { token, span }).to_vec())
    });
    let spelled = spelled.collect();
    super::replace(tokens, spelled);
}

/// Whether the next token may be a name of a relation.
fn comes_name(tokens: &[TokenWithSpan]) -> bool {
    let next = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    next.is_some_and(|next| matches!(next.token, Token::Word(_)) && keyword(&next.token) != Keyword::FROM)
}

/// Writes `ALTER SEQUENCE name …` as `CREATE SEQUENCE name …`, whose last part says that it is changed, and where it begins anew; see
/// [`changed_sequence`]. What gives a sequence or a view another name or owner is written as what does so with a table.
pub(super) fn spell_out_sequences(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let mut spelled = Vec::with_capacity(tokens.len());
    let mut statement = Vec::new();
    for token in std::mem::take(tokens) {
        let ends = matches!(token.token, Token::SemiColon | Token::EOF);
        statement.push(token);
        if ends {
            spelled.extend(change_of_sequence(std::mem::take(&mut statement))?);
        }
    }
    spelled.extend(change_of_sequence(statement)?);
    *tokens = spelled;
    Ok(())
}

fn change_of_sequence(statement: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut words = statement.iter().filter(|token| !is_space(token)).map(|token| keyword(&token.token));
    let kind = match (words.next(), words.next()) {
        (Some(Keyword::ALTER), Some(kind @ (Keyword::SEQUENCE | Keyword::VIEW))) => kind,
        _ => return Ok(statement),
    };
    drop(words);
    if let Some(end) = end_of_renamed(&statement) {
        return Ok(as_of_table(statement, kind, end));
    }
    if kind == Keyword::VIEW {
        return Ok(statement);
    }
    let mut rest = statement.into_iter().filter(|token| !is_space(token)).skip(2).peekable();
    let span = rest.peek().map(|token| token.span).unwrap_or_else(sqlparser::tokenizer::Span::empty);
    let at = |token| TokenWithSpan { token, span };
    let mut spelled = vec![at(Token::make_keyword("CREATE")), at(Token::make_keyword("SEQUENCE"))];
    if rest.next_if(|token| keyword(&token.token) == Keyword::IF).is_some() {
        rest.next_if(|token| keyword(&token.token) == Keyword::EXISTS);
        spelled.extend(["IF", "NOT", "EXISTS"].map(|word| at(Token::make_keyword(word))));
    }
    spelled.extend(rest.next());
    while let Some(period) = rest.next_if(|token| token.token == Token::Period) {
        spelled.push(period);
        spelled.extend(rest.next());
    }
    let (mut options, mut restart) = (Vec::new(), "no".to_owned());
    while let Some(token) = rest.next() {
        match keyword(&token.token) {
            Keyword::SET => return Err(SqlError::unsupported("ALTER SEQUENCE … SET")),
            Keyword::RESTART => {
                rest.next_if(|token| keyword(&token.token) == Keyword::WITH);
                let sign = rest.next_if(|token| token.token == Token::Minus).map_or("", |_| "-");
                let number = rest.next_if(|token| matches!(token.token, Token::Number(..)));
                restart =
                    number.map_or_else(|| "first".to_owned(), |number| format!("{sign}{}", number.token));
            }
            _ => options.push(token),
        }
    }
    let part = Token::make_word(&format!("{SEQUENCE_CHANGED}{restart}"), Some('"'));
    spelled.extend([at(Token::Period), at(part)]);
    spelled.extend(options);
    Ok(spelled)
}

/// Behind which token the name ends of what gets another name or owner; `None` for another change.
fn end_of_renamed(statement: &[TokenWithSpan]) -> Option<usize> {
    let solid = super::solid(statement);
    let token = |at: usize| solid.get(at).map(|place| &statement[*place].token);
    let word = |at: usize| token(at).map_or(Keyword::NoKeyword, keyword);
    let mut last = if word(2) == Keyword::IF && word(3) == Keyword::EXISTS { 4 } else { 2 };
    while token(last + 1) == Some(&Token::Period) {
        last += 2;
    }
    let is_renamed = matches!(word(last + 1), Keyword::RENAME | Keyword::OWNER);
    solid.get(last).copied().filter(|_| is_renamed)
}

/// Writes `ALTER TABLE` for `ALTER VIEW` and `ALTER SEQUENCE`, with a last part of the name that says which of both it was; see
/// [`altered_kind`].
fn as_of_table(mut statement: Vec<TokenWithSpan>, kind: Keyword, end: usize) -> Vec<TokenWithSpan> {
    let span = statement[end].span;
    let part = Token::make_word(&format!("{ALTERED}{}", format!("{kind:?}").to_lowercase()), Some('"'));
    statement.splice(end + 1..end + 1, [Token::Period, part].map(|token| TokenWithSpan { token, span }));
    if let Some(place) = statement.iter().position(|token| keyword(&token.token) == kind) {
        statement[place].token = Token::make_keyword("TABLE");
    }
    statement
}

/// The name of what is altered, and what it was called where that was no table: `view` or `sequence`.
pub fn altered_kind(name: &ObjectName) -> (ObjectName, Option<String>) {
    let last = name.0.last().and_then(|part| part.as_ident());
    match last.and_then(|last| last.value.strip_prefix(ALTERED)) {
        Some(kind) => (ObjectName(name.0[..name.0.len() - 1].to_vec()), Some(kind.to_owned())),
        None => (name.clone(), None),
    }
}

/// The name of a sequence that is changed, and where it begins anew; `None` for one that is made.
pub fn changed_sequence(name: &ObjectName) -> Result<Option<(ObjectName, Restart)>, SqlError> {
    let last = name.0.last().and_then(|part| part.as_ident());
    let Some(restart) = last.and_then(|last| last.value.strip_prefix(SEQUENCE_CHANGED)) else {
        return Ok(None);
    };
    let restart = Restart::of(restart)?;
    let parts = name.0[..name.0.len() - 1].to_vec();
    Ok(Some((ObjectName(parts), restart)))
}

/// Makes `CREATE TABLE name AS SELECT …` of `SELECT … INTO name …`.
pub(super) fn made_by_selection(statement: Statement) -> Result<Statement, SqlError> {
    let Statement::Query(mut query) = statement else { return Ok(statement) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(Statement::Query(query)) };
    let Some(into) = select.into.take() else { return Ok(Statement::Query(query)) };
    let name = match into.targets.as_slice() {
        [Expr::Identifier(name)] => ObjectName::from(vec![name.clone()]),
        [Expr::CompoundIdentifier(names)] => ObjectName::from(names.clone()),
        _ => return Err(SqlError::unsupported("SELECT INTO anything but a table")),
    };
    let made = CreateTableBuilder::new(name).temporary(into.temporary).query(Some(query)).build();
    Ok(Statement::CreateTable(made))
}
