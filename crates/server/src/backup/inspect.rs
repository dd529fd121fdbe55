//! Telling what a data directory or a store has, and verifying all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use ordain_consensus::EntryKind;
use ordain_db::checkpoint::CheckpointVerifier;
use ordain_db::disk::committed::{BatchHeader, LogEntry};
use ordain_db::disk::cut::{EpochRange, Holding, restorable};
use ordain_db::disk::witness::{Witness, compare};
use ordain_db::engine::two_phase::message::TwoPhaseRecord;
use ordain_db::position::{Epoch, NodeId};

use super::archive::{Archive, fetch};
use super::directory::Identity;
use super::manifest::{self, NodeBackup};
use super::soundness::refusal;
use super::source::{NodeSource, log_start};
use super::store::Store;
use super::time;
use crate::data_directory::LogKind;
use crate::rescue::Rescue;

/// How often a node is looked at with which something is wrong.
const ATTEMPTS_MAX: u32 = 3;

/// The time between two looks.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(100);

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// For people, in lines.
    pub text: String,
    /// What is wrong; empty if nothing is.
    pub problems: Vec<String>,
}

impl Findings {
    fn line(&mut self, line: &str) {
        // A string takes whatever it is given.
        let _ = writeln!(self.text, "{line}");
    }

    fn problem(&mut self, problem: String) {
        self.line(&format!("  DAMAGED: {problem}"));
        self.problems.push(problem);
    }
}

fn ranges_of(holdings: &[Holding]) -> String {
    let name = |EpochRange { first, last }: EpochRange| format!("{first} to {last}");
    let names: Vec<String> = restorable(holdings).into_iter().map(name).collect();
    if names.is_empty() { "no epoch".to_owned() } else { names.join(", ") }
}

/// The epochs and times of batches, as they are met.
#[derive(Default)]
struct Span(Option<(EpochRange, u64, u64)>);

impl Span {
    fn add(&mut self, epochs: EpochRange, earliest: u64, latest: u64) {
        let (so_far, from, to) = self.0.unwrap_or((epochs, earliest, latest));
        let epochs = EpochRange { first: so_far.first.min(epochs.first), last: so_far.last.max(epochs.last) };
        self.0 = Some((epochs, from.min(earliest), to.max(latest)));
    }

    fn describe(&self) -> String {
        self.0.map_or_else(
            || "no batches".to_owned(),
            |(EpochRange { first, last }, from, to)| {
                format!("{first} to {last}, closed {} to {}", time::format(from), time::format(to))
            },
        )
    }
}

/// Looks at a data directory, also beside the process that uses it.
///
/// # Errors
/// When it is none.
pub fn inspect_directory(directory: &Path) -> Result<Findings, String> {
    let identity = Identity::read(directory)?;
    let mut findings = Findings::default();
    findings.line(&format!("data directory {:032x} of database {}", identity.id(), identity.fingerprint()));
    let (mut holdings, mut witnesses) = (Vec::new(), Vec::new());
    for node in identity.nodes() {
        let (found, seen) = inspect_calmly(directory, &identity, *node);
        findings.text += &found.text;
        findings.problems.extend(found.problems);
        if let Some((holding, witness)) = seen {
            holdings.push(holding);
            witnesses.push(witness);
        }
    }
    let is_order = identity.log() == LogKind::Order;
    if identity.is_alone() && is_order {
        let lost = lost_end(directory, &identity, &witnesses);
        lost.into_iter().for_each(|problem| findings.problem(problem));
    }
    if let (false, Some(node)) = (findings.problems.is_empty(), identity.nodes().first()) {
        let rescue = match identity.is_alone() {
            _ if !is_order => Rescue::Nobody,
            true => Rescue::Backup,
            false => Rescue::Either(node.replica),
        };
        findings
            .line(&format!("a process would refuse damaged data. If no good copy can be put back, {rescue}"));
    }
    if !is_order {
        return Ok(findings);
    }
    let (ranges, damage) = (ranges_of(&holdings), unless_damaged(&findings.problems));
    findings.line(&format!("states that can be restored from a backup of this directory{damage}: {ranges}"));
    Ok(findings)
}

/// What one partition says that another one has lost. A process that uses the directory may have gone on since that one was looked
/// at: so it is looked at again.
fn lost_end(directory: &Path, identity: &Identity, witnesses: &[Witness]) -> Option<String> {
    let found = compare(witnesses).err()?;
    let node = identity.nodes().iter().find(|node| node.partition == found.lost.partition)?;
    let (_, again) = inspect_calmly(directory, identity, *node);
    let (_, lost) = again?;
    compare(&[lost, found.by]).err().map(|lost| lost.to_string())
}

