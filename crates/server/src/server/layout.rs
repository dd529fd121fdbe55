//! Which processes the cluster has, as this one knows. That may grow while it runs.

use std::sync::{Arc, PoisonError, RwLock};

use ordain_db::position::NodeId;
use ordain_db::procedure::Catalog;

use crate::cluster_file::ClusterFile;
use crate::durable::ReplicationMode;

/// See the [module](self).
pub(crate) struct Layout {
    /// This process.
    pub(crate) number: u16,
    pub(crate) catalog: Catalog,
    file: RwLock<Arc<ClusterFile>>,
}

impl Layout {
    pub(crate) fn new(file: &ClusterFile, number: u16, catalog: &Catalog) -> Layout {
        Layout { number, catalog: catalog.clone(), file: RwLock::new(Arc::new(file.clone())) }
    }

    /// The cluster file as it is now.
    pub(crate) fn file(&self) -> Arc<ClusterFile> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on with a file that has more processes.
    pub(crate) fn set_file(&self, file: ClusterFile) {
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(file);
    }

    /// Whether the partitions are replicated, so that processes come and go.
    pub(crate) fn is_replicated(&self) -> bool {
        self.file().replication.mode != ReplicationMode::None
    }

    /// What this process and a peer must agree on.
    pub(crate) fn peer_fingerprint(&self, peer: u16) -> u64 {
        self.file().peer_fingerprint(&self.catalog, self.number, peer)
    }

    /// What a process is called.
    pub(crate) fn name(&self, process: u16) -> String {
        let file = self.file();
        file.processes.get(usize::from(process)).map_or("(unknown)", |entry| &entry.name).to_owned()
    }

    /// The nodes that a process runs.
    pub(crate) fn nodes(&self, process: u16) -> Vec<NodeId> {
        self.file().processes.get(usize::from(process)).map_or(Vec::new(), |entry| entry.nodes())
    }
}
