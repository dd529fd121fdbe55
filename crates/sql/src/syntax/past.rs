//! `AS OF SYSTEM TIME '…'` and `FOR SYSTEM_TIME AS OF '…'`: the time as of which a query is asked, which the parser does not know.
//!
//! The words are taken out of the tokens, wherever in the statement they stand, and the time is kept with the parsed query: in its `settings`,
//! which PostgreSQL's SQL has no other use for.

use sqlparser::ast::{Expr, Ident, Setting, Statement, Value};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, SqlState};

/// The name under which the time is kept.
const NAME: &str = "as_of";

/// Takes the times out of tokens: for each statement that there is, in their order.
pub(super) fn take(tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<Option<String>>, SqlError> {
    let mut times = Vec::new();
    let (mut time, mut is_statement) = (None, false);
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = std::mem::take(tokens).into_iter().peekable();
    let mut words: Vec<String> = Vec::new();
    while let Some(token) = rest.next() {
        match &token.token {
            Token::SemiColon | Token::EOF => {
                if is_statement {
                    times.push(time.take());
                }
                is_statement = false;
                words.clear();
            }
            Token::Whitespace(_) => {}
            Token::Word(word) if word.quote_style.is_none() => {
                is_statement = true;
                words.push(word.value.to_ascii_lowercase());
            }
            _ => {
                is_statement = true;
                words.clear();
            }
        }
        kept.push(token);
        let Some(length) = phrase(&words) else { continue };
        words.clear();
        remove_words(&mut kept, length);
        while rest.peek().is_some_and(|token| is_before_time(&token.token)) {
            rest.next();
        }
        let written = match rest.next().map(|token| token.token) {
            Some(Token::SingleQuotedString(text)) => text,
            _ => {
                let message = "AS OF SYSTEM TIME takes a time, or an interval before now, in quotes";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                    .with_hint("Write '2026-03-01 12:30:00+00' or '-10 seconds'."));
            }
        };
        if time.as_ref().is_some_and(|known| *known != written) {
            return Err(SqlError::unsupported("AS OF with several times in one statement"));
        }
        time = Some(written);
    }
    if is_statement {
        times.push(time);
    }
    *tokens = kept;
    Ok(times)
}

/// How many of the last words introduce a time, if they do.
fn phrase(words: &[String]) -> Option<usize> {
    const PHRASES: [&[&str]; 2] = [&["as", "of", "system", "time"], &["for", "system_time", "as", "of"]];
    let ends =
        |phrase: &&&[&str]| words.len() >= phrase.len() && words[words.len() - phrase.len()..] == ***phrase;
    PHRASES.iter().find(ends).map(|phrase| phrase.len())
}

fn remove_words(kept: &mut Vec<TokenWithSpan>, mut count: usize) {
    while count > 0
        && let Some(token) = kept.pop()
    {
        count -= usize::from(!matches!(token.token, Token::Whitespace(_)));
    }
}

/// Whether a token may stand before the time: the name of its type.
fn is_before_time(token: &Token) -> bool {
    match token {
        Token::Whitespace(_) => true,
        Token::Word(word) => {
            matches!(word.value.to_ascii_lowercase().as_str(), "timestamp" | "timestamptz" | "interval")
        }
        _ => false,
    }
}

/// Keeps the times with their statements.
pub(super) fn attach(statements: &mut [Statement], times: Vec<Option<String>>) -> Result<(), SqlError> {
    for (statement, time) in statements.iter_mut().zip(times) {
        let Some(time) = time else { continue };
        let mut target = statement;
        if let Statement::Explain { statement, .. } = target {
            target = &mut **statement;
        }
        let Statement::Query(query) = target else {
            return Err(SqlError::unsupported("AS OF with anything but a query")
                .with_hint("SET as_of, or SET LOCAL as_of in a transaction, counts for whatever reads."));
        };
        let value = Expr::Value(Value::SingleQuotedString(time).into());
        query.settings = Some(vec![Setting { key: Ident::new(NAME), value }]);
    }
    Ok(())
}

/// The time as of which a statement is asked, as it was written.
pub fn time_of(statement: &Statement) -> Option<&str> {
    let target = match statement {
        Statement::Explain { statement, .. } => statement,
        other => other,
    };
    let Statement::Query(query) = target else { return None };
    match query.settings.as_deref() {
        Some([Setting { value: Expr::Value(value), .. }]) => match &value.value {
            Value::SingleQuotedString(time) => Some(time),
            _ => None,
        },
        _ => None,
    }
}
