//! The list-append histories of Elle, as Jepsen writes them: one EDN map a line.
//!
//! ```text
//! {:type :invoke, :f :txn, :value [[:append 3 17] [:r 2 nil]], :process 0, :time 400, :index 0}
//! {:type :ok, :f :txn, :value [[:append 3 17] [:r 2 [1 4]]], :process 0, :time 900, :index 1}
//! ```
//!
//! A call that aborted is `:fail`, one that was not answered is `:info`. Times are virtual nanoseconds. Where data decided
//! which list a call appended to, its `:invoke` names that list too.

use std::fmt::{self, Write};

use ordain_db::error::Error;
use ordain_workload::append::Append;

use super::transactions::{End, Event, Step, events, transactions};
use crate::history::History;

/// The history as text. Fails when a call or its answer is none of the workload's.
pub fn export(history: &History, append: &Append) -> Result<String, Error> {
    let transactions = transactions(history, append)?;
    let mut out = String::new();
    for (index, event) in events(&transactions).into_iter().enumerate() {
        write_event(&mut out, index, event).expect("a string takes everything");
    }
    Ok(out)
}

fn write_event(out: &mut String, index: usize, Event { transaction, at, ended }: Event<'_>) -> fmt::Result {
    let kind = match transaction.end {
        _ if !ended => "invoke",
        End::Committed(_) => "ok",
        End::Aborted(_) => "fail",
        End::Unknown => "info",
    };
    write!(out, "{{:type :{kind}, :f :txn, :value [")?;
    for (place, step) in transaction.steps.iter().enumerate() {
        out.push_str(if place == 0 { "" } else { " " });
        match step {
            Step::Append { list, number, .. } => write!(out, "[:append {list} {number}]")?,
            Step::Read { list, numbers: Some(numbers) } if ended => {
                write!(out, "[:r {list} [")?;
                for (place, number) in numbers.iter().enumerate() {
                    write!(out, "{}{number}", if place == 0 { "" } else { " " })?;
                }
                out.push_str("]]");
            }
            Step::Read { list, .. } => write!(out, "[:r {list} nil]")?,
        }
    }
    writeln!(out, "], :process {}, :time {at}, :index {index}}}", transaction.process)
}
