//! A small durable cluster over real files, stepped by hand, with the bank as its workload; and what it must come to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ordain::data_directory::log_id_of;
use ordain::files::RealFiles;
use ordain_consensus::LogRecord;
use ordain_consensus::disk_log::{LogId, LogOptions, Opening, RECORD_HEADER_BYTES, RECORDS_AT};
use ordain_db::disk::{Ingredients, NodeDisk, Replication, recover};
use ordain_db::engine::serial::Serial;
use ordain_db::engine::{Engine, EngineKind};
use ordain_db::execution::{Call, Context, Effects};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::hash::Digest;
use ordain_db::message::{ClientId, ClientRequest, Delivered, Operation, Request, RequestId};
use ordain_db::node::ordering::LoggedBatch;
use ordain_db::node::{AnyNode, CheckpointOptions, DiskWrite, Event, NodeConfiguration, Outbox};
use ordain_db::position::{Epoch, NodeId, PartitionId, Position};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::bank::{Bank, Options};
use ordain_workload::{Generator, Part, Workload};

pub(crate) const SEGMENT_BYTES: u64 = 16 << 10;

/// When the clusters begin, in microseconds since 1970.
pub(crate) const BEGIN: u64 = 1_800_000_000_000_000;

const STEP_MICROSECONDS: u64 = 1000;

const CLIENTS: u32 = 6;

pub(crate) fn bank(partitions: u16) -> Bank {
    let options =
        Options { sites: partitions, accounts: 40, multi_partition_percent: 50.0, ..Options::default() };
    Bank::new(options).unwrap()
}

/// Where the data of a cluster is: the directory of each partition.
#[derive(Clone)]
pub(crate) struct Layout(pub(crate) Vec<PathBuf>);

impl Layout {
    /// All partitions in one directory.
    pub(crate) fn together(directory: &Path, partitions: u16) -> Layout {
        Layout(vec![directory.to_owned(); usize::from(partitions)])
    }

    /// Makes the identities. Each directory gets the number of the first partition in it, and one more than `id`.
    pub(crate) fn create(&self, id: u128) {
        for (partition, directory) in self.0.iter().enumerate() {
            std::fs::create_dir_all(directory).unwrap();
            let own = self.0.iter().enumerate().filter(|(_, other)| *other == directory);
            let nodes: Vec<String> = own.map(|(partition, _)| format!("\"p{partition}r0\"")).collect();
            let first = self.0.iter().position(|other| other == directory).unwrap();
            if first == partition {
                let id = id + first as u128;
                let text = format!(
                    "format = 3\nrelease = \"0.1.0\"\nlog = \"order\"\nid = \"{id:032x}\"\nfingerprint = \"00000000000000ab\"\nnodes = [{}]\n\
                     established = true\n\n[options]\npartitions = {}\n",
                    nodes.join(", "),
                    self.0.len()
                );
                std::fs::write(directory.join("ORDAIN"), text).unwrap();
            }
        }
    }
}

