//! What reconnaissance costs a node, and what comes of it: figures since the node started. A checkpoint does not keep them.

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Scouting {
    /// Runs of procedures, each time that one went on with rows of other partitions included.
    pub runs: u64,
    /// What they [computed](crate::procedure::Transaction::compute), in units of the procedures' own (DET-25).
    pub units: u64,
    /// Verdicts on attempts that reconnaissance here has found the footprint of.
    pub attempts: u64,
    /// The time from the end of reconnaissance to the verdict, over all these attempts, in microseconds: what changes meanwhile
    /// makes them miss.
    pub gap_microseconds: u64,
    /// Those of the attempts that were their call's first.
    pub first_attempts: u64,
    /// Those of these that missed.
    pub first_misses: u64,
    /// The most attempts of one call that missed.
    pub misses_max: u32,
}

impl Scouting {
    /// Notes the verdict on an attempt after so many misses.
    pub(super) fn judge(&mut self, misses: u32, gap_microseconds: u64, missed: bool) {
        self.attempts += 1;
        self.gap_microseconds += gap_microseconds;
        self.first_attempts += u64::from(misses == 0);
        self.first_misses += u64::from(misses == 0 && missed);
        self.misses_max = self.misses_max.max(misses + u32::from(missed));
    }
}
