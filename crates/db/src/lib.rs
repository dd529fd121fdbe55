//! The database core of Ordain: sequencing, deterministic execution and storage, as pure step functions.

pub mod cluster;
pub mod data;
pub mod engine;
pub mod error;
pub mod execution;
pub mod gateway;
pub mod hash;
pub mod limits;
pub mod message;
pub mod node;
pub mod position;
pub mod procedure;
pub mod sequencer;
pub mod storage;