fn id_of(directory: &Path) -> u128 {
    let text = std::fs::read_to_string(directory.join("ORDAIN")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    u128::from_str_radix(table["id"].as_str().unwrap(), 16).unwrap()
}

struct Member {
    node: Box<dyn AnyNode>,
    disk: NodeDisk<RealFiles>,
    events: Vec<Event>,
}

struct Client {
    generator: Box<dyn Generator>,
    id: ClientId,
    sequence: u64,
    waits: bool,
}

/// What was ordered: by epoch and origin.
pub(crate) type History = BTreeMap<(Epoch, PartitionId), LoggedBatch>;

pub(crate) struct Cluster {
    members: Vec<Member>,
    clients: Vec<Client>,
    pub(crate) now: u64,
    pub(crate) history: History,
    pub(crate) answered: u64,
    /// Checkpoints that were begun.
    pub(crate) checkpoints: u64,
}

impl Cluster {
    /// Opens the nodes of a layout. `life` tells this life's clients from those of others.
    pub(crate) fn open(layout: &Layout, seed: u64, life: u64, checkpoint_log_bytes: u64) -> Cluster {
        let partitions = layout.0.len() as u16;
        let bank = bank(partitions);
        let open = |me: PartitionId| {
            let directory = &layout.0[me.index()];
            let node = NodeId::first(me);
            let files = RealFiles::open(&directory.join(me.to_string())).unwrap();
            let options = LogOptions {
                segment_bytes: SEGMENT_BYTES,
                record_bytes_max: SEGMENT_BYTES - RECORDS_AT - RECORD_HEADER_BYTES,
                ..LogOptions::new(LogId(log_id_of(id_of(directory), node)), Opening::CreateIfMissing)
            };
            let (mut disk, found) = NodeDisk::open(files, options).unwrap();
            let checkpoints = CheckpointOptions {
                interval_microseconds: None,
                log_bytes: checkpoint_log_bytes,
                ..CheckpointOptions::default()
            };
            let configuration = NodeConfiguration { checkpoints, ..NodeConfiguration::new(me, partitions) };
            let ingredients = Ingredients {
                join: false,
                engine: EngineKind::Calvin,
                configuration: &configuration,
                catalog: bank.catalog().clone(),
                replication: Replication::None,
                storage: &|| Box::new(MemoryStorage::new()),
                load: &mut |storage| {
                    bank.load(Part::of(me, partitions), &mut |key, row| {
                        storage.load(key, key.hash(), row, Position::LOADED);
                    })
                },
            };
            let (node, _) = recover::<_, NoFailpoints>(ingredients, &mut disk, found).unwrap();
            Member { node, disk, events: Vec::new() }
        };
        let members: Vec<Member> = (0..partitions).map(PartitionId).map(open).collect();
        let client = |number: u32| Client {
            generator: bank.generator(seed, number, Part::WHOLE).unwrap(),
            id: ClientId {
                home: PartitionId(number as u16 % partitions),
                number: 100 * life + u64::from(number),
            },
            sequence: 0,
            waits: false,
        };
        let mut cluster = Cluster {
            members,
            clients: (0..CLIENTS).map(client).collect(),
            now: BEGIN,
            history: History::new(),
            answered: 0,
            checkpoints: 0,
        };
        for (me, member) in (0..partitions).zip(&mut cluster.members) {
            let others = (0..partitions).filter(|other| *other != me);
            member.events.extend(others.map(|other| Event::LinkReset(NodeId::first(PartitionId(other)))));
        }
        cluster
    }

    /// Clients that have their answers ask again.
    pub(crate) fn ask(&mut self) {
        for client in self.clients.iter_mut().filter(|client| !client.waits) {
            let call = client.generator.next();
            let id = RequestId { client: client.id, sequence: client.sequence };
            let operation = Operation::Call { procedure: call.procedure, arguments: call.arguments };
            let request = Request { id, acknowledged: client.sequence, operation };
            let entry = client.id.home.index();
            self.members[entry].events.push(Event::Requests(vec![ClientRequest::Ordered(request)]));
            (client.sequence, client.waits) = (client.sequence + 1, true);
        }
    }

    /// Every node makes a step. Whether there is more to do.
    pub(crate) fn step(&mut self) -> bool {
        self.now += STEP_MICROSECONDS;
        let mut busy = false;
        for me in 0..self.members.len() {
            let mut outbox = Outbox::default();
            let member = &mut self.members[me];
            busy |= !member.events.is_empty();
            let mut events = std::mem::take(&mut member.events);
            busy |= member.node.step(self.now, &mut events, &mut outbox).unwrap();
            for write in outbox.disk {
                self.checkpoints += u64::from(matches!(write, DiskWrite::BeginCheckpoint(_)));
                if let DiskWrite::Append { records, .. } = &write {
                    remember(&mut self.history, PartitionId(me as u16), records);
                }
                member.disk.write(write).unwrap();
            }
            if member.disk.has_unsynced() {
                member.disk.sync(&mut member.events).unwrap();
            }
            busy |= !member.node.is_idle() || !member.events.is_empty();
            let from = NodeId::first(PartitionId(me as u16));
            for (to, message) in outbox.sends {
                self.members[to.partition.index()].events.push(Event::Peer { from, message });
            }
            for reply in outbox.replies {
                let client =
                    self.clients.iter_mut().find(|client| client.id == reply.request.client).unwrap();
                assert_eq!(reply.request.sequence + 1, client.sequence, "an answer for each request");
                client.waits = false;
                self.answered += 1;
            }
        }
        busy || self.members.iter().any(|member| !member.events.is_empty())
    }

    /// Steps until nothing is left to do.
    pub(crate) fn finish(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        let described: Vec<String> = self.members.iter().map(|member| member.node.describe()).collect();
        panic!("the cluster does not come to rest: {described:?}");
    }

    /// Works for a number of steps.
    pub(crate) fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            self.ask();
            self.step();
        }
    }

    /// The state, once nothing is under way: the last epoch of each partition, and the digest of all rows.
    pub(crate) fn state(&self) -> (Vec<Epoch>, Digest) {
        let mut digest = Digest::default();
        let mut delivered = Vec::new();
        for member in &self.members {
            let status = member.node.status(true);
            digest.merge(Digest(status.digest.unwrap()));
            delivered.push(status.delivered);
        }
        (delivered, digest)
    }
}

/// Notes the batches of records that a node keeps.
fn remember(history: &mut History, me: PartitionId, records: &[Bytes]) {
    for record in records {
        if let LogRecord::Entry { payload, .. } = LogRecord::decode(record).unwrap() {
            let batch: LoggedBatch = postcard::from_bytes(&payload).unwrap();
            assert!(history.insert((batch.epoch, me), batch).is_none(), "an epoch is logged once");
        }
    }
}

/// The state at the end of each epoch of which all partitions have a batch, from 0 on: what was ordered, executed by one
/// partition, one transaction after the other.
pub(crate) fn oracle(history: &History, partitions: u16) -> Vec<Digest> {
    let bank = bank(partitions);
    let mut storage = MemoryStorage::new();
    bank.load(Part::WHOLE, &mut |key, row| {
        storage.put(key, key.hash(), row, Position::LOADED);
    })
    .unwrap();
    let mut digests = vec![storage.digest(Position::LATEST, &|_| true)];
    let (mut engine, mut effects, mut ran) = (Serial::<NoFailpoints>::default(), Effects::new(1), 0);
    for epoch in (1..).map(Epoch) {
        let batch = |origin| history.get(&(epoch, PartitionId(origin)));
        let Some(batches) = (0..partitions).map(batch).collect::<Option<Vec<&LoggedBatch>>>() else {
            return digests;
        };
        for ordered in batches.iter().flat_map(|batch| &batch.transactions) {
            ran += 1;
            let position = Position { epoch: Epoch(ran), origin: PartitionId(0), index: 0 };
            let delivered = Delivered { position, ordered: ordered.clone(), footprint: None };
            let call = Call::of(delivered, &mut effects.footprints, bank.catalog(), 1).unwrap();
            let Some(call) = call else { continue };
            let mut context = Context {
                me: PartitionId(0),
                partitions: 1,
                catalog: bank.catalog(),
                storage: &mut storage,
                effects: &mut effects,
            };
            engine.deliver(call, &mut context);
            effects.reports.clear();
        }
        digests.push(storage.digest(Position::LATEST, &|_| true));
    }
    unreachable!("epochs end where a batch is missing")
}
