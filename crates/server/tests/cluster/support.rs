//! What the tests share: clusters of child processes, and clients of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ordain::cluster_file::ClusterFile;
use ordain::db::data::{Key, KeyRange};
use ordain::db::error::Error;
use ordain::db::message::{ClientId, ClientRequest, Operation, Reply, Request, RequestId};
use ordain::db::position::PartitionId;
use ordain::transport::{ClientReceiver, ClientSender, client};
use ordain::wire::{ClientPayload, ServerPayload};
use ordain::{Connection, RemoteCluster, Snapshot};
use ordain_workload::bank::{Arguments, Options};
use ordain_workload::{Call, Part, SnapshotReader, Totals, Workload};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

/// Long enough for anything that does happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Calls that a client has outstanding at most, if nothing else is said.
const WINDOW: usize = 64;

/// How long a client waits after a call was shed: else a node has little to do but to refuse.
const SHED_PAUSE: Duration = Duration::from_micros(200);

/// A small workload whose money is to be conserved.
pub(crate) const BANK: &str = "name = \"bank\"\naccounts = 400\nmulti_partition_percent = 50";

/// A small workload that counts what has committed.
pub(crate) const MICRO: &str =
    "name = \"micro\"\nrecords = 4000\ncontention_index = 0.01\nmulti_partition_percent = 30";

/// A small seeded generator: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A number that no other call in no other process returns soon.
pub(crate) fn unique() -> u64 {
    getrandom::u64().unwrap()
}

/// A port on which nobody listens and which no other test gets: above those that benchmarks choose from, below those that
/// operating systems give to outgoing connections.
pub(crate) fn free_port() -> u16 {
    static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut taken = TAKEN.lock().unwrap();
    loop {
        let port = 32_000 + (unique() % 768) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && taken.insert(port) {
            return port;
        }
    }
}

/// A cluster file with the partitions spread over the processes in turn.
pub(crate) fn cluster_file(processes: u16, partitions: u16, workload: &str) -> ClusterFile {
    let mut text = format!("partitions = {partitions}\nsites = 4\n[workload]\n{workload}\n");
    for number in 0..processes {
        let own: Vec<u16> = (number..partitions).step_by(usize::from(processes)).collect();
        let address = format!("127.0.0.1:{}", free_port());
        text += &format!(
            "[[process]]\nname = \"node-{number}\"\naddress = \"{address}\"\npartitions = {own:?}\n"
        );
    }
    ClusterFile::parse(&text).unwrap()
}

/// A cluster that keeps its data below a folder: `replicas` processes for each group of partitions.
pub(crate) fn durable_file(
    folder: &TemporaryFolder,
    replicas: u16,
    groups: u16,
    partitions: u16,
    workload: &str,
) -> ClusterFile {
    let mode = if replicas > 1 { "sync" } else { "none" };
    let mut text = format!(
        "partitions = {partitions}\nsites = 4\n[workload]\n{workload}\n[replication]\nmode = \"{mode}\"\n"
    );
    for replica in 0..replicas {
        for group in 0..groups {
            let own: Vec<u16> = (group..partitions).step_by(usize::from(groups)).collect();
            let (port, name) = (free_port(), format!("node-{group}-{replica}"));
            let directory = folder.0.join(&name);
            text += &format!(
                "[[process]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\npartitions = {own:?}\nreplica = {replica}\ndata_directory = {directory:?}\n"
            );
        }
    }
    ClusterFile::parse(&text).unwrap()
}

/// A folder that is removed with this value.
pub(crate) struct TemporaryFolder(pub(crate) PathBuf);

