//! Functions of regular expressions, and patterns of `LIKE` and `SIMILAR TO` made into others.

use std::rc::Rc;

use regex::{Captures, Match, Regex};

use super::arrays::array_of;
use super::*;
use crate::types::operators::{RegexOptions, compile_regex};

const TEXTS: Kind = Kind::Of(SqlType::TEXT.array_of());

pub(super) const TABLE: &[Entry] = &[
    strict("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, |a, _| replace(a, None, 1, Some(1))),
    strict("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, |a, _| replace(a, Some(3), 1, Some(1))),
    strict("regexp_replace", &[TEXT, TEXT, TEXT, INT4], TEXT, |a, _| replace(a, None, start(a, 3)?, Some(1))),
    strict("regexp_replace", &[TEXT, TEXT, TEXT, INT4, INT4], TEXT, |a, _| {
        replace(a, None, start(a, 3)?, which(a, 4)?)
    }),
    strict("regexp_replace", &[TEXT, TEXT, TEXT, INT4, INT4, TEXT], TEXT, |a, _| {
        replace(a, Some(5), start(a, 3)?, which(a, 4)?)
    }),
    strict("regexp_match", &[TEXT, TEXT], TEXTS, |a, _| first_match(a)),
    strict("regexp_match", &[TEXT, TEXT, TEXT], TEXTS, |a, _| first_match(a)),
    strict("regexp_split_to_array", &[TEXT, TEXT], TEXTS, |a, _| split(a)),
    strict("regexp_split_to_array", &[TEXT, TEXT, TEXT], TEXTS, |a, _| split(a)),
    strict("regexp_like", &[TEXT, TEXT], BOOL, |a, _| like(a)),
    strict("regexp_like", &[TEXT, TEXT, TEXT], BOOL, |a, _| like(a)),
    strict("regexp_count", &[TEXT, TEXT], INT4, |a, _| count(a, 1)),
    strict("regexp_count", &[TEXT, TEXT, INT4], INT4, |a, _| count(a, start(a, 2)?)),
    strict("regexp_substr", &[TEXT, TEXT], TEXT, |a, _| {
        let regex = compile_regex(text(a, 1)?, RegexOptions::default())?;
        Ok(regex.find(text(a, 0)?).map_or(Datum::Null, |found| Datum::Text(found.as_str().to_owned())))
    }),
    // `SUBSTRING(value FROM pattern)`: what is in the first parentheses, if there are any.
    strict("substring", &[TEXT, TEXT], TEXT, |a, _| {
        let regex = compile_regex(text(a, 1)?, RegexOptions::default())?;
        // Without a value if these took no part.
        let part = usize::from(regex.captures_len() > 1);
        let found = regex.captures(text(a, 0)?).and_then(|found| found.get(part));
        Ok(found.map_or(Datum::Null, |found| Datum::Text(found.as_str().to_owned())))
    }),
    // `LIKE pattern ESCAPE escape` has the pattern `like_escape(pattern, escape)`.
    strict("like_escape", &[TEXT, TEXT], TEXT, |a, _| {
        like_escape(text(a, 0)?, escape_of(text(a, 1)?)?).map(Datum::Text)
    }),
    // `SIMILAR TO pattern` is `~ similar_to_escape(pattern)`.
    strict("similar_to_escape", &[TEXT], TEXT, |a, _| Ok(Datum::Text(similar_to(text(a, 0)?, Some('\\'))))),
    strict("similar_to_escape", &[TEXT, TEXT], TEXT, |a, _| {
        Ok(Datum::Text(similar_to(text(a, 0)?, escape_of(text(a, 1)?)?)))
    }),
];

/// All matches of a text, each an array of texts, as elements of an array of their forms as text: `regexp_matches`.
pub(super) fn all_matches(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (regex, all) = regex_of(arguments, (arguments.len() > 2).then_some(2))?;
    let found = regex.captures_iter(text(arguments, 0)?).take(if all { usize::MAX } else { 1 });
    array_of(found.map(|found| captured(&regex, &found)))
}

/// The regular expression that is the second argument, and whether its options, which are another, ask for all matches.
fn regex_of(arguments: &[Datum], options: Option<usize>) -> Result<(Rc<Regex>, bool), SqlError> {
    let (mut read, mut all) = (RegexOptions::default(), false);
    let letters = options.map_or(Ok(""), |at| text(arguments, at))?;
    for letter in letters.chars() {
        match letter {
            'g' => all = true,
            'i' => read.insensitive = true,
            'c' => read.insensitive = false,
            'm' | 'n' => read.by_line = true,
            's' => read.by_line = false,
            'x' => read.expanded = true,
            't' => read.expanded = false,
            'q' => read.literal = true,
            'e' => {}
            other => {
                return Err(parameter_error(format!("invalid regular expression option: \"{other}\"")));
            }
        }
    }
    Ok((compile_regex(text(arguments, 1)?, read)?, all))
}

/// From which character on, the first being 1.
fn start(arguments: &[Datum], at: usize) -> Result<usize, SqlError> {
    let start = int(arguments, at)?;
    usize::try_from(start)
        .ok()
        .filter(|start| *start > 0)
        .ok_or_else(|| parameter_error(format!("invalid value for parameter \"start\": {start}")))
}

/// Which match; none for all of them.
fn which(arguments: &[Datum], at: usize) -> Result<Option<usize>, SqlError> {
    let which = int(arguments, at)?;
    let which = usize::try_from(which)
        .map_err(|_| parameter_error(format!("invalid value for parameter \"n\": {which}")))?;
    Ok((which > 0).then_some(which))
}

/// The byte of a character, the first being 1.
fn byte_of(value: &str, start: usize) -> usize {
    value.char_indices().nth(start - 1).map_or(value.len(), |(at, _)| at)
}

fn replace(
    arguments: &[Datum],
    options: Option<usize>,
    start: usize,
    which: Option<usize>,
) -> Result<Datum, SqlError> {
    let (regex, all) = regex_of(arguments, options)?;
    let (value, replacement) = (text(arguments, 0)?, text(arguments, 2)?);
    // With a number given, `g` means nothing.
    let which = if all && arguments.len() == 4 { None } else { which };
    let (kept, rest) = value.split_at(byte_of(value, start));
    let mut result = kept.to_owned();
    let mut end = 0;
    for (number, found) in (1..).zip(regex.captures_iter(rest)) {
        if which.is_some_and(|which| number < which) {
            continue;
        }
        let Some(whole) = found.get(0) else { continue };
        result.push_str(&rest[end..whole.start()]);
        put_replacement(replacement, &found, &mut result)?;
        end = whole.end();
        if which.is_some() {
            break;
        }
    }
    result.push_str(&rest[end..]);
    Ok(Datum::Text(result))
}

/// The replacement, in which `\1` stands for what the first parentheses matched, and `\&` for all.
fn put_replacement(replacement: &str, found: &Captures<'_>, out: &mut String) -> Result<(), SqlError> {
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        let group = match characters.next() {
            Some('&') => 0,
            Some(digit @ '1'..='9') => digit as usize - '0' as usize,
            Some('\\') | None => {
                out.push('\\');
                continue;
            }
            Some(other) => {
                out.extend(['\\', other]);
                continue;
            }
        };
        let text = found.get(group).map_or("", |group| group.as_str());
        check_length(out.len() + text.len())?;
        out.push_str(text);
    }
    check_length(out.len())
}

/// What the parentheses of a match have matched; all of it if there are none.
fn captured(regex: &Regex, found: &Captures<'_>) -> Datum {
    let first = usize::from(regex.captures_len() > 1);
    let groups = (first..found.len())
        .map(|group| found.get(group).map_or(Datum::Null, |group| Datum::Text(group.as_str().to_owned())));
    Datum::Array(groups.collect())
}

fn first_match(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (regex, all) = regex_of(arguments, (arguments.len() > 2).then_some(2))?;
    if all {
        return Err(parameter_error("regexp_match() does not support the \"global\" option")
            .with_hint("Use the regexp_matches function instead."));
    }
    let found = regex.captures(text(arguments, 0)?);
    Ok(found.map_or(Datum::Null, |found| captured(&regex, &found)))
}

fn like(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (regex, all) = regex_of(arguments, (arguments.len() > 2).then_some(2))?;
    if all {
        return Err(parameter_error("regexp_like() does not support the \"global\" option"));
    }
    Ok(Datum::Bool(regex.is_match(text(arguments, 0)?)))
}

fn count(arguments: &[Datum], start: usize) -> Result<Datum, SqlError> {
    let (regex, _) = regex_of(arguments, None)?;
    let value = text(arguments, 0)?;
    Ok(Datum::Int(regex.find_iter(&value[byte_of(value, start)..]).count() as i64))
}

/// The pieces between matches. An empty match at the start or the end, or just behind another match, parts nothing.
pub(super) fn split(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (regex, all) = regex_of(arguments, (arguments.len() > 2).then_some(2))?;
    if all {
        return Err(parameter_error("regexp_split_to_array() does not support the \"global\" option"));
    }
    let value = text(arguments, 0)?;
    let (mut found, mut begin) = (regex.find_iter(value), Some(0));
    array_of(std::iter::from_fn(|| {
        let from = begin?;
        let parts =
            |found: &Match<'_>| !found.is_empty() || (found.start() != from && found.end() != value.len());
        let between = found.find(parts);
        begin = between.map(|between| between.end());
        let end = between.map_or(value.len(), |between| between.start());
        Some(Datum::Text(value[from..end].to_owned()))
    }))
}

fn escape_of(escape: &str) -> Result<Option<char>, SqlError> {
    let mut characters = escape.chars();
    match (characters.next(), characters.next()) {
        (escape, None) => Ok(escape),
        _ => Err(SqlError::new(SqlState(*b"22025"), "invalid escape string")
            .with_hint("Escape string must be empty or one character.")),
    }
}

/// The pattern with the backslash as its escape.
fn like_escape(pattern: &str, escape: Option<char>) -> Result<String, SqlError> {
    if escape == Some('\\') {
        return Ok(pattern.to_owned());
    }
    let mut escaped = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            escaped.push('\\');
            escaped.extend(characters.next());
        } else if character == '\\' {
            escaped.push_str("\\\\");
        } else {
            escaped.push(character);
        }
    }
    Ok(escaped)
}

/// A pattern of `SIMILAR TO` as a regular expression that matches the whole text.
fn similar_to(pattern: &str, escape: Option<char>) -> String {
    let mut regular = String::from("^(?:");
    let mut in_brackets = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => {
                if let Some(next) = characters.next() {
                    regular.push_str(&regex::escape(&next.to_string()));
                }
            }
            ']' if in_brackets => {
                in_brackets = false;
                regular.push(']');
            }
            '\\' => regular.push_str("\\\\"),
            _ if in_brackets => regular.push(character),
            '[' => {
                in_brackets = true;
                regular.push('[');
            }
            '%' => regular.push_str(".*"),
            '_' => regular.push('.'),
            '(' => regular.push_str("(?:"),
            '.' | '^' | '$' => regular.extend(['\\', character]),
            _ => regular.push(character),
        }
    }
    regular.push_str(")$");
    regular
}
