//! `LIKE name INCLUDING … EXCLUDING …` among the columns of a table.

use sqlparser::ast::{ColumnDef, DataType, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::marks::{LIKE, OPTIONS};
use super::{keyword, replace, solid};

/// Writes it as a column whose type is the name with a last part for the options, since the parser knows few of these, and no columns beside
/// it; see [`likened`].
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let solid = solid(tokens);
    let token = |at: usize| solid.get(at).map_or(&Token::EOF, |place| &tokens[*place].token);
    let is_switch = |at: &usize| matches!(keyword(token(*at)), Keyword::INCLUDING | Keyword::EXCLUDING);
    let (mut words, mut spelled) = (Vec::new(), Vec::new());
    for at in 1..solid.len() {
        match token(at - 1) {
            Token::SemiColon => words.clear(),
            // What is made is said before the first bracket.
            _ if words.contains(&Keyword::NoKeyword) => {}
            Token::LParen => words.push(Keyword::NoKeyword),
            other => {
                let word = keyword(other);
                words.extend(matches!(word, Keyword::CREATE | Keyword::TABLE).then_some(word));
            }
        }
        let is_part = matches!(token(at - 1), Token::LParen | Token::Comma);
        let begins =
            is_part && keyword(token(at)) == Keyword::LIKE && matches!(token(at + 1), Token::Word(_));
        if !begins || !words.starts_with(&[Keyword::CREATE, Keyword::TABLE]) {
            continue;
        }
        let ends = (at + 1..solid.len())
            .find(|at| matches!(token(*at), Token::LParen | Token::RParen | Token::Comma | Token::EOF));
        let ends = ends.unwrap_or(solid.len());
        let switches = (at + 1..ends).find(is_switch).unwrap_or(ends);
        let span = tokens[solid[at]].span;
        let quoted = |name: &str| Token::make_word(name, Some('"'));
        let mut column = vec![quoted(LIKE), Token::Whitespace(Whitespace::Space)];
        // No name is that of a type.
        column.extend((at + 1..switches).map(|at| match token(at) {
            Token::Word(word) if word.quote_style.is_none() => quoted(&word.value.to_ascii_lowercase()),
            other => other.clone(),
        }));
        let options: Vec<String> =
            (switches..ends).map(|at| token(at).to_string().to_ascii_lowercase()).collect();
        column.extend([Token::Period, quoted(&format!("{OPTIONS}{}", options.join(" ")))]);
        let column = column.into_iter().map(|token| TokenWithSpan { token, span }).collect();
        spelled.push((solid[at]..solid[ends - 1] + 1, column));
    }
    replace(tokens, spelled);
}

/// The relation whose columns a column stands for, and the options, in lower case with a blank between each two words.
pub(crate) fn likened(column: &ColumnDef) -> Option<(ObjectName, String)> {
    let DataType::Custom(name, _) = &column.data_type else { return None };
    if column.name.value != LIKE {
        return None;
    }
    let mut parts = name.0.clone();
    let last = parts.pop()?;
    let options = last.as_ident()?.value.strip_prefix(OPTIONS)?.to_owned();
    Some((ObjectName(parts), options))
}
