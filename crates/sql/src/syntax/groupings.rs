//! Elements of `ROLLUP`, `CUBE` and `GROUPING SETS`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword;

/// A pair of brackets that is open.
struct Brackets {
    /// Where it is opened.
    place: usize,
    /// Whether it is around elements; of the one that is read, where it begins, and where a pair of brackets ends that it begins with.
    is_list: bool,
    begin: Option<usize>,
    closed: Option<usize>,
}

impl Brackets {
    /// Ends an element, whose last token is at a place. It needs brackets around it if it goes on after those that it begins with.
    fn end_element(&mut self, last: usize, needed: &mut Vec<(usize, Token)>) {
        let closed = self.closed.take();
        let Some(begin) = self.begin.take() else { return };
        if self.is_list && closed.is_some_and(|closed| closed != last) {
            needed.extend([(begin, Token::LParen), (last + 1, Token::RParen)]);
        }
    }
}

/// Puts brackets around elements that begin with brackets and go on after these, as `(a) + 1` does: the parser takes what is in the first
/// brackets for all of the element.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut open: Vec<Brackets> = Vec::new();
    let mut needed = Vec::new();
    let mut before = (0, Keyword::NoKeyword);
    for (place, token) in tokens.iter().enumerate() {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        if let Token::RParen = token.token {
            if let Some(mut inner) = open.pop() {
                inner.end_element(before.0, &mut needed);
                if let Some(outer) = open.last_mut()
                    && outer.begin == Some(inner.place)
                {
                    outer.closed = Some(place);
                }
            }
        } else if let Some(inner) = open.last_mut() {
            match token.token {
                Token::Comma => inner.end_element(before.0, &mut needed),
                _ => inner.begin = inner.begin.or(Some(place)),
            }
        }
        if let Token::LParen = token.token {
            let is_list = matches!(before.1, Keyword::ROLLUP | Keyword::CUBE | Keyword::SETS);
            open.push(Brackets { place, is_list, begin: None, closed: None });
        }
        before = (place, keyword(&token.token));
    }
    needed.sort_by_key(|(place, _)| *place);
    let needed = needed.into_iter().map(|(place, token)| {
        let span = tokens[place.min(tokens.len() - 1)].span;
        (place..place, vec![TokenWithSpan { token, span }])
    });
    let needed = needed.collect();
    super::replace(tokens, needed);
}
