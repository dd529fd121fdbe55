//! What `ordain start` is told of clients of SQL, and the sockets that follow from it.

use std::env::VarError;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ordain_db::data::Schema;
use ordain_sql::keys::Storages;

use super::history::RETENTION_MAX;
use super::listener::{CONNECTIONS_DEFAULT, Listener, ListenerOptions};
use super::tls;
use crate::server::{address, listen};

/// Where a database of its own listens for SQL if nothing is said.
const ADDRESS: &str = "127.0.0.1:5432";

/// The variable with the first password of the owner.
pub const PASSWORD: &str = "ORDAIN_PASSWORD";

/// What turns it off.
const NONE: &str = "none";

/// The options of the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct SqlOptions {
    /// Where to listen for clients of PostgreSQL, or `none`. Default: 127.0.0.1:5432; with a cluster file none.
    #[arg(long, value_name = "HOST:PORT", value_parser = address_or_none)]
    pub sql_listen: Option<String>,
    /// How many clients of PostgreSQL may be connected at a time. Default: 200.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub sql_connections: Option<u16>,
    /// After how many seconds the connection of a client of PostgreSQL ends that says nothing. Default: never.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sql_idle_seconds: Option<u32>,
    /// How many seconds of the past can be read with `AS OF`. Default: 0, none.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=RETENTION_MAX.as_secs()))]
    pub sql_history_seconds: Option<u64>,
    /// The certificate for TLS with clients of PostgreSQL, and those that lead to one that they trust: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's private key: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// A file with the password that the user `ordain` gets if it has none yet; ORDAIN_PASSWORD in the environment does the same.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Log statements of clients of PostgreSQL that take longer than this, without values of parameters. Default: off.
    #[arg(long, value_name = "MILLISECONDS")]
    pub sql_slow_milliseconds: Option<u64>,
    /// Where to tell whether the process is well, over HTTP: /health, /ready, and /metrics for Prometheus. Default: nowhere.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub http_listen: Option<String>,
}

/// Reads where to listen for clients of PostgreSQL.
fn address_or_none(text: &str) -> Result<String, String> {
    if text == NONE {
        Ok(text.to_owned())
    } else {
        address(text).map_err(|advice| format!("{advice}, or {NONE}"))
    }
}

/// The sockets of a process, kept from one start of its server to the next.
pub struct SqlSockets {
    sql: Option<(TcpListener, ListenerOptions)>,
    http: Option<TcpListener>,
}

impl SqlOptions {
    /// Listens where it is to, for data with these tables. A process of a cluster listens for SQL only where it is told to, since
    /// several may share a machine.
    ///
    /// # Errors
    /// Says which option to change.
    pub fn listen(&self, schema: &Schema, of_cluster: bool) -> Result<SqlSockets, String> {
        let usual = if of_cluster { NONE } else { ADDRESS };
        let address = self.sql_listen.as_deref().unwrap_or(usual);
        let http = self
            .http_listen
            .as_deref()
            .map(|address| listen(address, "--http-listen HOST:PORT"))
            .transpose()?;
        if address == NONE {
            return Ok(SqlSockets { sql: None, http });
        }
        if Storages::find(schema).is_none() {
            const WHY: &str =
                "the data was made for a workload without --with-sql, so there is nothing to query";
            match &self.sql_listen {
                Some(_) => tracing::warn!("--sql-listen: {WHY}"),
                None => tracing::info!("nothing listens for SQL: {WHY}"),
            }
            return Ok(SqlSockets { sql: None, http });
        }
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(tls::server_config(certificate, key)?),
            _ => None,
        };
        let connections = self.sql_connections.map_or(CONNECTIONS_DEFAULT, usize::from);
        let idle_time = self.sql_idle_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let history = self.sql_history_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let options = ListenerOptions {
            connections,
            idle_time,
            history,
            tls,
            slow: self.sql_slow_milliseconds.map(Duration::from_millis),
            owner_password: self.password()?,
            ..ListenerOptions::default()
        };
        Ok(SqlSockets { sql: Some((listen(address, "--sql-listen HOST:PORT")?, options)), http })
    }
}

impl SqlOptions {
    /// The first password of the owner, if one is given: not on the command line, which others can see.
    fn password(&self) -> Result<Option<String>, String> {
        let (text, origin) = match (&self.password_file, std::env::var(PASSWORD)) {
            (Some(path), _) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("--password-file {}: {error}", path.display()))?;
                (text.trim_end_matches(['\r', '\n']).to_owned(), path.display().to_string())
            }
            (None, Ok(text)) => (text, PASSWORD.to_owned()),
            (None, Err(VarError::NotPresent)) => return Ok(None),
            (None, Err(error)) => return Err(format!("{PASSWORD}: {error}")),
        };
        if text.is_empty() || text.contains(['\0', '\n', '\r']) {
            return Err(format!("{origin}: give a password of one line"));
        }
        Ok(Some(text))
    }
}

impl SqlSockets {
    /// Starts to take clients of SQL, who are told that the database is starting until it is opened to them.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(&self) -> Result<Option<Listener>, String> {
        let Some((socket, options)) = &self.sql else { return Ok(None) };
        let wrong = |error: std::io::Error| format!("cannot listen for SQL: {error}");
        let listener = Listener::start(socket.try_clone().map_err(wrong)?, options.clone()).map_err(wrong)?;
        let tls = options.tls.is_some();
        tracing::info!(address = %listener.address(), tls, "listening for SQL");
        Ok(Some(listener))
    }

    /// Where to answer over HTTP.
    pub fn http(&self) -> Option<&TcpListener> {
        self.http.as_ref()
    }
}
