//! `SET CONSTRAINTS`, which the parser does not know, as a parameter that is set; and `COMMENT ON CONSTRAINT` as a comment on a column.

use sqlparser::ast::{Expr, Ident, ObjectName};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::fetches::is_word;
use super::marks::{COMMENTED, CONSTRAINTS};

/// Writes `SET CONSTRAINTS names DEFERRED` as an assignment of `deferred` and the names to a parameter. For `ALL` there are no names.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut spelled = Vec::with_capacity(tokens.len());
    for statement in std::mem::take(tokens).chunk_by(|token, _| token.token != Token::SemiColon) {
        let solid: Vec<usize> = (0..statement.len())
            .filter(|place| {
                !matches!(statement[*place].token, Token::Whitespace(_) | Token::SemiColon | Token::EOF)
            })
            .collect();
        let word =
            |at: usize, wanted| solid.get(at).is_some_and(|place| is_word(&statement[*place].token, wanted));
        let last = solid.len().saturating_sub(1);
        let deferred = word(last, "deferred");
        let is_one = word(0, "set") && word(1, "constraints") && last > 2;
        if !is_one || !(deferred || word(last, "immediate")) {
            spelled.extend_from_slice(statement);
            continue;
        }
        let span = statement[solid[0]].span;
        let add = |token: Token| TokenWithSpan { token, span };
        let value = if deferred { "deferred" } else { "immediate" };
        let assigned = [Token::make_word(CONSTRAINTS, Some('"')), Token::Eq];
        spelled.push(statement[solid[0]].clone());
        spelled.extend(assigned.map(add));
        spelled.push(add(Token::SingleQuotedString(value.to_owned())));
        if !(last == 3 && word(2, "all")) {
            spelled.push(add(Token::Comma));
            spelled.extend(solid[2..last].iter().map(|place| statement[*place].clone()));
        }
        spelled.extend_from_slice(&statement[solid[last] + 1..]);
    }
    *tokens = spelled;
}

/// The constraints that an assignment names, all of them if none, and whether they are to be deferred; `None` if it is to another parameter.
pub fn deferral(variable: &ObjectName, values: &[Expr]) -> Option<(Vec<Vec<Ident>>, bool)> {
    let is_one =
        variable.0.last().and_then(|part| part.as_ident()).is_some_and(|name| name.value == CONSTRAINTS);
    let (first, names) = values.split_first().filter(|_| is_one)?;
    let names = names.iter().map(|name| match name {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        other => vec![Ident::new(other.to_string())],
    });
    Some((names.collect(), first.to_string() == "'deferred'"))
}

/// Writes `COMMENT ON CONSTRAINT name ON table` as a comment on a column of the table, whose name says that it is a constraint; see
/// [`commented_constraint`]. What comments say in dollars, they say in quotes.
pub(super) fn spell_out_comments(tokens: &mut Vec<TokenWithSpan>) {
    let solid = super::solid(tokens);
    let token = |at: usize| solid.get(at).map(|place| &tokens[*place].token);
    let word = |at: usize, wanted| token(at).is_some_and(|token| is_word(token, wanted));
    let (mut spelled, mut in_dollars, mut comments) = (Vec::new(), Vec::new(), false);
    for at in 0..solid.len() {
        let begins = at == 0 || token(at - 1) == Some(&Token::SemiColon);
        comments = if begins { word(at, "comment") && word(at + 1, "on") } else { comments };
        if let Some(Token::DollarQuotedString(text)) = token(at).filter(|_| comments) {
            in_dollars.push((solid[at], text.value.clone()));
        }
        let is_one = begins && word(at, "comment") && word(at + 1, "on") && word(at + 2, "constraint");
        let Some(Token::Word(name)) = token(at + 3).filter(|_| is_one && word(at + 4, "on")) else {
            continue;
        };
        let mut last = at + 5;
        while token(last + 1) == Some(&Token::Period) {
            last += 2;
        }
        if matches!(token(last), Some(Token::Word(_))) && word(last + 1, "is") {
            let name = match name.quote_style {
                Some(_) => name.value.clone(),
                None => name.value.to_ascii_lowercase(),
            };
            spelled.push((solid[at + 2], solid[at + 5], solid[last], name));
        }
    }
    for (place, text) in in_dollars {
        tokens[place].token = Token::SingleQuotedString(text);
    }
    let others = spelled.into_iter().flat_map(|(kind, first, last, name)| {
        let span = tokens[last].span;
        let part = Token::make_word(&format!("{COMMENTED}{name}"), Some('"'));
        let name = [Token::Period, part].map(|token| TokenWithSpan { token, span }).to_vec();
        let column = TokenWithSpan { token: Token::make_keyword("COLUMN"), span: tokens[kind].span };
        [(kind..first, vec![column]), (last + 1..last + 1, name)]
    });
    let others = others.collect();
    super::replace(tokens, others);
}

/// The table and the name of the constraint that a comment on a column is about; `None` if it is about a column.
pub(crate) fn commented_constraint(column: &ObjectName) -> Option<(ObjectName, Ident)> {
    let (last, table) = column.0.split_last()?;
    let name = last.as_ident()?.value.strip_prefix(COMMENTED)?;
    Some((ObjectName(table.to_vec()), Ident::with_quote('"', name)))
}
