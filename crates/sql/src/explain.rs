//! `EXPLAIN`: how a statement will run, and with `ANALYZE` what it did.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use ordain_db::data::{Direction, Owner, Schema};
use ordain_db::procedure::{Declaration, Footprint};

use crate::error::SqlError;
use crate::execute::columns::Way;
use crate::execute::columns::{QueryEngine, Surroundings};
use crate::execute::{Inputs, Observed};
use crate::keys::Storages;
use crate::plan::{Action, ForeignKeyShape, JoinKind, Node, Path, Plan, Search, TableShape};
use crate::routines::Routines;
use crate::types::{Datum, json};

/// What is told of a plan.
pub(crate) struct Told {
    /// How the statement reaches the rows.
    way: String,
    root: Option<Step>,
    /// What foreign keys have it look for.
    foreign_keys: Vec<String>,
    /// Which partitions have what it touches.
    partitions: Option<String>,
    /// How long it took, in microseconds.
    duration: Option<i64>,
}

/// What is told of a node.
struct Step {
    text: String,
    observed: Option<Observed>,
    inputs: Vec<Step>,
}

/// In what a statement runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// By itself.
    Nothing,
    /// A block that may write.
    Block,
    /// A block that only reads.
    ReadOnlyBlock,
    /// A state that was kept.
    Past,
}

/// What a plan would run on.
pub(crate) struct Cluster<'c> {
    /// SQL's own tables.
    pub storages: &'c Storages,
    /// All tables.
    pub schema: &'c Schema,
    /// The procedures that can be called.
    pub routines: &'c Routines,
    /// Number of partitions.
    pub partitions: u16,
    /// What may run parts of queries over snapshots.
    pub query_engine: Option<&'c dyn QueryEngine>,
}

impl Cluster<'_> {
    /// What a statement declares with these inputs, on so many partitions; `None` if its keys are not known before it runs.
    ///
    /// # Errors
    /// When the arguments of a procedure cannot be had from these inputs.
    fn footprint(
        &self,
        plan: &Plan,
        inputs: &Inputs,
        partitions: u16,
    ) -> Result<Option<Footprint>, SqlError> {
        if let Action::Call { routine, arguments, .. } = &plan.action {
            let (routine, arguments) = self.routines.call(routine, arguments, inputs)?;
            return self.routines.footprint(&routine, &arguments, (self.schema, partitions));
        }
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(self.schema, partitions, &mut footprint);
        let known = crate::execute::declare::declare(plan, inputs, self.storages, &mut declaration);
        Ok(known.map(|()| footprint))
    }
}

/// What is told of a plan before it runs with these values of its parameters, as far as they are known.
pub(crate) fn tell(plan: &Plan, parameters: &[Datum], cluster: &Cluster<'_>, within: Within) -> Told {
    let root = root(plan, &mut Telling { left: &[], query_engine: cluster.query_engine, parameters });
    let foreign_keys = plan.foreign_keys.iter().filter_map(|foreign_key| foreign_key_line(plan, foreign_key));
    let foreign_keys = foreign_keys.collect();
    let partitions = partitions_of(plan, parameters, cluster);
    let way = match within {
        Within::Nothing => way(plan, parameters, cluster, &partitions),
        Within::Block => {
            "In a block: over its snapshot, and again at its place in the order when it commits".to_owned()
        }
        Within::ReadOnlyBlock => "In a block that only reads: over its snapshot".to_owned(),
        Within::Past => "Over the state that was kept of then".to_owned(),
    };
    Told { way, root, foreign_keys, partitions: partitions.map(|places| places.to_string()), duration: None }
}

impl Told {
    /// Adds what the nodes of the plan gave, and how long all took, in microseconds.
    pub(crate) fn observed(
        self,
        plan: &Plan,
        parameters: &[Datum],
        query_engine: Option<&dyn QueryEngine>,
        (observed, duration): (&[Observed], i64),
    ) -> Told {
        let root = root(plan, &mut Telling { left: observed, query_engine, parameters });
        Told { root, duration: Some(duration), ..self }
    }

