//! `format`: a text with places for others.

use super::*;

/// The text with `%s`, `%I` and `%L` replaced by the arguments.
pub(super) fn format(pattern: &str, arguments: &[Option<String>]) -> Result<Datum, SqlError> {
    let (mut out, mut next) = (String::new(), 1);
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            out.push('%');
            continue;
        }
        let place = place(&mut rest)?;
        let number = match place.number {
            Some(0) => {
                return Err(parameter_error(
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
            Some(number) => number,
            None => next,
        };
        let width = match place.width {
            Width::Fixed(width) => width,
            Width::Argument => {
                let width = argument(arguments, next)?;
                next += 1;
                width.map_or(Ok(0), |width| width.trim().parse().map_err(|_| unterminated()))?
            }
        };
        let number = if place.number.is_some() { number } else { next };
        let value = argument(arguments, number)?;
        next = number + 1;
        put(&mut out, place.kind, value, width, place.left)?;
        check_length(out.len())?;
    }
    Ok(Datum::Text(out))
}

/// How wide a value is to be.
enum Width {
    Fixed(i64),
    /// As the next argument says.
    Argument,
}

/// A place for a value.
struct Place {
    /// The number of the argument, from 1 on.
    number: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

fn unterminated() -> SqlError {
    parameter_error("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

fn place(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Place, SqlError> {
    let mut place = Place { number: None, left: false, width: Width::Fixed(0), kind: 's' };
    let mut digits = number(rest)?;
    if digits.is_some() && rest.peek() == Some(&'$') {
        rest.next();
        place.number = digits.take().and_then(|number| usize::try_from(number).ok());
    }
    if digits.is_none() {
        while rest.peek() == Some(&'-') {
            rest.next();
            place.left = true;
        }
        if rest.peek() == Some(&'*') {
            rest.next();
            place.width = Width::Argument;
        } else {
            digits = number(rest)?;
        }
    }
    if let Some(width) = digits {
        place.width = Width::Fixed(width);
    }
    place.kind = rest.next().ok_or_else(unterminated)?;
    if !matches!(place.kind, 's' | 'I' | 'L') {
        return Err(parameter_error(format!("unrecognized format() type specifier \"{}\"", place.kind))
            .with_hint("For a single \"%\" use \"%%\"."));
    }
    Ok(place)
}

fn number(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<i64>, SqlError> {
    let mut number: Option<i64> = None;
    while let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(10)) {
        rest.next();
        let grown = number.unwrap_or(0) * 10 + i64::from(digit);
        if grown > i64::from(i32::MAX) {
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"));
        }
        number = Some(grown);
    }
    Ok(number)
}

/// The text of an argument, from 1 on; none if it is null.
fn argument(arguments: &[Option<String>], number: usize) -> Result<Option<&str>, SqlError> {
    let found = arguments.get(number.wrapping_sub(1));
    found.map(Option::as_deref).ok_or_else(|| parameter_error("too few arguments for format()"))
}

fn put(out: &mut String, kind: char, value: Option<&str>, width: i64, left: bool) -> Result<(), SqlError> {
    let text = match (kind, value) {
        ('I', None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(SqlError::new(SqlState(*b"22004"), message));
        }
        ('I', Some(value)) => quote_ident(value),
        ('L', None) => "NULL".to_owned(),
        ('L', Some(value)) => strings::quote_literal(value),
        (_, value) => value.unwrap_or("").to_owned(),
    };
    let left = left || width < 0;
    let wanted = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
    check_length(wanted)?;
    let missing = wanted.saturating_sub(text.chars().count());
    let blanks = " ".repeat(missing);
    if left {
        out.push_str(&text);
        out.push_str(&blanks);
    } else {
        out.push_str(&blanks);
        out.push_str(&text);
    }
    Ok(())
}
