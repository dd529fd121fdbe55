//! Forms that the parser does not know, written in others that mean the same.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace, Word};

/// Makes one literal of texts on several lines: only a new line goes between them.
pub(super) fn join_texts(tokens: &mut Vec<TokenWithSpan>) {
    let mut place = 0;
    while place < tokens.len() {
        let is_text = matches!(tokens[place].token, Token::SingleQuotedString(_));
        let mut next = place + 1;
        let mut has_line = false;
        while is_text && let Some(Token::Whitespace(space)) = tokens.get(next).map(|token| &token.token) {
            has_line |= matches!(space, Whitespace::Newline | Whitespace::SingleLineComment { .. });
            next += 1;
        }
        match tokens.get(next).map(|token| &token.token) {
            Some(Token::SingleQuotedString(more)) if has_line => {
                let more = more.clone();
                if let Token::SingleQuotedString(text) = &mut tokens[place].token {
                    text.push_str(&more);
                }
                tokens.drain(place + 1..=next);
            }
            _ => place += 1,
        }
    }
}

/// Reads `U&'…' UESCAPE '!'`: the characters behind another escape than the backslash, which the tokenizer knows alone.
pub(super) fn unescape_texts(tokens: &mut Vec<TokenWithSpan>) {
    let mut place = 0;
    while place < tokens.len() {
        let Token::UnicodeStringLiteral(text) = &tokens[place].token else {
            place += 1;
            continue;
        };
        let solid = |token: &&(usize, &TokenWithSpan)| !matches!(token.1.token, Token::Whitespace(_));
        let mut behind = tokens.iter().enumerate().skip(place + 1).filter(|token| solid(&token));
        let is_escape = behind.next().is_some_and(|(_, token)| {
            matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case("uescape"))
        });
        if let (true, Some((last, escape))) = (is_escape, behind.next())
            && let Token::SingleQuotedString(escape) = &escape.token
            && let Some(text) = unescaped(text, escape)
        {
            tokens[place].token = Token::UnicodeStringLiteral(text);
            tokens.drain(place + 1..=last);
        }
        place += 1;
    }
}

/// A text with the characters that four digits behind an escape stand for, or six behind it and `+`. None if it has others.
fn unescaped(text: &str, escape: &str) -> Option<String> {
    let mut parts = text.split(escape);
    let mut out = parts.next()?.to_owned();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            // Twice, it stands for itself.
            out.push_str(escape);
            out.push_str(parts.next()?);
            continue;
        }
        let (start, end) = if part.starts_with('+') { (1, 7) } else { (0, 4) };
        let code = u32::from_str_radix(part.get(start..end)?, 16).ok()?;
        out.push(char::from_u32(code)?);
        out.push_str(&part[end..]);
    }
    (escape.chars().count() == 1).then_some(out)
}

/// Parts a sign from the operator before it (`a>-1`), as PostgreSQL does unless the operator has a character that only operators of
/// one's own have.
pub(super) fn part_signs(tokens: &mut Vec<TokenWithSpan>) {
    const OWN: &str = "~!@#%^&|`?";
    let mut place = 0;
    while place < tokens.len() {
        if let Token::CustomBinaryOperator(written) = &tokens[place].token
            // The first character is the operator, whatever it is.
            && let plain = &written[..written.trim_end_matches(['+', '-']).len().max(1)]
            && plain.len() < written.len()
            && !written.contains(|character| OWN.contains(character))
            && let Ok(mut parted) = Tokenizer::new(&PostgreSqlDialect {}, plain).tokenize()
        {
            let signs = written[plain.len()..].chars();
            parted.extend(signs.map(|sign| if sign == '-' { Token::Minus } else { Token::Plus }));
            let span = tokens[place].span;
            let count = parted.len();
            tokens.splice(place..=place, parted.into_iter().map(|token| TokenWithSpan { token, span }));
            place += count;
        } else {
            place += 1;
        }
    }
}

