//! What is to be run for the figures.

use ordain_db::engine::EngineKind;
use ordain_db::sequencer::EpochOptions;
use ordain_workload::micro::Declare;

use super::{
    ADAPTIVE, AlohaPoint, AlohaSetting, AlohaWorkload, Drive, ENGINES, FEW_AND_MANY, Figure, GRANULARITIES,
    HIGH, INDEXES, LADDER, LENGTHS, LIGHT, LOW, MANAGED, MEDIUM, SIZES, peak,
};

impl AlohaSetting {
    /// Whether another one differs in how hard the cluster is driven, and in nothing else.
    pub(super) fn is_beside(&self, other: &AlohaSetting) -> bool {
        AlohaSetting { drive: other.drive, ..*self } == *other
    }

    /// For people.
    pub(in crate::scale) fn told(&self) -> String {
        let AlohaSetting { engine: kind, workload, nodes, .. } = self;
        let engine = kind.name();
        match workload {
            AlohaWorkload::NewOrder { warehouses } => format!("{engine}, {warehouses}W on {nodes} nodes"),
            AlohaWorkload::Payment { warehouses } => {
                format!("{engine}, Payments, {warehouses}W on {nodes} nodes")
            }
            AlohaWorkload::Scaled { districts } => format!("{engine}, {districts}D on {nodes} nodes"),
            AlohaWorkload::Adds { declare, index } => {
                format!("{}, index {index} on {nodes} nodes", super::name_of(*kind, *declare))
            }
        }
    }

    /// The runs that there may be: one for each number of calls outstanding.
    #[cfg(test)]
    pub(in crate::scale) fn tries(self) -> Vec<AlohaSetting> {
        match self.drive {
            Drive::Climb(ladder) => {
                let windows = ladder.iter().map(|window| Drive::Window(*window));
                windows.map(|drive| AlohaSetting { drive, ..self }).collect()
            }
            _ => vec![self],
        }
    }
}

/// All runs of some figures that can be made at once: on clusters of `nodes`, and for Figure 8 of up to `nodes_max`. Each once, although
/// several figures may show it.
pub fn settings(figures: &[Figure], nodes: u16, nodes_max: u16) -> Vec<AlohaSetting> {
    let mut all: Vec<AlohaSetting> = Vec::new();
    for engine in ENGINES {
        let mut add = |workload: AlohaWorkload, nodes: u16| {
            let drive = Drive::Climb(&LADDER);
            let setting = AlohaSetting { engine, workload, nodes, epochs: ADAPTIVE, drive };
            if !all.contains(&setting) {
                all.push(setting);
            }
        };
        for figure in figures {
            match figure {
                Figure::Latency => {
                    of_tpcc(&FEW_AND_MANY).for_each(|workload| add(workload, nodes));
                }
                Figure::Granularity => {
                    of_tpcc(&GRANULARITIES).for_each(|workload| add(workload, nodes));
                    for warehouses in GRANULARITIES {
                        add(AlohaWorkload::Payment { warehouses }, nodes);
                    }
                }
                Figure::ScaleOut => {
                    for size in SIZES.into_iter().filter(|size| *size <= nodes_max) {
                        of_tpcc(&FEW_AND_MANY).for_each(|workload| add(workload, size));
                    }
                }
                Figure::Contention => {
                    for (declare, index) in each_adds(engine, &INDEXES) {
                        add(AlohaWorkload::Adds { declare, index }, nodes);
                    }
                }
                // What is light is a share of the most that is possible.
                Figure::Breakdown | Figure::Epochs => {
                    for (declare, index) in each_adds(engine, &[LOW]) {
                        add(AlohaWorkload::Adds { declare, index }, nodes);
                    }
                }
            }
        }
    }
    all
}

/// New Orders on nodes with so many warehouses each, and with so many districts of one that is spread over them.
fn of_tpcc(granularities: &[u32]) -> impl Iterator<Item = AlohaWorkload> {
    let warehouses =
        granularities.iter().map(|warehouses| AlohaWorkload::NewOrder { warehouses: *warehouses });
    warehouses
        .chain(granularities.iter().map(|districts| AlohaWorkload::Scaled { districts: *districts as u16 }))
}

