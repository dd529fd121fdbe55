//! `USER` for `ROLE`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword;

/// Writes `ROLE` for `USER` where users are made, changed and dropped, with the `LOGIN` that a new user has unless it is said otherwise; and
/// leaves out that a password is encrypted, which it always is.
pub(super) fn call_users_roles(tokens: &mut Vec<TokenWithSpan>) {
    let statements: Vec<Vec<TokenWithSpan>> = tokens
        .split_inclusive(|token| token.token == Token::SemiColon)
        .map(<[TokenWithSpan]>::to_vec)
        .collect();
    if !statements.iter().any(|statement| kind(statement).is_some()) {
        return;
    }
    tokens.clear();
    for mut statement in statements {
        if let Some((verb, place, is_user)) = kind(&statement) {
            statement[place].token = Token::make_keyword("ROLE");
            let says = |keywords: &[Keyword]| {
                statement.iter().any(|token| keywords.contains(&keyword(&token.token)))
            };
            if verb == Keyword::CREATE && is_user && !says(&[Keyword::LOGIN, Keyword::NOLOGIN]) {
                let is_end = |token: &TokenWithSpan| {
                    matches!(token.token, Token::SemiColon | Token::EOF | Token::Whitespace(_))
                };
                let end = statement.iter().rposition(|token| !is_end(token)).map_or(0, |last| last + 1);
                let login =
                    TokenWithSpan { token: Token::make_keyword("LOGIN"), span: statement[end - 1].span };
                statement.insert(end, login);
            }
            statement.retain(|token| keyword(&token.token) != Keyword::ENCRYPTED);
        }
        tokens.extend(statement);
    }
}

/// What a statement does with users, where it calls them so, and whether it says `USER`; `None` if it is about none.
fn kind(statement: &[TokenWithSpan]) -> Option<(Keyword, usize, bool)> {
    let mut solid =
        statement.iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let (_, verb) = solid.next()?;
    let (place, what) = solid.next()?;
    let (verb, what) = (keyword(&verb.token), keyword(&what.token));
    let is_verb = matches!(verb, Keyword::CREATE | Keyword::ALTER | Keyword::DROP);
    (is_verb && matches!(what, Keyword::USER | Keyword::ROLE)).then_some((verb, place, what == Keyword::USER))
}