    /// The lines of the plan.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.way.clone()];
        if let Some(root) = &self.root {
            root.lines(1, &mut lines);
        }
        lines.extend(self.foreign_keys.iter().map(|line| format!("  {line}")));
        lines.extend(self.partitions.iter().map(|partitions| format!("Partitions: {partitions}")));
        if let Some(duration) = self.duration {
            lines.push(format!("Execution Time: {} ms", milliseconds(duration)));
        }
        lines
    }

    /// The plan as JSON, over several lines.
    pub(crate) fn json(&self) -> String {
        let mut fields = vec![format!("    \"How\": {}", json::quote(&self.way))];
        if let Some(root) = &self.root {
            fields.push(format!("    \"Plan\": {}", root.json(2)));
        }
        if !self.foreign_keys.is_empty() {
            let lines: Vec<String> = self.foreign_keys.iter().map(|line| json::quote(line)).collect();
            fields.push(format!("    \"Foreign Keys\": [{}]", lines.join(", ")));
        }
        if let Some(partitions) = &self.partitions {
            fields.push(format!("    \"Partitions\": {}", json::quote(partitions)));
        }
        if let Some(duration) = self.duration {
            fields.push(format!("    \"Execution Time\": {}", milliseconds(duration)));
        }
        format!("[\n  {{\n{}\n  }}\n]", fields.join(",\n"))
    }
}

fn milliseconds(microseconds: i64) -> String {
    format!("{}.{:03}", microseconds / 1000, microseconds % 1000)
}

impl Step {
    fn lines(&self, depth: usize, lines: &mut Vec<String>) {
        let actual = self.observed.map_or_else(String::new, |Observed { rows, runs, .. }| match runs {
            0 => " (never run)".to_owned(),
            _ => format!(" (actual rows={rows} runs={runs})"),
        });
        let arrow = if self.text.starts_with(CHANGES) { "" } else { "-> " };
        lines.push(format!("{}{arrow}{}{actual}", "  ".repeat(depth), self.text.trim_start_matches(CHANGES)));
        self.inputs.iter().for_each(|input| input.lines(depth + 1, lines));
    }

    fn json(&self, depth: usize) -> String {
        let indent = "  ".repeat(depth + 1);
        let text = self.text.trim_start_matches(CHANGES);
        let mut fields = vec![format!("{indent}\"Node Type\": {}", json::quote(text))];
        if let Some(Observed { rows, runs, .. }) = self.observed {
            fields.push(format!("{indent}\"Actual Rows\": {rows}"));
            fields.push(format!("{indent}\"Actual Loops\": {runs}"));
        }
        if !self.inputs.is_empty() {
            let inputs: Vec<String> = self.inputs.iter().map(|input| input.json(depth + 1)).collect();
            fields.push(format!("{indent}\"Plans\": [{}]", inputs.join(", ")));
        }
        format!("{{\n{}\n{}}}", fields.join(",\n"), "  ".repeat(depth))
    }
}

/// Before the name of a change, which stands above the nodes.
const CHANGES: char = '\u{1}';

/// What is told of nodes besides what they are.
struct Telling<'o> {
    /// What is left of what they gave, in the order of [`Node::inputs`].
    left: &'o [Observed],
    /// What may run them, unless those that are told of now are parts of what it runs.
    query_engine: Option<&'o dyn QueryEngine>,
    /// The values of the statement's parameters, as far as they are known.
    parameters: &'o [Datum],
}

impl Telling<'_> {
    fn next(&mut self) -> Option<Observed> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(*first)
    }
}

