//! How hard a cluster must be driven to do the most that it can, and how long until that is measured.

use ordain_db::error::Error;

use super::{AlohaEffort, AlohaPoint, AlohaRun, AlohaSetting, Drive, run_of};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds};
use crate::world::{Measured, World};

/// What does less than this share of the best does clearly less.
const CLEARLY_LESS: f64 = 0.9;

/// So many windows in a row that do clearly less end a climb.
const WORSE_MAX: usize = 2;

/// The longest latency after twice which a closed loop is measured. Only what is far beyond the best has a longer one.
const LATENCY_MAX: Nanoseconds = 500 * MILLISECOND;

/// Periods of an epoch that go by before light load is measured.
const PERIODS_BEFORE: u64 = 4;

/// When a run was measured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Span {
    /// Virtual time before.
    pub warm_up: Nanoseconds,
    /// Virtual time that was measured.
    pub time: Nanoseconds,
}

/// Runs with ever more calls outstanding at each node, until two in a row do clearly less than the best; then with half and with twice as
/// many as at the best. The runs are ascending in that number.
///
/// # Errors
/// When a run fails.
pub(in crate::scale) fn climb<P>(
    ladder: &[u64],
    throughput: impl Fn(&P) -> f64,
    mut run: impl FnMut(u64) -> Result<P, Error>,
) -> Result<Vec<P>, Error> {
    let mut tried: Vec<(u64, P)> = Vec::new();
    let (mut best, mut best_window, mut worse) = (0.0, 0, 0);
    for window in ladder {
        let point = run(*window)?;
        let rate = throughput(&point);
        tried.push((*window, point));
        worse = if rate < CLEARLY_LESS * best { worse + 1 } else { 0 };
        if rate > best {
            (best, best_window) = (rate, *window);
        }
        if worse == WORSE_MAX {
            break;
        }
    }
    for window in [best_window / 2, 2 * best_window] {
        if window > 0 && !tried.iter().any(|(other, _)| *other == window) {
            tried.push((window, run(window)?));
        }
    }
    tried.sort_by_key(|(window, _)| *window);
    Ok(tried.into_iter().map(|(_, point)| point).collect())
}

/// Where a run stands among those of its climb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::scale) enum Place {
    /// It did the most, and less was done with fewer calls outstanding and with more.
    Peak,
    /// It did the most, with the fewest calls outstanding that were tried.
    Lowest,
    /// It did the most, with the most calls outstanding that were tried: with more there might be more.
    Highest,
}

impl Place {
    /// The name in tables.
    pub(in crate::scale) fn name(self) -> &'static str {
        match self {
            Place::Peak => "peak",
            Place::Lowest => "peak at the lowest",
            Place::Highest => "peak at the highest",
        }
    }

    /// Of the best of some runs: their windows and throughputs. `None` if there are none.
    pub(in crate::scale) fn of_best(runs: impl Iterator<Item = (u64, f64)>) -> Option<(u64, Place)> {
        let runs: Vec<(u64, f64)> = runs.collect();
        // Of several that do the same, the one with the fewest calls.
        let best = runs.iter().copied().reduce(|best, run| if run.1 > best.1 { run } else { best })?;
        let windows = || runs.iter().map(|(window, _)| *window);
        let place = if windows().max() == Some(best.0) {
            Place::Highest
        } else if windows().min() == Some(best.0) {
            Place::Lowest
        } else {
            Place::Peak
        };
        Some((best.0, place))
    }
}

