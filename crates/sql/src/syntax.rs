//! From text to statements, by `sqlparser`.

mod chains;
mod comments;
mod conflicts;
mod constraints;
mod definitions;
mod dialect;
mod explained;
mod fetches;
mod gaps;
mod groupings;
mod identity;
mod left_out;
mod like;
mod limits;
mod locks;
mod marks;
mod named_columns;
mod past;
mod plain;
mod positions;
mod roles;
mod shape;
mod spelling;

use std::ops::Range;

use sqlparser::ast::{Expr, Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};

use crate::error::{SqlError, SqlState};

pub use conflicts::conflicting_expression;
pub(crate) use constraints::commented_constraint;
pub use constraints::deferral;
pub use definitions::{Restart, altered_kind, changed_sequence};
pub use gaps::{unknown_function, unknown_type, unsupported_statement};
pub use identity::{IdentityChange, identity_change};
pub(crate) use like::likened;
pub(crate) use locks::check_locked;
pub use locks::locking;
pub use past::time_of;
pub(crate) use positions::{at, at_name};
pub use shape::{Constant, SHAPED_MAX, Shape, shape};

/// Deepest nesting of a statement.
const DEPTH_MAX: usize = 100;

/// A parser of a text that is no statement of a client.
fn parser(text: &str) -> Result<Parser<'static>, SqlError> {
    let (parser, times) = parser_and_times(tokens_of(text, |_| {})?)?;
    if times.iter().any(Option::is_some) {
        return Err(SqlError::unsupported("AS OF within a part of a statement"));
    }
    Ok(parser)
}

fn tokens_of(text: &str, place: impl Fn(&mut [TokenWithSpan])) -> Result<Vec<TokenWithSpan>, SqlError> {
    let text = comments::part(text);
    let mut tokens =
        Tokenizer::new(&PostgreSqlDialect {}, &text).tokenize_with_location().map_err(|error| {
            let mut at =
                [TokenWithSpan { token: Token::EOF, span: Span::new(error.location, error.location) }];
            place(&mut at);
            positions::at(failed(ParserError::TokenizerError(error.message)), at[0].span)
        })?;
    place(&mut tokens);
    Ok(tokens)
}

/// A parser, and the times as of which the statements are asked.
fn parser_and_times(
    mut tokens: Vec<TokenWithSpan>,
) -> Result<(Parser<'static>, Vec<Option<String>>), SqlError> {
    marks::refuse(&tokens)?;
    let times = if plain::is_plain(&tokens) { Vec::new() } else { spell_out(&mut tokens)? };
    chains::refuse(&tokens)?;
    let parser = Parser::new(&dialect::PostgreSql).with_recursion_limit(DEPTH_MAX);
    Ok((parser.with_tokens_with_locations(tokens), times))
}

