//! What the paper states of Figure 1, and what it concludes, held against throughputs that were simulated or measured for real.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, TwoPhase, TwoPhaseWithoutCommitProtocol};

use super::{ENGINES, HIGH, LOW, Length, SHARE_OF_INDEXES};
use crate::scale::shapes::{CHANCE, Judgement, judgement, percent};

/// The largest loss to two-phase commit that counts as the paper's "as much as 30 %".
const STATED_LOSS: std::ops::RangeInclusive<f64> = 0.15..=0.45;

const CONCLUSION: (&str, &str) = ("Conclusion", "Ren et al. §3.3.1, §3.4 and §5");

/// A workload of Figure 1, with two participants of each distributed transaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// How much a transaction computes.
    pub length: Length,
    /// One over the contended records of each node.
    pub contention_index: f64,
    /// Percentage of transactions that touch more than one node.
    pub distributed_percent: f64,
}

impl Cell {
    /// A workload.
    pub fn new(length: Length, contention_index: f64, distributed_percent: f64) -> Cell {
        Cell { length, contention_index, distributed_percent }
    }
}

/// What was measured of Figure 1.
pub trait Figure1 {
    /// Shares of distributed transactions, in percent, ascending from 0 to 100.
    fn shares(&self) -> &'static [f64];

    /// Contention indexes at [`SHARE_OF_INDEXES`], ascending.
    fn indexes(&self) -> &'static [f64];

    /// Those of them that are the paper's high contention.
    fn high_indexes(&self) -> &'static [f64];

    /// Transactions per second.
    fn throughput(&self, engine: EngineKind, at: Cell) -> Option<f64>;

    /// One throughput over another, of runs of the same round.
    fn over(&self, one: (EngineKind, Cell), other: (EngineKind, Cell)) -> Option<f64>;

    /// Throughput of `calvin` over that of another engine.
    fn lead(&self, other: EngineKind, at: Cell) -> Option<f64> {
        self.over((Calvin, at), (other, at))
    }

    /// What an engine keeps of the throughput in one workload in another.
    fn kept(&self, engine: EngineKind, from: Cell, to: Cell) -> Option<f64> {
        self.over((engine, to), (engine, from))
    }

    /// The share of the throughput without a commit protocol that is lost with it.
    fn loss(&self, at: Cell) -> Option<f64> {
        Some(1.0 - self.over((TwoPhase, at), (TwoPhaseWithoutCommitProtocol, at))?)
    }
}

/// Holds the statements against what was measured.
pub fn judge_figure_1(points: &impl Figure1) -> Vec<Judgement> {
    let mut judgements = conclusion(points);
    for length in Length::ALL {
        judgements.extend(over_shares(points, length));
    }
    for length in Length::ALL {
        judgements.extend(over_indexes(points, length));
    }
    judgements
}

/// The two halves of the paper's conclusion: which engine suits which workload.
fn conclusion(points: &impl Figure1) -> Vec<Judgement> {
    let ahead = |length: Length, index: f64| {
        let at = match index > HIGH {
            true => format!(
                "index {index}, as many transactions for a contended record as on the paper's five cores"
            ),
            false => format!("index {index}"),
        };
        let stated = format!(
            "with high contention ({at}) and {SHARE_OF_INDEXES} % distributed, {} transactions: calvin is ahead",
            length.name()
        );
        let local = points.lead(TwoPhase, Cell::new(length, LOW, 0.0));
        let lead = points.lead(TwoPhase, Cell::new(length, index, SHARE_OF_INDEXES));
        let found = lead.zip(local).map(|(lead, local)| {
            let measured = format!(
                "{lead:.2} times the throughput of two-phase; {local:.2} times where none are distributed"
            );
            (measured, lead > local.max(1.0) * (1.0 + CHANCE))
        });
        judgement(CONCLUSION, stated, found)
    };
    let stated = "without distributed transactions, long ones: calvin need not be ahead".to_owned();
    let leads = [LOW, HIGH].map(|index| {
        let lead = points.lead(TwoPhase, Cell::new(Length::Long, index, 0.0))?;
        Some((index, lead))
    });
    let found = leads.into_iter().collect::<Option<Vec<_>>>().map(|leads| {
        let each = leads.iter().map(|(index, lead)| format!("{lead:.2} times at index {index}"));
        let measured = format!("of the throughput of two-phase: {}", each.collect::<Vec<_>>().join(", "));
        (measured, leads.iter().all(|(_, lead)| *lead <= 1.0 + CHANCE))
    });
    let lengths = [Length::Long, Length::Short].into_iter();
    let mut judgements: Vec<Judgement> = lengths
        .flat_map(|length| points.high_indexes().iter().map(move |index| (length, *index)))
        .map(|(length, index)| ahead(length, index))
        .collect();
    judgements.push(judgement(CONCLUSION, stated, found));
    judgements
}

