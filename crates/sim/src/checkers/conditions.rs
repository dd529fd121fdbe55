//! The workload's conditions hold over the last snapshot: conservation of money in bank, the consistency conditions of TPC-C
//! (clause 3.3.2 of its specification), counters in micro; CAL-01 asks for such a sum over all partitions.

use super::Findings;
use crate::history::History;

/// Checks the property.
///
/// # Errors
/// With the first condition that does not hold, and what was found.
pub fn check(history: &History) -> Result<(), String> {
    let mut findings = Findings::default();
    for line in history.conditions.iter().filter(|line| !line.holds) {
        findings.note(|| format!("{} does not hold: {}", line.condition, line.detail));
    }
    findings.finish()
}

#[cfg(test)]
mod tests {
    use ordain_workload::CheckLine;

    use super::*;
    use crate::checkers::example::Example;

    #[test]
    fn violated_conditions_are_named() {
        let line = |condition: &str, holds| CheckLine {
            condition: condition.to_owned(),
            holds,
            detail: "1 against 2".to_owned(),
        };
        let mut history = Example::new().history;
        assert_eq!(check(&history), Ok(()));
        history.conditions = vec![line("a = b", true)];
        assert_eq!(check(&history), Ok(()));
        history.conditions.extend([line("c = d", false), line("e = f", false)]);
        assert_eq!(check(&history), Err("c = d does not hold: 1 against 2 (and 1 more)".to_owned()));
    }
}
