//! Comments directly behind an operator (`a <>-- b`), which the tokenizer takes for a part of it.

use std::borrow::Cow;
use std::ops::Range;

/// The characters of operators.
const OPERATORS: &[u8] = b"+-*/<>=~!@#%^&|`?";

/// A text with spaces in the place of comments that stand directly behind an operator, which ends there (PostgreSQL, "Operators"). All other
/// characters stay where they are.
pub(super) fn part(text: &str) -> Cow<'_, str> {
    if !text.contains("--") && !text.contains("/*") {
        return Cow::Borrowed(text);
    }
    let mut reader = Reader { text, bytes: text.as_bytes(), place: 0 };
    let mut parted: Option<String> = None;
    let mut copied = 0;
    while let Some(comment) = reader.next_comment() {
        let parted = parted.get_or_insert_with(|| String::with_capacity(text.len()));
        parted.push_str(&text[copied..comment.start]);
        let is_line_end = |letter: &char| matches!(letter, '\n' | '\r');
        parted.extend(
            text[comment.clone()].chars().map(|letter| if is_line_end(&letter) { letter } else { ' ' }),
        );
        copied = comment.end;
    }
    match parted {
        None => Cow::Borrowed(text),
        Some(parted) => Cow::Owned(parted + &text[copied..]),
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn at(&self, place: usize) -> u8 {
        self.bytes.get(place).copied().unwrap_or_default()
    }

    fn begins_comment(&self, place: usize) -> bool {
        matches!((self.at(place), self.at(place + 1)), (b'-', b'-') | (b'/', b'*'))
    }

    /// The next comment that stands directly behind an operator.
    fn next_comment(&mut self) -> Option<Range<usize>> {
        while self.place < self.bytes.len() {
            let start = self.place;
            match self.at(start) {
                _ if self.begins_comment(start) => self.pass_comment(),
                quote @ (b'\'' | b'"') => self.pass_quoted(quote, false),
                b'$' => self.pass_dollars(),
                letter if is_of_word(letter) => self.pass_word(),
                letter if OPERATORS.contains(&letter) => {
                    while OPERATORS.contains(&self.at(self.place)) && !self.begins_comment(self.place) {
                        self.place += 1;
                    }
                    if self.begins_comment(self.place) {
                        let start = self.place;
                        self.pass_comment();
                        return Some(start..self.place);
                    }
                }
                _ => self.place += 1,
            }
        }
        None
    }

    fn pass_comment(&mut self) {
        if self.at(self.place) == b'-' {
            let rest = &self.bytes[self.place..];
            self.place += rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
            return;
        }
        let mut depth = 0_usize;
        while self.place < self.bytes.len() {
            match (self.at(self.place), self.at(self.place + 1)) {
                (b'/', b'*') => (depth, self.place) = (depth + 1, self.place + 2),
                (b'*', b'/') => (depth, self.place) = (depth - 1, self.place + 2),
                _ => self.place += 1,
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Goes behind what begins with a quote. Without escapes, a quote that stands twice for itself ends one text here and begins another.
    fn pass_quoted(&mut self, quote: u8, escapes: bool) {
        self.place += 1;
        while self.place < self.bytes.len() {
            let byte = self.at(self.place);
            self.place += if escapes && byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                if escapes && self.at(self.place) == quote {
                    self.place += 1;
                    continue;
                }
                break;
            }
        }
        self.place = self.place.min(self.bytes.len());
    }

    /// Goes behind a text between dollars, or behind the dollar of a parameter.
    fn pass_dollars(&mut self) {
        let rest = &self.bytes[self.place..];
        let tag =
            rest[1..].iter().position(|byte| !is_of_word(*byte) || *byte == b'$').unwrap_or(rest.len() - 1);
        if rest.get(tag + 1) != Some(&b'$') || rest[1].is_ascii_digit() {
            self.place += 1;
            return;
        }
        let (delimiter, inner) = self.text[self.place..].split_at(tag + 2);
        let end = inner.find(delimiter).map_or(inner.len(), |end| end + delimiter.len());
        self.place += delimiter.len() + end;
    }

    /// Goes behind a word, or a text with escapes that begins with `E`.
    fn pass_word(&mut self) {
        let start = self.place;
        while is_of_word(self.at(self.place)) {
            self.place += 1;
        }
        let word = &self.bytes[start..self.place];
        if word.eq_ignore_ascii_case(b"e") && self.at(self.place) == b'\'' {
            self.pass_quoted(b'\'', true);
        }
    }
}

/// Whether a byte belongs to words. Those beyond ASCII do.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn an_operator_ends_where_a_comment_begins() {
        for (text, parted) in [
            ("select 5>=--9\n+4", "select 5>=   \n+4"),
            ("select 1<>/* a /* b\n */ c */-1", "select 1<>         \n        -1"),
            ("select 'a'||--é\n'b'", "select 'a'||   \n'b'"),
            ("select 5-/*c*/-1 --x", "select 5-     -1 --x"),
            ("select 5>=--it's\r4 --it's\r, 3", "select 5>=      \r4 --it's\r, 3"),
            ("select 5>=--", "select 5>=  "),
            ("select 5>=/*", "select 5>=  "),
        ] {
            assert_eq!(part(text), parted);
        }
    }

    #[test]
    fn what_is_no_operator_stays_as_it_is() {
        for text in [
            "select 1 -- <>--\n, 2 /* <>-- */",
            "select '<>--', 'a''<>--', E'\\'<>--', e'a''\\'<>--', \"<>--\"",
            "select $$<>--$$, $a$ $$<>--$a$, a$1, $1",
            "select 1 --' <>--\n",
            "select /*' */ 1 - 2",
            "select 1 <> -- two\n 2",
            "select $",
            "select 'a",
            "select E'a\\",
            "select $a$",
        ] {
            assert_eq!(part(text), text);
        }
        assert_eq!(part("select $1<>--a\n2"), "select $1<>   \n2");
        assert_eq!(part("select xe'\\'<>--a\n"), "select xe'\\'<>   \n", "that is no escape");
        assert_eq!(part("select 'it''s'<>--a'\n2"), "select 'it''s'<>    \n2");
    }
}