/// Writes what the parser does not know in other ways, and takes out the times as of which statements are asked.
fn spell_out(tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<Option<String>>, SqlError> {
    spelling::unescape_texts(tokens)?;
    spelling::part_signs(tokens);
    spelling::join_texts(tokens);
    spelling::spell_suffixes(tokens);
    spelling::spell_like(tokens);
    spell_out_switches(tokens);
    cut_vacuum(tokens);
    definitions::spell_out(tokens)?;
    definitions::spell_out_sequences(tokens)?;
    definitions::spell_out_tables(tokens);
    named_columns::spell_out(tokens);
    identity::drop_sequence_names(tokens);
    identity::spell_out(tokens);
    roles::call_users_roles(tokens);
    like::spell_out(tokens);
    drop_deferrable(tokens);
    constraints::spell_out(tokens);
    constraints::spell_out_comments(tokens);
    locks::spell_plainly(tokens);
    fetches::spell_out(tokens)?;
    limits::spell_out(tokens);
    explained::spell_out(tokens);
    left_out::drop_places_and_orders(tokens)?;
    conflicts::spell_out(tokens);
    conflicts::name_expressions(tokens);
    groupings::spell_out(tokens);
    let times = past::take(tokens)?;
    refuse_exclusion(tokens)?;
    Ok(times)
}

/// The keyword that a token is, unless it is in double quotes.
fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Leaves out the tokens at some places.
fn drop_at(tokens: &mut Vec<TokenWithSpan>, mut dropped: Vec<usize>) {
    dropped.sort_unstable();
    let mut place = 0;
    tokens.retain(|_| {
        place += 1;
        dropped.binary_search(&(place - 1)).is_err()
    });
}

/// The places of what is no space between others.
fn solid(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let is_solid = |place: &usize| !matches!(tokens[*place].token, Token::Whitespace(_));
    (0..tokens.len()).filter(is_solid).collect()
}

/// Puts others in the place of tokens: of ranges in their order, which are empty where something is put between. One that overlaps with one
/// before it is left as it is.
fn replace(tokens: &mut Vec<TokenWithSpan>, others: Vec<(Range<usize>, Vec<TokenWithSpan>)>) {
    if others.is_empty() {
        return;
    }
    let mut place = 0;
    let mut read = std::mem::take(tokens).into_iter();
    for (range, others) in others {
        let Some(between) = range.start.checked_sub(place) else { continue };
        tokens.extend(read.by_ref().take(between));
        read.by_ref().take(range.len()).for_each(drop);
        tokens.extend(others);
        place = range.end;
    }
    tokens.extend(read);
}

/// The encoding as which the parser is told of `HEADER MATCH`, which it does not know.
pub const HEADER_MATCH: &str = "\u{1f}header match";

/// Writes `true` and `false` for `on` and `off` among the options of `COPY`, where the parser knows only these, and [`HEADER_MATCH`].
fn spell_out_switches(tokens: &mut [TokenWithSpan]) {
    // The options of `COPY` come after where its rows come from, or go to.
    let (mut begins, mut copies, mut has_place) = (true, false, false);
    let (mut depth, mut header) = (0, None);
    for place in 0..tokens.len() {
        let word = match &tokens[place].token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => word,
            other => {
                match other {
                    Token::SemiColon => (begins, copies, has_place, depth) = (true, false, false, 0),
                    Token::LParen => (begins, depth) = (false, depth + 1),
                    Token::RParen => (begins, depth) = (false, depth - 1),
                    _ => begins = false,
                }
                header = None;
                continue;
            }
        };
        copies |= begins && word.keyword == Keyword::COPY;
        begins = false;
        let before = header.take();
        let spelled = match (word.keyword, before) {
            (Keyword::STDIN | Keyword::STDOUT, _) if copies && depth == 0 => {
                has_place = true;
                continue;
            }
            (Keyword::HEADER, _) => {
                header = Some(place);
                continue;
            }
            (Keyword::MATCH, Some(before)) if has_place => {
                tokens[before].token = Token::make_keyword("ENCODING");
                Token::SingleQuotedString(HEADER_MATCH.to_owned())
            }
            (Keyword::ON, _) => Token::make_keyword("true"),
            (Keyword::OFF, _) => Token::make_keyword("false"),
            _ => continue,
        };
        if has_place {
            tokens[place].token = spelled;
        }
    }
}

/// The statements of a text.
///
/// # Errors
/// When one of them is none.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    let tokens = tokens_of(text, |tokens| positions::count_from_first(text, tokens))?;
    let (mut parser, times) = parser_and_times(tokens)?;
    let mut statements = parser.parse_statements().map_err(|error| stopped(text, error))?;
    // The parser stops at `END` as at the end of a text.
    let next = parser.peek_token();
    if next.token != Token::EOF {
        let message = format!("syntax error: Expected: end of statement, found: {}", next.token);
        return Err(at(SqlError::new(SqlState::SYNTAX_ERROR, message), next.span));
    }
    past::attach(&mut statements, times)?;
    statements.into_iter().map(definitions::made_by_selection).collect()
}

/// A query.
///
/// # Errors
/// When it is none.
pub fn parse_query(text: &str) -> Result<Query, SqlError> {
    parser(text)?.parse_query().map(|query| *query).map_err(failed)
}

