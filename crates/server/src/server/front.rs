//! The front door of a process: brings what its listener receives to the partitions.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::Drain;

use bytes::Bytes;
use ordain_db::error::Error;
use ordain_db::hash::FastMap;
use ordain_db::message::ClientRequest;
use ordain_db::position::{NodeId, PartitionId};

use super::client::{ClientConnection, Clients};
use super::growth::Growth;
use super::layout::Layout;
use super::{LOOK_PATIENCE, Notice};
use crate::cpu::process_cpu_nanoseconds;
use crate::process::Process;
use crate::transport::{ClientHandle, Receiver};
use crate::wire::{ClientPayload, PeerPayload, ServerPayload, Standing, Usage};

/// See the [module](self).
pub(crate) struct Front {
    layout: Arc<Layout>,
    growth: Growth,
    /// How the process stood when it started; its groups are asked for when somebody wants to know.
    standing: Standing,
    process: Arc<Process>,
    clients: Arc<Clients>,
    /// By the number of the connection.
    connections: Mutex<FastMap<u64, Arc<ClientConnection>>>,
    /// Peers whose clients wait for nothing any more.
    finished: Mutex<BTreeSet<u16>>,
    ready: AtomicBool,
    /// Set when a peer cannot be trusted any more: nothing more is taken from any.
    failed: AtomicBool,
    notices: Sender<Notice>,
}

impl Front {
    pub(crate) fn new(
        layout: Arc<Layout>,
        growth: Growth,
        standing: Standing,
        process: Arc<Process>,
        clients: Arc<Clients>,
        notices: Sender<Notice>,
    ) -> Front {
        Front {
            layout,
            growth,
            standing,
            process,
            clients,
            connections: Mutex::default(),
            finished: Mutex::default(),
            ready: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            notices,
        }
    }

    /// Tells clients from now on that the process is connected with all others.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Whether it is told so.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Whether none of a peer's clients waits for anything.
    pub(crate) fn has_finished(&self, peer: u16) -> bool {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).contains(&peer)
    }

    /// Peers are trusted, and the frame came whole: what a wrong payload meant for this node is lost, so it must stop.
    fn fail(&self, from: u16, problem: &str) {
        self.failed.store(true, Ordering::SeqCst);
        let reason = format!("process {} sent what cannot be used: {problem}", self.layout.name(from));
        // The receiver of notices lives as long as the listener.
        let _ = self.notices.send(Notice::Failed(reason));
    }

    fn take_from_peer(&self, process: u16, payload: &[u8]) -> Result<(), String> {
        match PeerPayload::decode(payload).map_err(|error| error.to_string())? {
            PeerPayload::Messages { from, to, messages } => {
                if self.layout.file().process_of(from) != Some(process) {
                    return Err(format!("messages of {from}, which does not run there"));
                }
                let inbox = self.clients.node_inbox(to);
                inbox
                    .ok_or_else(|| format!("messages to {to}, which does not run here"))?
                    .messages(from, messages);
            }
            PeerPayload::Leaving if self.layout.is_replicated() => {
                tracing::info!(
                    process = self.layout.name(process),
                    "a peer is shutting down; the others go on"
                );
            }
            PeerPayload::Leaving => {
                let name = self.layout.name(process);
                let reason =
                    format!("process {name} is shutting down, and no transaction commits without it");
                let _ = self.notices.send(Notice::Stop(reason));
            }
            PeerPayload::Finished => {
                self.finished.lock().unwrap_or_else(PoisonError::into_inner).insert(process);
            }
        }
        Ok(())
    }

    fn take_requests(
        &self,
        connection: &Arc<ClientConnection>,
        to: PartitionId,
        requests: Vec<ClientRequest>,
    ) {
        if let Some(inbox) = self.clients.inbox(to) {
            return connection.take(to, inbox, requests);
        }
        let file = self.layout.file();
        let problem = match file.process_of(NodeId::first(to)) {
            Some(process) => {
                format!("{to} runs in process {}: send the request there", self.layout.name(process))
            }
            None => format!("there is no {to}: this cluster has {} partitions", file.partitions),
        };
        connection.refuse(&requests, &Error::Invalid(problem));
    }

    fn usage(&self) -> Usage {
        Usage {
            partitions_cpu_nanoseconds: self.process.cpu().as_nanos() as u64,
            process_cpu_nanoseconds: process_cpu_nanoseconds(),
            ready: self.is_ready(),
        }
    }

    /// Whoever asks may have lost its data a moment ago: what its group was before that must not be told as what it is.
    fn standing(&self) -> Standing {
        let groups = self.process.groups_now(LOOK_PATIENCE).into_iter();
        let groups = groups.filter_map(|(node, group)| Some((node, group?)));
        Standing { groups: groups.collect(), ..self.standing.clone() }
    }

    fn connection(&self, client: &ClientHandle) -> Option<Arc<ClientConnection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).get(&client.id()).cloned()
    }
}

impl Receiver for Front {
    fn peer_messages(&self, from: u16, payloads: Drain<'_, Bytes>) {
        for payload in payloads {
            if self.failed.load(Ordering::SeqCst) {
                return;
            }
            if let Err(problem) = self.take_from_peer(from, &payload) {
                return self.fail(from, &problem);
            }
        }
    }

    fn client_connected(&self, client: &ClientHandle) {
        let connection = self.clients.connection(client.clone());
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).insert(client.id(), connection);
    }

    fn client_messages(&self, client: &ClientHandle, payloads: Drain<'_, Bytes>) {
        let Some(connection) = self.connection(client) else { return };
        for payload in payloads {
            match ClientPayload::decode(&payload) {
                Ok(ClientPayload::Requests { to, requests }) => self.take_requests(&connection, to, requests),
                Ok(ClientPayload::Usage { token }) => {
                    // Who asks and goes needs no answer.
                    let _ = client.send(ServerPayload::encode_usage(token, &self.usage()));
                }
                Ok(ClientPayload::Standing { token }) => {
                    let _ = client.send(ServerPayload::encode_standing(token, &self.standing()));
                }
                Ok(ClientPayload::Grow { token, file }) => {
                    let outcome = self.growth.grow(&file);
                    let _ = client.send(ServerPayload::encode_grown(token, &outcome));
                }
                Err(error) => {
                    tracing::warn!(client = %client.address(), %error, "client disconnected");
                    return client.disconnect();
                }
            }
        }
    }

    fn client_gone(&self, client: &ClientHandle) {
        let connection = self.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&client.id());
        if let Some(connection) = connection {
            connection.gone();
        }
    }
}
