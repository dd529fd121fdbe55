//! What the interpreted procedure does, and its notation.
//!
//! ```text
//! operation := get T | put T A | set T A | add T N | rank T N|null | note T TEXT|null | delete T
//!            | scan SPAN [LIMIT] | abort-if-missing T | abort-if-present T | abort-if-below T N
//!            | outsized SPAN N | get-many SPAN N
//! target T  := NAME | SPAN@NAME          the key of the span that the value of the named row picks
//! amount A  := N | mixed                 mixed: a number made of everything that was read so far
//! declared  := read|write|update NAME|SPAN
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Tables;
use super::name::{Name, Span};

/// The arguments of a call: a declaration and a list of operations.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) declares: Declares,
    pub(crate) operations: Vec<Operation>,
}

/// What a call declares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Declares {
    /// What its operations touch.
    Exactly,
    /// The same, with a functor for each key that one operation alone writes by the key's own row, and the conditions as guards; unless
    /// a condition depends on what the program writes or on a key that it has yet to find.
    Functors,
    /// Nothing: the footprint is found by reconnaissance.
    Nothing,
    /// What is listed.
    These(Vec<Declared>),
}

/// How a key or span is declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Touch {
    Read,
    Write,
    Update,
}

/// One key or span of a declaration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Declared {
    Key(Touch, Name),
    Range(Touch, Span),
}

/// Which key an operation works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Target {
    Named(Name),
    /// The key of the span that the value of the named row picks; the value of a missing row is 0.
    At(Span, Name),
}

/// A number to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Amount {
    Constant(i64),
    /// Made of everything that was read so far.
    Mixed,
}

/// One operation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Get(Target),
    /// Inserts or replaces the row: rank null, note "put".
    Put(Target, Amount),
    /// Sets the value of a row, if there is one.
    Set(Target, Amount),
    /// Adds to the value of a row, if there is one.
    Add(Target, i64),
    /// Sets the nullable fixed-width column.
    Rank(Target, Option<i32>),
    /// Sets the variable-width column.
    Note(Target, Option<String>),
    Delete(Target),
    Scan(Span, u32),
    AbortIfMissing(Target),
    AbortIfPresent(Target),
    AbortIfBelow(Target, i64),
    /// Puts so many rows with a note of 50,000 bytes each into the span, `account/9/0` and so on.
    Outsized(Span, u32),
    /// Reads so many keys of the span, one by one: `account/9/0` and so on.
    GetMany(Span, u32),
    /// The last rows of the span, so many at most, in descending order.
    ScanDown(Span, u32),
}

impl Operation {
    /// The key that the operation works on, if it is one.
    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Operation::Get(target)
            | Operation::Put(target, _)
            | Operation::Set(target, _)
            | Operation::Add(target, _)
            | Operation::Rank(target, _)
            | Operation::Note(target, _)
            | Operation::Delete(target)
            | Operation::AbortIfMissing(target)
            | Operation::AbortIfPresent(target)
            | Operation::AbortIfBelow(target, _) => Some(target),
            Operation::Scan(..)
            | Operation::ScanDown(..)
            | Operation::Outsized(..)
            | Operation::GetMany(..) => None,
        }
    }
}

impl Operation {
    /// Whether it may abort.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(
            self,
            Operation::AbortIfMissing(_) | Operation::AbortIfPresent(_) | Operation::AbortIfBelow(..)
        )
    }

    /// The key that it writes by nothing but the key's own row, if that is what it does.
    pub(crate) fn writes_by_itself(&self) -> Option<&Name> {
        match self {
            Operation::Put(Target::Named(name), Amount::Constant(_))
            | Operation::Set(Target::Named(name), Amount::Constant(_))
            | Operation::Add(Target::Named(name), _)
            | Operation::Rank(Target::Named(name), _)
            | Operation::Note(Target::Named(name), _)
            | Operation::Delete(Target::Named(name)) => Some(name),
            _ => None,
        }
    }

    fn is_write(&self) -> bool {
        let reads = matches!(
            self,
            Operation::Get(_) | Operation::Scan(..) | Operation::ScanDown(..) | Operation::GetMany(..)
        );
        !reads && !self.is_condition()
    }

    /// Whether it may write a key.
    pub(crate) fn may_write(&self, name: &Name, tables: &Tables) -> bool {
        let key = name.key(tables);
        let in_span = |span: &Span| span.range(tables).contains(key.bytes());
        match (self, self.target()) {
            (Operation::Outsized(span, _), _) => in_span(span),
            (_, Some(Target::Named(other))) => self.is_write() && other == name,
            (_, Some(Target::At(span, _))) => self.is_write() && in_span(span),
            (_, None) => false,
        }
    }
}

impl Program {
    /// Whether its conditions can be told before it runs.
    pub(crate) fn is_guarded(&self, tables: &Tables) -> bool {
        let conditions = self.operations.iter().enumerate().filter(|(_, operation)| operation.is_condition());
        conditions.into_iter().all(|(place, condition)| match condition.target() {
            Some(Target::Named(name)) => {
                !self.operations[..place].iter().any(|before| before.may_write(name, tables))
            }
            _ => false,
        })
    }

