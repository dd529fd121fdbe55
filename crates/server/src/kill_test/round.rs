//! One round: a new cluster, faults for a while under load, and then the checks.

mod checks;

use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ordain::cluster_file::{ClusterFile, DurabilityEntry};
use ordain_workload::Workload;
use rustix::process::Signal;

use super::clients::{Clients, Seen};
use super::faults::{Draw, Fault, FaultKind};
use super::operator::{Operator, Progress};
use super::options::KillTestOptions;
use super::processes::{Cluster, PROCESSES, Process, group_of, partition_of};
use super::shim::{DiskFault, Shim};
use super::verdict::{self, Verdict};

/// How often everything is looked at.
const TICK: Duration = Duration::from_millis(10);

/// How long calls run before the first fault.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long processes may take to serve, and calls to go on when all is well. Recovery under load on a slow machine takes
/// seconds; a minute and a half is for ever.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a process whose disk cannot keep anything, or that was told to end, may take to end.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// How a process that needs a restart ends its message (see [`ordain::db::error::Fatal`]).
const ASKS_FOR_RESTART: &str = "must start again";

/// What a process says of a disk that it cannot use any more.
const DISK_FAILED: &str = "the disk cannot keep what the node must not lose";

/// What a process says that finds out that its replica was removed.
const REMOVED: &str = "was removed from the cluster";

/// What a leader says that was told to end, when others lead.
const HANDED_OVER: &str = "handed over leadership";

/// What a process says that could not open its files.
const CANNOT_OPEN: &str = "cannot";

/// A fault that happened, in milliseconds since the start of the round.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Happened {
    pub(super) kind: FaultKind,
    pub(super) victims: Vec<usize>,
    /// Whether the victim led its group, if there is one victim and it could be asked.
    pub(super) led: bool,
    pub(super) from: u32,
    /// When it was mended, or the processes were started again.
    pub(super) until: u32,
    /// When all of its processes served again.
    pub(super) well: u32,
    /// What came of it, for disks and those that were told to end.
    pub(super) outcome: &'static str,
}

/// What a round was like.
#[derive(Default)]
pub(super) struct Finished {
    pub(super) seen: Seen,
    pub(super) happened: Vec<Happened>,
    /// How often a process asked to be started again.
    pub(super) restarts: u64,
    /// Processes that ended by themselves, from when until they served again, in milliseconds.
    pub(super) away: Vec<(usize, u32, u32)>,
    pub(super) verdict: Verdict,
    /// What must not happen and did.
    pub(super) violations: Vec<String>,
}

/// What a round is made of.
pub(super) struct Setting<'a> {
    pub(super) options: &'a KillTestOptions,
    pub(super) seed: u64,
    /// From 0.
    pub(super) number: u64,
    pub(super) lasts: Duration,
    pub(super) kinds: Vec<FaultKind>,
    pub(super) directory: &'a Path,
    pub(super) shim: Option<&'a Shim>,
    pub(super) interrupted: &'a AtomicBool,
}

/// A fault that goes on.
struct Active {
    fault: Fault,
    ends: Instant,
    /// Its place in the list of what happened.
    place: usize,
    /// When a call of the operating system first failed.
    hit: Option<Instant>,
    /// Who is removing and adding its replica.
    operator: Option<Operator>,
    /// Mended, and the processes are on their way.
    mended: bool,
}

struct Round<'a> {
    setting: &'a Setting<'a>,
    cluster: Cluster,
    started: Instant,
    active: Vec<Active>,
    /// Since when a process is starting.
    starting: [Option<Instant>; PROCESSES],
    /// The last fault of its disk in the present life of a process: its place in the list of what happened.
    disk_faults: [Option<usize>; PROCESSES],
    finished: Finished,
}

