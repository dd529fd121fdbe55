//! Patterns: `LIKE` and regular expressions.
//!
//! Regular expressions have the syntax of the crate `regex`, which is PostgreSQL's but for references back and looking around. Of
//! alternatives the first that matches is taken, where PostgreSQL takes the longest.
//! Neither kind of pattern takes more than linear time in the text for each character of the pattern.

use std::cell::RefCell;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use super::{BinaryOperator, arithmetic::unexpected};
use crate::error::{SqlError, SqlState};
use crate::types::Datum;
use crate::types::functions::work_of_pattern;

/// Bytes that a compiled regular expression may have.
const REGEX_SIZE_MAX: usize = 1 << 20;

/// Most regular expressions that a thread keeps. A statement with more of them compiles them again for each row.
const PATTERNS_MAX: usize = 64;

thread_local! {
    /// The regular expressions that were used last, which a statement uses for all of its rows.
    static KEPT: RefCell<KeptPatterns> = const { RefCell::new(KeptPatterns::new()) };
}

/// A text on the left, a pattern on the right.
pub(super) fn evaluate(operator: BinaryOperator, left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    use BinaryOperator::*;
    let (Datum::Text(text), Datum::Text(pattern)) = (left, right) else {
        return Err(unexpected(operator.symbol()));
    };
    let matched = match operator {
        Like | NotLike => like(text, pattern, Some('\\'))?,
        ILike | NotILike => like(&fold(text), &fold(pattern), Some('\\'))?,
        RegexMatch | RegexNotMatch => regex(text, pattern, false)?,
        _ => regex(text, pattern, true)?,
    };
    let negated = matches!(operator, NotLike | NotILike | RegexNotMatch | RegexNotMatchInsensitive);
    Ok(Datum::Bool(matched != negated))
}

/// Lower case character by character, so that a text keeps its number of characters.
pub(crate) fn fold(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// The lower case of a character if it is one character.
pub(crate) fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => character,
    }
}

/// The upper case of a character if it is one character.
pub(crate) fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => character,
    }
}

/// Whether the text matches a pattern of `LIKE`, with an escape other than the backslash, or none. An error (22025) if the pattern
/// ends with the escape.
pub fn like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, SqlError> {
    let mut pieces = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            _ if Some(character) == escape => characters.next().map_or(Piece::Nothing, Piece::Exactly),
            '%' => Piece::Any,
            '_' => Piece::One,
            _ => Piece::Exactly(character),
        });
    }
    matches(text, &pieces)
        .ok_or_else(|| SqlError::new(SqlState(*b"22025"), "LIKE pattern must not end with escape character"))
}

#[derive(Clone, Copy)]
enum Piece {
    Exactly(char),
    One,
    Any,
    /// An escape at the end.
    Nothing,
}

/// Goes back to the last `%` only: what an earlier one matched need not change for a later one to match. None if a character meets
/// the escape at the end; nobody notices it before, as in PostgreSQL.
fn matches(text: &str, pieces: &[Piece]) -> Option<bool> {
    let mut rest = text.chars();
    let mut at = 0;
    let mut again = None;
    loop {
        let here = rest.clone();
        match (pieces.get(at), rest.next()) {
            (Some(Piece::Any), _) => {
                at += 1;
                rest = here;
                again = Some((at, rest.clone()));
            }
            (Some(Piece::One), Some(_)) => at += 1,
            (Some(Piece::Exactly(wanted)), Some(found)) if *wanted == found => at += 1,
            (Some(Piece::Nothing), Some(_)) => return None,
            (None, None) => return Some(true),
            _ => {
                let Some((piece, from)) = &mut again else { return Some(false) };
                if from.next().is_none() {
                    return Some(false);
                }
                at = *piece;
                rest = from.clone();
            }
        }
    }
}

/// How a regular expression is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RegexOptions {
    /// Upper and lower case are the same.
    pub insensitive: bool,
    /// `^` and `$` stand for the ends of lines too, and `.` does not match the end of a line.
    pub by_line: bool,
    /// Blanks and comments in the pattern mean nothing.
    pub expanded: bool,
    /// The pattern is a plain text.
    pub literal: bool,
}

/// Regular expressions that a thread keeps from one row, and one run, to the next.
struct KeptPatterns {
    /// The last one that was used is at the end.
    patterns: Vec<KeptPattern>,
    /// The run that is under way.
    run: u64,
    /// The work of compiling since it was taken.
    work: u64,
}

