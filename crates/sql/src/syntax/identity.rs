//! Changes of identity and generated columns, which the parser knows in part: the others are written as defaults of a name that nobody can give.

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::definitions::Restart;
use super::keyword;
use super::marks::IDENTITY_CHANGED;
use crate::error::SqlError;

/// What becomes of an identity column, or a generated one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdentityChange {
    /// Whether its values always come from its sequence.
    Always(bool),
    /// Its sequence begins anew.
    Restart(Restart),
    /// It is one no longer; whether it may be that it is none.
    Drop(bool),
    /// A generated column is one no longer; whether it may be that it is none.
    DropExpression(bool),
}

/// Takes `SEQUENCE NAME …` out of the options of an identity column that is added, as dumps have it, where it is the name that the sequence
/// gets anyway.
pub(super) fn drop_sequence_names(tokens: &mut Vec<TokenWithSpan>) {
    let solid = super::solid(tokens);
    let name = |at: usize| match solid.get(at).map(|place| &tokens[*place].token) {
        Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
        Some(Token::Word(word)) => word.value.to_lowercase(),
        Some(token) => token.to_string(),
        None => String::new(),
    };
    // The schema of a name that begins there, its last part, and what comes after it.
    let parts = |mut at: usize| {
        let mut schema = String::new();
        while name(at + 1) == "." {
            schema = name(at);
            at += 2;
        }
        (schema, name(at), at + 1)
    };
    let (mut dropped, mut begin) = (Vec::new(), 0);
    for at in 0..solid.len() {
        if tokens[solid[at]].token == Token::SemiColon {
            begin = at + 1;
        }
        if at < begin + 2 || name(at) != "sequence" || name(at + 1) != "name" {
            continue;
        }
        let (schema, sequence, end) = parts(at + 2);
        if name(begin) != "alter" || name(begin + 1) != "table" || name(at - 1) != "(" {
            continue;
        }
        let (own_schema, table, after) = parts(begin + if name(begin + 2) == "only" { 3 } else { 2 });
        let column = name(after + if name(after + 1) == "column" { 2 } else { 1 });
        if name(after) == "alter" && schema == own_schema && sequence == format!("{table}_{column}_seq") {
            dropped.extend(&solid[at..end]);
        }
    }
    super::drop_at(tokens, dropped);
}

/// Writes `SET GENERATED …`, `RESTART …`, `DROP IDENTITY …` and `DROP EXPRESSION …` after `ALTER TABLE … ALTER column` as `SET DEFAULT`; see
/// [`identity_change`].
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let solid = super::solid(tokens);
    let word = |at: usize| solid.get(at).map_or(Keyword::NoKeyword, |place| keyword(&tokens[*place].token));
    let text = |at: usize| solid.get(at).map_or_else(String::new, |place| tokens[*place].token.to_string());
    let (mut begins, mut changes_table, mut spelled) = (0, false, Vec::new());
    for at in 0..solid.len() {
        if tokens[solid[at]].token == Token::SemiColon {
            begins = at + 1;
        }
        changes_table = if at == begins {
            word(at) == Keyword::ALTER && word(at + 1) == Keyword::TABLE
        } else {
            changes_table
        };
        if !changes_table || at == begins || word(at) != Keyword::ALTER {
            continue;
        }
        let first = at + if word(at + 1) == Keyword::COLUMN { 3 } else { 2 };
        let (change, length) = match (word(first), word(first + 1)) {
            (Keyword::SET, Keyword::GENERATED) if word(first + 2) == Keyword::ALWAYS => {
                ("always".to_owned(), 3)
            }
            (Keyword::SET, Keyword::GENERATED) if word(first + 2) == Keyword::BY => ("default".to_owned(), 4),
            (Keyword::DROP, Keyword::IDENTITY) if word(first + 2) == Keyword::IF => ("drop if".to_owned(), 4),
            (Keyword::DROP, Keyword::IDENTITY) => ("drop".to_owned(), 2),
            (Keyword::DROP, _) if text(first + 1).eq_ignore_ascii_case("expression") => {
                let is_lenient = word(first + 2) == Keyword::IF;
                let change = if is_lenient { "drop expression if" } else { "drop expression" };
                (change.to_owned(), if is_lenient { 4 } else { 2 })
            }
            (Keyword::RESTART, next) => {
                let number = first + if next == Keyword::WITH { 2 } else { 1 };
                let sign = usize::from(text(number) == "-");
                match text(number + sign) {
                    digits if digits.starts_with(|digit: char| digit.is_ascii_digit()) => {
                        let sign = if sign == 1 { "-" } else { "" };
                        (format!("{sign}{digits}"), number + sign.len() + 1 - first)
                    }
                    _ => ("first".to_owned(), 1),
                }
            }
            _ => continue,
        };
        if let (Some(begin), Some(end)) = (solid.get(first), solid.get(first + length - 1)) {
            spelled.push((*begin, *end, change));
        }
    }
    let spelled = spelled.into_iter().map(|(begin, end, change)| {
        let span = tokens[begin].span;
        let space = || Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        let name = Token::make_word(&format!("{IDENTITY_CHANGED}{change}"), Some('"'));
        let written = [Token::make_keyword("SET"), space(), Token::make_keyword("DEFAULT"), space(), name];
        (begin..end + 1, written.map(|token| TokenWithSpan { token, span }).to_vec())
    });
    let spelled = spelled.collect();
    super::replace(tokens, spelled);
}

/// The change of an identity column that a default stands for.
///
/// # Errors
/// When the number with which it begins anew is none of its type.
pub fn identity_change(default: &Expr) -> Result<Option<IdentityChange>, SqlError> {
    let Expr::Identifier(name) = default else { return Ok(None) };
    let Some(change) = name.value.strip_prefix(IDENTITY_CHANGED) else { return Ok(None) };
    Ok(Some(match change {
        "always" => IdentityChange::Always(true),
        "default" => IdentityChange::Always(false),
        "drop" => IdentityChange::Drop(false),
        "drop if" => IdentityChange::Drop(true),
        "drop expression" => IdentityChange::DropExpression(false),
        "drop expression if" => IdentityChange::DropExpression(true),
        restart => IdentityChange::Restart(Restart::of(restart)?),
    }))
}
