//! The commands `ordain backup`, `ordain restore` and `ordain inspect`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ordain_consensus::ReplicaId;
use ordain_db::disk::cut::Target;
use ordain_db::position::Epoch;

use super::archive::Archive;
use super::directory::Identity;
use super::inspect::{inspect_directory, inspect_store};
use super::manifest;
use super::restore::{Restore, Restored, SEGMENT_BYTES, restore};
use super::send::{Round, Sender};
use super::store::{Store, StoreOptions};
use super::time;
use crate::data_directory::IDENTITY;

/// How often a directory that is followed is looked at: a segment of the log that was closed is there for a little while.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// What `ordain backup` is told.
#[derive(Args, Clone, Debug)]
pub struct BackupOptions {
    /// The data directory; a process may be using it.
    #[arg(long, value_name = "DIRECTORY")]
    pub data_dir: PathBuf,
    /// Where backups are kept: a directory, or s3://bucket/prefix.
    #[arg(long, value_name = "PLACE")]
    pub to: String,
    /// Go on: add what is new after at most this time in seconds, until a signal ends it.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub follow: Option<u64>,
    /// Allow a service that is reached without encryption.
    #[arg(long)]
    pub allow_http: bool,
}

/// What `ordain restore` is told.
#[derive(Args, Clone, Debug)]
pub struct RestoreOptions {
    /// Where backups are kept: a directory, or s3://bucket/prefix.
    #[arg(long, value_name = "PLACE")]
    pub from: String,
    /// The data directory to make; it must be empty or not be there.
    #[arg(long, value_name = "DIRECTORY")]
    pub data_dir: PathBuf,
    /// Use this backup alone, as `ordain inspect` names it; else all of the data directory together.
    #[arg(long, value_name = "BACKUP")]
    pub backup: Option<String>,
    /// The number of the data directory whose backups are used, if there are those of several.
    #[arg(long, value_name = "NUMBER")]
    pub source: Option<String>,
    /// The number of another data directory of the same replica, with other partitions; for each.
    #[arg(long, value_name = "NUMBER")]
    pub beside: Vec<String>,
    /// The state at the end of this epoch; the newest otherwise.
    #[arg(long, value_name = "EPOCH", conflicts_with = "to_time")]
    pub to_epoch: Option<u64>,
    /// The state at this time, such as 2026-03-01T12:30:00Z: all that was ordered up to then.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub to_time: Option<u64>,
    /// The replica that the directory is for, if not that of the backup.
    #[arg(long, value_name = "NUMBER")]
    pub replica: Option<u16>,
    /// Allow a service that is reached without encryption.
    #[arg(long)]
    pub allow_http: bool,
}

/// What `ordain inspect` is told.
#[derive(Args, Clone, Debug)]
pub struct InspectOptions {
    /// A data directory, or a place where backups are kept.
    #[arg(value_name = "DIRECTORY OR PLACE")]
    pub place: String,
    /// Allow a service that is reached without encryption.
    #[arg(long)]
    pub allow_http: bool,
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}

/// Takes a backup, or follows a directory.
///
/// # Errors
/// Says what to do. While a directory is followed, only the first error ends it.
pub fn backup(options: &BackupOptions) -> Result<(), String> {
    // Before the place is made.
    Identity::read(&options.data_dir)?;
    let store = open(&options.to, options.allow_http, true)?;
    let mut sender = Sender::open(&options.data_dir, &store)?;
    tell(&sender.round(time::now()?, false)?)?;
    let Some(seconds) = options.follow else { return Ok(()) };
    loop {
        wait_for_news(&options.data_dir, Duration::from_secs(seconds));
        match sender.round(time::now()?, true) {
            Ok(round) => tell(&round)?,
            // The store may be out of reach for a while, and the directory may be in the middle of a start.
            Err(problem) => tracing::error!("nothing was added to the backup: {problem}"),
        }
    }
}

fn tell(round: &Round) -> Result<(), String> {
    for gap in &round.gaps {
        tracing::warn!(
            node = %gap.node,
            "entries {} to {} of the log were removed before they were copied: no state from the end of the last backup to \
             the begin of the new one can be restored; follow more often, or let checkpoints be rarer",
            gap.first,
            gap.last
        );
    }
    if !round.is_new {
        return Ok(());
    }
    let (manifest, sent) = (&round.manifest, round.sent);
    print(&format!(
        "backup {}: from {} through {}; sent {} objects with {} bytes\n",
        manifest.id,
        manifest.base,
        round.through(),
        sent.objects,
        sent.bytes
    ))
}

/// Waits for the time, or until a file was added to the directory or removed.
fn wait_for_news(directory: &Path, patience: Duration) {
    let (begun, before) = (Instant::now(), files_of(directory));
    while begun.elapsed() < patience && files_of(directory) == before {
        thread::sleep(LOOK_INTERVAL.min(patience));
    }
}

