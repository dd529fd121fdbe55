//! Texts without their constants: those that are sent again and again differ in nothing else.
//!
//! A constant is taken out only where any value may stand, and no other value would be read in another way: after a comparison or `BETWEEN`, in
//! the lists of `VALUES` and `IN`, among the arguments of a procedure, and where it is added to what has a name. So `LIMIT 10`, `ORDER BY 1` and
//! `numeric(10, 2)` keep theirs, and so does what is computed of constants alone, where a mistake is found before the statement runs.

use smallvec::SmallVec;

use crate::types::SqlType;

/// Longest text that has a shape, in bytes.
pub const SHAPED_MAX: usize = 2048;

/// Most constants that are taken out.
const CONSTANTS_MAX: usize = 64;

/// With what statements begin that have a shape.
const BEGINNINGS: [&str; 10] =
    ["select", "update", "insert", "delete", "call", "begin", "commit", "end", "rollback", "start"];

/// Words that may follow a text between quotes which is taken out: no operator makes something else of it.
const FOLLOWERS: [&str; 11] =
    ["and", "or", "where", "returning", "order", "group", "having", "limit", "offset", "on", "for"];

/// A constant of a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// As a parameter has it as text.
    pub text: String,
    /// `None` for a text, whose type follows from where it stands.
    pub data_type: Option<SqlType>,
}

/// A text with parameters instead of constants.
#[derive(PartialEq, Debug)]
pub struct Shape {
    /// The text.
    pub text: String,
    /// The values of its parameters.
    pub constants: SmallVec<[Constant; 4]>,
    /// Whether some of them are arguments of a procedure: if it turns out to be another function, that may need constants.
    pub is_call: bool,
}

/// What stands before a constant.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// `VALUES`, `IN`, or the name of a procedure.
    ListWord,
    /// `BETWEEN`, or an `AND`.
    Bound,
    Comparison,
    /// A sign of the constant, or of what is added to what has a name.
    Sign,
    Open,
    Comma,
    /// Any other word.
    Word,
    /// A text between quotes, after which another one would belong to it.
    Text,
    Other,
}

/// The shape of a text; `None` if it is none of the statements that have one, has several of them, or anything in it that is rare.
/// `is_procedure` tells of a name in small letters whether a procedure has it.
pub fn shape(text: &str, is_procedure: &dyn Fn(&str) -> bool) -> Option<Shape> {
    if text.len() > SHAPED_MAX {
        return None;
    }
    let first = text.trim_start();
    let first = &first[..first.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(first.len())];
    if !BEGINNINGS.iter().any(|beginning| beginning.eq_ignore_ascii_case(first)) {
        return None;
    }
    Reader {
        text,
        is_procedure,
        place: 0,
        shape: Shape { text: String::with_capacity(text.len()), constants: SmallVec::new(), is_call: false },
        before: Before::Other,
        lists: SmallVec::new(),
        is_after_values: false,
        is_after_procedure: false,
    }
    .read()
}

struct Reader<'t> {
    text: &'t str,
    is_procedure: &'t dyn Fn(&str) -> bool,
    place: usize,
    shape: Shape,
    before: Before,
    /// Of each pair of brackets that is open, whether it is around a list of values.
    lists: SmallVec<[bool; 8]>,
    is_after_values: bool,
    /// Whether the name of a procedure was the last word outside of brackets.
    is_after_procedure: bool,
}