/// Measures a closed loop once it has settled: from no sooner than twice the mean latency on, and for no less than that latency, which
/// follows from the calls outstanding and from how many are answered (Little's law). The times are what is measured at least; `begins` is
/// called whenever a measurement begins, of which the last one counts.
pub(in crate::scale) fn closed_loop(
    world: &mut World<'_>,
    setting: &AlohaSetting,
    (warm_up, time): (Nanoseconds, Nanoseconds),
    mut begins: impl FnMut(&World<'_>),
) -> AlohaRun {
    let window = if let Drive::Window(window) = setting.drive { window } else { 0 };
    let outstanding = window * u64::from(setting.nodes);
    let mut span = Span { warm_up, time };
    world.run_until(world.now() + warm_up);
    loop {
        begins(world);
        let measured = world.measure(0, span.time);
        let latency = mean_latency(&measured, outstanding, span.time).min(LATENCY_MAX);
        if span.warm_up >= 2 * latency && span.time >= latency {
            return run_of(&measured, span, setting.nodes);
        }
        // That was too early, and becomes part of the time before.
        span.warm_up += span.time;
        let lacking = (2 * latency).saturating_sub(span.warm_up);
        world.run_until(world.now() + lacking);
        span = Span { warm_up: span.warm_up + lacking, time: span.time.max(latency) };
    }
}

/// The mean latency of a closed loop in which so many calls were answered in so much time.
fn mean_latency(measured: &Measured, outstanding: u64, time: Nanoseconds) -> Nanoseconds {
    let answered = measured.latencies.len().max(1) as f64;
    (outstanding as f64 * time as f64 / answered) as Nanoseconds
}

/// Measures light load, when some epochs have gone by.
pub(in crate::scale) fn at_rate(
    world: &mut World<'_>,
    setting: &AlohaSetting,
    effort: &AlohaEffort,
) -> AlohaRun {
    let span = light_span(setting, effort);
    run_of(&world.measure_stages(span.warm_up, span.time), span, setting.nodes)
}

/// When light load is measured.
pub(in crate::scale) fn light_span(setting: &AlohaSetting, effort: &AlohaEffort) -> Span {
    let periods = PERIODS_BEFORE * setting.epochs.microseconds * MICROSECOND;
    Span { warm_up: effort.warm_up.max(periods), time: effort.light_time }
}

/// Each engine, workload and number of nodes with closed loops, once, in the order of the points.
fn climbs(points: &[AlohaPoint]) -> Vec<AlohaSetting> {
    let mut climbs: Vec<AlohaSetting> = Vec::new();
    for point in points.iter().filter(|point| matches!(point.setting.drive, Drive::Window(_))) {
        if !climbs.iter().any(|other| other.is_beside(&point.setting)) {
            climbs.push(point.setting);
        }
    }
    climbs
}

/// Where a point stands among those of its climb, if it is the best of them.
pub(super) fn place_of(points: &[AlohaPoint], of: &AlohaSetting) -> Option<Place> {
    let Drive::Window(window) = of.drive else { return None };
    let beside = points.iter().filter(|point| point.setting.is_beside(of));
    let runs = beside.filter_map(|point| match point.setting.drive {
        Drive::Window(window) => Some((window, point.run.throughput)),
        _ => None,
    });
    let (best, place) = Place::of_best(runs)?;
    (best == window).then_some(place)
}

/// How many of the peaks have less on both sides, and which are at an end of what was tried.
pub fn peaks(points: &[AlohaPoint]) -> String {
    let climbs = climbs(points);
    let ends = points.iter().filter_map(|point| match place_of(points, &point.setting)? {
        Place::Peak => None,
        place => Some((point.setting.told(), place)),
    });
    tell(climbs.len(), ends)
}

/// See [`peaks`].
pub(in crate::scale) fn tell(climbs: usize, ends: impl Iterator<Item = (String, Place)>) -> String {
    let ends: Vec<(String, Place)> = ends.collect();
    let of = |place: Place| {
        let own = ends.iter().filter(|(_, other)| *other == place).map(|(told, _)| told.as_str());
        own.collect::<Vec<_>>().join("; ")
    };
    let mut out = format!(
        "PEAKS of {climbs} curves: {} have less throughput with fewer calls outstanding and with more",
        climbs - ends.len().min(climbs)
    );
    for (place, name) in [(Place::Lowest, "lowest"), (Place::Highest, "highest")] {
        let told = of(place);
        if !told.is_empty() {
            out.push_str(&format!("; at the {name} number that was tried: {told}"));
        }
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climbed(ladder: &[u64], rate: impl Fn(u64) -> f64) -> Vec<u64> {
        let mut order = Vec::new();
        let tried = climb(
            ladder,
            |(_, rate)| *rate,
            |window| {
                order.push(window);
                Ok((window, rate(window)))
            },
        );
        let windows: Vec<u64> = tried.unwrap().into_iter().map(|(window, _)| window).collect();
        assert!(windows.is_sorted() && windows.len() == order.len());
        order
    }

    #[test]
    fn a_climb_ends_below_its_best_and_looks_around_it() {
        let ladder = [1, 4, 16, 64, 256];
        // Up to 4, then half, half and half.
        let falls = |window: u64| if window <= 4 { window as f64 } else { 16.0 / window as f64 };
        assert_eq!(climbed(&ladder, falls), [1, 4, 16, 64, 2, 8]);
        // One that is worse does not end it, nor do those that are about as good.
        let dips = |window: u64| if window == 16 { 1.0 } else { window as f64 };
        assert_eq!(climbed(&ladder, dips), [1, 4, 16, 64, 256, 128, 512]);
        let flat = |window: u64| if window == 1 { 10.0 } else { 9.5 };
        assert_eq!(climbed(&ladder, flat), [1, 4, 16, 64, 256, 2]);
        let failed: Result<Vec<f64>, Error> =
            climb(&ladder, |rate| *rate, |_| Err(Error::Invalid("no".to_owned())));
        assert!(failed.is_err());
    }

    #[test]
    fn peaks_at_an_end_are_told() {
        let place = |runs: &[(u64, f64)]| Place::of_best(runs.iter().copied());
        assert_eq!(place(&[(1, 5.0), (4, 7.0), (16, 6.0)]), Some((4, Place::Peak)));
        assert_eq!(place(&[(1, 7.0), (4, 7.0), (16, 6.0)]), Some((1, Place::Lowest)));
        assert_eq!(place(&[(1, 5.0), (4, 7.0)]), Some((4, Place::Highest)));
        assert_eq!(place(&[]), None);
        let ends = [("a".to_owned(), Place::Lowest), ("b".to_owned(), Place::Highest)];
        let told = tell(3, ends.into_iter());
        assert_eq!(
            told,
            "PEAKS of 3 curves: 1 have less throughput with fewer calls outstanding and with more; at the lowest number that was \
             tried: a; at the highest number that was tried: b\n"
        );
    }
}
