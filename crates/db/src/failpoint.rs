//! Places where the simulator can make the database do the wrong thing, to prove that its checkers notice.
//!
//! A [`Failpoints`] is a type parameter, not a setting: the server's nodes are made with [`NoFailpoints`], and the compiler
//! removes every place. There is one source for both, without conditions of compilation.

/// A mistake that the code could make, at the one place where it is made right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Failpoint {
    /// A reader overtakes a writer that waits in the queue of a key.
    GrantOutOfOrder,
    /// A sequencer does not send the empty part of a batch.
    SkipEmptyBatch,
    /// The merger takes one transaction of each origin in turn instead of whole batches (trap 1).
    InterleaveByTransaction,
    /// The merger takes the origins in an order that differs between the nodes, as that of a seeded hash map would.
    RandomHashOrder,
    /// A participant leaves a row out of the reads that it sends.
    DropRemoteRow,
    /// A participant forgets to send its reads to one of those that wait for them.
    DropRemoteReads,
    /// A participant applies writes to keys of other partitions too.
    ApplyNonLocalWrite,
    /// The first key of a read set that is not written is not locked; where there are no locks, its reader waits for no version of it.
    ForgetReadLock,
    /// Ranges are not locked, or not noted.
    ForgetRangeLock,
    /// A session takes every request for a new one.
    LoseDuplicateCheck,
    /// A footprint that reconnaissance found is not checked at execution.
    SkipFootprintCheck,
    /// A snapshot is reported before earlier transactions have finished.
    OpenSnapshotEarly,
    /// Who only applies functors does not ask whether the call may commit.
    SkipGuard,
    /// An early call is acknowledged when it comes, with the position that it may get.
    AnswerBeforeOrdered,
    /// A read that needs no place in the order is answered by a replica that may be behind.
    ReadBehind,
    /// A block of SQL commits though its client was shown something else than it would be now.
    SkipCertification,
    /// Statements of SQL do not keep an index up that is being built.
    ForgetBuildingIndex,
    /// A participant of two-phase commit promises to commit before its promise is in the log.
    VoteBeforeLogged,
    /// A participant of two-phase commit that starts again gives up what it has promised and not heard the decision of.
    ForgetInDoubt,
    /// Without an order in advance, a client is answered before the decision is in its coordinator's log.
    AnswerBeforeLogged,
    /// A coordinator says of a transaction that it knows nothing of that it is committed.
    PresumeCommit,
    /// The detector of deadlocks over several partitions names its victims to no other partition.
    ForgetVictim,
}

impl Failpoint {
    /// All of them, in the order of their numbers.
    pub const ALL: [Failpoint; 22] = [
        Failpoint::GrantOutOfOrder,
        Failpoint::SkipEmptyBatch,
        Failpoint::InterleaveByTransaction,
        Failpoint::RandomHashOrder,
        Failpoint::DropRemoteRow,
        Failpoint::DropRemoteReads,
        Failpoint::ApplyNonLocalWrite,
        Failpoint::ForgetReadLock,
        Failpoint::ForgetRangeLock,
        Failpoint::LoseDuplicateCheck,
        Failpoint::SkipFootprintCheck,
        Failpoint::OpenSnapshotEarly,
        Failpoint::SkipGuard,
        Failpoint::AnswerBeforeOrdered,
        Failpoint::ReadBehind,
        Failpoint::SkipCertification,
        Failpoint::ForgetBuildingIndex,
        Failpoint::VoteBeforeLogged,
        Failpoint::ForgetInDoubt,
        Failpoint::AnswerBeforeLogged,
        Failpoint::PresumeCommit,
        Failpoint::ForgetVictim,
    ];
}

/// Which failpoints are on.
pub trait Failpoints: Send + 'static {
    /// Whether the code is to make this mistake.
    fn on(point: Failpoint) -> bool;
}

/// The database as it is meant to be.
#[derive(Debug)]
pub struct NoFailpoints;

impl Failpoints for NoFailpoints {
    #[inline(always)]
    fn on(_: Failpoint) -> bool {
        false
    }
}