struct KeptPattern {
    options: RegexOptions,
    text: String,
    regex: Rc<Regex>,
    /// The last run that used it.
    run: u64,
}

impl KeptPatterns {
    const fn new() -> KeptPatterns {
        KeptPatterns { patterns: Vec::new(), run: 0, work: 0 }
    }

    fn get(&mut self, pattern: &str, options: RegexOptions) -> Result<Rc<Regex>, SqlError> {
        let is_it = |kept: &KeptPattern| kept.options == options && kept.text == pattern;
        let mut known = match self.patterns.iter().rposition(is_it) {
            Some(place) => self.patterns.remove(place),
            None => {
                let regex = Rc::new(compiled(pattern, options)?);
                // None of this run's own.
                KeptPattern { options, text: pattern.to_owned(), regex, run: self.run.wrapping_sub(1) }
            }
        };
        // What an earlier run has compiled costs the same: otherwise replicas would count differently.
        if known.run != self.run {
            known.run = self.run;
            self.work = self.work.saturating_add(work_of_pattern(pattern));
        }
        if self.patterns.len() == PATTERNS_MAX {
            self.patterns.remove(0);
        }
        let regex = Rc::clone(&known.regex);
        self.patterns.push(known);
        Ok(regex)
    }
}

/// Says that another run begins on this thread.
pub fn begin_run() {
    KEPT.with_borrow_mut(|kept| (kept.run, kept.work) = (kept.run.wrapping_add(1), 0));
}

/// The [work](crate::execute::WORK_MAX) of compiling regular expressions since the run began, or since this was asked last.
pub fn take_work_of_compiling() -> u64 {
    KEPT.with_borrow_mut(|kept| std::mem::take(&mut kept.work))
}

/// The regular expression that a pattern is. An error (2201B) if it is none.
pub(crate) fn compile(pattern: &str, options: RegexOptions) -> Result<Rc<Regex>, SqlError> {
    KEPT.with_borrow_mut(|kept| kept.get(pattern, options))
}

fn compiled(pattern: &str, options: RegexOptions) -> Result<Regex, SqlError> {
    let pattern = if options.literal { regex::escape(pattern) } else { translated(pattern) };
    RegexBuilder::new(&pattern)
        .case_insensitive(options.insensitive)
        .dot_matches_new_line(!options.by_line)
        .multi_line(options.by_line)
        .ignore_whitespace(options.expanded)
        .size_limit(REGEX_SIZE_MAX)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or("").trim_start_matches("error: ");
            SqlError::new(SqlState(*b"2201B"), format!("invalid regular expression: {reason}"))
        })
}

/// The pattern with the escapes that PostgreSQL names in another way.
fn translated(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            translated.push(character);
            continue;
        }
        match characters.next() {
            Some('y') => translated.push_str("\\b"),
            Some('Y') => translated.push_str("\\B"),
            Some('m') => translated.push_str("\\b{start}"),
            Some('M') => translated.push_str("\\b{end}"),
            Some('Z') => translated.push_str("\\z"),
            other => {
                translated.push(character);
                translated.extend(other);
            }
        }
    }
    translated
}

fn regex(text: &str, pattern: &str, insensitive: bool) -> Result<bool, SqlError> {
    Ok(compile(pattern, RegexOptions { insensitive, ..RegexOptions::default() })?.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work_of(patterns: impl IntoIterator<Item = u32>) -> u64 {
        for number in patterns {
            compile(&format!("a{number}"), RegexOptions::default()).unwrap();
        }
        take_work_of_compiling()
    }

    #[test]
    fn each_run_pays_for_what_it_uses_whatever_is_kept() {
        begin_run();
        let (one, again) = (work_of([10]), work_of([10, 10]));
        assert!(one > 0 && again == 0);
        begin_run();
        assert_eq!(work_of([10]), one);
        assert_eq!(work_of(10..74), 63 * one);
        assert_eq!(work_of(10..74), 0);
        // One more than are kept, in turn.
        assert_eq!(work_of(10..75), one);
        assert_eq!(work_of(10..75), 65 * one);
    }

    #[test]
    fn options_make_another_expression() {
        begin_run();
        compile("a", RegexOptions::default()).unwrap();
        let one = take_work_of_compiling();
        compile("a", RegexOptions { insensitive: true, ..RegexOptions::default() }).unwrap();
        assert_eq!(take_work_of_compiling(), one);
    }
}