/// Figures 1 (a) and (b).
fn over_shares(points: &impl Figure1, length: Length) -> Vec<Judgement> {
    let from = match length {
        Length::Short => ("DET-X02", "Ren et al. §3.3.1, Figure 1 (a)"),
        Length::Long => ("DET-X03", "Ren et al. §3.3.1, Figure 1 (b)"),
    };
    let say = |statement: &str, found| judgement(from, format!("{}: {statement}", length.name()), found);
    let mut judgements = vec![
        say("throughput falls with the share of distributed transactions", falls(points, length)),
        say(
            "two-phase commit takes at times as much as 30 % of the throughput",
            largest_loss(points, length),
        ),
        say(
            "with high contention the loss to two-phase commit shrinks as the share grows",
            loss_shrinks(points, length),
        ),
        say(
            "with high contention two-phase without a commit protocol (not ACID) is still behind calvin",
            bound_is_behind(points, length),
        ),
    ];
    if length == Length::Long {
        let at = |share| Cell::new(length, HIGH, share);
        let kept = |engine| points.kept(engine, at(0.0), at(SHARE_OF_INDEXES));
        judgements.push(say(
            "with high contention two-phase falls steeply with the share, calvin gently",
            keeps_more(kept, "of the throughput at 0 % are left at 20 %"),
        ));
    }
    judgements
}

fn falls(points: &impl Figure1, length: Length) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for engine in ENGINES {
        for index in [LOW, HIGH] {
            let cells: Vec<Cell> =
                points.shares().iter().map(|share| Cell::new(length, index, *share)).collect();
            let line: Vec<f64> =
                cells.iter().map(|at| points.throughput(engine, *at)).collect::<Option<_>>()?;
            let steps: Vec<f64> =
                cells.windows(2).map(|pair| points.kept(engine, pair[0], pair[1])).collect::<Option<_>>()?;
            let (first, last) = (line.first()?, line.last()?);
            let rises = steps.iter().any(|kept| *kept > 1.0 + CHANCE);
            let kept = points.kept(engine, *cells.first()?, *cells.last()?)?;
            holds &= !rises && kept < 1.0 - CHANCE;
            let rises = if rises { " with a rise between" } else { "" };
            parts.push(format!("{} at index {index} from {first:.0} to {last:.0}/s{rises}", engine.label()));
        }
    }
    Some((format!("from 0 to 100 %: {}", parts.join("; ")), holds))
}

fn largest_loss(points: &impl Figure1, length: Length) -> Option<(String, bool)> {
    let mut losses = Vec::new();
    for index in [LOW, HIGH] {
        for share in points.shares().iter().filter(|share| **share > 0.0) {
            losses.push((points.loss(Cell::new(length, index, *share))?, index, share));
        }
    }
    let most = losses.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let least = losses.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let tell = |(loss, index, share): &(f64, f64, &f64)| {
        format!("{} at index {index} and {share} % distributed", percent(*loss))
    };
    let measured = format!("at most {}; at least {}", tell(most), tell(least));
    Some((measured, STATED_LOSS.contains(&most.0) && least.0 > -CHANCE))
}

