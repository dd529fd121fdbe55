//! Forms that the parser does not know, written in others that mean the same.

use std::ops::Range;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use super::positions;
use crate::error::SqlError;

/// Makes one literal of texts on several lines: only a new line goes between them.
pub(super) fn join_texts(tokens: &mut Vec<TokenWithSpan>) {
    let (mut place, mut dropped) = (0, Vec::new());
    while place < tokens.len() {
        let mut end = place;
        while let Some((next, more)) = text_on_another_line(tokens, end) {
            if let Token::SingleQuotedString(text) = &mut tokens[place].token {
                text.push_str(&more);
            }
            dropped.extend(end + 1..=next);
            end = next;
        }
        place = end + 1;
    }
    super::drop_at(tokens, dropped);
}

/// The text that goes on with one, and its place.
fn text_on_another_line(tokens: &[TokenWithSpan], place: usize) -> Option<(usize, String)> {
    if !matches!(tokens[place].token, Token::SingleQuotedString(_)) {
        return None;
    }
    let mut has_line = false;
    for (next, token) in tokens.iter().enumerate().skip(place + 1) {
        match &token.token {
            Token::Whitespace(space) => {
                has_line |= matches!(space, Whitespace::Newline | Whitespace::SingleLineComment { .. });
            }
            Token::SingleQuotedString(more) if has_line => return Some((next, more.clone())),
            _ => return None,
        }
    }
    None
}

/// Reads `U&'…' UESCAPE '!'`: the characters behind another escape than the backslash, which the tokenizer knows alone.
///
/// # Errors
/// When there are backslashes, which the tokenizer has read as escapes.
pub(super) fn unescape_texts(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let mut dropped = Vec::new();
    for place in 0..tokens.len() {
        let Token::UnicodeStringLiteral(text) = &tokens[place].token else { continue };
        let solid = |token: &&(usize, &TokenWithSpan)| !matches!(token.1.token, Token::Whitespace(_));
        let mut behind = tokens.iter().enumerate().skip(place + 1).filter(|token| solid(&token));
        let is_escape = behind.next().is_some_and(|(_, token)| {
            matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case("uescape"))
        });
        if let (true, Some((last, escape))) = (is_escape, behind.next())
            && let Token::SingleQuotedString(escape) = &escape.token
            && let Some(read) = unescaped(text, escape)
        {
            if !is_as_written(text, tokens[place].span) {
                let refused = "a text in several lines or with backslashes before UESCAPE";
                return Err(positions::at(SqlError::unsupported(refused), tokens[place].span));
            }
            tokens[place].token = Token::UnicodeStringLiteral(read);
            dropped.extend(place + 1..=last);
        }
    }
    super::drop_at(tokens, dropped);
    Ok(())
}

/// Whether the tokenizer has read a text `U&'…'` as it is written, but for quotes.
fn is_as_written(text: &str, span: Span) -> bool {
    let quotes = text.matches('\'').count();
    let written = span.end.column.saturating_sub(span.start.column);
    span.start.line == span.end.line && written == (text.chars().count() + quotes + "U&''".len()) as u64
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
    let parted = |token: &TokenWithSpan| {
        let Token::CustomBinaryOperator(written) = &token.token else { return None };
        // The first character is the operator, whatever it is.
        let plain = &written[..written.trim_end_matches(['+', '-']).len().max(1)];
        if plain.len() == written.len() || written.contains(|character| OWN.contains(character)) {
            return None;
        }
        let mut parted = Tokenizer::new(&PostgreSqlDialect {}, plain).tokenize().ok()?;
        let signs = written[plain.len()..].chars();
        parted.extend(signs.map(|sign| if sign == '-' { Token::Minus } else { Token::Plus }));
        Some(parted)
    };
    let found = tokens.iter().enumerate();
    let found = found.filter_map(|(place, token)| Some(in_place_of(place, token, parted(token)?)));
    let found = found.collect();
    super::replace(tokens, found);
}

/// Others for the token at a place.
fn in_place_of(
    place: usize,
    token: &TokenWithSpan,
    others: Vec<Token>,
) -> (Range<usize>, Vec<TokenWithSpan>) {
    let others = others.into_iter().map(|other| TokenWithSpan { token: other, span: token.span });
    (place..place + 1, others.collect())
}

/// Whether a word is one that PostgreSQL takes for `IS NULL` or `IS NOT NULL`.
pub(super) fn is_null_test(word: &Word) -> bool {
    let is = |known: &str| word.value.eq_ignore_ascii_case(known);
    word.quote_style.is_none() && (is("isnull") || is("notnull"))
}

/// Writes `ISNULL` and `NOTNULL` as `IS NULL` and `IS NOT NULL`, and `integer ARRAY` as `integer[]`.
pub(super) fn spell_suffixes(tokens: &mut Vec<TokenWithSpan>) {
    let mut solid = super::solid(tokens).into_iter().peekable();
    let (mut before, mut spelled) = (None, Vec::new());
    while let Some(place) = solid.next() {
        let token = &tokens[place].token;
        let after = solid.peek().map(|next| &tokens[*next].token);
        let suffix = suffix(before.as_ref(), token, after);
        before = Some(suffix.last().unwrap_or(token).clone());
        if !suffix.is_empty() {
            spelled.push(in_place_of(place, &tokens[place], suffix));
        }
    }
    super::replace(tokens, spelled);
}

/// What is written for a word between two others, if it is not itself.
fn suffix(before: Option<&Token>, token: &Token, after: Option<&Token>) -> Vec<Token> {
    let Token::Word(word) = token else { return Vec::new() };
    let is_name = match before {
        Some(Token::Word(word)) => word.keyword == Keyword::AS && word.quote_style.is_none(),
        Some(Token::Period) | None => true,
        _ => false,
    };
    if is_null_test(word) && !is_name && after != Some(&Token::LParen) {
        let words: &[&str] = match word.value.eq_ignore_ascii_case("isnull") {
            true => &["IS", "NULL"],
            false => &["IS", "NOT", "NULL"],
        };
        return words.iter().map(|word| Token::make_keyword(word)).collect();
    }
    let is_operand = match before {
        Some(Token::Word(word)) => {
            word.quote_style.is_some() || !RESERVED_FOR_COLUMN_ALIAS.contains(&word.keyword)
        }
        Some(Token::RParen) => true,
        _ => false,
    };
    let is_array = word.keyword == Keyword::ARRAY && word.quote_style.is_none();
    if is_array && is_operand && !matches!(after, Some(Token::LBracket | Token::LParen)) {
        return vec![Token::LBracket, Token::RBracket];
    }
    Vec::new()
}

/// Writes the operators for `LIKE` and `ILIKE` before `ANY`, `SOME` and `ALL`.
pub(super) fn spell_like(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |place: Option<&usize>, tokens: &[TokenWithSpan]| {
        place.map_or(Keyword::NoKeyword, |at| super::keyword(&tokens[*at].token))
    };
    let solid = super::solid(tokens);
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
