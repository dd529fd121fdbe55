//! Operations on single lists with the times of call and return, for checkers of linearizability like porcupine: one JSON
//! object a line, those of one list together and in the order of their calls.
//!
//! ```text
//! {"client":0,"call":400,"return":900,"key":3,"kind":"append","input":17,"output":16}
//! {"client":1,"call":700,"return":800,"key":3,"kind":"read","input":null,"output":[16]}
//! ```
//!
//! An append returns the number that was the list's last before it, 0 for none. What a call does to a list in several
//! operations stands in several lines with the same times. Calls that aborted are left out: they have no effect. Appends of
//! calls that were not answered have `"return":null` and `"output":null`: they may take effect at any time, or never.

use std::collections::BTreeMap;
use std::fmt::Write;

use ordain_db::error::Error;
use ordain_workload::append::Append;

use super::transactions::{End, Step, transactions};
use crate::history::History;
use crate::time::Nanoseconds;

/// The history as text. Fails when a call or its answer is none of the workload's.
pub fn export(history: &History, append: &Append) -> Result<String, Error> {
    let mut by_list: BTreeMap<u64, String> = BTreeMap::new();
    for transaction in transactions(history, append)? {
        let returned: Option<Nanoseconds> = match transaction.end {
            End::Committed(at) => Some(at),
            End::Aborted(_) => continue,
            End::Unknown => None,
        };
        for step in &transaction.steps {
            let (list, kind, input, output) = match step {
                Step::Read { numbers: None, .. } => continue,
                Step::Read { list, numbers: Some(numbers) } => (*list, "read", null(None), array(numbers)),
                Step::Append { list, number, after } => (*list, "append", number.to_string(), null(*after)),
            };
            let (client, call, returned) = (transaction.process, transaction.invoked_at, null(returned));
            let out = by_list.entry(list).or_default();
            writeln!(
                out,
                "{{\"client\":{client},\"call\":{call},\"return\":{returned},\"key\":{list},\
                 \"kind\":\"{kind}\",\"input\":{input},\"output\":{output}}}"
            )
            .expect("a string takes everything");
        }
    }
    Ok(by_list.into_values().collect())
}

/// A number, or `null`.
fn null(number: Option<u64>) -> String {
    number.map_or("null".to_owned(), |number| number.to_string())
}

fn array(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("[{}]", numbers.join(","))
}
