//! Reads the lines of Elle's list-append histories, and nothing else: what it does not know it refuses.

use std::collections::BTreeMap;

/// What a line tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Key and number.
    Append(u64, u64),
    /// Key, and the numbers that were read.
    Read(u64, Option<Vec<u64>>),
}

/// One line of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) process: u64,
    pub(crate) value: Vec<Step>,
}

/// The subset of EDN that occurs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Value {
    Nil,
    Number(u64),
    Keyword(String),
    Vector(Vec<Value>),
    Map(BTreeMap<Value, Value>),
}

impl Value {
    fn number(&self) -> u64 {
        let Value::Number(number) = self else { panic!("no number: {self:?}") };
        *number
    }

    fn vector(&self) -> &[Value] {
        let Value::Vector(values) = self else { panic!("no vector: {self:?}") };
        values
    }
}

/// The lines of a history. Their indexes must count up from 0, and their times must not fall.
pub(crate) fn parse(text: &str) -> Vec<Line> {
    let mut time = 0;
    let lines = text.lines().enumerate().map(|(index, line)| {
        let mut rest = line;
        let Value::Map(map) = value(&mut rest) else { panic!("no map: {line}") };
        assert!(rest.is_empty() && map.len() == 6, "{line}");
        let field = |name: &str| &map[&Value::Keyword(name.to_owned())];
        assert_eq!(field("index").number(), index as u64);
        assert_eq!(*field("f"), Value::Keyword("txn".to_owned()));
        assert!(field("time").number() >= time, "{line}");
        time = field("time").number();
        Line {
            kind: kind(field("type")),
            process: field("process").number(),
            value: field("value").vector().iter().map(step).collect(),
        }
    });
    lines.collect()
}

fn kind(value: &Value) -> Kind {
    let Value::Keyword(name) = value else { panic!("no type: {value:?}") };
    match name.as_str() {
        "invoke" => Kind::Invoke,
        "ok" => Kind::Ok,
        "fail" => Kind::Fail,
        "info" => Kind::Info,
        other => panic!("no type: {other}"),
    }
}

fn step(value: &Value) -> Step {
    let [Value::Keyword(name), Value::Number(key), argument] = value.vector() else {
        panic!("no operation: {value:?}")
    };
    match (name.as_str(), argument) {
        ("append", Value::Number(number)) => Step::Append(*key, *number),
        ("r", Value::Nil) => Step::Read(*key, None),
        ("r", Value::Vector(numbers)) => Step::Read(*key, Some(numbers.iter().map(Value::number).collect())),
        _ => panic!("no operation: {value:?}"),
    }
}

/// Takes one value from the front of the text, with the blanks and the comma after it.
fn value(rest: &mut &str) -> Value {
    let taken = if take(rest, "[") {
        let mut values = Vec::new();
        while !take(rest, "]") {
            values.push(value(rest));
        }
        Value::Vector(values)
    } else if take(rest, "{") {
        let mut map = BTreeMap::new();
        while !take(rest, "}") {
            let key = value(rest);
            assert_eq!(map.insert(key, value(rest)), None);
        }
        Value::Map(map)
    } else {
        let end = rest.find([' ', ',', ']', '}']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        *rest = after;
        match (word, word.strip_prefix(':')) {
            ("nil", _) => Value::Nil,
            (_, Some(name)) => Value::Keyword(name.to_owned()),
            _ => Value::Number(word.parse().expect("a number")),
        }
    };
    *rest = rest.trim_start_matches([' ', ',']);
    taken
}

fn take(rest: &mut &str, token: &str) -> bool {
    match rest.strip_prefix(token) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}
