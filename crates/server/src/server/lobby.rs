//! A process that is not up yet: it tells others how it stands, and asks them, before it begins logs in an empty directory.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec::Drain;

use bytes::Bytes;
use ordain_db::error::Error;
use ordain_db::message::Reply;
use ordain_db::procedure::Catalog;

use super::CLOSE_PATIENCE;
use super::standing::{Asker, Beginning, Canvass, begin};
use crate::caller::random_number;
use crate::cluster_file::ClusterFile;
use crate::data_directory::DataDirectory;
use crate::transport::{ClientHandle, Listener, ListenerOptions, Membership, Receiver};
use crate::wire::{ClientPayload, ServerPayload, Standing, Usage};

/// How often it looks at what the others have said.
const TICK: Duration = Duration::from_millis(10);

/// How often it says what it waits for.
const TELL_INTERVAL: Duration = Duration::from_secs(5);

/// See the [module](self). It answers until it is dropped.
pub struct Lobby {
    listener: Option<Listener>,
}

impl Lobby {
    /// Settles, for an empty directory of a replicated cluster, whether its logs are founded or join groups that exist already,
    /// and notes that in the directory. Waits for as long as that cannot be known. Nothing is asked where it is settled.
    ///
    /// # Errors
    /// When the replica has lost its data, or the directory cannot be written: says what to do.
    pub fn settle(
        file: &ClusterFile,
        number: u16,
        catalog: &Catalog,
        directory: &mut DataDirectory,
        socket: TcpListener,
    ) -> Result<Lobby, String> {
        if directory.is_established() || directory.has_joined() {
            return Ok(Lobby { listener: None });
        }
        let fingerprint = file.fingerprint(catalog);
        let standing = Standing { directory: directory.id(), ..Standing::default() };
        let incarnation = random_number().map_err(|error| error.to_string())?;
        let membership = Arc::new(Membership::for_clients(number, fingerprint, incarnation));
        let listener =
            Listener::start(socket, membership, Arc::new(Porter(standing)), ListenerOptions::default())
                .map_err(|error| format!("cannot start to listen: {error}"))?;
        let lobby = Lobby { listener: Some(listener) };
        if !directory.founders().is_empty() {
            // Settled before the process ended.
            return Ok(lobby);
        }
        let entry = &file.processes[usize::from(number)];
        let asker = Asker { process: number, directory: directory.id(), nodes: entry.nodes() };
        match ask(file, &asker, fingerprint)? {
            Beginning::Found(founders) => {
                tracing::info!("nobody has any data: a new cluster begins");
                directory.found_with(&founders)?;
            }
            Beginning::Join => {
                tracing::info!(replica = entry.replica, "the others have data: this replica joins them");
                directory.join()?;
            }
            Beginning::Lost | Beginning::Wait(_) => {
                let replica = entry.replica;
                return Err(format!(
                    "replica {replica} has lost its data: the directory is empty, and the others count on what it had. Remove it (`ordain replica remove {replica}`) and add it again (`ordain replica add {replica}`)"
                ));
            }
        }
        Ok(lobby)
    }
}

impl Drop for Lobby {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take()
            && let Err(error) = listener.close(CLOSE_PATIENCE)
        {
            tracing::warn!(%error, "listener closed");
        }
    }
}

/// Asks the others until it is known how to begin.
fn ask(file: &ClusterFile, asker: &Asker, fingerprint: u64) -> Result<Beginning, String> {
    let canvass = Canvass::start(file, asker.process, fingerprint)?;
    let name = |process: u16| file.processes[usize::from(process)].name.clone();
    let mut told: Option<(String, Instant)> = None;
    loop {
        std::thread::sleep(TICK);
        let waits = match begin(asker, file.processes.len() as u16, &canvass.standings(), &name) {
            Beginning::Wait(reason) => reason,
            settled => return Ok(settled),
        };
        // The others may be a moment later; then there is nothing to tell.
        let due = told.as_ref().is_none_or(|(reason, at)| *reason != waits || at.elapsed() > TELL_INTERVAL);
        if due {
            tracing::info!("{waits}");
            told = Some((waits, Instant::now()));
        }
    }
}

/// Answers those who ask.
struct Porter(Standing);

impl Porter {
    fn answer(&self, payload: &[u8]) -> Result<Vec<Bytes>, String> {
        let not_up = "the process is not up yet";
        Ok(match ClientPayload::decode(payload).map_err(|error| error.to_string())? {
            ClientPayload::Standing { token } => vec![ServerPayload::encode_standing(token, &self.0)],
            ClientPayload::Usage { token } => vec![ServerPayload::encode_usage(token, &Usage::default())],
            ClientPayload::Grow { token, .. } => {
                let outcome =
                    Ok("is not up yet: it goes by the cluster file that it was started with".to_owned());
                vec![ServerPayload::encode_grown(token, &outcome)]
            }
            ClientPayload::Requests { requests, .. } => {
                let error = || Err(Error::Unavailable(format!("{not_up} and did not take the request")));
                let ids = requests.iter().filter_map(|request| request.id());
                let replies: Vec<Reply> = ids.map(|request| Reply { request, outcome: error() }).collect();
                ServerPayload::encode_replies(&replies)
            }
        })
    }
}

impl Receiver for Porter {
    fn peer_messages(&self, _from: u16, _payloads: Drain<'_, Bytes>) {
        unreachable!("peers are not let in yet");
    }

    fn client_connected(&self, _client: &ClientHandle) {}

    fn client_messages(&self, client: &ClientHandle, payloads: Drain<'_, Bytes>) {
        for payload in payloads {
            match self.answer(&payload) {
                // Who asks and goes needs no answer.
                Ok(answers) => answers.into_iter().for_each(|answer| drop(client.send(answer))),
                Err(error) => {
                    tracing::warn!(client = %client.address(), %error, "client disconnected");
                    return client.disconnect();
                }
            }
        }
    }

    fn client_gone(&self, _client: &ClientHandle) {}
}