/// The files of all nodes, as far as they can be read: whatever is wrong with them, the next round will say it.
fn files_of(directory: &Path) -> BTreeSet<PathBuf> {
    let list = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect::<Vec<PathBuf>>()
    };
    list(directory).iter().flat_map(|entry| list(entry)).collect()
}

fn open(place: &str, allow_http: bool, is_written: bool) -> Result<Store, String> {
    Store::open(place, StoreOptions { allow_http }, is_written).map_err(|error| error.to_string())
}

/// Restores a directory.
///
/// # Errors
/// Says what to do.
pub fn run_restore(options: &RestoreOptions) -> Result<(), String> {
    let store = open(&options.from, options.allow_http, false)?;
    let read =
        |directory: &str, backup| Archive::read(&store, directory, backup).map_err(|error| error.to_string());
    let (directory, backup) = choose_source(&store, options)?;
    let archive = read(&directory, backup.as_deref())?;
    let beside = options.beside.iter().map(|directory| read(directory, None));
    let beside = beside.collect::<Result<Vec<Archive>, String>>()?;
    let target = match (options.to_epoch, options.to_time) {
        (Some(epoch), _) => Target::Epoch(Epoch(epoch)),
        (None, Some(time)) => Target::Time(time),
        (None, None) => Target::Newest,
    };
    let replica = options.replica.map(ReplicaId);
    let wanted =
        Restore { directory: options.data_dir.clone(), target, replica, segment_bytes: SEGMENT_BYTES };
    let restored = restore(&store, &archive, &beside, &wanted)?;
    print(&restored_text(options, &restored))
}

/// What was restored, and how to go on.
fn restored_text(options: &RestoreOptions, restored: &Restored) -> String {
    let Restored { cut, rows, entries, closed_at } = *restored;
    let ordered = closed_at.map_or_else(String::new, |at| format!(", ordered up to {}", time::format(at)));
    let checkpoint = match cut.base {
        Epoch(0) => "from the first rows".to_owned(),
        base => format!("from the checkpoint at the end of {base} with {rows} rows"),
    };
    let (directory, through) = (options.data_dir.display(), cut.through);
    let mut text = format!(
        "{directory} has the state at the end of {through}{ordered}: a start replays {entries} log entries {checkpoint}\n"
    );
    if options.replica.is_some() || !options.beside.is_empty() {
        text += &format!("restore the other directories of the cluster with --to-epoch {}\n", through.0);
    }
    text
}

/// The number of the directory whose backups are to be used, and the one that is to be used alone.
fn choose_source(store: &Store, options: &RestoreOptions) -> Result<(String, Option<String>), String> {
    let listed = manifest::list(store, None).map_err(|error| error.to_string())?;
    let mut found: Vec<&(String, String)> = listed.iter().collect();
    if let Some(source) = &options.source {
        found.retain(|(directory, _)| directory == source);
    }
    if let Some(backup) = &options.backup {
        found.retain(|(_, id)| id == backup);
    }
    let mut directories: Vec<&String> = found.iter().map(|(directory, _)| directory).collect();
    directories.dedup();
    match directories[..] {
        [directory] => Ok((directory.clone(), options.backup.clone())),
        [] if listed.is_empty() => {
            Err(format!("{store} has no backups: name the place that `ordain backup --to` was given"))
        }
        [] => Err(format!("{store} has no such backup: see what it has with ordain inspect {store}")),
        _ => {
            let newest = |directory: &&String| {
                let last = found.iter().rev().find(|(other, _)| other == *directory);
                format!("{directory} (last {})", last.map_or("", |(_, id)| id.as_str()))
            };
            let names: Vec<String> = directories.iter().map(newest).collect();
            Err(format!(
                "{store} has backups of several data directories, {}: choose one with --source",
                names.join(", ")
            ))
        }
    }
}

/// Looks at a directory or a store; whether nothing is wrong.
///
/// # Errors
/// When there is nothing to look at.
pub fn inspect(options: &InspectOptions) -> Result<bool, String> {
    let path = Path::new(&options.place);
    let findings = match path.join(IDENTITY).is_file() {
        true => inspect_directory(path)?,
        // A directory that has something, and no backups, was perhaps a data directory.
        false if path.is_dir() && !path.join(manifest::BACKUPS).is_dir() => {
            return Err(format!(
                "{} is neither a data directory (it has no {IDENTITY}) nor a place with backups (it has no {}): name another \
                 one; if it was a data directory, put back its {IDENTITY}, or restore a backup; what an interrupted restore \
                 left can be removed",
                path.display(),
                manifest::BACKUPS
            ));
        }
        false => inspect_store(&open(&options.place, options.allow_http, false)?)?,
    };
    print(&findings.text)?;
    Ok(findings.problems.is_empty())
}
