//! Numbers in the patterns of `to_char` and `to_number`.

use super::*;
use crate::types::Numeric;

/// Digits that a number of a type has surely.
pub(super) const FLOAT8_DIGITS: usize = 15;
const FLOAT4_DIGITS: usize = 6;

/// What came later. It is behind all others, so that those keep their numbers.
pub(super) const LATER: &[Entry] = &[strict("to_char", &[Kind::Of(SqlType::FLOAT4), TEXT], TEXT, |a, _| {
    float_to_char(float(a, 0)?, FLOAT4_DIGITS, text(a, 1)?)
})];

/// A piece of a pattern.
#[derive(Clone, PartialEq, Debug)]
enum Piece {
    /// A digit; a leading or trailing zero is shown if `forced`.
    Digit {
        forced: bool,
    },
    /// `.` or `D`
    Point,
    /// `,` or `G`
    Group,
    /// `S`
    Sign,
    /// `MI`
    Minus,
    /// `SG`
    PlusOrMinus,
    /// `PR`
    Brackets,
    /// `TH` or `th`
    Ordinal(&'static str),
    Literal(String),
}

/// A pattern taken apart.
struct Pattern {
    pieces: Vec<Piece>,
    /// The point and those that are about signs, each once.
    marks: Vec<Piece>,
    /// Without blanks and zeros that only fill.
    fills: bool,
    /// Digits before and behind the point.
    whole: usize,
    fraction: usize,
}

/// Names of pieces, longer ones first.
const NAMES: [(&str, Piece); 20] = [
    ("FM", Piece::Literal(String::new())),
    ("fm", Piece::Literal(String::new())),
    ("SG", Piece::PlusOrMinus),
    ("sg", Piece::PlusOrMinus),
    ("MI", Piece::Minus),
    ("mi", Piece::Minus),
    ("PR", Piece::Brackets),
    ("pr", Piece::Brackets),
    ("TH", Piece::Ordinal("TH")),
    ("th", Piece::Ordinal("th")),
    ("9", Piece::Digit { forced: false }),
    ("0", Piece::Digit { forced: true }),
    (".", Piece::Point),
    ("D", Piece::Point),
    (",", Piece::Group),
    ("G", Piece::Group),
    ("S", Piece::Sign),
    ("s", Piece::Sign),
    ("d", Piece::Point),
    ("g", Piece::Group),
];

impl Pattern {
    /// Takes apart the pattern of a number that is shown or, if not, read.
    fn parse(text: &str, shows: bool) -> Result<Pattern, SqlError> {
        let mut pattern =
            Pattern { pieces: Vec::new(), marks: Vec::new(), fills: true, whole: 0, fraction: 0 };
        let names = NAMES;
        let mut rest = text;
        let mut behind = false;
        while let Some(first) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let (literal, after) = quoted.split_once('"').unwrap_or((quoted, ""));
                pattern.pieces.push(Piece::Literal(literal.to_owned()));
                rest = after;
                continue;
            }
            for unsupported in ["EEEE", "RN", "rn", "V", "PL", "L", "B"] {
                if rest.starts_with(unsupported) && (shows || unsupported != "L") {
                    return Err(SqlError::unsupported(format!("{unsupported} in the pattern of a number")));
                }
            }
            let Some((name, piece)) = names.iter().find(|(name, _)| rest.starts_with(*name)) else {
                pattern.pieces.push(Piece::Literal(first.to_string()));
                rest = &rest[first.len_utf8()..];
                continue;
            };
            rest = &rest[name.len()..];
            pattern.refuse_after(piece)?;
            match piece {
                _ if name.eq_ignore_ascii_case("FM") => {
                    pattern.fills = false;
                    continue;
                }
                Piece::Point if behind => {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "multiple decimal points"));
                }
                Piece::Point => {
                    behind = true;
                    pattern.marks.push(Piece::Point);
                }
                Piece::Digit { .. } if behind => pattern.fraction += 1,
                Piece::Digit { .. } => pattern.whole += 1,
                Piece::Sign | Piece::Minus | Piece::PlusOrMinus | Piece::Brackets if !pattern.has(piece) => {
                    pattern.marks.push(piece.clone());
                }
                _ => {}
            }
            pattern.pieces.push(piece.clone());
        }
        Ok(pattern)
    }

    /// Fails for a piece that cannot come after those before.
    fn refuse_after(&self, piece: &Piece) -> Result<(), SqlError> {
        let has = |wanted: &Piece| self.has(wanted);
        let (sign, brackets) = (has(&Piece::Sign), has(&Piece::Brackets));
        let is_apart = has(&Piece::Minus) || has(&Piece::PlusOrMinus);
        let message = match piece {
            Piece::Digit { forced: false } if brackets => "\"9\" must be ahead of \"PR\"",
            Piece::Digit { forced: true } if brackets => "\"0\" must be ahead of \"PR\"",
            Piece::Sign if sign => "cannot use \"S\" twice",
            Piece::Sign if is_apart || brackets => {
                "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"
            }
            Piece::Minus if sign => "cannot use \"S\" and \"MI\" together",
            Piece::PlusOrMinus if sign => "cannot use \"S\" and \"SG\" together",
            Piece::Brackets if sign || is_apart => {
                "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"
            }
            _ => return Ok(()),
        };
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
    }

    fn has(&self, wanted: &Piece) -> bool {
        self.marks.contains(wanted)
    }
}