/// Runs a round to its end.
///
/// # Errors
/// When it could not be run. What the database did wrong is in what comes back.
pub(super) fn run(setting: &Setting<'_>) -> Result<Finished, String> {
    let seed = setting.seed.wrapping_add(setting.number);
    let cluster = Cluster::create(setting.directory, setting.options, seed, setting.shim)?;
    let ClusterFile { throttle, durability: DurabilityEntry { checkpoint_mode, .. }, .. } = &cluster.file;
    tracing::info!(round = setting.number, ?checkpoint_mode, throttle, "the cluster of a round");
    let workload: Arc<dyn Workload> = Arc::from(cluster.file.workload()?);
    let mut round = Round {
        setting,
        cluster,
        started: Instant::now(),
        active: Vec::new(),
        starting: [None; PROCESSES],
        disk_faults: [None; PROCESSES],
        finished: Finished::default(),
    };
    round.start_all()?;
    round.wait("all processes serve", |round| round.all_serve())?;
    round.check_shim()?;
    round.started = Instant::now();
    let options = setting.options;
    let clients =
        Clients::start(&round.cluster.file, &workload, seed, options.clients, options.rate, round.started)?;
    round.everyone_commits(&clients)?;
    round.keep_up(WARM_UP)?;
    round.faults()?;
    round.mend_all()?;
    round.wait("all processes serve", |round| round.all_serve())?;
    round.everyone_commits(&clients)?;
    round.finished.seen = clients.finish();
    let violations = std::mem::take(&mut round.finished.seen.violations);
    round.finished.violations.extend(violations);
    if round.finished.violations.is_empty() {
        round.judge(&*workload)?;
    }
    Ok(round.finished)
}