/// An expression.
///
/// # Errors
/// When it is none.
pub fn parse_expression(text: &str) -> Result<Expr, SqlError> {
    parser(text)?.parse_expr().map_err(failed)
}

/// Leaves of `VACUUM` the word alone: it does nothing, and the parser knows another form of it.
fn cut_vacuum(tokens: &mut Vec<TokenWithSpan>) {
    let (mut begins, mut cuts) = (true, false);
    tokens.retain(|token| match &token.token {
        Token::SemiColon | Token::EOF => {
            (begins, cuts) = (true, false);
            true
        }
        Token::Whitespace(_) => true,
        token => {
            let cut = cuts;
            cuts |= begins && matches!(token, Token::Word(word) if word.keyword == Keyword::VACUUM);
            begins = false;
            !cut
        }
    });
}

/// Leaves out `DEFERRABLE` among the modes of a transaction, which the parser does not know: reading never has to wait or fail here, as a
/// deferrable transaction wants it.
fn drop_deferrable(tokens: &mut Vec<TokenWithSpan>) {
    let mut dropped = Vec::new();
    let mut words = Vec::new();
    let solid = tokens.iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let solid: Vec<(usize, &Token)> = solid.map(|(place, token)| (place, &token.token)).collect();
    for (at, (place, token)) in solid.iter().enumerate() {
        match token {
            Token::SemiColon => words.clear(),
            Token::Word(word) if word.keyword == Keyword::DEFERRABLE && begins_transaction(&words) => {
                let negated = words.last() == Some(&Keyword::NOT);
                let first = if negated { at - 1 } else { at };
                dropped.extend([solid[first].0, *place]);
                let comma = [first.checked_sub(1), Some(at + 1)].into_iter().flatten();
                let comma = comma.filter_map(|near| solid.get(near)).find(|near| *near.1 == Token::Comma);
                dropped.extend(comma.map(|near| near.0));
            }
            Token::Word(word) => words.push(word.keyword),
            _ => {}
        }
    }
    drop_at(tokens, dropped);
}

/// Whether the first words of a statement are followed by the modes of a transaction.
fn begins_transaction(words: &[Keyword]) -> bool {
    matches!(
        words,
        [Keyword::BEGIN | Keyword::START, ..]
            | [Keyword::SET, Keyword::TRANSACTION, ..]
            | [Keyword::SET, Keyword::SESSION, Keyword::CHARACTERISTICS, ..]
    )
}

/// Frames that leave rows out, which the parser does not know.
fn refuse_exclusion(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut words =
        tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    while let Some(token) = words.next() {
        if !matches!(token, Token::Word(word) if word.keyword == Keyword::EXCLUDE) {
            continue;
        }
        let ends = ["CURRENT ROW )", "GROUP )", "TIES )", "NO OTHERS )"];
        let next = words.clone().take(3).map(|token| token.to_string().to_uppercase()).collect::<Vec<_>>();
        if let Some(end) = ends.iter().find(|end| next.join(" ").starts_with(*end)) {
            let what = end.trim_end_matches(" )");
            return Err(SqlError::unsupported(format!("EXCLUDE {what} in a window frame")));
        }
    }
    Ok(())
}

/// The error of a text that the parser does not understand.
fn stopped(text: &str, error: ParserError) -> SqlError {
    let error = failed(error);
    if error.state != SqlState::SYNTAX_ERROR {
        return error;
    }
    let tokens = tokens_of(text, |tokens| positions::count_from_first(text, tokens)).unwrap_or_default();
    if let Some(gap) = gaps::of_tokens(&tokens, error.position) {
        return gap;
    }
    let end = text.trim_end().chars().count() + 1;
    let position = error.position.or_else(|| u32::try_from(end).ok());
    SqlError { position, ..error }
}

fn failed(error: ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = format!("statement is nested more than {DEPTH_MAX} deep");
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            let (message, position) = positions::stopped(&message);
            SqlError { position, ..SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error: {message}")) }
        }
    }
}
