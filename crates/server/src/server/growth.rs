//! A cluster that gets more replicas while it runs: their processes become peers, and the nodes are told of their places.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::layout::Layout;
use super::peers::Peers;
use crate::cluster_file::ClusterFile;
use crate::data_directory::keep_cluster_file;
use crate::process::Process;
use crate::transport::Membership;

/// See the [module](self).
pub(crate) struct Growth {
    pub(crate) layout: Arc<Layout>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) process: Arc<Process>,
    /// Where the file is kept.
    pub(crate) directory: Option<PathBuf>,
    /// Held by the one who changes something.
    pub(crate) growing: Mutex<()>,
}

impl Growth {
    /// Goes on with a cluster file that has more replicas, and keeps it; what was done. Doing so again changes nothing.
    ///
    /// # Errors
    /// When the file is wrong or says something else than the one of this process: says what; nothing has changed.
    pub(crate) fn grow(&self, text: &str) -> Result<String, String> {
        let larger = ClusterFile::parse(text)?;
        let directory = match &self.directory {
            Some(directory) if self.layout.is_replicated() => directory,
            _ => {
                return Err(
                    "the cluster is not replicated: start a new one whose mode of replication is \"sync\", and load the data there"
                        .to_owned(),
                );
            }
        };
        let _nobody_else = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.layout.file();
        let grown = file.grown_to(&larger, &self.layout.catalog)?;
        if grown == *file {
            return Ok(format!("has the {} replicas of the file already", file.replicas()));
        }
        let path = keep_cluster_file(directory, &grown)?;
        let (before, replicas, processes) =
            (file.processes.len(), grown.replicas(), grown.processes.len() as u16);
        self.layout.set_file(grown);
        // In this order: the nodes hear of the new ones before anything that these say.
        self.process.grow(replicas);
        for process in before as u16..processes {
            self.membership.add_peer(process, self.layout.peer_fingerprint(process));
        }
        self.peers.connect_all()?;
        tracing::info!(replicas, processes, file = %path.display(), "the cluster has grown; its file is kept here");
        Ok(format!("has places for {replicas} replicas now"))
    }
}
