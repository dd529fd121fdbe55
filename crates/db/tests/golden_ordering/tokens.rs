//! What scripts are made of.

use std::str::FromStr;

use ordain_db::position::Epoch;

/// A number after a letter.
pub(crate) fn number<T: FromStr>(letter: char, text: &str) -> Result<T, String> {
    let number = text.strip_prefix(letter).and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("{text:?}: {letter} and a number are expected"))
}

/// `e3`
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(crate) Epoch);

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Number, String> {
        number('e', text).map(|number| Number(Epoch(number)))
    }
}
