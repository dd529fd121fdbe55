//! Clients of SQL at a process of a cluster: when they are let in, and how they see the database.

use std::sync::Arc;
use std::time::Duration;

use ordain_db::error::Error;
use ordain_db::procedure::Catalog;
use ordain_sql::session::handshake::OWNER;

use crate::cluster_file::ClusterFile;
use crate::connection::Connection;
use crate::port::Port;
use crate::process::Process;
use crate::remote::RemoteCluster;
use crate::sql::{Door, Listener, SqlDatabase};

/// How long to wait before the database is looked at again, as long as clients cannot be let in.
const OPENING_PAUSE: Duration = Duration::from_millis(20);

/// Lets clients of SQL in once the database answers. Its partitions are asked directly if all run here, else over the network, where
/// requests find the nodes that lead.
///
/// # Errors
/// When the operating system gives no thread.
pub(super) fn open(
    listener: &Listener,
    file: &ClusterFile,
    process: &Arc<Process>,
    catalog: &Catalog,
) -> Result<(), String> {
    let (door, file, process, catalog) =
        (listener.door(), file.clone(), Arc::clone(process), catalog.clone());
    let run = move || {
        let mut told = None;
        while !door.is_closing() {
            match try_open(&door, &file, &process, &catalog) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    let error = error.to_string();
                    if told.as_ref() != Some(&error) {
                        tracing::warn!(error, "clients of SQL wait for the database");
                        told = Some(error);
                    }
                }
            }
            std::thread::sleep(OPENING_PAUSE);
        }
    };
    let thread = std::thread::Builder::new().name("sql-open".to_owned()).spawn(run);
    thread.map(drop).map_err(|error| format!("cannot start a thread for clients of SQL: {error}"))
}

/// Lets clients in if the database takes requests; whether it did.
fn try_open(
    door: &Door,
    file: &ClusterFile,
    process: &Arc<Process>,
    catalog: &Catalog,
) -> Result<bool, Error> {
    let port: Arc<dyn Port> = if file.processes.len() == 1 {
        let port: Arc<dyn Port> = Arc::<Process>::clone(process);
        let statuses = Connection::new(Arc::clone(&port), catalog.clone())?.statuses(false)?;
        if !statuses.iter().all(|status| status.leads) {
            return Ok(false);
        }
        port
    } else {
        // What is opened through a node ends with it: so through the own one, if there is one for the partition.
        let near = process.nodes().next().map(|node| node.replica);
        Arc::new(RemoteCluster::connect_near(file, catalog, near)?)
    };
    let Some(database) = SqlDatabase::open(port, process, catalog.clone(), file.processes.len())? else {
        return Ok(true);
    };
    let owner = database.user(OWNER)?;
    let has_password = owner.is_some_and(|owner| owner.verifier.is_some());
    if let Some(password) = door.owner_password().filter(|_| !has_password) {
        // Before anybody is let in, so that there is no time in which the owner is trusted.
        database.set_password(OWNER, password)?;
        tracing::info!("the user {OWNER} has got the password that was given");
    } else if !has_password {
        tracing::warn!(
            "the user {OWNER} has no password: who connects from this machine is trusted until one is set with ALTER USER {OWNER} PASSWORD '...'"
        );
    }
    door.open(database);
    tracing::info!("clients of SQL are let in");
    Ok(true)
}
