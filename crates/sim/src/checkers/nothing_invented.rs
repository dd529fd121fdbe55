//! Nothing is invented: whatever is seen was loaded or committed, and whatever is ordered was asked for.
//!
//! - Each row that a committed transaction read, that a snapshot has, or that a partition holds at the end is a version of
//!   its key: the loaded one, or the last write of the key by a transaction that committed. So there are no aborted reads
//!   (G1a) and no intermediate reads (G1b) (Adya's thesis, chapter 3; Adya, Liskov and O'Neil, ICDE 2000, §5.2). Absence is a
//!   version too: of a key that was not loaded, or was deleted.
//! - Each transaction in the log serves a request that a client sent, with the operation that it asked for.

use ordain_db::message::{Operation, Ordered, Work};

use super::Findings;
use super::evidence::Evidence;
use super::wording;

/// Checks the property.
///
/// # Errors
/// With the first row that nobody wrote, or transaction that nobody asked for.
pub fn check(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut findings = Findings::default();
    let schema = evidence.schema();
    // Notes a row that is no version of its key; `before`: how many transactions had committed.
    let mut look = |key: &[u8], row: Option<&[u8]>, before: usize, seen_by: &dyn Fn() -> String| {
        findings.require(evidence.versions(key).seen(row, before).is_some(), || {
            let (key, row) = (wording::key(schema, key), wording::row(schema, key, row));
            format!("{} has {row} of {key}, which was neither loaded nor committed", seen_by())
        });
    };
    for (reader, transaction) in evidence.committed.iter().enumerate() {
        let seen_by = || format!("{} at {}", wording::request(transaction.request), transaction.position);
        for (key, row) in &transaction.reads {
            look(key, row.as_deref(), reader, &seen_by);
        }
    }
    for snapshot in &evidence.history.snapshots {
        let before = evidence.committed.partition_point(|other| other.position < snapshot.position);
        let seen_by = || format!("snapshot {} at {}", wording::request(snapshot.request), snapshot.position);
        for (key, row) in &snapshot.rows {
            look(key, Some(row), before, &seen_by);
        }
    }
    for (partition, rows) in evidence.history.rows.iter().enumerate() {
        let seen_by = || format!("p{partition} at the end");
        for (key, row) in rows {
            look(key, Some(row), evidence.committed.len(), &seen_by);
        }
    }
    let asked_for = evidence.history.log.iter().filter(|(_, ordered)| !is_own(ordered));
    for (position, ordered) in asked_for {
        let request = wording::request(ordered.request);
        match evidence.history.requests.get(&ordered.request) {
            None => findings.note(|| format!("the log has {request} at {position}, which nobody sent")),
            Some(invocation) => findings.require(is_asked(ordered, &invocation.operation), || {
                format!("the log has {request} at {position} with another operation than its client sent")
            }),
        }
    }
    findings.finish()
}

/// Whether partitions order this by themselves.
fn is_own(ordered: &Ordered) -> bool {
    ordered.request.is_own() && matches!(ordered.work, Work::CloseSnapshot(_) | Work::Checkpoint(_))
}

fn is_asked(ordered: &Ordered, operation: &Operation) -> bool {
    match (&ordered.work, operation) {
        (Work::Call { procedure, arguments, .. }, asked) => asked.call() == Some((*procedure, arguments)),
        (Work::OpenSnapshot(_), Operation::OpenSnapshot) | (Work::Checkpoint(_), Operation::Checkpoint) => {
            true
        }
        // A call whose keys cannot be found ends in the order.
        (Work::GiveUp(_), asked) => asked.call().is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ordain_db::message::Verdict;

    use super::*;
    use crate::checkers::example::{Example, bank, position, request, version};

    fn found(example: &Example) -> Result<(), String> {
        check(&Evidence::new(&example.history, &bank()).unwrap())
    }

    fn two(read: (u32, i64)) -> Example {
        let mut example = Example::new();
        example.transaction(&[(0, 100)], &[(0, 90)]);
        example.transaction(&[read], &[(1, 110)]);
        example
    }

    #[test]
    fn rows_that_were_loaded_or_committed_pass() {
        for read in [(0, 100), (0, 90), (1, 100), (1, 110)] {
            assert_eq!(found(&two(read)), Ok(()), "{read:?}");
        }
    }

    #[test]
    fn rows_that_nobody_committed_are_found() {
        assert_eq!(
            found(&two((0, 91))),
            Err("c1@p0#1 at e1.p0.1 has [91] of accounts (0, 0), which was neither loaded nor committed"
                .to_owned())
        );
        // The writer missed its footprint.
        let mut example = two((0, 90));
        example.set_verdict(0, Verdict::FootprintMissed);
        assert!(found(&example).unwrap_err().contains("has [90] of accounts (0, 0)"));
    }

    #[test]
    fn absence_is_a_version() {
        let mut example = two((0, 90));
        let read = |example: &mut Example, site: u16, id: u32| {
            let run = &mut example.history.executed.get_mut(&position(1, 0, 1)).unwrap()[0].1;
            run.reads[0] = (version(site, id, 0).0, None);
        };
        read(&mut example, 7, 7);
        assert_eq!(found(&example), Ok(()));
        read(&mut example, 0, 0);
        assert!(found(&example).unwrap_err().contains("has no row of accounts (0, 0)"));
        example.history.executed.get_mut(&position(1, 0, 0)).unwrap()[0].1.writes[0].1 = None;
        assert_eq!(found(&example), Ok(()));
    }

    #[test]
    fn snapshots_and_last_rows_are_looked_at() {
        let mut example = two((0, 90));
        example.snapshot(position(2, 0, 0), 90);
        let rows = |balance| [version(0, 0, balance)].map(|(key, row)| (key, row.unwrap())).into();
        example.history.snapshots[0].rows = rows(90);
        example.history.rows[0] = rows(90);
        assert_eq!(found(&example), Ok(()));
        example.history.rows[0] = rows(89);
        assert!(found(&example).unwrap_err().starts_with("p0 at the end has [89] of accounts (0, 0)"));
        example.history.snapshots[0].rows = rows(88);
        assert!(found(&example).unwrap_err().starts_with("snapshot c1@p0#2 at e2.p0.0 has [88] of"));
    }

    #[test]
    fn transactions_that_nobody_asked_for_are_found() {
        let mut example = two((0, 90));
        let mut invocation = example.history.requests.remove(&request(1, 1)).unwrap();
        assert_eq!(found(&example), Err("the log has c1@p0#1 at e1.p0.1, which nobody sent".to_owned()));
        let asked = invocation.operation.clone();
        for operation in [Operation::OpenSnapshot, asked.clone()] {
            invocation.operation = operation;
            example.history.requests.insert(request(1, 1), invocation.clone());
            assert_eq!(found(&example).is_ok(), invocation.operation == asked);
        }
        if let Operation::Call { arguments, .. } = &mut invocation.operation {
            *arguments = Bytes::from_static(b"other");
        }
        example.history.requests.insert(request(1, 1), invocation);
        assert!(found(&example).unwrap_err().ends_with("with another operation than its client sent"));
    }
}
