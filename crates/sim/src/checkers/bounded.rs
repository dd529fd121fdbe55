//! Everything has a limit: for each gauge, `highest <= limit`. When a queue is full, its owner pushes back; it never drops
//! and never grows.

use super::Findings;
use crate::history::History;

/// Checks the property.
///
/// # Errors
/// With the first gauge that was beyond its limit.
pub fn check(history: &History) -> Result<(), String> {
    let mut findings = Findings::default();
    for gauge in history.gauges.iter().filter(|gauge| gauge.highest > gauge.limit) {
        findings.note(|| format!("{} reached {}, its limit is {}", gauge.name, gauge.highest, gauge.limit));
    }
    findings.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::example::Example;
    use crate::history::Gauge;

    #[test]
    fn gauges_beyond_their_limit_are_named() {
        let mut history = Example::new().history;
        history.gauges = vec![Gauge { name: "live of p0".to_owned(), highest: 5, limit: 5 }];
        assert_eq!(check(&history), Ok(()));
        history.gauges.push(Gauge { name: "live of p1".to_owned(), highest: 6, limit: 5 });
        assert_eq!(check(&history), Err("live of p1 reached 6, its limit is 5".to_owned()));
    }
}
