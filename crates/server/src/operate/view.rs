//! What the processes of a cluster say of themselves.

use ordain_db::error::Outcome;
use ordain_db::message::{ClientRequest, RequestId};
use ordain_db::node::Status;
use ordain_db::position::{NodeId, PartitionId};

use crate::cluster_file::{ClusterFile, ProcessEntry};
use crate::remote::direct::Direct;

/// A connection to each process, as far as it can be reached.
pub(super) struct View {
    pub(super) file: ClusterFile,
    fingerprint: u64,
    /// By the number of the process.
    connections: Vec<Option<Direct>>,
}

/// What is known of a node.
pub(super) struct NodeView {
    pub(super) node: NodeId,
    /// The number of the process that runs it.
    pub(super) process: usize,
    /// Its status, or why it could not be asked.
    pub(super) status: Result<Status, String>,
}

impl View {
    /// Connects to nobody yet.
    ///
    /// # Errors
    /// When the cluster file's workload is wrong.
    pub(super) fn new(file: ClusterFile) -> Result<View, String> {
        let fingerprint = file.fingerprint(file.workload()?.catalog());
        let connections = file.processes.iter().map(|_| None).collect();
        Ok(View { file, fingerprint, connections })
    }

    /// Asks all nodes; those of different processes at the same time.
    pub(super) fn statuses(&mut self) -> Vec<NodeView> {
        let ask = |process: usize,
                   entry: &ProcessEntry,
                   connection: &mut Option<Direct>,
                   fingerprint: u64| {
            let mut problem = None;
            let status = |node: NodeId| {
                // One that did not answer is not asked again for each of its nodes.
                let status = match &problem {
                    Some(known) => Err(String::clone(known)),
                    None => of(entry, connection, fingerprint, |direct| direct.status(node.partition, false)),
                };
                if let Err(why) = &status {
                    problem.get_or_insert_with(|| why.clone());
                }
                NodeView { node, process, status }
            };
            entry.nodes().into_iter().map(status).collect::<Vec<_>>()
        };
        let fingerprint = self.fingerprint;
        let mut all: Vec<NodeView> = std::thread::scope(|scope| {
            let processes = self.file.processes.iter().zip(&mut self.connections).enumerate();
            let threads: Vec<_> = processes
                .map(|(process, (entry, connection))| {
                    scope.spawn(move || ask(process, entry, connection, fingerprint))
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        all.sort_by_key(|view| (view.node.partition, view.node.replica));
        all
    }

    /// Asks a process's node of a partition.
    ///
    /// # Errors
    /// When the process cannot be reached, or does not answer.
    pub(super) fn request(
        &mut self,
        process: usize,
        to: PartitionId,
        make: impl FnOnce(RequestId) -> ClientRequest,
    ) -> Result<Outcome, String> {
        self.of(process, |direct| direct.request(to, make))
    }

    /// Tells a process of a cluster file that has more replicas; what it did, or why it refused.
    ///
    /// # Errors
    /// When the process cannot be reached, or does not answer.
    pub(super) fn grow(&mut self, process: usize, text: &str) -> Result<Result<String, String>, String> {
        self.of(process, |direct| direct.grow(text))
    }

    fn of<T>(
        &mut self,
        process: usize,
        ask: impl FnOnce(&mut Direct) -> Result<T, String>,
    ) -> Result<T, String> {
        of(&self.file.processes[process], &mut self.connections[process], self.fingerprint, ask)
    }
}

/// Asks a process, connecting first if there is no connection; one that fails is not used again.
fn of<T>(
    entry: &ProcessEntry,
    connection: &mut Option<Direct>,
    fingerprint: u64,
    ask: impl FnOnce(&mut Direct) -> Result<T, String>,
) -> Result<T, String> {
    let mut direct = match connection.take() {
        Some(direct) => direct,
        None => Direct::connect(entry, fingerprint)?,
    };
    let answer = ask(&mut direct)?;
    *connection = Some(direct);
    Ok(answer)
}