    /// Whether no other operation may write the key that one writes.
    pub(crate) fn is_only_writer(&self, place: usize, name: &Name, tables: &Tables) -> bool {
        let mut others = self.operations.iter().enumerate().filter(|(other, _)| *other != place);
        !others.any(|(_, other)| other.may_write(name, tables))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Named(name) => write!(f, "{name}"),
            Target::At(span, name) => write!(f, "{span}@{name}"),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Constant(value) => write!(f, "{value}"),
            Amount::Mixed => write!(f, "mixed"),
        }
    }
}

fn or_null<T: fmt::Display>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "null".to_owned(), T::to_string)
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Get(target) => write!(f, "get {target}"),
            Operation::Put(target, amount) => write!(f, "put {target} {amount}"),
            Operation::Set(target, amount) => write!(f, "set {target} {amount}"),
            Operation::Add(target, amount) => write!(f, "add {target} {amount}"),
            Operation::Rank(target, rank) => write!(f, "rank {target} {}", or_null(rank)),
            Operation::Note(target, note) => write!(f, "note {target} {}", or_null(note)),
            Operation::Delete(target) => write!(f, "delete {target}"),
            Operation::Scan(span, u32::MAX) => write!(f, "scan {span}"),
            Operation::Scan(span, limit) => write!(f, "scan {span} {limit}"),
            Operation::AbortIfMissing(target) => write!(f, "abort-if-missing {target}"),
            Operation::AbortIfPresent(target) => write!(f, "abort-if-present {target}"),
            Operation::AbortIfBelow(target, least) => write!(f, "abort-if-below {target} {least}"),
            Operation::Outsized(span, rows) => write!(f, "outsized {span} {rows}"),
            Operation::GetMany(span, keys) => write!(f, "get-many {span} {keys}"),
            Operation::ScanDown(span, limit) => write!(f, "scan-down {span} {limit}"),
        }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// As in a script, so that a failing case can be pasted into one.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.declares {
            Declares::Exactly => {}
            Declares::Functors => write!(f, "declare=functors ")?,
            Declares::Nothing => write!(f, "declare=nothing ")?,
            Declares::These(declared) => write!(f, "declare={declared:?} ")?,
        }
        let operations: Vec<String> =
            self.operations.iter().map(|operation| format!("{operation:?}")).collect();
        write!(f, "{}", operations.join(" "))
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        match text.split_once('@') {
            Some((span, name)) => Ok(Target::At(span.parse()?, name.parse()?)),
            None => Ok(Target::Named(text.parse()?)),
        }
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        match text {
            "mixed" => Ok(Amount::Mixed),
            number => number.parse().map(Amount::Constant).map_err(|_| format!("{text:?} is no amount")),
        }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Operation, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = |_| format!("{text:?}: a number is expected");
        Ok(match words.as_slice() {
            ["get", target] => Operation::Get(target.parse()?),
            ["put", target, amount] => Operation::Put(target.parse()?, amount.parse()?),
            ["set", target, amount] => Operation::Set(target.parse()?, amount.parse()?),
            ["add", target, amount] => Operation::Add(target.parse()?, amount.parse().map_err(wrong)?),
            ["rank", target, "null"] => Operation::Rank(target.parse()?, None),
            ["rank", target, rank] => Operation::Rank(target.parse()?, Some(rank.parse().map_err(wrong)?)),
            ["note", target, "null"] => Operation::Note(target.parse()?, None),
            ["note", target, note] => Operation::Note(target.parse()?, Some((*note).to_owned())),
            ["delete", target] => Operation::Delete(target.parse()?),
            ["scan", span] => Operation::Scan(span.parse()?, u32::MAX),
            ["scan", span, limit] => Operation::Scan(span.parse()?, limit.parse().map_err(wrong)?),
            ["scan-down", span, limit] => Operation::ScanDown(span.parse()?, limit.parse().map_err(wrong)?),
            ["abort-if-missing", target] => Operation::AbortIfMissing(target.parse()?),
            ["abort-if-present", target] => Operation::AbortIfPresent(target.parse()?),
            ["abort-if-below", target, least] => {
                Operation::AbortIfBelow(target.parse()?, least.parse().map_err(wrong)?)
            }
            ["get-many", span, keys] => Operation::GetMany(span.parse()?, keys.parse().map_err(wrong)?),
            ["outsized", span, rows] => Operation::Outsized(span.parse()?, rows.parse().map_err(wrong)?),
            _ => return Err(format!("{text:?} is no operation")),
        })
    }
}

impl FromStr for Declared {
    type Err = String;

    fn from_str(text: &str) -> Result<Declared, String> {
        let (touch, what) = text.split_once(' ').ok_or_else(|| format!("{text:?} is no declaration"))?;
        let touch = match touch {
            "read" => Touch::Read,
            "write" => Touch::Write,
            "update" => Touch::Update,
            other => return Err(format!("{other:?} is no way to touch a key")),
        };
        match what.parse() {
            Ok(name) => Ok(Declared::Key(touch, name)),
            Err(_) => Ok(Declared::Range(touch, what.parse()?)),
        }
    }
}

impl FromStr for Declares {
    type Err = String;

    /// `nothing`, `functors`, or a list of declarations with commas between them.
    fn from_str(text: &str) -> Result<Declares, String> {
        match text {
            "nothing" => Ok(Declares::Nothing),
            "functors" => Ok(Declares::Functors),
            list => list.split(", ").map(str::parse).collect::<Result<_, _>>().map(Declares::These),
        }
    }
}
