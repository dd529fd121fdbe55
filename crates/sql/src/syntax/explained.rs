//! `EXPLAIN` of a query in brackets.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword;

/// Writes `EXPLAIN (FORMAT text) (SELECT …)` for `EXPLAIN (SELECT …)`, where the parser takes the brackets for those around options.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let solid = super::solid(tokens);
    let token = |at: usize| solid.get(at).map(|place| &tokens[*place].token);
    let word = |at: usize| token(at).map_or(Keyword::NoKeyword, keyword);
    let begins = |at: usize| at == 0 || token(at - 1) == Some(&Token::SemiColon);
    let is_query = |at: usize| {
        token(at) == Some(&Token::LParen)
            || matches!(word(at), Keyword::SELECT | Keyword::VALUES | Keyword::WITH)
    };
    let explains =
        |at: &usize| word(*at) == Keyword::EXPLAIN && begins(*at) && token(at + 1) == Some(&Token::LParen);
    let places = (0..solid.len()).filter(explains).filter(|at| is_query(at + 2));
    let places: Vec<usize> = places.map(|at| solid[at]).collect();
    let options = places.into_iter().map(|place| {
        let span = tokens[place].span;
        let [format, text] = ["FORMAT", "TEXT"].map(Token::make_keyword);
        let options = [Token::LParen, format, text, Token::RParen];
        (place + 1..place + 1, options.map(|token| TokenWithSpan { token, span }).to_vec())
    });
    let options = options.collect();
    super::replace(tokens, options);
}
