//! The database core of Ordain: sequencing, deterministic execution and storage, as pure step functions.
//!
//! Nothing here has a clock, a thread, a socket, a file or a random number: time, randomness and order are arguments. A
//! driver ([the server](https://docs.rs/ordain), a simulator, [`cluster::Cluster`] in tests) feeds events into
//! [`Node::step`](node::Node::step) and sends what comes out.
//!
//! # Life of a transaction
//!
//! A client calls a procedure. What happens, with the place where it happens:
//!
//! 1. **Entry.** The call comes to any node as a [`ClientRequest::Ordered`](message::ClientRequest::Ordered) in an
//!    [`Event::Requests`](node::Event::Requests). The node sends it to the leader of the client's home partition
//!    ([`ClientId::home`](message::ClientId)) as a [`Message::Forward`](message::Message::Forward), unless that is itself.
//! 2. **Admission.** The home's [`Gateway::submit`](gateway::Gateway::submit) asks
//!    [`Sessions::admit`](sequencer::Sessions::admit) whether the request is new: each takes effect once, and one that was
//!    answered before gets the same answer again (CAL-29).
//! 3. **Footprint.** [`Procedure::declare`](procedure::Procedure::declare) tells from the arguments which keys and ranges may
//!    be touched; they become a [`Footprint`](procedure::Footprint) with the partitions that take part. A procedure that
//!    cannot tell is run on trial: a [`Reconnaissance`](gateway::reconnaissance::Reconnaissance) over recent state records
//!    what it touches (Calvin §3.2.1).
//! 4. **Waiting for an epoch.** The transaction goes to [`Sequencer::add`](sequencer::Sequencer::add) and waits until
//!    [`Sequencer::close_due`](sequencer::Sequencer::close_due) says that the epoch ends: at once when nothing is in flight, after
//!    10 ms, or because a peer has closed it (Calvin §3.1). With an [epoch manager](sequencer::epoch_manager) the epoch ends with its
//!    validity period.
//! 5. **Log.** [`Sequencer::close`](sequencer::Sequencer::close) makes the batch of the epoch, and the leader proposes it to the
//!    log of its partition's replication group as a [`LoggedBatch`](node::ordering::LoggedBatch): the requests, and nothing of what
//!    they do. [`DiskWrite::Append`](node::DiskWrite::Append) asks the driver to make it durable; the log
//!    ([`ReplicatedLog`](ordain_consensus::ReplicatedLog)) hands it out at every replica once a majority has it (CAL-36).
//! 6. **Batch.** Each replica cuts the batch into the parts of its recipients. Each other partition *of the same replica* gets its
//!    part, even an empty one, as a [`Message::Batch`](message::Message::Batch), over [`Streams`](node::streams::Streams) that can
//!    say it again. The transaction's [`Position`](position::Position) is fixed, and nothing but its own logic can abort it
//!    (CAL-03).
//! 7. **Order.** At every participant [`Merger::deliver_next`](sequencer::Merger::deliver_next) waits for the parts of all
//!    sequencers and lays whole batches one after the other: all partitions see one order (CAL-26). A client that wants to know its
//!    call's position is told [now](gateway::early), and asks for the outcome.
//! 8. **Placing.** [`Call::of`](execution::Call::of) makes the delivered transaction a call with its footprint, computed
//!    again where it was not ordered; the rows of a few calls are prefetched together
//!    ([`Storage::prefetch`](storage::Storage::prefetch)).
//! 9. **Scheduling.** The node gives it to its engine, [`Engine::deliver`](engine::Engine::deliver). Under
//!    [`calvin`](engine::calvin) it requests all its locks ([`LockManager::request`](engine::calvin::lock_manager::LockManager::request)),
//!    in order, and waits in a [`Phase`](engine::calvin::Phase) if it must; under [`serial`](engine::serial) it waits for its turn.
//! 10. **Reads.** [`Participation::of`](execution::Participation::of) tells who is active. With its locks, each participant sends
//!     its local part of the read set to the other active ones, unasked ([`remote_reads::serve`](execution::remote_reads::serve));
//!     a passive one is done. What comes in is kept in an [`Inbox`](execution::Inbox) until it is complete (phases 2 to 4).
//! 11. **Logic.** [`Executor::execute`](execution::Executor::execute) runs [`Procedure::run`](procedure::Procedure::run) over a
//!     [`Transaction`](procedure::Transaction) at every active participant. All have all reads, so all reach the same
//!     [`Verdict`](message::Verdict) without a message. Writes were buffered; the local ones go to
//!     [`Storage::put`](storage::Storage::put) and [`Storage::modify`](storage::Storage::modify) with the position as their
//!     version (phase 5).
//! 12. **Release.** The locks are released; those that waited for them go on.
//! 13. **Report.** One active participant, [`Footprint::reporter`](procedure::Footprint::reporter), sends a
//!     [`Report`](message::Report) to the origin. There [`Gateway::report`](gateway::Gateway::report) records the answer in the
//!     session of every replica, and the leader sends it to the client as a [`Reply`](message::Reply). After a footprint miss the
//!     leader starts over at step 3 instead, with the same request, a bounded number of times (CAL-64).
//!
//! # What a crash leaves
//!
//! The log and checkpoints are all that a node keeps ([`disk`]). [`disk::recover`] makes the node again from the oldest
//! checkpoint that its replica may need; the log after it is replayed through the same steps. What the node needs of others
//! it asks for by [`Message::Subscribe`](message::Message::Subscribe), and what it says again, they ignore. Another replica takes
//! the place of a failed node meanwhile ([`node::routes`]).
//!
//! # What is left out
//!
//! - Calvin §4 (disk-resident data) is not built: rows are in memory, the log and checkpoints on disk.
//! - The paper's worker pool: a partition is one thread, see [`engine::calvin`].

pub mod checkpoint;
pub mod cluster;
pub mod data;
pub mod disk;
pub mod engine;
pub mod error;
pub mod execution;
pub mod failpoint;
pub mod gateway;
pub mod hash;
pub mod kept;
pub mod limits;
pub mod message;
pub mod node;
pub mod position;
pub mod procedure;
pub mod sequencer;
pub mod storage;