/// Looks at a node, again if something is wrong with it: its process may have been in the middle of a change.
fn inspect_calmly(
    directory: &Path,
    identity: &Identity,
    node: NodeId,
) -> (Findings, Option<(Holding, Witness)>) {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut findings = Findings::default();
        findings.line(&format!("{node}"));
        let seen = match NodeSource::open(directory, identity, node) {
            Ok(mut source) if identity.log() == LogKind::TwoPhase => {
                inspect_promises(&mut source, &mut findings);
                None
            }
            Ok(mut source) => inspect_node(&mut source, &mut findings),
            Err(error) => {
                findings.problem(error.to_string());
                None
            }
        };
        if findings.problems.is_empty() || attempts >= ATTEMPTS_MAX {
            return (findings, seen);
        }
        std::thread::sleep(ATTEMPT_PAUSE);
    }
}

/// Looks at a node of the engine `two-phase`, which has no epochs.
fn inspect_promises(source: &mut NodeSource, findings: &mut Findings) {
    let (first, last) = (source.committed().first(), source.committed().last());
    let (mut records, mut in_doubt) = (0, BTreeSet::new());
    let mut visit = |entry: LogEntry| {
        if entry.kind != EntryKind::Payload {
            return Ok(());
        }
        let told = TwoPhaseRecord::decode(&entry.payload);
        for record in told.map_err(|problem| format!("entry {}: {problem}", entry.index))? {
            records += 1;
            match record {
                TwoPhaseRecord::Prepared { id, .. } => drop(in_doubt.insert(id)),
                TwoPhaseRecord::Decided { id, .. } => drop(in_doubt.remove(&id)),
                _ => {}
            }
        }
        Ok(())
    };
    if let Err(error) = source.entries(first, &mut visit) {
        return findings.problem(error.to_string());
    }
    if let Some(refusal) = refusal(source, &BTreeMap::new()) {
        findings.problem(refusal);
    }
    let (bytes, entries, in_doubt) = (source.log_bytes(), last + 1 - first, in_doubt.len());
    findings.line(&format!(
        "  log of {bytes} bytes: {entries} entries, {records} records, {in_doubt} transactions in doubt"
    ));
}

/// What the log tells of throttling.
#[derive(Default)]
struct Throttling {
    /// Epochs closed while calls were shed, and the highest level of that, in thousandths.
    shed: (u64, u16),
    /// Epochs that calls were held back from, and the most of one.
    held_back: (u64, u32),
}

impl Throttling {
    fn add(&mut self, batch: BatchHeader) {
        if batch.shed > 0 {
            self.shed = (self.shed.0 + 1, self.shed.1.max(batch.shed));
        }
        if batch.held_back > 0 {
            self.held_back = (self.held_back.0 + 1, self.held_back.1.max(batch.held_back));
        }
    }

    /// A line, if there was any.
    fn line(&self) -> Option<String> {
        let Throttling { shed: (shed, level), held_back: (held, most) } = self;
        (shed + held > 0).then(|| {
            format!("  throttled: calls held back from {held} epochs, at most {most}; refused in {shed}, at level {level} at most")
        })
    }
}

/// Looks at a node; `None` if its log cannot be read.
fn inspect_node(source: &mut NodeSource, findings: &mut Findings) -> Option<(Holding, Witness)> {
    let (node, bytes) = (source.node(), source.log_bytes());
    let mut holding = Holding { partition: node.partition, bases: Default::default(), batches: Vec::new() };
    if source.founding().is_some() {
        holding.bases.insert(Epoch(0), None);
    }
    let mut usable = BTreeMap::new();
    for epoch in source.checkpoints().to_vec() {
        match source.checkpoint(epoch, &mut |_| Ok(())) {
            Ok((checkpoint, start)) => {
                let summary = checkpoint.summary;
                findings.line(&format!(
                    "  checkpoint at the end of {epoch}: {} rows, {} bytes, log entries through {}",
                    summary.rows, summary.bytes, start.index
                ));
                holding.bases.insert(epoch, None);
                usable.insert(epoch, start);
            }
            Err(error) => findings.problem(error.to_string()),
        }
    }
    let (first, last) = (source.committed().first(), source.committed().last());
    let (mut span, mut delivered) = (Span::default(), Epoch(0));
    let mut throttling = Throttling::default();
    let mut visit = |entry: LogEntry| {
        let batch = entry.batch().map_err(|error| error.to_string())?;
        if let Some(batch) = batch {
            span.add(EpochRange { first: batch.epoch, last: batch.epoch }, batch.closed_at, batch.closed_at);
            delivered = batch.delivered;
            throttling.add(batch);
        }
        Ok(())
    };
    if let Err(error) = source.entries(first, &mut visit) {
        findings.problem(error.to_string());
        return None;
    }
    if let Some(refusal) = refusal(source, &usable) {
        findings.problem(refusal);
    }
    let entries = last + 1 - first;
    findings.line(&format!("  log of {bytes} bytes: {entries} entries from {first} on, {}", span.describe()));
    throttling.line().iter().for_each(|line| findings.line(line));
    holding.batches.extend(span.0.map(|(epochs, _, _)| epochs));
    let checkpoint = holding.bases.last_key_value().map_or(Epoch(0), |(epoch, _)| *epoch);
    let logged = holding.batches.last().map_or(Epoch(0), |epochs| epochs.last);
    let (last, delivered) = (logged.max(checkpoint), delivered.max(checkpoint));
    Some((holding, Witness { partition: node.partition, last, delivered }))
}

