//! What the paper states, or is asked of this engine, held against real runs.

use ordain_sim::scale::shapes::{Judgement, judgement, percent};

use super::Line;
use super::cases::{ANSWERED, ARITHMETIC, LIGHT, NEW_ORDERS, ONE_PARTITION, OWN, WHOLE};

/// The most that may be lost to contention for there to be "no significant drop".
const NO_DROP: f64 = 0.15;

/// The least that `aloha` is asked for on one partition, as a share of `calvin`.
const ONE_PARTITION_LEAST: f64 = 0.5;

/// Half of the paper's epoch, in milliseconds.
const HALF_EPOCH: f64 = 12.5;

/// Holds the statements against what was measured: the lines of each case, by its name.
pub(super) fn judge(measured: &[(&str, &[Line])]) -> Vec<Judgement> {
    let found = Found(measured);
    let mut judgements = vec![over_calvin(&found)];
    for (name, cases) in [("arithmetic", ARITHMETIC), ("functors of its own", OWN), ("as a whole", WHOLE)] {
        judgements.push(over_indexes(&found, name, cases));
    }
    judgements.push(calvin_falls(&found));
    judgements.extend(ONE_PARTITION.map(|case| on_one_partition(&found, case)));
    judgements.push(half_an_epoch(&found));
    judgements.push(adaptive(&found));
    judgements.push(early(&found));
    judgements
}

struct Found<'a>(&'a [(&'a str, &'a [Line])]);

impl Found<'_> {
    /// An entry of a case, by its number there.
    fn line(&self, case: &str, entry: usize) -> Option<&Line> {
        let (_, lines) = self.0.iter().find(|(name, _)| *name == case)?;
        lines.get(entry)
    }

    fn ratio(&self, case: &str) -> Option<f64> {
        Some(self.line(case, 1)?.over(self.line(case, 0)?).median)
    }

    /// The share of a throughput that is lost from the first case to the second.
    fn loss(&self, cases: [&str; 2], entry: usize) -> Option<(f64, f64, f64)> {
        let [low, high] = cases.map(|case| self.line(case, entry).map(Line::throughput));
        low.zip(high).map(|(low, high)| (low, high, 1.0 - high / low))
    }
}

fn over_calvin(found: &Found<'_>) -> Judgement {
    let ratios = NEW_ORDERS.map(|case| Some((case, found.ratio(case)?)));
    let ratios = ratios.into_iter().collect::<Option<Vec<_>>>();
    judgement(
        ("ALO-X04", "Fan and Golab §V-B"),
        "aloha does 13 to 112 times as many New Orders as calvin".to_owned(),
        ratios.map(|ratios| {
            let told = ratios.iter().map(|(case, ratio)| format!("{case} {ratio:.2} times"));
            let holds = ratios.iter().all(|(_, ratio)| (13.0..=112.0).contains(ratio));
            (told.collect::<Vec<_>>().join(", "), holds)
        }),
    )
}

fn tell_loss((low, high, loss): (f64, f64, f64)) -> String {
    format!("from {low:.0} to {high:.0}/s, a loss of {}", percent(loss))
}

fn over_indexes(found: &Found<'_>, name: &str, cases: [&str; 2]) -> Judgement {
    let loss = found.loss(cases, 1);
    judgement(
        ("ALO-X07", "Fan and Golab §V-C1, Figure 9"),
        format!("aloha, {name}: no significant drop from index 0.0001 to 0.1, under 15 %"),
        loss.map(|loss| (tell_loss(loss), loss.2 < NO_DROP)),
    )
}

fn calvin_falls(found: &Found<'_>) -> Judgement {
    let loss = found.loss(WHOLE, 0);
    judgement(
        ("ALO-X07", "Fan and Golab §V-C1, Figure 9"),
        "calvin clearly falls".to_owned(),
        loss.map(|loss| (tell_loss(loss), loss.2 > 2.0 * NO_DROP)),
    )
}

fn on_one_partition(found: &Found<'_>, case: &'static str) -> Judgement {
    judgement(
        ("ours", "one partition"),
        format!("{case}: aloha does at least half of calvin"),
        found.ratio(case).map(|ratio| (format!("{ratio:.2} times"), ratio >= ONE_PARTITION_LEAST)),
    )
}

fn half_an_epoch(found: &Found<'_>) -> Judgement {
    let mean = found.line(LIGHT, 2).map(|line| line.latency_us() / 1e3);
    judgement(
        ("ALO-X09", "Fan and Golab §V-C2"),
        "aloha: with epochs of 25 ms mean latency is half of that, and its processing".to_owned(),
        mean.map(|mean| {
            let over = mean - HALF_EPOCH;
            (
                format!("{mean:.2} ms: {over:.2} ms above {HALF_EPOCH} ms"),
                (0.0..=HALF_EPOCH / 5.0).contains(&over),
            )
        }),
    )
}

