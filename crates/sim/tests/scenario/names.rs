//! What is named in scenarios: times, machines, clients, nodes and rows.

use std::str::FromStr;

use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_sim::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};
use ordain_workload::append::RowName;

/// `10ms`
#[derive(Clone, Copy)]
pub(crate) struct Time(pub(crate) Nanoseconds);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        let wrong = || format!("{text:?} is no time: give a number with us, ms, s or h");
        let end = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(end);
        let unit = match unit {
            "us" => MICROSECOND,
            "ms" => MILLISECOND,
            "s" => SECOND,
            "h" => 3_600 * SECOND,
            _ => return Err(wrong()),
        };
        Ok(Time(number.parse::<u64>().map_err(|_| wrong())? * unit))
    }
}

/// `m1` or `c1`
#[derive(Clone, Copy)]
pub(crate) enum HostName {
    Machine(u16),
    Client(u16),
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<HostName, String> {
        let number = |letter| text.strip_prefix(letter).and_then(|number| number.parse().ok());
        number('m')
            .map(HostName::Machine)
            .or(number('c').map(HostName::Client))
            .ok_or_else(|| format!("{text:?} is neither a machine nor a client: name one as m0 or c0"))
    }
}

/// `p1`, or `p1r2` for that of another replica than the first
#[derive(Clone, Copy)]
pub(crate) struct Node(pub(crate) NodeId);

impl FromStr for Node {
    type Err = String;

    fn from_str(text: &str) -> Result<Node, String> {
        let wrong = || format!("{text:?} is no node: name one as p0 or p0r1");
        let rest = text.strip_prefix('p').ok_or_else(wrong)?;
        let (partition, replica) = rest.split_once('r').unwrap_or((rest, "0"));
        let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
        Ok(Node(NodeId { partition: PartitionId(number(partition)?), replica: ReplicaId(number(replica)?) }))
    }
}

/// `site/number`
#[derive(Clone, Copy)]
pub(crate) struct Row(pub(crate) RowName);

impl FromStr for Row {
    type Err = String;

    fn from_str(text: &str) -> Result<Row, String> {
        let parsed = text.split_once('/').and_then(|(site, id)| Some((site.parse().ok()?, id.parse().ok()?)));
        let (site, id) =
            parsed.ok_or_else(|| format!("{text:?} is no row: name one by site and number, as 0/3"))?;
        Ok(Row(RowName { site, id }))
    }
}

/// What a fault does; the hosts that it names are given beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Crash,
    Pause,
    Slow,
    Cut,
    Partition,
    Clog,
    FullDisk,
    Corrupt,
    Misdirect,
    DamagedCheckpoint,
    LostWrite,
    PowerCut,
    FailedSync,
    Loss,
    Wipe,
    HandOver,
    ClockJump,
    ClockBack,
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultKind, String> {
        Ok(match text {
            "crash" => FaultKind::Crash,
            "pause" => FaultKind::Pause,
            "slow" => FaultKind::Slow,
            "cut" => FaultKind::Cut,
            "partition" => FaultKind::Partition,
            "clog" => FaultKind::Clog,
            "full-disk" => FaultKind::FullDisk,
            "corrupt" => FaultKind::Corrupt,
            "misdirect" => FaultKind::Misdirect,
            "damaged-checkpoint" => FaultKind::DamagedCheckpoint,
            "lost-write" => FaultKind::LostWrite,
            "power-cut" => FaultKind::PowerCut,
            "failed-sync" => FaultKind::FailedSync,
            "loss" => FaultKind::Loss,
            "wipe" => FaultKind::Wipe,
            "hand-over" => FaultKind::HandOver,
            "clock-jump" => FaultKind::ClockJump,
            "clock-back" => FaultKind::ClockBack,
            _ => return Err(format!("there is no fault {text:?}")),
        })
    }
}
