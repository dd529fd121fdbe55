//! `FETCH` and `MOVE` in the one form that the parser knows.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, SqlState};

/// Writes each `FETCH` as `FETCH direction FROM cursor`, and each `MOVE` as `FETCH direction IN cursor`: the parser knows no `MOVE`, and
/// of a cursor it makes no difference whether it is named by `FROM`, `IN` or neither.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let mut spelled = Vec::with_capacity(tokens.len());
    let mut rest = std::mem::take(tokens).into_iter();
    let mut begins = true;
    while let Some(token) = rest.next() {
        let moves = is_word(&token.token, "move");
        if !begins || !(moves || is_word(&token.token, "fetch")) {
            begins = match &token.token {
                Token::SemiColon => true,
                Token::Whitespace(_) => begins,
                _ => false,
            };
            spelled.push(token);
            continue;
        }
        let mut words = Vec::new();
        let mut end = None;
        for token in rest.by_ref() {
            match token.token {
                Token::SemiColon | Token::EOF => {
                    end = Some(token);
                    break;
                }
                Token::Whitespace(_) => {}
                word => words.push(word),
            }
        }
        let canonical = canonical(&words, moves)?;
        spelled.extend(canonical.into_iter().map(|word| TokenWithSpan::new(word, token.span)));
        spelled.extend(end);
        begins = true;
    }
    *tokens = spelled;
    Ok(())
}

/// Whether it is a word that is not in quotes.
pub(super) fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn canonical(words: &[Token], moves: bool) -> Result<Vec<Token>, SqlError> {
    let Some((name @ Token::Word(_), mut direction)) = words.split_last() else { return Err(malformed()) };
    if let Some((last, before)) = direction.split_last()
        && (is_word(last, "from") || is_word(last, "in"))
    {
        direction = before;
    }
    let spoken = |word: &str| direction.first().is_some_and(|first| is_word(first, word));
    let mut spelled = vec![Token::make_keyword("FETCH")];
    let counted = |count: &[Token]| -> Result<Token, SqlError> {
        match count {
            [] => Ok(Token::Number("1".to_owned(), false)),
            [number @ Token::Number(..)] | [Token::Plus, number @ Token::Number(..)] => Ok(number.clone()),
            [Token::Minus, Token::Number(digits, _)] => Ok(Token::Number(format!("-{digits}"), false)),
            _ => Err(malformed()),
        }
    };
    let named = ["next", "prior", "first", "last", "all"].into_iter().find(|word| spoken(word));
    if let Some(word) = named {
        if direction.len() > 1 {
            return Err(malformed());
        }
        spelled.push(Token::make_keyword(&word.to_uppercase()));
    } else if let Some(word) =
        ["forward", "backward", "absolute", "relative"].into_iter().find(|word| spoken(word))
    {
        spelled.push(Token::make_keyword(&word.to_uppercase()));
        match &direction[1..] {
            [all] if is_word(all, "all") && matches!(word, "forward" | "backward") => {
                spelled.push(Token::make_keyword("ALL"));
            }
            [] if matches!(word, "absolute" | "relative") => return Err(malformed()),
            count => spelled.push(counted(count)?),
        }
    } else {
        spelled.push(counted(direction)?);
    }
    spelled.push(Token::make_keyword(if moves { "IN" } else { "FROM" }));
    spelled.push(name.clone());
    Ok(spelled)
}

fn malformed() -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        "syntax error: FETCH and MOVE take a direction and the name of a cursor",
    )
}