impl TemporaryFolder {
    pub(crate) fn create() -> TemporaryFolder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("data-{:016x}", unique()));
        std::fs::create_dir(&path).unwrap();
        TemporaryFolder(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file that is removed with this value.
pub(crate) struct TemporaryFile(pub(crate) PathBuf);

impl TemporaryFile {
    pub(crate) fn create(text: &str) -> TemporaryFile {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cluster-{:016x}.toml", unique()));
        std::fs::write(&path, text).unwrap();
        TemporaryFile(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A child process; killed with this value.
pub(crate) struct Process {
    pub(crate) child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts the binary with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Process {
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_ordain")).args(arguments))
    }

    pub(crate) fn spawn(command: &mut Command) -> Process {
        command.env("ORDAIN_LOG", "info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (stderr, lines) = (child.stderr.take().unwrap(), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        Process { child, log }
    }

    /// Starts a process of a cluster.
    pub(crate) fn of_cluster(file: &TemporaryFile, name: &str) -> Process {
        Process::start(&["start", "--cluster", file.0.to_str().unwrap(), "--process", name])
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// From now on it gets at most so many more bytes of memory.
    pub(crate) fn limit_memory(&self, more: u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        let kibibytes: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
        let most = 1024 * kibibytes + more;
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        prlimit(Some(Pid::from_child(&self.child)), Resource::As, limit).unwrap();
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the process does not end; its log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end, which must be one in good order.
    pub(crate) fn wait_for_success(&mut self) {
        let status = self.wait();
        assert!(status.success(), "{status}; its log:\n{}", self.log());
    }

    /// Waits until the log says this.
    pub(crate) fn says(&self, words: &str) {
        eventually(&format!("the log says {words:?}; it is\n{}", self.log()), || self.log().contains(words));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("log of a process:\n{}", self.log());
        }
    }
}

/// The processes of a cluster.
pub(crate) struct Cluster {
    pub(crate) file: ClusterFile,
    pub(crate) on_disk: TemporaryFile,
    pub(crate) processes: Vec<Process>,
    pub(crate) workload: Box<dyn Workload>,
}

impl Cluster {
    /// Starts a cluster and waits until it is ready.
    pub(crate) fn start(processes: u16, partitions: u16, workload: &str) -> Cluster {
        loop {
            let mut cluster = Cluster::spawn(cluster_file(processes, partitions, workload));
            // A port that was free may be taken by now.
            if cluster.wait_until_ready() {
                return cluster;
            }
        }
    }

    /// Starts the processes of a file.
    pub(crate) fn spawn(file: ClusterFile) -> Cluster {
        let on_disk = TemporaryFile::create(&file.to_text().unwrap());
        let processes =
            file.processes.iter().map(|entry| Process::of_cluster(&on_disk, &entry.name)).collect();
        let workload = file.workload().unwrap();
        Cluster { file, on_disk, processes, workload }
    }

    /// Starts the processes of a file, whose ports were free a moment ago, and waits until they are ready.
    pub(crate) fn spawn_ready(file: ClusterFile) -> Cluster {
        let mut cluster = Cluster::spawn(file);
        assert!(cluster.wait_until_ready(), "a port was taken in the moment since it was free");
        cluster
    }

    /// `false` if a port is taken.
    pub(crate) fn wait_until_ready(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !self.processes.iter().all(|process| process.log().contains(" ready ")) {
            assert!(Instant::now() < deadline, "not ready");
            for process in &mut self.processes {
                if let Some(status) = process.child.try_wait().unwrap() {
                    let log = process.log();
                    assert!(log.contains("cannot listen on"), "{status}; its log:\n{log}");
                    return false;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Starts a process again.
    pub(crate) fn restart(&mut self, process: usize) {
        self.processes[process] = Process::of_cluster(&self.on_disk, &self.file.processes[process].name);
    }

    pub(crate) fn address(&self, process: usize) -> &str {
        &self.file.processes[process].address
    }

    pub(crate) fn remote(&self) -> Arc<RemoteCluster> {
        Arc::new(RemoteCluster::connect(&self.file, self.workload.catalog()).unwrap())
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::new(self.remote(), self.workload.catalog().clone()).unwrap()
    }

    /// Holds the workload's conditions against what a new client sees.
    pub(crate) fn check(&self, totals: &Totals) {
        let snapshot = self.connect().snapshot().unwrap();
        let lines = self.workload.check(&mut Reader(&snapshot), totals).unwrap();
        assert!(!lines.is_empty());
        for line in lines {
            assert!(line.holds, "{}: {}", line.condition, line.detail);
        }
    }

    /// Holds the accounts of a bank against the transfers that clients were told of: all of these were made, and no others.
    pub(crate) fn check_transfers(&self, tally: &Tally) {
        assert_eq!(tally.unavailable, 0, "every call has got its answer");
        let connection = self.connect();
        let accounts = &connection.schema().tables()[0];
        let mut changes: BTreeMap<Key, i64> = BTreeMap::new();
        for arguments in &tally.done {
            let Arguments { from, to, amount } = postcard::from_bytes(arguments).unwrap();
            for (account, change) in [(from, -amount), (to, amount)] {
                let key = accounts.key((i32::from(account.site), i64::from(account.id))).unwrap();
                *changes.entry(key).or_default() += change;
            }
        }
        let at_first = Options::default().balance;
        let visit = |key: &[u8], row: &[u8]| {
            let balance = accounts.read(row).int64("balance").unwrap();
            let change = changes.remove(&Key::from_bytes(key)).unwrap_or_default();
            assert_eq!(balance, at_first + change, "account {key:x?}");
            Ok(())
        };
        connection.snapshot().unwrap().scan(&accounts.all(), visit).unwrap();
        assert!(changes.is_empty(), "every account is there");
    }

    /// Kills processes.
    pub(crate) fn kill(&mut self, processes: &[usize]) {
        for process in processes {
            self.processes[*process].signal(Signal::KILL);
            self.processes[*process].wait();
        }
    }

    /// Ends all processes in good order.
    pub(crate) fn stop(mut self) {
        for process in &self.processes {
            process.signal(Signal::TERM);
        }
        for process in &mut self.processes {
            process.wait_for_success();
        }
    }
}

/// The digest of a state in which nothing is under way.
pub(crate) fn digest(connection: &Connection) -> String {
    // Behind everything before it on all partitions.
    let _snapshot = connection.snapshot().unwrap();
    connection.digest().unwrap().to_string()
}

struct Reader<'a>(&'a Snapshot);

impl SnapshotReader for Reader<'_> {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        self.0.scan(range, |key, row| {
            visit(key, row);
            Ok(())
        })
    }
}

/// What became of calls.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) totals: Totals,
    pub(crate) committed: u64,
    pub(crate) unavailable: u64,
    /// Refused because a node lags behind the others.
    pub(crate) shed: u64,
    /// The arguments of those that have committed.
    done: Vec<Bytes>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.totals.add(&other.totals);
        self.committed += other.committed;
        self.unavailable += other.unavailable;
        self.shed += other.shed;
        self.done.extend(other.done);
    }
}

/// Keeps calls outstanding as long as `go_on` says so, then waits for the last. Any error but [`Error::Unavailable`] is one
/// of the test, but for calls that are shed; and so is no answer.
pub(crate) fn run_calls(
    connection: &Connection,
    workload: &dyn Workload,
    client: u32,
    go_on: impl FnMut(&Tally) -> bool,
) -> Tally {
    run_calls_within(WINDOW, connection, workload, client, go_on)
}

/// The same with another number of calls outstanding.
fn run_calls_within(
    window: usize,
    connection: &Connection,
    workload: &dyn Workload,
    client: u32,
    mut go_on: impl FnMut(&Tally) -> bool,
) -> Tally {
    let mut generator = workload.generator(u64::from(client), client, Part::WHOLE).unwrap();
    let mut tally = Tally::default();
    let mut outstanding = VecDeque::new();
    loop {
        let more = go_on(&tally);
        if more {
            let Call { procedure, arguments, .. } = generator.next();
            let pending = connection.submit(procedure, arguments.clone()).unwrap();
            outstanding.push_back((procedure, arguments, pending));
        }
        if outstanding.len() >= window || !more {
            let Some((procedure, arguments, pending)) = outstanding.pop_front() else { return tally };
            let totals = tally.totals.of_mut(workload.catalog().procedures.name(procedure));
            match pending.wait_for(PATIENCE).expect("every request is answered") {
                Ok(_) => {
                    totals.committed += 1;
                    tally.committed += 1;
                    tally.done.push(arguments);
                }
                Err(Error::Aborted(_)) => totals.aborted += 1,
                Err(Error::Unavailable(_)) => {
                    totals.unknown += 1;
                    tally.unavailable += 1;
                }
                Err(Error::Busy(reason)) if reason.contains(" lags behind the other partitions") => {
                    tally.shed += 1;
                    std::thread::sleep(SHED_PAUSE);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Clients that keep a cluster busy until they are told to stop.
pub(crate) struct Load {
    threads: Vec<std::thread::JoinHandle<Tally>>,
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
}

impl Load {
    /// Starts clients, each with a connection of its own.
    pub(crate) fn start(cluster: &Cluster, clients: u32) -> Load {
        Load::start_within(WINDOW, cluster, clients)
    }

    /// Starts clients that have so many calls outstanding each.
    pub(crate) fn start_within(window: usize, cluster: &Cluster, clients: u32) -> Load {
        let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |client: u32| {
            let (connection, stop, committed) =
                (cluster.connect(), Arc::clone(&stop), Arc::clone(&committed));
            let workload = cluster.file.workload().unwrap();
            std::thread::spawn(move || {
                let mut seen = 0;
                run_calls_within(window, &connection, &*workload, client, |tally| {
                    committed.fetch_add(tally.committed - seen, Ordering::Relaxed);
                    seen = tally.committed;
                    tally.unavailable == 0 && !stop.load(Ordering::Relaxed)
                })
            })
        };
        Load { threads: (1..=clients).map(client).collect(), stop, committed }
    }

    /// Waits until this many more calls have committed.
    pub(crate) fn wait_for_commits(&self, more: u64) {
        let before = self.committed.load(Ordering::Relaxed);
        eventually("calls commit", || self.committed.load(Ordering::Relaxed) >= before + more);
    }

    /// The longest time without a commit until something is so.
    pub(crate) fn longest_gap_until(&self, mut is_so: impl FnMut() -> bool) -> Duration {
        let (mut longest, mut last) =
            (Duration::ZERO, (Instant::now(), self.committed.load(Ordering::Relaxed)));
        while !is_so() {
            let committed = self.committed.load(Ordering::Relaxed);
            longest = longest.max(last.0.elapsed());
            if committed != last.1 {
                last = (Instant::now(), committed);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        longest
    }

    /// Waits for the clients' last answers.
    pub(crate) fn finish(self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let mut sum = Tally::default();
        for thread in self.threads {
            sum.add(thread.join().unwrap());
        }
        sum
    }
}

/// A client that says what the test wants it to.
pub(crate) struct RawClient {
    pub(crate) sender: ClientSender,
    pub(crate) receiver: ClientReceiver,
}

impl RawClient {
    pub(crate) fn connect(address: &str) -> RawClient {
        let (sender, receiver) = client::connect(address, 0).unwrap();
        RawClient { sender, receiver }
    }

    pub(crate) fn send(&mut self, to: u16, requests: &[ClientRequest]) {
        self.sender.send(&ClientPayload::encode_requests(PartitionId(to), requests).unwrap()).unwrap();
    }

    /// The next replies.
    pub(crate) fn receive(&mut self) -> Vec<Reply> {
        let payload = self.receiver.receive_within(PATIENCE).unwrap().expect("an answer comes");
        match ServerPayload::decode(&payload).unwrap() {
            ServerPayload::Replies(replies) => replies,
            other => panic!("{other:?}"),
        }
    }

    /// The only reply to a request.
    pub(crate) fn ask(&mut self, to: u16, request: ClientRequest) -> Reply {
        let id = request.id();
        self.send(to, &[request]);
        let mut replies = self.receive();
        assert_eq!(replies.len(), 1);
        assert_eq!(Some(replies[0].request), id);
        replies.remove(0)
    }
}

pub(crate) fn request_id(home: u16, number: u64, sequence: u64) -> RequestId {
    RequestId { client: ClientId { home: PartitionId(home), number }, sequence }
}

pub(crate) fn ordered(id: RequestId, acknowledged: u64, operation: Operation) -> ClientRequest {
    ClientRequest::Ordered(Request { id, acknowledged, operation })
}

pub(crate) fn operation(call: Call) -> Operation {
    Operation::Call { procedure: call.procedure, arguments: call.arguments }
}