/// How additions are declared with an engine, at each of some indexes.
fn each_adds(engine: EngineKind, indexes: &[f64]) -> impl Iterator<Item = (Declare, f64)> {
    let each = declares(engine).iter();
    each.flat_map(move |declare| indexes.iter().map(move |index| (*declare, *index)))
}

/// The ways in which additions are declared with an engine: one that knows no functors has no choice.
pub(in crate::scale) fn declares(engine: EngineKind) -> &'static [Declare] {
    match engine {
        EngineKind::Aloha => &[Declare::Arithmetic, Declare::Own, Declare::Whole],
        _ => &[Declare::Whole],
    }
}

/// The runs of some figures at light load, which is [`LIGHT`] of the highest throughput of the engine at the lowest contention index,
/// among `points`. At all indexes it is the same, so that contention and load do not change together.
pub fn light_settings(figures: &[Figure], nodes: u16, points: &[AlohaPoint]) -> Vec<AlohaSetting> {
    let mut all = Vec::new();
    for engine in ENGINES {
        for declare in declares(engine) {
            let low = AlohaWorkload::Adds { declare: *declare, index: LOW };
            let Some(peak) = peak(points, engine, low, nodes) else { continue };
            let rate = ((LIGHT * peak / f64::from(nodes.max(1))).round() as u64).max(1);
            let mut add = |index: f64, epochs: EpochOptions| {
                let workload = AlohaWorkload::Adds { declare: *declare, index };
                all.push(AlohaSetting { engine, workload, nodes, epochs, drive: Drive::Rate(rate) });
            };
            if figures.contains(&Figure::Breakdown) {
                [LOW, HIGH].into_iter().for_each(|index| add(index, MANAGED));
            }
            if figures.contains(&Figure::Epochs) && *declare == declares(engine)[0] {
                LENGTHS.into_iter().for_each(|length| add(MEDIUM, managed(length)));
                add(MEDIUM, ADAPTIVE);
            }
        }
    }
    all
}

/// The paper's epochs with a length in milliseconds.
pub(in crate::scale) fn managed(length: u64) -> EpochOptions {
    EpochOptions { microseconds: length * 1_000, ..MANAGED }
}

#[cfg(test)]
mod tests {
    use super::super::{AlohaRun, NODES};
    use super::*;

    #[test]
    fn no_setting_is_run_twice() {
        let all = settings(&Figure::ALL, NODES, 20);
        for (place, setting) in all.iter().enumerate() {
            assert!(!all[..place].contains(setting), "{setting:?}");
            // All are tried alike: figures compare the best of one with the best of another.
            assert_eq!(setting.drive, Drive::Climb(&LADDER));
        }
        // Of each engine: 3 times 4 of Figure 7, which has those of Figure 6; 4 at each of 4 other sizes of Figure 8. Of additions four
        // lines at 5 indexes.
        assert_eq!(all.len(), 2 * (3 * 4 + 4 * 4) + 4 * 5);
        let fewer = settings(&[Figure::Breakdown, Figure::Epochs], NODES, 20);
        assert_eq!(fewer.len(), 4);
        assert!(fewer.iter().all(|setting| all.contains(setting)));
    }

    #[test]
    fn light_load_is_a_share_of_the_peak() {
        let figures = [Figure::Breakdown, Figure::Epochs];
        assert_eq!(light_settings(&figures, 2, &[]), []);
        let point = |setting: AlohaSetting| AlohaPoint {
            run: AlohaRun { throughput: 80_000.0, ..AlohaRun::default() },
            setting,
            participants: 2.0,
        };
        let all = settings(&figures, 2, 2).into_iter().flat_map(AlohaSetting::tries);
        let points: Vec<AlohaPoint> = all.map(point).collect();
        let light = light_settings(&figures, 2, &points);
        assert!(light.iter().all(|setting| setting.drive == Drive::Rate(2_000)));
        assert_eq!(light.len(), 4 * 2 + 2 * (LENGTHS.len() + 1));
        assert_eq!(light_settings(&[Figure::Contention], 2, &points), []);
    }
}