/// A number as its digits are written for a pattern.
pub(super) struct Written {
    negative: bool,
    /// Its digits, and the point before those of the fraction if there are any.
    digits: String,
    /// How many places the pattern has left behind the point: a float has no more digits than are exact.
    fraction: usize,
}

impl Written {
    fn of(text: String, fraction: usize) -> Written {
        match text.strip_prefix('-') {
            Some(digits) => Written { negative: true, digits: digits.to_owned(), fraction },
            None => Written { negative: false, digits: text, fraction },
        }
    }

    /// How many characters there are before the point.
    fn whole(&self) -> usize {
        self.digits.find('.').unwrap_or(self.digits.len())
    }

    /// The number, or `#` for each digit if it has too many before the point.
    fn fitted(self, pattern: &Pattern) -> Written {
        if self.whole() <= pattern.whole {
            return self;
        }
        // The point is there even if nothing follows, as PostgreSQL has it.
        let digits = format!("{}.{}", "#".repeat(pattern.whole), "#".repeat(self.fraction));
        Written { digits, ..self }
    }
}

/// The text of a number after a pattern.
pub(super) fn to_char(value: &Numeric, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = Pattern::parse(pattern, true)?;
    let text = value.round(pattern.fraction as i32)?.to_string();
    shown_as(&pattern, Written::of(text, pattern.fraction))
}

/// The text of a float after a pattern: rounded as it is in binary, and with no more digits than its type is sure to have.
pub(super) fn float_to_char(value: f64, digits_max: usize, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = Pattern::parse(pattern, true)?;
    let text = |fraction: usize| match value {
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value.is_infinite() => if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned(),
        _ => format!("{value:.fraction$}"),
    };
    let whole = text(0).trim_start_matches('-').len();
    let fraction = pattern.fraction.min(digits_max.saturating_sub(whole));
    shown_as(&pattern, Written::of(text(fraction), fraction))
}

fn shown_as(pattern: &Pattern, written: Written) -> Result<Datum, SqlError> {
    let written = written.fitted(pattern);
    let mut writer = Writer::new(pattern, &written);
    for piece in &pattern.pieces {
        writer.piece(piece)?;
    }
    if let Some(end) = writer.ends {
        writer.out.truncate(end);
    }
    Ok(Datum::Text(writer.out))
}

/// Which sign a number gets where, besides one that a piece of the pattern asks for.
#[derive(Clone, Copy, PartialEq)]
enum Signed {
    /// `S` before the digits: right before the first that is shown.
    Before,
    /// `S` behind the digits.
    Behind,
    /// `PR`
    Brackets,
    /// None is asked for: a blank or `-` before the first digit.
    Plain,
}

/// Writes a number after a pattern, digit by digit as PostgreSQL does: what it does in odd cases follows from the steps, and from nothing
/// that could be said of them.
struct Writer<'p> {
    pattern: &'p Pattern,
    written: &'p Written,
    digits: Vec<char>,
    out: String,
    signed: Signed,
    /// Whether the sign is there, or none is to come.
    has_sign: bool,
    /// How many places of the pattern come before the first digit.
    blanks: usize,
    /// The place of the first `0` before the point.
    zeros_from: Option<usize>,
    /// The last digit that is shown where only what is needed is.
    last: Option<usize>,
    /// Places of digits, but for the last: less than none if there are none.
    places: isize,
    /// The place in the pattern, and the digit that comes next.
    place: usize,
    digit: usize,
    /// Whether the piece before was shown as a digit.
    begun: bool,
    /// How much is shown at all.
    ends: Option<usize>,
}