/// Whether a word is one that PostgreSQL takes for `IS NULL` or `IS NOT NULL`.
pub(super) fn is_null_test(word: &Word) -> bool {
    let is = |known: &str| word.value.eq_ignore_ascii_case(known);
    word.quote_style.is_none() && (is("isnull") || is("notnull"))
}

/// Writes `ISNULL` and `NOTNULL` as `IS NULL` and `IS NOT NULL`, and `integer ARRAY` as `integer[]`.
pub(super) fn spell_suffixes(tokens: &mut Vec<TokenWithSpan>) {
    let mut place = 0;
    while place < tokens.len() {
        let solid = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let before = tokens[..place].iter().rev().find(solid).map(|token| &token.token);
        let after = tokens[place + 1..].iter().find(solid).map(|token| &token.token);
        let is_name = match before {
            Some(Token::Word(word)) => word.keyword == Keyword::AS && word.quote_style.is_none(),
            Some(Token::Period) | None => true,
            _ => false,
        };
        let is_operand = match before {
            Some(Token::Word(word)) => {
                word.quote_style.is_some() || !RESERVED_FOR_COLUMN_ALIAS.contains(&word.keyword)
            }
            Some(Token::RParen) => true,
            _ => false,
        };
        let written: &[&str] = match &tokens[place].token {
            Token::Word(word) if is_null_test(word) && !is_name && after != Some(&Token::LParen) => {
                if word.value.eq_ignore_ascii_case("isnull") {
                    &["IS", "NULL"]
                } else {
                    &["IS", "NOT", "NULL"]
                }
            }
            Token::Word(word)
                if word.keyword == Keyword::ARRAY
                    && word.quote_style.is_none()
                    && is_operand
                    && !matches!(after, Some(Token::LBracket | Token::LParen)) =>
            {
                &["[", "]"]
            }
            _ => {
                place += 1;
                continue;
            }
        };
        let span = tokens[place].span;
        let token = |written: &&str| match *written {
            "[" => Token::LBracket,
            "]" => Token::RBracket,
            word => Token::make_keyword(word),
        };
        let spelled = written.iter().map(|written| TokenWithSpan { token: token(written), span });
        tokens.splice(place..=place, spelled.collect::<Vec<_>>());
        place += written.len();
    }
}

/// Writes the operators for `LIKE` and `ILIKE` before `ANY`, `SOME` and `ALL`.
pub(super) fn spell_like(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |place: Option<&usize>, tokens: &[TokenWithSpan]| {
        place.map_or(Keyword::NoKeyword, |at| super::keyword(&tokens[*at].token))
    };
    let is_solid = |place: &usize| !matches!(tokens[*place].token, Token::Whitespace(_));
    let solid: Vec<usize> = (0..tokens.len()).filter(is_solid).collect();
    let mut dropped = Vec::new();
    for at in 0..solid.len() {
        let like = keyword(solid.get(at), tokens);
        let is_like = matches!(like, Keyword::LIKE | Keyword::ILIKE);
        let follows = keyword(solid.get(at + 1), tokens);
        if !is_like || !matches!(follows, Keyword::ANY | Keyword::SOME | Keyword::ALL) {
            continue;
        }
        let before = at.checked_sub(1);
        let negated = before.is_some_and(|before| keyword(solid.get(before), tokens) == Keyword::NOT);
        tokens[solid[at]].token = match (like, negated) {
            (Keyword::LIKE, false) => Token::DoubleTilde,
            (Keyword::LIKE, true) => Token::ExclamationMarkDoubleTilde,
            (_, false) => Token::DoubleTildeAsterisk,
            (_, true) => Token::ExclamationMarkDoubleTildeAsterisk,
        };
        if negated {
            dropped.extend(before.map(|before| solid[before]));
        }
        if follows == Keyword::SOME {
            tokens[solid[at + 1]].token = Token::make_keyword("ANY");
        }
    }
    super::drop_at(tokens, dropped);
}
