//! What decides a run.

use ordain_consensus::HandOut;

/// Odds and sizes of a run. Odds are per thousand, times in microseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Voters at the beginning.
    pub voters: u16,
    pub hand_out: HandOut,
    pub loss: u64,
    pub duplication: u64,
    pub delay_max: u64,
    /// Longest ordinary write.
    pub write_max: u64,
    /// How often a write takes a hundred times as long.
    pub stall: u64,
    /// Faults come after a random time up to this; none at 0.
    pub fault_interval: u64,
    /// Proposals come after a random time up to this.
    pub proposal_interval: u64,
    /// Checkpoints come after a random time up to this; none at 0.
    pub checkpoint_interval: u64,
    /// Changes of the membership are tried after a random time up to this; none at 0.
    pub membership_interval: u64,
    /// Replicas that may join later.
    pub joiners: u16,
    /// Entries that are kept behind a checkpoint.
    pub slack: u64,
    pub mistake: Mistake,
}

/// What the harness does wrong, to show that the checks notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    None,
    /// Votes are not written.
    ForgetVotes,
    /// What has only been given to the disk is reported as durable.
    ReportTooEarly,
    /// The order of committed entries is handed on with neighbours swapped.
    SwapNeighbours,
}

impl Plan {
    /// A group without faults.
    pub fn calm(seed: u64, voters: u16) -> Plan {
        Plan {
            seed,
            voters,
            hand_out: HandOut::AfterMajority,
            loss: 0,
            duplication: 0,
            delay_max: 3_000,
            write_max: 2_000,
            stall: 0,
            fault_interval: 0,
            proposal_interval: 10_000,
            checkpoint_interval: 0,
            membership_interval: 0,
            joiners: 0,
            slack: 0,
            mistake: Mistake::None,
        }
    }

    /// A group with faults of all kinds, how many drawn from the seed.
    pub fn stormy(seed: u64) -> Plan {
        let mut random = crate::random::Random::new(seed);
        Plan {
            voters: [1, 2, 3, 3, 3, 4, 5, 5][usize::try_from(random.below(8)).expect("small")],
            loss: [0, 10, 100, 300][usize::try_from(random.below(4)).expect("small")],
            duplication: random.below(200),
            delay_max: [2_000, 20_000, 80_000][usize::try_from(random.below(3)).expect("small")],
            write_max: [500, 5_000, 40_000][usize::try_from(random.below(3)).expect("small")],
            stall: random.below(20),
            fault_interval: random.within(50_000, 600_000),
            proposal_interval: random.within(5_000, 60_000),
            checkpoint_interval: [0, 100_000, 400_000][usize::try_from(random.below(3)).expect("small")],
            slack: random.below(20),
            ..Plan::calm(seed, 3)
        }
    }
}