fn adaptive(found: &Found<'_>) -> Judgement {
    let both = found.line(LIGHT, 2).zip(found.line(LIGHT, 3));
    judgement(
        ("ours", "DESIGN §3.1"),
        "aloha: epochs that close early beat that".to_owned(),
        both.map(|(managed, adaptive)| {
            let [managed, adaptive] = [managed, adaptive].map(|line| line.latency_us() / 1e3);
            let told = format!("{adaptive:.2} ms, {:.1} times less than {managed:.2} ms", managed / adaptive);
            (told, adaptive < managed)
        }),
    )
}

fn early(found: &Found<'_>) -> Judgement {
    let both = found.line(ANSWERED, 0).zip(found.line(ANSWERED, 1));
    judgement(
        ("ALO-X11 d", "Fan and Golab §IV-A"),
        "an early acknowledgement comes before the late one".to_owned(),
        both.map(|(late, early)| {
            let [late, early] = [late, early].map(|line| line.latency_us() / 1e3);
            (format!("after {early:.2} ms instead of {late:.2} ms, in the mean"), early < late)
        }),
    )
}

#[cfg(test)]
mod tests {
    use ordain_sim::scale::shapes::Verdict;

    use super::*;

    /// Runs for which all statements hold.
    fn as_stated() -> Vec<(&'static str, Vec<Line>)> {
        let line = |throughput: f64, latency_ms: f64| Line {
            entry: String::new(),
            throughputs: vec![throughput; 3],
            latencies_us: vec![latency_ms * 1e3; 3],
            cpu_us: Vec::new(),
            computed_us: Vec::new(),
            at_an_end: false,
        };
        let pair = |case, calvin, aloha| (case, vec![line(calvin, 1.0), line(aloha, 1.0)]);
        let mut all: Vec<(&str, Vec<Line>)> = NEW_ORDERS.map(|case| pair(case, 1.0, 20.0)).to_vec();
        for [low, high] in [ARITHMETIC, OWN, WHOLE] {
            all.extend([pair(low, 10.0, 20.0), pair(high, 2.0, 19.0)]);
        }
        all.extend(ONE_PARTITION.map(|case| pair(case, 10.0, 6.0)));
        let epochs = [13.0, 1.0, 13.0, 1.0].map(|latency| line(5.0, latency)).to_vec();
        all.extend([(LIGHT, epochs), (ANSWERED, vec![line(5.0, 2.0), line(5.0, 1.0)])]);
        all
    }

    fn differing(all: &[(&'static str, Vec<Line>)]) -> Vec<&'static str> {
        let all: Vec<(&str, &[Line])> = all.iter().map(|(name, lines)| (*name, lines.as_slice())).collect();
        let judgements = judge(&all).into_iter();
        let differ = judgements.filter(|judgement| judgement.verdict != Verdict::Holds);
        differ.map(|judgement| judgement.experiment).collect()
    }

    #[test]
    fn statements_hold_or_differ() {
        assert_eq!(differing(&as_stated()), [""; 0]);
        let altered = |case: &str, entry: usize, alter: &dyn Fn(&mut Line)| {
            let mut all = as_stated();
            let (_, lines) = all.iter_mut().find(|(name, _)| *name == case).unwrap();
            alter(&mut lines[entry]);
            differing(&all)
        };
        let slower = |line: &mut Line| line.throughputs = vec![4.0; 3];
        assert_eq!(altered(NEW_ORDERS[3], 1, &slower), ["ALO-X04"]);
        for [_, high] in [ARITHMETIC, OWN, WHOLE] {
            assert_eq!(altered(high, 1, &slower), ["ALO-X07"]);
        }
        assert_eq!(altered(WHOLE[1], 0, &|line| line.throughputs = vec![9.0; 3]), ["ALO-X07"]);
        assert_eq!(altered(ONE_PARTITION[1], 1, &slower), ["ours"]);
        assert_eq!(altered(LIGHT, 2, &|line| line.latencies_us = vec![20_000.0; 3]), ["ALO-X09"]);
        assert_eq!(altered(LIGHT, 3, &|line| line.latencies_us = vec![20_000.0; 3]), ["ours"]);
        assert_eq!(altered(ANSWERED, 1, &|line| line.latencies_us = vec![9_000.0; 3]), ["ALO-X11 d"]);
    }

    #[test]
    fn what_was_not_run_is_not_judged() {
        let judgements = judge(&[]);
        assert_eq!(judgements.len(), 1 + 3 + 1 + 2 + 3);
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured));
    }
}
