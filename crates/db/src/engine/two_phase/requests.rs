//! When transactions ask for their locks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// When a transaction of the engine `two-phase` asks for its locks, which the paper does not settle (DET-29). Nodes of one cluster
/// may differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockRequests {
    /// For all that its procedure declares when it begins, of all partitions at once; where it declares nothing, as it goes. A partition
    /// grants the locks of a transaction together, so there are no deadlocks within one partition among those that declare.
    #[default]
    Together,
    /// The same, of one partition after the other in ascending order, so that no deadlock spans partitions. For experiments: a real
    /// transaction does not know its partitions in advance (DET-X06, trap 23).
    InOrder,
    /// As its procedure goes: for each row when it touches it first, also where the procedure declares what it will touch. So the
    /// logic runs once more for each, and deadlocks may be anywhere. One that is begun again asks at once for all that it had found,
    /// but in its 8th, 16th, 32nd attempt and so on.
    AsItGoes,
}

impl LockRequests {
    /// All of them.
    pub const ALL: [LockRequests; 3] =
        [LockRequests::Together, LockRequests::InOrder, LockRequests::AsItGoes];

    /// The name on command lines and in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            LockRequests::Together => "together",
            LockRequests::InOrder => "in-order",
            LockRequests::AsItGoes => "as-it-goes",
        }
    }
}

impl fmt::Display for LockRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LockRequests {
    type Err = String;

    fn from_str(name: &str) -> Result<LockRequests, String> {
        LockRequests::ALL.into_iter().find(|requests| requests.name() == name).ok_or_else(|| {
            let names = LockRequests::ALL.map(LockRequests::name);
            format!("locks cannot be requested {name:?}: choose one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for requests in LockRequests::ALL {
            assert_eq!(requests.to_string().parse(), Ok(requests));
        }
        let problem = "sorted".parse::<LockRequests>().unwrap_err();
        assert!(problem.contains("together, in-order, as-it-goes"), "{problem}");
    }
}