fn root(plan: &Plan, telling: &mut Telling<'_>) -> Option<Step> {
    let name = |table: &u16| plan.tables.get(usize::from(*table)).map_or("", |shape| shape.name.as_str());
    let text = match &plan.action {
        Action::Query(_) => None,
        Action::Insert { table, .. } => Some(format!("Insert into {}", name(table))),
        Action::Update { table, .. } => Some(format!("Update {}", name(table))),
        Action::Delete { table, .. } => Some(format!("Delete from {}", name(table))),
        _ => return None,
    };
    let source = step(plan, plan.action.source()?, telling);
    Some(match text {
        Some(text) => Step { text: format!("{CHANGES}{text}"), observed: None, inputs: vec![source] },
        None => source,
    })
}

/// What a foreign key may have the statement look for.
fn foreign_key_line(plan: &Plan, foreign_key: &ForeignKeyShape) -> Option<String> {
    let own = plan.tables.get(usize::from(foreign_key.table))?;
    let other = plan.tables.get(usize::from(foreign_key.referenced))?;
    let by = |shape: &TableShape, index: Option<u16>| match index {
        None => format!("by {}", shape.key_name),
        Some(index) => {
            let index = shape.indexes.get(usize::from(index)).map_or("", |index| index.name.as_str());
            format!("by index {index}")
        }
    };
    let refers = match &plan.action {
        Action::Insert { .. } => true,
        Action::Update { table, .. } => *table == foreign_key.table && *table != foreign_key.referenced,
        _ => false,
    };
    let name = &foreign_key.name;
    if refers {
        let way = by(other, foreign_key.target);
        return Some(format!("Foreign key {name}: the row of {} is looked up {way}", other.name));
    }
    let way = match &foreign_key.search {
        Search::All => "among all rows".to_owned(),
        Search::Range { index, .. } => by(own, *index),
    };
    Some(format!("Foreign key {name}: rows of {} that refer to {} are found {way}", own.name, other.name))
}

/// How the statement reaches the rows.
fn way(plan: &Plan, parameters: &[Datum], cluster: &Cluster<'_>, places: &Option<Places>) -> String {
    // Parameters that are not known yet are no reason for reconnaissance.
    let unknown = vec![Datum::Int(0); usize::from(u8::MAX)];
    let is_call = matches!(plan.action, Action::Call { .. });
    let parameters = if parameters.is_empty() && !is_call { unknown.as_slice() } else { parameters };
    let inputs = Inputs { parameters: parameters.into(), answers: unknown.clone(), ..Inputs::default() };
    let footprint = cluster.footprint(plan, &inputs, 1);
    let known = match &footprint {
        Ok(Some(footprint)) => {
            format!(
                "its footprint known: {} keys, {} ranges",
                footprint.keys().len(),
                footprint.ranges().len()
            )
        }
        Ok(None) => "its footprint found by reconnaissance".to_owned(),
        Err(_) => "its footprint not known before its arguments are".to_owned(),
    };
    match (&plan.action, footprint) {
        (Action::Call { routine, .. }, _) => {
            format!("One ordered transaction of the procedure {routine}, {known}")
        }
        (Action::Query(node), _) if plan.sequences.is_empty() && !node.is_short() => {
            "Over a snapshot".to_owned()
        }
        (Action::Query(_), Ok(Some(footprint))) if plan.sequences.is_empty() && !is_spread(places) => {
            format!("A read of the newest state: {} keys", footprint.keys().len())
        }
        _ => format!("One ordered transaction, {known}"),
    }
}

