//! Figure 8: over the number of nodes.

use ordain_db::engine::EngineKind::{Aloha, Calvin};

use super::super::report::lines;
use super::super::{AlohaPoint, AlohaWorkload, ENGINES, FEW_AND_MANY, SIZES, peak};
use super::Points;
use crate::scale::shapes::{Judgement, judgement, percent};

/// What a cluster must keep of the throughput of a node, from its smallest size to its largest, to be "nearly linear".
const NEARLY_LINEAR: f64 = 0.8;

const FROM: (&str, &str) = ("ALO-X06", "Fan and Golab §V-B3, Figure 8");

/// Figure 8, and how many nodes take part in a transaction.
pub(super) fn judge(points: &Points<'_>) -> Vec<Judgement> {
    let from = FROM;
    let (small, large) = (SIZES[0], SIZES[SIZES.len() - 1]);
    let mut judgements = Vec::new();
    for engine in ENGINES {
        for (letters, workload) in lines() {
            let per_node = |nodes| Some(peak(points.points, engine, workload, nodes)? / f64::from(nodes));
            let flattens = engine == Calvin && matches!(workload, AlohaWorkload::Scaled { .. });
            let found = per_node(small).zip(per_node(large)).map(|(first, last)| {
                let measured = format!(
                    "{first:.0}/s and node at {small}, {last:.0} at {large}: {} left",
                    percent(last / first)
                );
                (measured, (last >= NEARLY_LINEAR * first) != flattens)
            });
            let how = if flattens { "does not scale well" } else { "nearly linear" };
            let stated = format!("{}, {letters}: {how}", engine.name());
            judgements.push(judgement(from, stated, found));
        }
    }
    judgements.extend(on_the_largest(points));
    judgements.push(judgement(
        ("ALO-X02", "Fan and Golab §V-A1"),
        "scaled New Orders touch more than two nodes, and more where there are more".to_owned(),
        participants(points),
    ));
    judgements
}

/// What the paper says of its largest cluster.
fn on_the_largest(points: &Points<'_>) -> Vec<Judgement> {
    let from = FROM;
    let large = SIZES[SIZES.len() - 1];
    let mut judgements = Vec::new();
    let largest = |engine| {
        let all = lines().into_iter();
        let all =
            all.map(|(letters, workload)| Some((letters, peak(points.points, engine, workload, large)?)));
        all.collect::<Option<Vec<(String, f64)>>>()
    };
    judgements.push(judgement(
        from,
        format!("aloha does about 2 million New Orders a second on {large} nodes (of eight cores each)"),
        largest(Aloha).map(|all| {
            let each = all.iter().map(|(letters, rate)| format!("{rate:.0}/s at {letters}"));
            let measured = format!("{}, on nodes of one core each", each.collect::<Vec<_>>().join(", "));
            (measured, all.iter().all(|(_, rate)| (1.5e6..=3e6).contains(rate)))
        }),
    ));
    let leads = largest(Aloha).zip(largest(Calvin)).map(|(aloha, calvin)| {
        let each = aloha.into_iter().zip(calvin);
        let leads: Vec<(String, f64)> =
            each.map(|((letters, aloha), (_, calvin))| (letters, aloha / calvin)).collect();
        let tell = leads.iter().map(|(letters, lead)| format!("{lead:.2} times at {letters}"));
        let holds = leads.iter().all(|(_, lead)| (13.0..=112.0).contains(lead));
        (tell.collect::<Vec<_>>().join(", "), holds)
    });
    judgements.push(judgement(
        from,
        format!("on {large} nodes aloha does 13 to 112 times as much as calvin"),
        leads,
    ));
    judgements
}

/// The nodes that take part in a scaled order, on clusters of each size, and whether they become more.
fn participants(points: &Points<'_>) -> Option<(String, bool)> {
    let at = |nodes: u16| {
        let workload = AlohaWorkload::Scaled { districts: FEW_AND_MANY[1] as u16 };
        let of = |point: &&AlohaPoint| (point.setting.workload, point.setting.nodes) == (workload, nodes);
        points.points.iter().find(of).map(|point| (nodes, point.participants))
    };
    let all: Vec<(u16, f64)> = SIZES.into_iter().filter_map(at).collect();
    let told = all.iter().map(|(nodes, participants)| format!("{participants:.2} on {nodes}"));
    let told = format!("in the mean {} nodes", told.collect::<Vec<_>>().join(", "));
    let grows = all.windows(2).all(|pair| pair[1].1 > pair[0].1);
    (all.len() > 1).then(|| (told, grows && all.last().is_some_and(|last| last.1 > 2.0)))
}
