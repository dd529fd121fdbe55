//! Liveness: once all faults are healed, every request is answered and every node comes to rest (CAL-03: what is ordered is
//! carried out).

use crate::history::History;

/// Checks the property.
///
/// # Errors
/// With the reason for which the run did not come to an end.
pub fn check(history: &History) -> Result<(), String> {
    history.unfinished.clone().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::example::Example;

    #[test]
    fn a_run_that_did_not_finish_says_why() {
        let mut history = Example::new().history;
        assert_eq!(check(&history), Ok(()));
        history.unfinished = Some("p1 waits for p2".to_owned());
        assert_eq!(check(&history), Err("p1 waits for p2".to_owned()));
    }
}