/// Which partitions have what the statement touches; `None` if it touches nothing, or nobody knows what its arguments will be.
fn partitions_of(plan: &Plan, parameters: &[Datum], cluster: &Cluster<'_>) -> Option<Places> {
    let is_call = matches!(plan.action, Action::Call { .. });
    if plan.tables.is_empty() && plan.sequences.is_empty() && !is_call {
        return None;
    }
    let declared = |seed| {
        let inputs = Inputs { parameters: parameters.into(), seed, ..Inputs::default() };
        cluster.footprint(plan, &inputs, cluster.partitions)
    };
    // Keys that are drawn at random differ with the seed, and are not known before.
    let (one, other) = (declared(1).ok()?, declared(2).ok()?);
    let known = one.zip(other).filter(|(one, other)| one.encode() == other.encode());
    let Some((footprint, _)) = known else { return Some(Places::Unknown) };
    let keys = footprint.keys().iter().map(|entry| (entry.owner, entry.access));
    let ranges = footprint.ranges().iter().map(|entry| (entry.owner, entry.access));
    let (mut some, mut reads_copy, mut all, mut writes_copies) = (BTreeSet::new(), false, false, false);
    // The definitions that a plan relies on are read from whichever copy is at hand.
    for (owner, access) in keys.skip(plan.reliances.len()).chain(ranges) {
        match owner {
            Owner::Partition(partition) => drop(some.insert(partition.0)),
            Owner::Split => all = true,
            Owner::Replicated => {
                reads_copy = true;
                writes_copies |= access.write;
            }
        }
    }
    Some(if writes_copies {
        Places::Copies(cluster.partitions)
    } else if all {
        Places::All(cluster.partitions)
    } else if !some.is_empty() {
        Places::Some(some, cluster.partitions)
    } else if reads_copy {
        Places::Any
    } else if is_call {
        return None;
    } else {
        Places::None
    })
}

/// The partitions that have what a statement touches.
enum Places {
    Unknown,
    /// All, and all write their copies.
    Copies(u16),
    All(u16),
    /// Some of all.
    Some(BTreeSet<u16>, u16),
    /// Any has a copy.
    Any,
    None,
}

/// Whether no partition by itself has what a statement touches.
fn is_spread(places: &Option<Places>) -> bool {
    matches!(places, Some(Places::Some(some, _)) if some.len() > 1)
}

impl Display for Places {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Places::Unknown => f.write_str("found when it runs"),
            Places::Copies(count) => write!(f, "all of {count}, each with a copy"),
            Places::All(count) => write!(f, "all of {count}"),
            Places::Some(some, count) => {
                let numbers: Vec<String> = some.iter().map(u16::to_string).collect();
                write!(f, "{} (of {count})", numbers.join(", "))
            }
            Places::Any => f.write_str("any, each has a copy"),
            Places::None => f.write_str("none"),
        }
    }
}

fn step(plan: &Plan, node: &Node, telling: &mut Telling<'_>) -> Step {
    let observed = telling.next();
    let region = telling.query_engine.filter(|engine| {
        let (tables, parameters) = (plan.tables.as_slice(), telling.parameters);
        let told = Arc::default();
        let surroundings = Surroundings { tables, parameters, most: usize::MAX, bytes: 0, told: &told };
        matches!(plan.action, Action::Query(_)) && engine.region(node, surroundings).is_some()
    });
    if region.is_some() {
        telling.query_engine = None;
    }
    // What only makes columns is not told of.
    let mut told = if let Node::Project { input, .. } = node {
        step(plan, input, telling)
    } else {
        let inputs = node.inputs().into_iter().map(|input| step(plan, input, telling)).collect();
        let over = if region.is_some() { of_way(observed) } else { "" };
        Step { text: format!("{}{over}", text_of(plan, node)), observed, inputs }
    };
    if region.is_some() {
        telling.query_engine = region;
    }
    for (query, correlated) in node.subqueries() {
        let way = if correlated { "Subquery, for each row" } else { "Subquery, once" };
        // What runs for each row does so by rows.
        let around = if correlated { telling.query_engine.take() } else { None };
        let query = step(plan, query, telling);
        telling.query_engine = telling.query_engine.or(around);
        told.inputs.push(Step { text: way.to_owned(), observed: None, inputs: vec![query] });
    }
    told
}