impl Reader<'_> {
    fn read(mut self) -> Option<Shape> {
        while let Some(byte) = self.text.as_bytes().get(self.place).copied() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.copy(1),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word()?,
                b'0'..=b'9' => self.number()?,
                b'\'' => self.quoted_text()?,
                b'"' => {
                    let length = self.quoted(b'"')?;
                    self.copy(length);
                    self.before = Before::Other;
                }
                b'(' => {
                    let is_list = self.before == Before::ListWord
                        || (self.is_after_values && self.before == Before::Comma && self.lists.is_empty());
                    self.lists.push(is_list);
                    self.sign(Before::Open);
                }
                b')' => {
                    self.lists.pop()?;
                    self.sign(Before::Other);
                }
                b',' => self.sign(Before::Comma),
                b'.' | b'[' | b']' | b':' => self.sign(Before::Other),
                b';' if self.text[self.place + 1..].trim_ascii_end().is_empty() => break,
                b'+' | b'-' | b'*' | b'/' | b'<' | b'>' | b'=' | b'~' | b'!' | b'@' | b'#' | b'%' | b'^'
                | b'&' | b'|' | b'`' => self.operator()?,
                _ => return None,
            }
        }
        Some(self.shape)
    }

    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.place..]
    }

    /// Takes over what comes next.
    fn copy(&mut self, length: usize) {
        self.shape.text.push_str(&self.text[self.place..self.place + length]);
        self.place += length;
    }

    fn sign(&mut self, sign: Before) {
        self.copy(1);
        self.before = sign;
    }

    fn word(&mut self) -> Option<()> {
        let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        let length = self.rest().iter().position(|byte| !in_word(byte)).unwrap_or(self.rest().len());
        if self.rest().get(length) == Some(&b'\'') {
            // A text of another kind.
            return None;
        }
        let word = &self.text[self.place..self.place + length];
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        self.is_after_values |= is("values");
        // A call stands alone, and not within brackets.
        let is_call = self.lists.is_empty()
            && self.rest()[length..].trim_ascii_start().first() == Some(&b'(')
            && (self.is_procedure)(&word.to_ascii_lowercase());
        self.is_after_procedure = is_call || (self.is_after_procedure && !self.lists.is_empty());
        self.before = if is("values") || is("in") || is_call {
            Before::ListWord
        } else if is("between") || is("and") {
            Before::Bound
        } else {
            Before::Word
        };
        self.copy(length);
        Some(())
    }

    fn operator(&mut self) -> Option<()> {
        let in_operator = |byte: &u8| b"+-*/<>=~!@#%^&|`?".contains(byte);
        let length = self.rest().iter().position(|byte| !in_operator(byte)).unwrap_or(self.rest().len());
        let operator = &self.text[self.place..self.place + length];
        if operator.contains("--") || operator.contains("/*") {
            return None;
        }
        let may_be_signed = match self.before {
            Before::ListWord | Before::Text | Before::Other => false,
            Before::Bound | Before::Comparison | Before::Sign | Before::Word => true,
            Before::Open | Before::Comma => self.is_in_list(),
        };
        self.before = match operator {
            "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => Before::Comparison,
            // An argument that is given by its name.
            "=>" if self.lists.last() == Some(&true) => Before::Comma,
            // Operators of these letters do not end in a sign: it is the constant's.
            "+" | "-" | "=-" | "<-" | ">-" | "<=-" | ">=-" | "<>-" if may_be_signed => Before::Sign,
            _ => Before::Other,
        };
        self.copy(length);
        Some(())
    }

    fn is_in_list(&self) -> bool {
        matches!(self.before, Before::Open | Before::Comma) && self.lists.last() == Some(&true)
    }

    fn number(&mut self) -> Option<()> {
        let in_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let length = self.rest().iter().position(|byte| !in_number(byte)).unwrap_or(self.rest().len());
        let after = self.rest().get(length);
        if after.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)) {
            return None;
        }
        let number = &self.text[self.place..self.place + length];
        // With its sign it is an integer, and without a bigint.
        if self.before == Before::Sign && number.parse() == Ok(i64::from(i32::MAX) + 1) {
            return None;
        }
        let data_type = match number.split_once('.') {
            None if number.parse::<i32>().is_ok() => SqlType::INT4,
            None if number.parse::<i64>().is_ok() => SqlType::INT8,
            Some((whole, fraction)) if !whole.is_empty() && fraction.parse::<u64>().is_ok() => {
                SqlType::NUMERIC
            }
            _ => return None,
        };
        let may_vary = matches!(self.before, Before::Comparison | Before::Sign | Before::Bound);
        if (may_vary || self.is_in_list()) && self.ends_value(length, &[]) {
            let text = number.to_owned();
            self.take_out(length, Constant { text, data_type: Some(data_type) })?;
        } else {
            self.copy(length);
        }
        self.before = Before::Other;
        Some(())
    }

    fn quoted_text(&mut self) -> Option<()> {
        let length = self.quoted(b'\'')?;
        let written = &self.text[self.place + 1..self.place + length - 1];
        if self.before == Before::Text {
            return None;
        }
        let may_vary = matches!(self.before, Before::Comparison | Before::Bound) || self.is_in_list();
        if may_vary && self.ends_value(length, &FOLLOWERS) {
            let text = written.replace("''", "'");
            self.take_out(length, Constant { text, data_type: None })?;
        } else {
            self.copy(length);
        }
        self.before = Before::Text;
        Some(())
    }

    /// Whether the next bytes are a value by themselves: what follows is no operator, and one of some words if it is one.
    fn ends_value(&self, length: usize, words: &[&str]) -> bool {
        let after = self.rest()[length..].trim_ascii_start();
        let word = after.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(after.len());
        match after.first() {
            None | Some(b')' | b',' | b';') => true,
            Some(b'a'..=b'z' | b'A'..=b'Z') if words.is_empty() => true,
            Some(_) => words.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(&after[..word])),
        }
    }

    /// The length of what comes next between quotes, with them.
    fn quoted(&self, quote: u8) -> Option<usize> {
        let rest = self.rest();
        let mut length = 1;
        loop {
            length += rest[length..].iter().position(|byte| *byte == quote)? + 1;
            if rest.get(length) != Some(&quote) {
                return Some(length);
            }
            length += 1;
        }
    }

    fn take_out(&mut self, length: usize, constant: Constant) -> Option<()> {
        if self.shape.constants.len() == CONSTANTS_MAX {
            return None;
        }
        self.shape.constants.push(constant);
        self.shape.is_call |= self.is_after_procedure && !self.lists.is_empty();
        // A sign before it makes no other token of the two.
        self.shape.text.push('$');
        self.shape.text.push_str(&self.shape.constants.len().to_string());
        self.place += length;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let Shape { text, constants, .. } = shape(text, &|name| name == "transfer")?;
        let constants = constants.iter().map(|Constant { text, data_type }| match data_type {
            Some(data_type) => format!(" | {text} {}", data_type.name()),
            None => format!(" | {text}"),
        });
        Some(text + &constants.collect::<String>())
    }

    #[test]
    fn constants_are_taken_out_where_any_value_may_stand() {
        for (text, expected) in [
            ("SELECT a FROM t WHERE id = 17;", "SELECT a FROM t WHERE id = $1 | 17 integer"),
            (
                "UPDATE t SET a = a + -4, b='it''s' WHERE id=-9000000000 ;\n",
                "UPDATE t SET a = a + -$1, b=$2 WHERE id=-$3  | 4 integer | it's | 9000000000 bigint",
            ),
            (
                "insert into t (a) values (1, 'x', f(2), 2.50), (-3, DEFAULT, (4), 5)",
                "insert into t (a) values ($1, $2, f(2), $3), (-$4, DEFAULT, (4), $5) \
                 | 1 integer | x | 2.50 numeric | 3 integer | 5 integer",
            ),
            (
                "DELETE FROM t WHERE a BETWEEN 1 AND '2' OR b IN (3, 'four')",
                "DELETE FROM t WHERE a BETWEEN $1 AND $2 OR b IN ($3, $4) | 1 integer | 2 | 3 integer | four",
            ),
            (
                "SELECT a FROM t WHERE b=-5 AND c + 1 < 2.0 OR d = 3 THEN",
                "SELECT a FROM t WHERE b=-$1 AND c + 1 < $2 OR d = $3 THEN | 5 integer | 2.0 numeric | 3 integer",
            ),
            (
                "SELECT Transfer(1, -2.5, 'a', round(3), '4'::int) + transfers(5)",
                "SELECT Transfer($1, -$2, $3, round(3), '4'::int) + transfers(5) | 1 integer | 2.5 numeric | a",
            ),
            (
                "CALL transfer (to_account => -1, note=>'x', rest := 2, 'x' || 'y')",
                "CALL transfer (to_account => -$1, note=>$2, rest := $3, 'x' || 'y') | 1 integer | x | 2 integer",
            ),
            ("BEGIN", "BEGIN"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn only_what_has_constants_among_its_arguments_is_a_call() {
        for (text, is_call) in [
            ("SELECT transfer(1, 2)", true),
            ("SELECT * FROM transfer(f(1), 2)", true),
            ("SELECT transfer(f(1), a) + 1 FROM t WHERE b = 2", false),
            ("INSERT INTO transfer(a, b) VALUES (1, 2)", false),
            ("SELECT a IN (1) FROM transfer", false),
        ] {
            let shape = shape(text, &|name| name == "transfer");
            assert_eq!(shape.map(|shape| shape.is_call), Some(is_call), "{text}");
        }
    }

    #[test]
    fn constants_stay_where_they_mean_something_else() {
        for text in [
            "SELECT 1, 'x' AS b, a[1], round(a, 2), x::numeric(10, 2) FROM t ORDER BY 1, 2 LIMIT 10 OFFSET 5",
            "SELECT a -> 'b' ->> 0, a || 'x', a ~ '^1', c LIKE 'd%' FROM t1 GROUP BY 1",
            "SELECT NULL + 1 / 0, (a) + 1, a || 'b', 1 - 1, a * 2 FROM t WHERE b = 'c'::regclass OR 'd' = a OR b = 'e' || f OR a = 1 + 2",
            "SELECT date '2026-01-01', interval '1 day', \"a = 1\" FROM t FETCH FIRST 3 ROWS ONLY",
        ] {
            assert_eq!(told(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn rare_texts_have_no_shape() {
        for text in [
            "SELECT a FROM t WHERE id = 1; SELECT 2",
            "SELECT a FROM t WHERE id = $1",
            "SELECT a FROM t WHERE b = E'\\n'",
            "SELECT a FROM t WHERE b = 'a'\n'b'",
            "SELECT a FROM t WHERE b = $$a$$",
            "SELECT a FROM t WHERE id = 1 -- 2",
            "SELECT a FROM t WHERE id = 1 /* 2 */",
            "SELECT a FROM t WHERE id = 1e5",
            "SELECT a FROM t WHERE id = 0x1f",
            "SELECT a FROM t WHERE id = 1.",
            "SELECT a FROM t WHERE id = -2147483648",
            "SELECT a FROM t WHERE id = 1;\u{a0}",
            "SELECT a FROM t WHERE id = 99999999999999999999",
            "SELECT a FROM t WHERE b = 'open",
            "SELECT a FROM t WHERE (b = 1))",
            "EXPLAIN SELECT a FROM t WHERE id = 1",
            "",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