/// Looks at all backups of a store, and reads every object of them.
///
/// # Errors
/// When the store fails.
pub fn inspect_store(store: &Store) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let listed = manifest::list(store, None).map_err(|error| error.to_string())?;
    if listed.is_empty() {
        findings.line(&format!("{store} has no backups"));
    }
    let mut directories: Vec<&String> = listed.iter().map(|(directory, _)| directory).collect();
    directories.dedup();
    for directory in directories {
        findings.line(&format!("backups of the data directory {directory}"));
        let (archive, damaged) = Archive::read_sound(store, directory).map_err(|error| error.to_string())?;
        let problems_before = findings.problems.len();
        damaged.into_iter().for_each(|error| findings.problem(error.to_string()));
        if let Some(archive) = archive {
            inspect_archive(store, &archive, problems_before, &mut findings);
        }
    }
    Ok(findings)
}

/// Looks at the backups of a directory of which the problems from a number on were found already.
fn inspect_archive(store: &Store, archive: &Archive, problems_before: usize, findings: &mut Findings) {
    // Backups share objects, and each is read once.
    let mut verified = BTreeSet::new();
    for manifest in archive.manifests() {
        let (id, base, taken_at) = (&manifest.id, manifest.base, time::format(manifest.taken_at));
        findings.line(&format!("  {id}, last added to {taken_at}, from {base} on"));
        for (node, backup) in manifest.nodes() {
            let mut span = Span::default();
            for piece in &backup.pieces {
                if verified.insert(piece.object.clone())
                    && let Err(error) = fetch(store, backup, piece)
                {
                    findings.problem(error.to_string());
                }
                if let Some((epochs, (earliest, latest))) = piece.epochs.zip(piece.closed_at) {
                    span.add(epochs, earliest, latest);
                }
            }
            let rows = backup.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.rows);
            findings.line(&format!("    {node}: {rows} rows, {}", span.describe()));
            let mut is_new = false;
            for part in backup.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts) {
                is_new |= verified.insert(part.clone());
            }
            if is_new && let Err(problem) = verify_checkpoint(store, backup, node, base) {
                findings.problem(problem);
            }
        }
    }
    let known = archive.newest().partitions.map(usize::from);
    let holdings = archive.holdings();
    let ranges = ranges_of(&holdings);
    let others = known.filter(|known| *known > holdings.len());
    let others = others
        .map_or(String::new(), |_| " (as far as the other directories of the database have them)".to_owned());
    let damage = unless_damaged(&findings.problems[problems_before..]);
    findings.line(&format!("  states that can be restored{damage}: {ranges}{others}"));
}

/// What is to be said beside states that can be restored from what may be damaged.
fn unless_damaged(problems: &[String]) -> &'static str {
    if problems.is_empty() { "" } else { ", but for what is damaged" }
}

fn verify_checkpoint(store: &Store, backup: &NodeBackup, node: NodeId, base: Epoch) -> Result<(), String> {
    let mut verifier = CheckpointVerifier::default();
    let damaged = |problem: String| format!("the checkpoint of {node} at the end of {base}: {problem}");
    for part in backup.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts) {
        let contents = store.fetch(part).map_err(|error| error.to_string())?;
        verifier.push(&contents).map_err(|error| damaged(error.to_string()))?;
    }
    let verified = verifier.finish().map_err(|error| damaged(error.to_string()))?;
    log_start(&verified, node, base).map(drop).map_err(damaged)
}
