//! Names of keys and of spans of keys: `account/1/5`, `word/fig`, `line/12/0`, `item/3`; `account`, `account/1`,
//! `line/5..25`, `line/7`, `word/a..f`.

use std::fmt;
use std::str::FromStr;

use ordain_db::data::key::KeyValue;
use ordain_db::data::{Key, KeyRange};
use serde::{Deserialize, Serialize};

use super::Tables;

/// A key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Name {
    Account(i32, i64),
    Word(String),
    Line(i64, i32),
    Item(i32),
}

/// Neighbouring keys of one table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Span {
    Accounts,
    /// The accounts of a site.
    Site(i32),
    Words,
    /// From one word to another, without that.
    WordsBetween(String, String),
    Lines,
    /// The parts of a line.
    Parts(i64),
    /// From one line to another, without that.
    LinesBetween(i64, i64),
    Items,
}

impl Name {
    pub(crate) fn key(&self, tables: &Tables) -> Key {
        let key = match self {
            Name::Account(site, number) => tables.account.key((*site, *number)),
            Name::Word(word) => tables.word.key((word.as_str(),)),
            Name::Line(id, part) => tables.line.key((*id, *part)),
            Name::Item(id) => tables.item.key((*id,)),
        };
        key.unwrap()
    }

    pub(crate) fn of_key(tables: &Tables, key: &[u8]) -> Name {
        let named = [&tables.account, &tables.word, &tables.line, &tables.item]
            .map(|table| table.key_values(key).ok())
            .into_iter()
            .position(|values| values.is_some());
        let values = |table: &ordain_db::data::Table| table.key_values(key).unwrap();
        match named {
            Some(0) => match values(&tables.account).as_slice() {
                [KeyValue::Int32(site), KeyValue::Int64(number)] => Name::Account(*site, *number),
                other => panic!("{other:?} is no account"),
            },
            Some(1) => match values(&tables.word).as_slice() {
                [KeyValue::Text(word)] => Name::Word(word.clone()),
                other => panic!("{other:?} is no word"),
            },
            Some(2) => match values(&tables.line).as_slice() {
                [KeyValue::Int64(id), KeyValue::Int32(part)] => Name::Line(*id, *part),
                other => panic!("{other:?} is no line"),
            },
            Some(3) => match values(&tables.item).as_slice() {
                [KeyValue::Int32(id)] => Name::Item(*id),
                other => panic!("{other:?} is no item"),
            },
            _ => panic!("{:?} is a key of no table", Key::from_bytes(key)),
        }
    }
}

impl Span {
    pub(crate) fn range(&self, tables: &Tables) -> KeyRange {
        match self {
            Span::Accounts => tables.account.all(),
            Span::Site(site) => tables.account.prefix((*site,)).unwrap(),
            Span::Words => tables.word.all(),
            Span::WordsBetween(from, to) => tables.word.range((from.as_str(),), (to.as_str(),)).unwrap(),
            Span::Lines => tables.line.all(),
            Span::Parts(id) => tables.line.prefix((*id,)).unwrap(),
            Span::LinesBetween(from, to) => tables.line.range((*from,), (*to,)).unwrap(),
            Span::Items => tables.item.all(),
        }
    }

    /// A key of the span, chosen by a value: how a key depends on data.
    pub(crate) fn pick(&self, value: i64) -> Name {
        let among = |count: i64| value.rem_euclid(count);
        match self {
            Span::Accounts => Name::Account(among(4) as i32, among(12) / 4),
            Span::Site(site) => Name::Account(*site, among(4)),
            Span::Words => Name::Word(format!("{}{}", ["a", "f", "k"][among(3) as usize], among(2))),
            Span::WordsBetween(from, _) => Name::Word(format!("{from}{}", among(2))),
            Span::Lines => Name::Line(among(8) * 5, 0),
            Span::Parts(id) => Name::Line(*id, among(3) as i32),
            Span::LinesBetween(from, to) => Name::Line(from + among((to - from).max(1)), 0),
            Span::Items => Name::Item(among(4) as i32),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Account(site, number) => write!(f, "account/{site}/{number}"),
            Name::Word(word) => write!(f, "word/{word}"),
            Name::Line(id, part) => write!(f, "line/{id}/{part}"),
            Name::Item(id) => write!(f, "item/{id}"),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Span::Accounts => write!(f, "account"),
            Span::Site(site) => write!(f, "account/{site}"),
            Span::Words => write!(f, "word"),
            Span::WordsBetween(from, to) => write!(f, "word/{from}..{to}"),
            Span::Lines => write!(f, "line"),
            Span::Parts(id) => write!(f, "line/{id}"),
            Span::LinesBetween(from, to) => write!(f, "line/{from}..{to}"),
            Span::Items => write!(f, "item"),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        match text.split('/').collect::<Vec<_>>().as_slice() {
            ["account", site, account] => Ok(Name::Account(number(site)?, number(account)?)),
            ["word", word] if !word.contains("..") => Ok(Name::Word((*word).to_owned())),
            ["line", id, part] => Ok(Name::Line(number(id)?, number(part)?)),
            ["item", id] => Ok(Name::Item(number(id)?)),
            _ => Err(format!("{text:?} is no name of a key")),
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let between = parts.get(1).and_then(|part| part.split_once(".."));
        match (parts.as_slice(), between) {
            (["account"], _) => Ok(Span::Accounts),
            (["account", site], _) => Ok(Span::Site(number(site)?)),
            (["word"], _) => Ok(Span::Words),
            (["word", _], Some((from, to))) => Ok(Span::WordsBetween(from.to_owned(), to.to_owned())),
            (["line"], _) => Ok(Span::Lines),
            (["line", _], Some((from, to))) => Ok(Span::LinesBetween(number(from)?, number(to)?)),
            (["line", id], None) => Ok(Span::Parts(number(id)?)),
            (["item"], _) => Ok(Span::Items),
            _ => Err(format!("{text:?} is no span of keys")),
        }
    }
}
