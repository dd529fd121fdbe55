//! Numbers in the patterns of `to_char` and `to_number`.

use super::*;
use crate::types::Numeric;

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
    /// Without blanks and zeros that only fill.
    fills: bool,
    /// Digits before and behind the point.
    whole: usize,
    fraction: usize,
}

/// Names of pieces, longer ones first.
const NAMES: [(&str, Piece); 15] = [
    ("FM", Piece::Literal(String::new())),
    ("SG", Piece::PlusOrMinus),
    ("MI", Piece::Minus),
    ("PR", Piece::Brackets),
    ("TH", Piece::Ordinal("TH")),
    ("th", Piece::Ordinal("th")),
    ("9", Piece::Digit { forced: false }),
    ("0", Piece::Digit { forced: true }),
    (".", Piece::Point),
    ("D", Piece::Point),
    (",", Piece::Group),
    ("G", Piece::Group),
    ("S", Piece::Sign),
    ("d", Piece::Point),
    ("g", Piece::Group),
];

impl Pattern {
    /// Takes apart the pattern of a number that is shown or, if not, read.
    fn parse(text: &str, shows: bool) -> Result<Pattern, SqlError> {
        let mut pattern = Pattern { pieces: Vec::new(), fills: true, whole: 0, fraction: 0 };
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
            match piece {
                _ if *name == "FM" => {
                    pattern.fills = false;
                    continue;
                }
                Piece::Point if behind => {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "multiple decimal points"));
                }
                Piece::Point => behind = true,
                Piece::Digit { .. } if behind => pattern.fraction += 1,
                Piece::Digit { .. } => pattern.whole += 1,
                _ => {}
            }
            pattern.pieces.push(piece.clone());
        }
        Ok(pattern)
    }

    fn has(&self, wanted: &Piece) -> bool {
        self.pieces.contains(wanted)
    }
}

/// The digits of a number for a pattern.
struct Digits {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Digits {
    /// Rounded to the digits of the pattern; all `#` if it has too many before the point.
    fn of(value: &Numeric, pattern: &Pattern) -> Result<Digits, SqlError> {
        let rounded = value.round(pattern.fraction as i32)?;
        let text = rounded.absolute().to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = whole.trim_start_matches('0');
        // The last digit before the point is a zero unless there are digits behind.
        let whole = if whole.is_empty() && !pattern.has(&Piece::Point) { "0" } else { whole };
        let negative = rounded.is_negative();
        if value.is_nan() || whole.len() > pattern.whole && whole != "0" {
            return Ok(Digits {
                negative: negative && !value.is_nan(),
                whole: "#".repeat(pattern.whole),
                fraction: "#".repeat(pattern.fraction),
            });
        }
        Ok(Digits { negative, whole: whole.to_owned(), fraction: fraction.to_owned() })
    }
}

/// The text of a number after a pattern.
pub(super) fn to_char(value: &Numeric, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = Pattern::parse(pattern, true)?;
    let digits = Digits::of(value, &pattern)?;
    let brackets = pattern.has(&Piece::Brackets);
    let has_sign =
        brackets || [Piece::Sign, Piece::Minus, Piece::PlusOrMinus].iter().any(|sign| pattern.has(sign));
    let sign_at = pattern.pieces.iter().position(|piece| *piece == Piece::Sign);
    let first_digit = pattern.pieces.iter().position(|piece| matches!(piece, Piece::Digit { .. }));
    let sign_leads = matches!((sign_at, first_digit), (Some(sign), Some(digit)) if sign < digit);
    // The sign that stands right before the number.
    let lead = match () {
        () if brackets => {
            if digits.negative {
                "<"
            } else if pattern.fills {
                " "
            } else {
                ""
            }
        }
        () if sign_leads => {
            if digits.negative {
                "-"
            } else {
                "+"
            }
        }
        () if has_sign => "",
        () if digits.negative => "-",
        () => {
            if pattern.fills {
                " "
            } else {
                ""
            }
        }
    };
    let mut writer = Writer { out: String::new(), lead: Some(lead), fills: pattern.fills };
    writer.pieces(&pattern, &digits, sign_leads);
    let mut out = writer.out;
    if brackets {
        out.push_str(if digits.negative {
            ">"
        } else if pattern.fills {
            " "
        } else {
            ""
        });
    }
    Ok(Datum::Text(out))
}

struct Writer<'l> {
    out: String,
    /// The sign, until the number begins.
    lead: Option<&'l str>,
    fills: bool,
}

impl Writer<'_> {
    fn begin(&mut self) {
        if let Some(lead) = self.lead.take() {
            self.out.push_str(lead);
        }
    }

    fn blank(&mut self) {
        if self.fills {
            self.out.push(' ');
        }
    }

    fn pieces(&mut self, pattern: &Pattern, digits: &Digits, sign_leads: bool) {
        let missing = pattern.whole.saturating_sub(digits.whole.len());
        let (mut whole, mut fraction, mut forced, mut behind) = (0usize, 0usize, false, false);
        let shown = self.shown_fraction(pattern, digits);
        let fraction_digits: Vec<char> = digits.fraction.chars().collect();
        // A zero of which no digit is shown otherwise has one before the point.
        let is_bare = !self.fills && shown == 0 && pattern.fraction > 0;
        for piece in &pattern.pieces {
            match piece {
                Piece::Digit { forced: one } if !behind => {
                    forced |= one;
                    match digits.whole.chars().nth(whole.wrapping_sub(missing)).filter(|_| whole >= missing) {
                        Some(digit) => {
                            self.begin();
                            self.out.push(digit);
                        }
                        None if forced || is_bare && whole + 1 == pattern.whole => {
                            self.begin();
                            self.out.push('0');
                        }
                        None => self.blank(),
                    }
                    whole += 1;
                }
                Piece::Digit { .. } => {
                    self.begin();
                    if fraction < shown {
                        self.out.push(fraction_digits.get(fraction).copied().unwrap_or('0'));
                    }
                    fraction += 1;
                }
                Piece::Point => {
                    self.begin();
                    behind = true;
                    self.out.push('.');
                }
                Piece::Group if self.lead.is_none() => self.out.push(','),
                Piece::Group => self.blank(),
                Piece::Sign if sign_leads => {}
                Piece::Sign | Piece::PlusOrMinus => self.out.push(if digits.negative { '-' } else { '+' }),
                Piece::Minus if digits.negative => self.out.push('-'),
                Piece::Minus => self.blank(),
                Piece::Ordinal(suffix) if !digits.negative && pattern.fraction == 0 => {
                    let ending = ordinal(&digits.whole);
                    self.out.push_str(&if *suffix == "TH" {
                        ending.to_uppercase()
                    } else {
                        ending.to_owned()
                    });
                }
                Piece::Ordinal(_) | Piece::Brackets => {}
                Piece::Literal(text) => self.out.push_str(text),
            }
        }
        self.begin();
    }

    /// How many digits are shown behind the point: zeros at the end are left out where only what is needed is wanted.
    fn shown_fraction(&self, pattern: &Pattern, digits: &Digits) -> usize {
        if self.fills {
            return pattern.fraction;
        }
        let behind = pattern.pieces.iter().skip_while(|piece| **piece != Piece::Point);
        let forced: Vec<bool> = behind
            .filter_map(|piece| match piece {
                Piece::Digit { forced } => Some(*forced),
                _ => None,
            })
            .collect();
        let forced = forced.iter().rposition(|forced| *forced).map_or(0, |last| last + 1);
        digits.fraction.trim_end_matches('0').len().max(forced)
    }
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
