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
    let mut closings = None;
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
            Some(Token::LParen) => {
                closings.get_or_insert_with(|| ends_of_brackets(tokens, &solid))[number] + 1
            }
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

/// For each token where the brackets are closed that it opens; the last token if they are not. For others it means nothing.
fn ends_of_brackets(tokens: &[TokenWithSpan], solid: &[usize]) -> Vec<usize> {
    let (mut ends, mut open) = (vec![solid.len() - 1; solid.len()], Vec::new());
    for (at, place) in solid.iter().enumerate() {
        match tokens[*place].token {
            Token::LParen => open.push(at),
            Token::RParen => {
                if let Some(opened) = open.pop() {
                    ends[opened] = at;
                }
            }
            _ => {}
        }
    }
    ends
}
