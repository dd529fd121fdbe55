//! Who decides when epochs close.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::{EPOCH_MICROSECONDS_DEFAULT, MANAGED_EPOCH_MICROSECONDS_DEFAULT};

/// Who decides when epochs close, and who may order transactions meanwhile. All nodes of a cluster must agree on it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpochPolicy {
    /// Each partition, by the work that it has: see [`sequencer`](super).
    #[default]
    Adaptive,
    /// An [epoch manager](super::epoch_manager), which authorises all partitions for a validity period (Fan and Golab §II,
    /// §III-A). Between two periods they may start transactions without authorisation, as far as the paper's bound allows it
    /// (§III-C).
    Managed,
    /// The same without §III-C: nothing starts without authorisation, so that one straggler stops all (ALO-X11 a). What waits where
    /// the authorisation never came is started when the epoch is closed all the same: see [`authority`](super::authority).
    ManagedStrictly,
}

impl EpochPolicy {
    /// All of them.
    pub const ALL: [EpochPolicy; 3] =
        [EpochPolicy::Adaptive, EpochPolicy::Managed, EpochPolicy::ManagedStrictly];

    /// The name on command lines and in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            EpochPolicy::Adaptive => "adaptive",
            EpochPolicy::Managed => "managed",
            EpochPolicy::ManagedStrictly => "managed-strictly",
        }
    }

    /// Whether there is an epoch manager.
    pub fn is_managed(self) -> bool {
        self != EpochPolicy::Adaptive
    }

    /// The usual length of an epoch in microseconds: 10 ms (CAL-20), with a manager 25 ms (ALO-25).
    pub fn default_microseconds(self) -> u64 {
        if self.is_managed() { MANAGED_EPOCH_MICROSECONDS_DEFAULT } else { EPOCH_MICROSECONDS_DEFAULT }
    }
}

impl fmt::Display for EpochPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EpochPolicy {
    type Err = String;

    fn from_str(name: &str) -> Result<EpochPolicy, String> {
        EpochPolicy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            let names = EpochPolicy::ALL.map(EpochPolicy::name);
            format!("there are no epochs {name:?}: choose one of {}", names.join(", "))
        })
    }
}

/// How epochs are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochOptions {
    /// Who decides when they close.
    pub policy: EpochPolicy,
    /// The length of an epoch in microseconds: the longest one that waits for nothing (CAL-20), or that of a validity period
    /// (ALO-25).
    pub microseconds: u64,
}

impl EpochOptions {
    /// Epochs of the usual length.
    pub fn of(policy: EpochPolicy) -> EpochOptions {
        EpochOptions { policy, microseconds: policy.default_microseconds() }
    }
}

impl Default for EpochOptions {
    fn default() -> EpochOptions {
        EpochOptions::of(EpochPolicy::default())
    }
}
