//! Ordain: a distributed, strictly serializable database that agrees on the order of transactions first and executes them
//! deterministically afterwards.
//!
//! This crate is the library and the server: everything that has threads, sockets, files and clocks. The database itself is
//! [`ordain_db`]; its front page tells the life of a transaction.
//!
//! - [`Database`]: a database in this process.
//! - [`connect`]: a database that runs in other processes.
//! - [`Connection`]: calls and snapshots, wherever the database runs.
//! - [`sql`]: SQL for clients of PostgreSQL, over either of them.

pub mod advise;
pub mod backup;
pub mod bench;
pub mod caller;
pub mod cluster_file;
pub mod connection;
mod cpu;
pub mod data_directory;
pub mod database;
pub mod deadlocks;
pub mod disk_thread;
pub mod durable;
pub mod early;
pub mod files;
pub mod given;
pub mod http;
pub mod inbox;
mod load;
mod look;
pub mod operate;
pub mod output;
pub mod partition;
pub mod port;
pub mod process;
pub mod quantity;
pub mod remote;
pub mod replay;
pub mod replies;
mod rescue;
pub mod server;
pub mod sim;
pub mod sql;
pub mod start;
pub mod transport;
pub mod wire;

pub use connection::{Connection, Handle, Snapshot};
pub use database::{Database, DatabaseBuilder};
pub use early::Early;
pub use ordain_db as db;
pub use ordain_db::error::Error;
pub use ordain_workload as workload;
pub use remote::{RemoteCluster, connect};
