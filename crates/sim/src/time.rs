//! Virtual time: nanoseconds since the beginning of a run.

/// A moment, or a length of time, in nanoseconds.
pub type Nanoseconds = u64;

/// One microsecond.
pub const MICROSECOND: Nanoseconds = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanoseconds = 1_000 * MICROSECOND;
/// One second.
pub const SECOND: Nanoseconds = 1_000 * MILLISECOND;