fn loss_shrinks(points: &impl Figure1, length: Length) -> Option<(String, bool)> {
    let at = |share| points.loss(Cell::new(length, HIGH, share));
    let (few, many) = (at(SHARE_OF_INDEXES)?, at(100.0)?);
    let measured =
        format!("at index {HIGH} {} at {SHARE_OF_INDEXES} %, {} at 100 %", percent(few), percent(many));
    Some((measured, many < few - CHANCE))
}

fn bound_is_behind(points: &impl Figure1, length: Length) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for share in points.shares().iter().filter(|share| **share >= SHARE_OF_INDEXES) {
        let lead = points.lead(TwoPhaseWithoutCommitProtocol, Cell::new(length, HIGH, *share))?;
        holds &= lead > 1.0 + CHANCE;
        parts.push(format!("{lead:.2} times at {share} %"));
    }
    Some((format!("calvin over the bound at index {HIGH}: {}", parts.join(", ")), holds))
}

/// Whether `calvin` keeps more than `two-phase`.
pub(super) fn keeps_more(kept: impl Fn(EngineKind) -> Option<f64>, of_what: &str) -> Option<(String, bool)> {
    let (calvin, two_phase) = (kept(Calvin)?, kept(TwoPhase)?);
    let measured = format!("{of_what}: calvin {}, two-phase {}", percent(calvin), percent(two_phase));
    Some((measured, two_phase < calvin * (1.0 - CHANCE)))
}

/// Whether a lead grows along a line: at its end it is larger than at its beginning, and than none, by more than chance makes of two
/// leads; and nowhere is it by more than chance below what it was before.
pub(super) fn grows(leads: &[f64]) -> bool {
    let (Some(first), Some(last)) = (leads.first(), leads.last()) else { return false };
    let mut highest = 0.0_f64;
    let falls = leads.iter().any(|lead| {
        highest = highest.max(*lead);
        *lead < highest * (1.0 - CHANCE)
    });
    !falls && *last > first.max(1.0) * (1.0 + 2.0 * CHANCE)
}

/// Figures 1 (c) and (d).
fn over_indexes(points: &impl Figure1, length: Length) -> Vec<Judgement> {
    let from = match length {
        Length::Short => ("DET-X04", "Ren et al. §3.3.1, Figure 1 (c)"),
        Length::Long => ("DET-X05", "Ren et al. §3.3.1, Figure 1 (d)"),
    };
    let at = |index: f64| Cell::new(length, index, SHARE_OF_INDEXES);
    let leads = points.indexes().iter().map(|index| Some((index, points.lead(TwoPhase, at(*index))?)));
    let gap = leads.collect::<Option<Vec<_>>>().map(|leads| {
        let each = leads.iter().map(|(index, lead)| format!("{lead:.2} times at {index}"));
        let measured = format!("calvin over two-phase: {}", each.collect::<Vec<_>>().join(", "));
        (measured, grows(&leads.iter().map(|(_, lead)| *lead).collect::<Vec<f64>>()))
    });
    let kept = |engine| points.kept(engine, at(*points.indexes().first()?), at(*points.indexes().last()?));
    let stated =
        |statement: &str| format!("{}, {SHARE_OF_INDEXES} % distributed: {statement}", length.name());
    vec![
        judgement(
            from,
            stated("two-phase falls further than calvin as contention rises"),
            keeps_more(kept, "of the throughput at the lowest index are left at the highest"),
        ),
        judgement(from, stated("the lead of calvin grows with the contention index"), gap),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_grows_all_along_and_by_more_than_chance() {
        assert!(grows(&[1.0, 0.98, 1.73, 3.32]) && grows(&[0.77, 1.23, 1.71]));
        assert!(!grows(&[0.97, 1.0, 0.99, 0.96, 1.07]), "chance about none");
        assert!(!grows(&[1.2, 1.25, 1.3]), "two leads differ by as much");
        assert!(!grows(&[1.44, 2.74, 4.02, 6.24, 4.63]), "it falls at last");
        assert!(!grows(&[1.0, 1.5, 1.2, 2.0]), "it falls in between");
        assert!(!grows(&[0.5, 0.7, 0.9]), "there is none");
        assert!(!grows(&[]) && !grows(&[2.0]));
    }
}
