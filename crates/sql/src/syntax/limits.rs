//! `FETCH FIRST` of a number that is computed.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword;

/// Writes `LIMIT number` for `FETCH FIRST number ROWS ONLY` where the number has a sign or brackets, of which the parser knows none there;
/// `FETCH FIRST ROWS WITH TIES` stays after it for what has ties.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let solid = super::solid(tokens);
    let token = |at: usize| solid.get(at).map(|place| &tokens[*place].token);
    let word = |at: usize| token(at).map_or(Keyword::NoKeyword, keyword);
    let (mut spelled, mut at) = (Vec::new(), 0);
    while at < solid.len() {
        let begin = at;
        at += 1;
        if word(begin) != Keyword::FETCH || !matches!(word(begin + 1), Keyword::FIRST | Keyword::NEXT) {
            continue;
        }
        let number = begin + 2;
        let after = match token(number) {
            Some(Token::Plus | Token::Minus) => number + 2,
            Some(Token::LParen) => after_brackets(number, token),
            _ => continue,
        };
        if !matches!(word(after), Keyword::ROW | Keyword::ROWS) {
            continue;
        }
        let end = match [word(after + 1), word(after + 2)] {
            [Keyword::ONLY, _] => after + 1,
            [Keyword::WITH, Keyword::TIES] => after + 2,
            _ => continue,
        };
        spelled.push([begin, number, after, end]);
        at = end;
    }
    let spelled = spelled.into_iter().map(|[begin, number, after, end]| {
        let span = tokens[solid[begin]].span;
        let ties = ["FETCH", "FIRST", "ROWS", "WITH", "TIES"];
        let rest = if end == after + 1 { &[] } else { &ties[..] };
        let at = |word: &&str| TokenWithSpan { token: Token::make_keyword(word), span };
        let counted = solid[number..after].iter().map(|place| tokens[*place].clone());
        let words = [at(&"LIMIT")].into_iter().chain(counted).chain(rest.iter().map(at));
        (solid[begin]..solid[end] + 1, words.collect())
    });
    let spelled = spelled.collect();
    super::replace(tokens, spelled);
}

/// What comes after the brackets that are opened at a place; after all there is if they are not closed.
fn after_brackets<'t>(open: usize, token: impl Fn(usize) -> Option<&'t Token>) -> usize {
    let (mut depth, mut at) = (0_usize, open);
    while let Some(token) = token(at) {
        at += 1;
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => break,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    at
}