impl Round<'_> {
    fn start_all(&mut self) -> Result<(), String> {
        (0..PROCESSES).try_for_each(|process| self.start(process))
    }

    fn start(&mut self, process: usize) -> Result<(), String> {
        self.starting[process] = Some(Instant::now());
        self.disk_faults[process] = None;
        self.cluster.processes[process].start()
    }

    fn all_serve(&self) -> bool {
        self.starting.iter().all(Option::is_none) && self.cluster.processes.iter().all(Process::runs)
    }

    /// Disks fail only where the library is loaded: better no test than one that tests nothing.
    fn check_shim(&self) -> Result<(), String> {
        let Some(shim) = self.setting.shim else { return Ok(()) };
        let without =
            self.cluster.processes.iter().find(|process| !process.id().is_some_and(|id| shim.is_in(id)));
        without.map_or(Ok(()), |process| {
            Err(format!(
                "the library by which disks fail is not loaded into {}, which may be linked statically: leave out the \
                 faults of disks by --faults",
                process.name
            ))
        })
    }

    fn milliseconds(&self) -> u32 {
        self.started.elapsed().as_millis() as u32
    }

    /// Goes on until something is so. What does not come is a violation, after which the round ends.
    fn wait(&mut self, what: &str, mut so: impl FnMut(&mut Self) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while self.finished.violations.is_empty() && !so(self) {
            if Instant::now() > deadline {
                let processes = self.cluster.processes.iter().zip(&self.starting);
                let late = processes.filter(|(process, starting)| starting.is_some() || !process.runs());
                let late: Vec<String> = late
                    .map(|(process, _)| format!("{} says\n{}", process.name, process.last_lines()))
                    .collect();
                self.violate(format!("not so after {PATIENCE:?}: {what}\n{}", late.join("\n")));
            }
            self.tick()?;
        }
        Ok(())
    }

    fn keep_up(&mut self, time: Duration) -> Result<(), String> {
        let end = Instant::now() + time;
        self.wait("time passes", |_| Instant::now() >= end)
    }

    /// Nobody is left behind: each client has a call that commits from now on.
    fn everyone_commits(&mut self, clients: &Clients) -> Result<(), String> {
        let before = clients.commits();
        let all = |now: Vec<u64>| now.iter().zip(&before).all(|(now, before)| now > before);
        self.wait("the calls of every client commit while nothing is wrong", |_| all(clients.commits()))
    }

    fn violate(&mut self, violation: String) {
        tracing::error!("{violation}");
        self.finished.violations.push(violation);
    }

    /// Lets faults happen, one after the other and some at the same time.
    fn faults(&mut self) -> Result<(), String> {
        let setting = self.setting;
        let (kinds, pause) = (setting.kinds.clone(), setting.options.pause());
        let mut draw = Draw::new(setting.seed, setting.number, kinds, pause, setting.lasts);
        let end = Instant::now() + setting.lasts;
        while Instant::now() < end && self.finished.violations.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            self.keep_up(draw.pause().min(left))?;
            let ill = std::array::from_fn(|process| self.is_ill(process));
            if let Some(fault) = draw.next(&ill).filter(|_| Instant::now() < end) {
                self.begin(fault)?;
            }
        }
        Ok(())
    }

    fn is_ill(&self, process: usize) -> bool {
        self.starting[process].is_some()
            || self.active.iter().any(|active| active.fault.victims.contains(&process))
    }

    /// A look at everything.
    fn tick(&mut self) -> Result<(), String> {
        std::thread::sleep(TICK);
        if self.setting.interrupted.load(Ordering::SeqCst) {
            return Err("interrupted".to_owned());
        }
        for process in 0..PROCESSES {
            if let Some(status) = self.cluster.processes[process].ended() {
                self.bury(process, status)?;
            }
            if self.starting[process].is_some_and(|since| since.elapsed() > PATIENCE) {
                let Process { name, .. } = &self.cluster.processes[process];
                let said = self.cluster.processes[process].last_lines();
                self.violate(format!("{name} does not serve after {PATIENCE:?}; it says\n{said}"));
            }
            if self.starting[process].is_some() && self.cluster.processes[process].is_ready() {
                self.starting[process] = None;
                let now = self.milliseconds();
                let away = self.finished.away.iter_mut().filter(|away| away.0 == process);
                away.for_each(|(_, _, until)| *until = now.min(*until));
            }
        }
        let now = Instant::now();
        for mut active in std::mem::take(&mut self.active) {
            if !active.mended && self.is_over(&mut active, now)? {
                self.mend(&mut active)?;
            }
            if active.mended && active.fault.victims.iter().all(|victim| self.starting[*victim].is_none()) {
                self.finished.happened[active.place].well = self.milliseconds();
            } else {
                self.active.push(active);
            }
        }
        Ok(())
    }

    /// A process has ended by itself: because of its disk, or to start again. It may take a moment to end, so that its disk is
    /// well again by now.
    fn bury(&mut self, process: usize, status: ExitStatus) -> Result<(), String> {
        let said = self.cluster.processes[process].said();
        if status.success() && self.was_to_end(process, &said) {
            return Ok(());
        }
        let disk_fault = self.disk_faults[process];
        let kind = disk_fault.map(|place| self.finished.happened[place].kind);
        let clear =
            said.contains(DISK_FAILED) || (kind == Some(FaultKind::FullDisk) && said.contains(CANNOT_OPEN));
        let name = &self.cluster.processes[process].name;
        match disk_fault {
            Some(place) if clear && status.code() == Some(1) => {
                self.finished.happened[place].outcome = "stopped";
            }
            _ if said.contains(ASKS_FOR_RESTART) => {
                tracing::info!(process = name, "asked to be started again");
                self.finished.restarts += 1;
            }
            _ => {
                let reason = kind.map_or("nothing was wrong with it".to_owned(), FaultKind::name);
                let lines = self.cluster.processes[process].last_lines();
                self.violate(format!(
                    "{name} ended with {status} ({reason}) without a reason that counts:\n{lines}"
                ));
                return Ok(());
            }
        }
        self.finished.away.push((process, self.milliseconds(), u32::MAX));
        for mut active in std::mem::take(&mut self.active) {
            if !active.mended && Some(active.place) == disk_fault {
                self.mend(&mut active)?;
            }
            self.active.push(active);
        }
        self.start(process)
    }

    /// Whether a process has ended in good order because it was told to, or its replica was removed. It is started again later.
    fn was_to_end(&mut self, process: usize, said: &str) -> bool {
        let concerns = |active: &&Active| !active.mended && active.fault.victims.contains(&process);
        let Some(active) = self.active.iter().find(concerns) else { return false };
        match active.fault.kind {
            FaultKind::HandOver => {
                let handed_over = said.contains(&format!("{HANDED_OVER} "));
                self.finished.happened[active.place].outcome =
                    if handed_over { "handed over" } else { "ended" };
                true
            }
            FaultKind::Wipe => said.contains(REMOVED),
            _ => false,
        }
    }

    fn begin(&mut self, mut fault: Fault) -> Result<(), String> {
        if fault.kind == FaultKind::HandOver {
            let mut group = group_of(partition_of(fault.victims[0]));
            let leader = group.find(|process| verdict::leads(&self.cluster.file, *process));
            fault.victims = leader.map_or(fault.victims, |leader| vec![leader]);
        }
        let names: Vec<&str> =
            fault.victims.iter().map(|victim| self.cluster.processes[*victim].name.as_str()).collect();
        let led = match fault.victims[..] {
            [victim] => verdict::leads(&self.cluster.file, victim),
            _ => false,
        };
        tracing::info!(kind = fault.kind.name(), processes = names.join(","), lasts = ?fault.lasts, led, "fault");
        let from = self.milliseconds();
        self.finished.happened.push(Happened {
            kind: fault.kind,
            victims: fault.victims.clone(),
            led,
            from,
            until: from,
            well: from,
            outcome: "",
        });
        self.set_directions(&fault, true)?;
        for victim in &fault.victims {
            let process = &mut self.cluster.processes[*victim];
            match fault.kind {
                FaultKind::Kill | FaultKind::Absence | FaultKind::KillMajority | FaultKind::KillAll => {
                    process.kill();
                }
                FaultKind::HandOver => process.signal(Signal::TERM),
                // Others are there still when their replica is removed, and end by themselves.
                FaultKind::Wipe if fault.resets => process.kill(),
                FaultKind::Wipe => {}
                FaultKind::Stop => process.signal(Signal::STOP),
                FaultKind::FullDisk => process.flag.raise(DiskFault::Full)?,
                FaultKind::FailingSync => process.flag.raise(DiskFault::FailingSync)?,
                FaultKind::Cut | FaultKind::CutOneWay | FaultKind::CutPair | FaultKind::Slow => {}
            }
        }
        let operator = match fault.kind {
            FaultKind::Wipe => Some(self.remove_replica(&fault)?),
            _ => None,
        };
        let ends = Instant::now() + fault.lasts;
        let place = self.finished.happened.len() - 1;
        if fault.kind.is_of_disks() {
            fault.victims.iter().for_each(|victim| self.disk_faults[*victim] = Some(place));
        }
        self.active.push(Active { fault, ends, place, hit: None, operator, mended: false });
        Ok(())
    }

    /// Begins to remove the replica of the victims.
    fn remove_replica(&self, fault: &Fault) -> Result<Operator, String> {
        let replica = usize::from(self.cluster.file.processes[fault.victims[0]].replica);
        let log = self.setting.directory.join("logs").join("operator.log");
        Operator::remove(replica, &self.cluster.path, &log)
    }

    /// Goes on with removing a replica, and adding it again; whether that is done.
    fn operate(&mut self, active: &mut Active) -> Result<bool, String> {
        let Some(operator) = &mut active.operator else { return Ok(true) };
        match operator.look()? {
            Progress::UnderWay => Ok(false),
            Progress::Added => Ok(true),
            Progress::Stuck(problem) => {
                self.violate(problem);
                Ok(true)
            }
            Progress::Removed => {
                for victim in &active.fault.victims {
                    self.cluster.processes[*victim].kill();
                    let entry = &self.cluster.file.processes[*victim];
                    let directory = entry.data_directory.as_deref().unwrap_or(Path::new(""));
                    std::fs::remove_dir_all(directory)
                        .map_err(|error| format!("cannot remove {}: {error}", directory.display()))?;
                    self.start(*victim)?;
                }
                operator.add().map(|()| false)
            }
        }
    }

    fn set_directions(&mut self, fault: &Fault, begin: bool) -> Result<(), String> {
        for (from, to) in &fault.directions {
            if matches!(fault.kind, FaultKind::Slow | FaultKind::HandOver) {
                let delay = if begin { fault.delay } else { Duration::ZERO };
                self.cluster.network.set_delay(*from, *to, delay);
            } else {
                self.cluster.network.set_cut(*from, *to, begin)?;
            }
        }
        Ok(())
    }

    /// Whether it is time to mend a fault. A process whose `fsync` has failed must end, and so must one that was told to.
    fn is_over(&mut self, active: &mut Active, now: Instant) -> Result<bool, String> {
        match active.fault.kind {
            FaultKind::Wipe => self.operate(active),
            FaultKind::HandOver if self.cluster.processes[active.fault.victims[0]].runs() => {
                if now < active.ends + STOP_PATIENCE {
                    return Ok(false);
                }
                let Process { name, .. } = &self.cluster.processes[active.fault.victims[0]];
                self.violate(format!("{name} goes on {STOP_PATIENCE:?} after it was told to end"));
                Ok(true)
            }
            kind if kind.is_of_disks() => Ok(self.is_disk_fault_over(active, now)),
            _ => Ok(now >= active.ends),
        }
    }

    fn is_disk_fault_over(&mut self, active: &mut Active, now: Instant) -> bool {
        let process = &self.cluster.processes[active.fault.victims[0]];
        if active.hit.is_none() && process.flag.has_hit() {
            active.hit = Some(now);
        }
        let must_end = active.fault.kind == FaultKind::FailingSync;
        match active.hit {
            Some(hit) if must_end => {
                if now < hit + STOP_PATIENCE {
                    return false;
                }
                let violation = format!("{} goes on {STOP_PATIENCE:?} after its fsync failed", process.name);
                self.violate(violation);
                true
            }
            _ => now >= active.ends,
        }
    }

    fn mend(&mut self, active: &mut Active) -> Result<(), String> {
        active.mended = true;
        self.set_directions(&active.fault, false)?;
        if active.fault.resets {
            for (from, to) in &active.fault.directions {
                self.cluster.network.reset(*from, *to);
            }
        }
        for victim in &active.fault.victims {
            match active.fault.kind {
                FaultKind::Kill
                | FaultKind::Absence
                | FaultKind::HandOver
                | FaultKind::KillMajority
                | FaultKind::KillAll => self.start(*victim)?,
                FaultKind::Stop => self.cluster.processes[*victim].signal(Signal::CONT),
                FaultKind::FullDisk | FaultKind::FailingSync => {
                    self.cluster.processes[*victim].flag.lower();
                    let happened = &mut self.finished.happened[active.place];
                    if happened.outcome.is_empty() {
                        happened.outcome = if active.hit.is_some() { "went on" } else { "not noticed" };
                    }
                }
                FaultKind::Wipe
                | FaultKind::Cut
                | FaultKind::CutOneWay
                | FaultKind::CutPair
                | FaultKind::Slow => {}
            }
        }
        self.finished.happened[active.place].until = self.milliseconds();
        Ok(())
    }

    fn mend_all(&mut self) -> Result<(), String> {
        // One whose fsync has failed is about to end by itself; before that its disk must not get well.
        let goes_on = |active: &Active| {
            active.hit.is_some() || matches!(active.fault.kind, FaultKind::Wipe | FaultKind::HandOver)
        };
        self.wait("what has begun ends: failing disks, ends in good order, changes of replicas", |round| {
            !round.active.iter().any(|active| !active.mended && goes_on(active))
        })?;
        for mut active in std::mem::take(&mut self.active) {
            if !active.mended {
                self.mend(&mut active)?;
            }
            self.active.push(active);
        }
        self.wait("faults are mended", |round| round.active.is_empty())
    }
}