impl<'p> Writer<'p> {
    fn new(pattern: &'p Pattern, written: &'p Written) -> Writer<'p> {
        let pieces = &pattern.pieces;
        let digits: Vec<char> = written.digits.chars().collect();
        let blanks = pattern.whole.saturating_sub(written.whole());
        let is_digit = |piece: &Piece| matches!(piece, Piece::Digit { .. });
        let point = pieces.iter().position(|piece| *piece == Piece::Point);
        let before_point = &pieces[..point.unwrap_or(pieces.len())];
        let sign = pieces.iter().position(|piece| *piece == Piece::Sign);
        let signed = match sign {
            // One that all digits before the point come before is behind.
            Some(sign) if !before_point[sign.min(before_point.len())..].iter().any(is_digit) => {
                Signed::Behind
            }
            Some(_) => Signed::Before,
            None if pattern.has(&Piece::Brackets) && (written.negative || pattern.fills) => Signed::Brackets,
            None => Signed::Plain,
        };
        let is_apart = pattern.has(&Piece::Minus) || pattern.has(&Piece::PlusOrMinus);
        let needs_none = !written.negative && !pattern.fills && sign.is_none();
        let has_sign = is_apart || needs_none;
        let all_digits = || pieces.iter().filter(|piece| is_digit(piece));
        let forced = |piece: &&Piece| **piece == Piece::Digit { forced: true };
        let zeros_from = before_point.iter().filter(|piece| is_digit(piece)).position(|piece| forced(&piece));
        let zeros_until =
            all_digits().collect::<Vec<_>>().iter().rposition(forced).map_or(0, |last| last + 1);
        let last = match point {
            Some(_) if !pattern.fills => last_needed(&digits, zeros_until.checked_sub(blanks)),
            _ => None,
        };
        let mut places = (pattern.whole + written.fraction) as isize - 1;
        if !has_sign && blanks == 0 {
            places += 1;
        }
        let out = String::new();
        Writer {
            pattern,
            written,
            digits,
            out,
            signed,
            has_sign,
            blanks,
            zeros_from,
            last,
            places,
            place: 0,
            digit: 0,
            begun: false,
            ends: None,
        }
    }

    /// Whether the digit that comes next is the zero before a point that is not shown.
    fn is_bare_zero(&self) -> bool {
        self.zeros_from.is_none()
            && self.digit == 0
            && self.digits.first() == Some(&'0')
            && self.written.fraction > 0
    }

    fn is_last_the_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits.get(last) == Some(&'.'))
    }

    fn sign(&mut self) {
        let is_due = self.place >= self.blanks || self.zeros_from == Some(self.place);
        if self.has_sign || !is_due || (self.is_bare_zero() && !self.is_last_the_point()) {
            return;
        }
        let negative = self.written.negative;
        match self.signed {
            Signed::Behind => return,
            Signed::Before => self.out.push(if negative { '-' } else { '+' }),
            Signed::Brackets => self.out.push(if negative { '<' } else { ' ' }),
            Signed::Plain if negative => self.out.push('-'),
            Signed::Plain if self.pattern.fills => self.out.push(' '),
            Signed::Plain => {}
        }
        self.has_sign = true;
    }

    fn digit_or_point(&mut self, forced: bool) {
        self.begun = false;
        self.sign();
        let is_zero = self.zeros_from.is_some_and(|from| from <= self.place);
        if self.place < self.blanks && !is_zero {
            self.blank();
        } else if self.place < self.blanks {
            self.out.push('0');
            self.begun = true;
        } else {
            self.next_digit(forced);
        }
        let place = self.place as isize;
        let has_point = self.pattern.has(&Piece::Point);
        let mut end = self.places + isize::from(self.blanks > 0) + isize::from(has_point);
        if self.last == Some(self.digit) {
            end = place;
        }
        if place + 1 == end {
            match self.signed {
                Signed::Brackets if self.has_sign => {
                    self.out.push(if self.written.negative { '>' } else { ' ' });
                }
                Signed::Behind => self.out.push(if self.written.negative { '-' } else { '+' }),
                _ => {}
            }
        }
        self.place += 1;
    }

    fn next_digit(&mut self, forced: bool) {
        match self.digits.get(self.digit) {
            Some('.') => {
                if !self.is_last_the_point() || !self.pattern.fills {
                    self.out.push('.');
                }
            }
            _ if self.last.is_some_and(|last| self.digit > last) && !forced => {}
            _ if self.is_bare_zero() => {
                if self.pattern.fills {
                    self.out.push(' ');
                } else if self.is_last_the_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(*digit);
                self.begun = true;
            }
            // Behind its last digit nothing of the pattern is shown, which PostgreSQL's end of a text there brings about.
            None => {
                self.ends.get_or_insert(self.out.len());
            }
        }
        if self.digit < self.digits.len() {
            self.digit += 1;
        }
    }

    fn blank(&mut self) {
        if self.pattern.fills {
            self.out.push(' ');
        }
    }

    fn piece(&mut self, piece: &Piece) -> Result<(), SqlError> {
        let negative = self.written.negative;
        match piece {
            Piece::Digit { forced } => self.digit_or_point(*forced),
            Piece::Point => self.digit_or_point(false),
            Piece::Group if self.begun => self.out.push(','),
            Piece::Group => self.blank(),
            Piece::PlusOrMinus => self.out.push(if negative { '-' } else { '+' }),
            Piece::Minus if negative => self.out.push('-'),
            Piece::Minus => self.blank(),
            Piece::Ordinal(_) if negative || self.pattern.has(&Piece::Point) => {}
            Piece::Ordinal(_) if self.written.digits.starts_with('#') => {}
            Piece::Ordinal(suffix) => {
                let digits = self.written.digits.as_str();
                if !digits.ends_with(|last: char| last.is_ascii_digit()) {
                    let message = format!("\"{digits}\" is not a number");
                    return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
                }
                let ending = ordinal(digits);
                self.out.push_str(&if *suffix == "TH" { ending.to_uppercase() } else { ending.to_owned() });
            }
            Piece::Sign | Piece::Brackets => {}
            Piece::Literal(text) => self.out.push_str(text),
        }
        Ok(())
    }
}

