//! What is to be done about data that cannot be used: that depends on whether somebody else has it.

use std::fmt;

use ordain_db::position::ReplicaId;

/// Who else has what a directory has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rescue {
    /// Nobody but backups.
    Backup,
    /// Nobody: there are no backups of it either.
    Nobody,
    /// The other replicas; this is the one that needs them.
    Replicas(ReplicaId),
    /// One or the other: the directory does not tell.
    Either(ReplicaId),
}

impl fmt::Display for Rescue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rescue::Backup => write!(
                f,
                "restore a backup: `ordain restore --from PLACE --data-dir NEW` makes another directory to start with; what no \
                 backup has is lost"
            ),
            Rescue::Nobody => write!(
                f,
                "what it had is lost, as the engine two-phase has neither replicas nor backups: begin with another directory"
            ),
            Rescue::Replicas(ReplicaId(own)) => write!(
                f,
                "replace this replica, as the others have its data: `ordain replica remove {own} --cluster FILE`, empty the data \
                 directories of its processes, start them, `ordain replica add {own} --cluster FILE`"
            ),
            Rescue::Either(own) => {
                write!(f, "if it is a replica, {}; if not, {}", Rescue::Replicas(*own), Rescue::Backup)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_depends_on_who_else_has_the_data() {
        let (alone, replica) = (Rescue::Backup.to_string(), Rescue::Replicas(ReplicaId(2)).to_string());
        assert!(alone.contains("`ordain restore --from") && !alone.contains("replica"), "{alone}");
        assert!(replica.contains("`ordain replica remove 2 ") && !replica.contains("backup"), "{replica}");
        assert!(Rescue::Nobody.to_string().contains("begin with another directory"));
        let either = Rescue::Either(ReplicaId(2)).to_string();
        assert!(either.contains(&alone) && either.contains(&replica), "{either}");
    }
}
