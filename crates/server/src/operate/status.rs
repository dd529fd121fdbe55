//! `ordain status`: one line for each node of a cluster.

use clap::Args;
use ordain_db::engine::EngineKind;
use ordain_db::node::{GroupStatus, Status};
use ordain_db::position::ReplicaId;
use serde::Serialize;
use serde_json::Value;

use super::view::{NodeView, View};
use super::{ClusterChoice, say};
use crate::cluster_file::ClusterFile;
use crate::deadlocks::Deadlocks;

/// What `ordain status` is told.
#[derive(Args, Clone, Debug)]
pub struct StatusOptions {
    #[command(flatten)]
    cluster: ClusterChoice,
    /// Print JSON, an object for each node, with all that the nodes tell.
    #[arg(long)]
    json: bool,
}

/// Prints how each node of a cluster stands; whether all could be asked.
///
/// # Errors
/// When the cluster file cannot be read.
pub fn run(options: &StatusOptions) -> Result<bool, String> {
    let mut view = View::new(options.cluster.read()?)?;
    let nodes = view.statuses();
    let all = nodes.iter().all(|node| node.status.is_ok());
    if options.json {
        let wrong = |error| format!("no JSON: {error}");
        let made: Result<Vec<NodeJson<'_>>, _> =
            nodes.iter().map(|node| NodeJson::new(&view.file, node)).collect();
        let text = serde_json::to_string_pretty(&made.map_err(wrong)?).map_err(wrong)?;
        say(&text)?;
        return Ok(all);
    }
    let heads = ["node", "process", "address", "role", "term", "epoch", "log", "checkpoint", "lag", "rows"];
    let mut rows: Vec<Vec<String>> = vec![heads.iter().map(|head| (*head).to_owned()).collect()];
    rows.extend(nodes.iter().map(|node| line(&view.file, node, &nodes)));
    print_table(&rows)?;
    // Below, as it has no place in a column.
    let unreachable = nodes.iter().filter_map(|node| Some((node, node.status.as_ref().err()?)));
    for (node, problem) in unreachable {
        say(&format!("{} cannot be asked: {problem}", node.node))?;
    }
    if !view.file.engine.is_acid() {
        say(&format!("the engine is {}: a bound to compare with", view.file.engine.label()))?;
    }
    if !view.file.engine.is_ordered() {
        for node in &nodes {
            if let Ok(status) = &node.status {
                say(&format!("{}: deadlocks: {}", node.node, Deadlocks::of([&status.deadlocks])))?;
            }
        }
    }
    for node in &nodes {
        if let Ok(status) = &node.status
            && let Some(told) = stopped_functors(status.functors_stopped, status.functor_problem.as_deref())
        {
            say(&format!("{}: {told}", node.node))?;
        }
    }
    for node in &nodes {
        if let Ok(status) = &node.status
            && let Some(epoch) = status.undecided
        {
            say(&format!(
                "{}: the replicas have written different things by the end of {epoch}, and no majority agrees: remove the one that is wrong, and \
                 add it again",
                node.node
            ))?;
        }
    }
    Ok(all)
}

/// Prints rows with columns as wide as what is in them; the last one of a row takes what it needs.
fn print_table(rows: &[Vec<String>]) -> Result<(), String> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        say(padded.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// The columns of a node.
fn line(file: &ClusterFile, view: &NodeView, all: &[NodeView]) -> Vec<String> {
    let entry = &file.processes[view.process];
    let mut cells = vec![view.node.to_string(), entry.name.clone(), entry.address.clone()];
    let Ok(status) = &view.status else {
        cells.push("unreachable".to_owned());
        return cells;
    };
    let group = status.group.as_ref();
    let of_group = |tell: &dyn Fn(&GroupStatus) -> String| group.map_or_else(|| "-".to_owned(), tell);
    cells.push(role(status, view.node.replica).to_owned());
    cells.push(of_group(&|group| group.term.to_string()));
    cells.push(status.delivered.0.to_string());
    cells.push(of_group(&|group| format!("{}..{}..{}", group.start, group.committed, group.last)));
    cells.push(status.stable.0.to_string());
    cells.push(lag(view, all));
    cells.push(status.rows.to_string());
    cells
}

/// What a node tells of functors that stopped, if any did.
fn stopped_functors(count: u64, problem: Option<&str>) -> Option<String> {
    let problem = problem?;
    let functors = if count == 1 { "1 functor".to_owned() } else { format!("{count} functors") };
    Some(format!("{functors} stopped and left rows alone, the last: {problem}"))
}

/// What a node is in its group.
pub(crate) fn role(status: &Status, own: ReplicaId) -> &'static str {
    match &status.group {
        None => "in memory",
        Some(_) if status.leads => "leader",
        Some(group) if group.voters.is_empty() => "joining",
        Some(group) if group.voters.contains(&own) || group.outgoing.contains(&own) => "follower",
        Some(group) if group.learners.contains(&own) => "learner",
        Some(_) => "no member",
    }
}

/// How many entries of the log a node lacks, as its leader knows.
fn lag(view: &NodeView, all: &[NodeView]) -> String {
    let leaders = all.iter().filter(|other| other.node.partition == view.node.partition);
    let leading = leaders.filter_map(|other| other.status.as_ref().ok()).filter(|status| status.leads);
    let newest = leading.filter_map(|status| status.group.as_ref()).max_by_key(|group| group.term);
    let Some(leader) = newest else { return "?".to_owned() };
    if leader.replica == view.node.replica {
        return "-".to_owned();
    }
    let own = leader.followers.iter().find(|follower| follower.replica == view.node.replica);
    match own {
        None => "-".to_owned(),
        Some(follower) if follower.needs_checkpoint => "needs a checkpoint".to_owned(),
        Some(follower) => leader.committed.saturating_sub(follower.matched).to_string(),
    }
}

/// A node for machines.
#[derive(Serialize)]
struct NodeJson<'a> {
    node: String,
    partition: u16,
    replica: u16,
    process: &'a str,
    address: &'a str,
    reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

impl<'a> NodeJson<'a> {
    fn new(file: &'a ClusterFile, view: &'a NodeView) -> Result<NodeJson<'a>, serde_json::Error> {
        let entry = &file.processes[view.process];
        let status = view.status.as_ref().ok();
        Ok(NodeJson {
            node: view.node.to_string(),
            partition: view.node.partition.0,
            replica: view.node.replica.0,
            process: &entry.name,
            address: &entry.address,
            reachable: status.is_some(),
            problem: view.status.as_ref().err().map(String::as_str),
            role: status.map(|status| role(status, view.node.replica)),
            status: status.map(|status| told(status, file.engine)).transpose()?,
        })
    }
}

/// All that a node tells; of deadlocks only where the engine can have some.
fn told(status: &Status, engine: EngineKind) -> Result<Value, serde_json::Error> {
    let mut told = serde_json::to_value(status)?;
    if let Value::Object(fields) = &mut told {
        match engine.is_ordered() {
            true => drop(fields.remove("deadlocks")),
            false => {
                drop(fields.insert(
                    "deadlocks".to_owned(),
                    serde_json::to_value(Deadlocks::of([&status.deadlocks]))?,
                ))
            }
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functors_that_stopped_are_told() {
        assert_eq!(stopped_functors(0, None), None);
        let told = |count| stopped_functors(count, Some("functor of f for key 01")).unwrap_or_default();
        assert_eq!(told(1), "1 functor stopped and left rows alone, the last: functor of f for key 01");
        assert!(told(12).starts_with("12 functors stopped"));
    }
}