/// How a node would run, or ran, that could run over columns.
fn of_way(observed: Option<Observed>) -> &'static str {
    let Some(Observed { way, .. }) = observed else { return ", over columns if rows are many" };
    match way {
        None => "",
        Some(Way::Columns) => ", over columns",
        Some(Way::Few) => ", by rows: they are few",
        Some(Way::Unknown) => ", by rows: it is not known beforehand that they are many",
        Some(Way::LookUps) => ", by rows: look-ups take less",
        Some(Way::Memory) => ", by rows: columns would hold too much",
        Some(Way::Refused) => ", by rows: they hold what columns do not take",
    }
}

fn text_of(plan: &Plan, node: &Node) -> String {
    match node {
        Node::Values(rows) => format!("Values: {} rows", rows.len()),
        Node::Scan { table, path, direction, filter, .. } => {
            let backward = if *direction == Direction::Descending { ", backward" } else { "" };
            let filtered = if filter.is_some() { ", filtered" } else { "" };
            format!("{}{backward}{filtered}", scan(plan, *table, path))
        }
        Node::Series { .. } => "Series".to_owned(),
        Node::Unnest { .. } => "Elements of an array".to_owned(),
        Node::Filter { .. } => "Filter".to_owned(),
        Node::Project { .. } => "Columns".to_owned(),
        Node::Join { kind, equal, dependent, .. } => {
            let kind = match kind {
                JoinKind::Inner => "Join",
                JoinKind::Left => "Left join",
                JoinKind::Full => "Full join",
            };
            let how = if *dependent {
                "for each row on the left, look up the right"
            } else if equal.is_empty() {
                "each row with each"
            } else {
                "by hash"
            };
            format!("{kind}, {how}")
        }
        Node::Aggregate { groups, sets, .. } => {
            let sets = sets.as_ref().map_or_else(String::new, |sets| format!(", {} sets", sets.sets.len()));
            format!("Aggregate by {} columns{sets}", groups.len())
        }
        Node::Window { partition, order, calls, .. } => {
            let (functions, columns, keys) = (calls.len(), partition.len(), order.len());
            format!("Window: {functions} functions, by {columns} columns, in order of {keys} keys")
        }
        Node::Recursive { .. } => "Recursion".to_owned(),
        Node::Once { number, .. } => format!("Query {} of WITH, run once", u32::from(*number) + 1),
        Node::Working(_) => "Rows of the step before".to_owned(),
        Node::Kept { input, keys, direct, .. } => {
            let found = match keys.len() {
                0 => String::new(),
                count => format!(", found by {count} values"),
            };
            match (direct, &**input) {
                (Some(path), Node::Scan { table, .. }) => {
                    format!("Kept once it pays{found}; before that: {}", scan(plan, *table, path))
                }
                _ => format!("Kept{found}"),
            }
        }
        Node::Sort { keys, .. } => format!("Sort by {} keys", keys.len()),
        Node::Distinct { .. } => "Distinct".to_owned(),
        Node::Limit { ties, .. } if !ties.is_empty() => "Limit with ties".to_owned(),
        Node::Limit { .. } => "Limit".to_owned(),
        Node::Combine { operation, .. } => format!("{operation:?}"),
    }
}

fn scan(plan: &Plan, table: u16, path: &Path) -> String {
    let Some(shape) = plan.tables.get(usize::from(table)) else { return "Scan".to_owned() };
    let name = &shape.name;
    match path {
        Path::All => format!("Scan of all of {name}"),
        Path::Keys(keys) => format!("Look-up of {} keys of {name} by {}", keys.len(), shape.key_name),
        Path::Range { index, .. } => format!("Scan of a range of {name} by {}", order(shape, *index)),
        Path::Ranges { index, prefixes, array } => {
            let each = if array.is_some() { " for each element of an array" } else { "" };
            format!("Scan of {} ranges of {name} by {}{each}", prefixes.len(), order(shape, *index))
        }
    }
}

/// By what rows are found.
fn order(shape: &TableShape, index: Option<u16>) -> String {
    match index {
        None => shape.key_name.clone(),
        Some(index) => {
            let index = shape.indexes.get(usize::from(index)).map_or("", |index| index.name.as_str());
            format!("index {index}")
        }
    }
}