/// The last digit behind the point that is no zero, or the point if there is none, but at least as many digits as the pattern forces.
fn last_needed(digits: &[char], forced: Option<usize>) -> Option<usize> {
    let point = digits.iter().position(|digit| *digit == '.')?;
    let last = digits.iter().rposition(|digit| *digit != '0').unwrap_or(point).max(point);
    let forced = forced.filter(|forced| *forced > 0).map_or(0, |forced| forced.min(digits.len() - 1));
    Some(last.max(forced))
}

/// The ending of an ordinal number in English.
pub(crate) fn ordinal(digits: &str) -> &'static str {
    let teen = digits.len() > 1 && digits.as_bytes()[digits.len() - 2] == b'1';
    match digits.as_bytes().last() {
        Some(b'1') if !teen => "st",
        Some(b'2') if !teen => "nd",
        Some(b'3') if !teen => "rd",
        _ => "th",
    }
}

/// The number that a text shows after a pattern.
pub(super) fn to_number(value: &str, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = Pattern::parse(pattern, false)?;
    let (mut digits, mut negative, mut behind) = (String::new(), false, false);
    let (mut whole, mut fraction) = (0, 0);
    for character in value.chars() {
        match character {
            '0'..='9' if !behind && whole < pattern.whole => {
                digits.push(character);
                whole += 1;
            }
            '0'..='9' if behind && fraction < pattern.fraction => {
                digits.push(character);
                fraction += 1;
            }
            '0'..='9' => break,
            '.' if behind || !pattern.has(&Piece::Point) => break,
            '.' => {
                behind = true;
                digits.push('.');
            }
            '-' => negative = true,
            '<' => negative |= pattern.has(&Piece::Brackets),
            _ => {}
        }
    }
    let text = format!("{}{digits}", if negative { "-" } else { "" });
    Numeric::parse(&text).map(Datum::Numeric)
}
