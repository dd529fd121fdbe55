//! Who this process is, who its peers are, and which incarnation of each it has met.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::handshake::{Hello, Refusal, RefusalCode, Role};
use super::sync::lock;

/// This process as its peers see it, and what it knows of them. One per process, shared by its [`Listener`](super::Listener)
/// and all its [`Link`](super::Link)s, so that both directions to a peer agree on which incarnation of it they talk to.
///
/// The queues of both directions live in memory. A process that restarts has lost what it had received and not yet
/// acted on, and what it had sent and was not yet acknowledged; going on with it would lose payloads silently. So the
/// first incarnation of a peer that is met is the only one accepted until this process ends.
pub struct Membership {
    process: u16,
    cluster: u64,
    incarnation: u64,
    /// Per peer: the incarnation met, 0 before.
    met: Mutex<BTreeMap<u16, u64>>,
}

impl Membership {
    /// `process` is this process's number and `peers` are the others of the cluster, `cluster` is the fingerprint of the
    /// configuration, the same in all processes, and `incarnation` is random for each start of a process. In the
    /// last two, 0 means "unknown" on the wire and is taken for 1.
    pub fn new(
        process: u16,
        peers: impl IntoIterator<Item = u16>,
        cluster: u64,
        incarnation: u64,
    ) -> Membership {
        let met = peers.into_iter().filter(|peer| *peer != process).map(|peer| (peer, 0)).collect();
        Membership { process, cluster: cluster.max(1), incarnation: incarnation.max(1), met: Mutex::new(met) }
    }

    /// This process.
    pub fn process(&self) -> u16 {
        self.process
    }

    /// The other processes of the cluster, in ascending order.
    pub fn peers(&self) -> Vec<u16> {
        lock(&self.met).keys().copied().collect()
    }

    /// Whether `process` is another process of the cluster.
    pub fn is_peer(&self, process: u16) -> bool {
        lock(&self.met).contains_key(&process)
    }

    /// The first frame to `peer` on a connection that this process opens.
    pub(crate) fn hello_to(&self, peer: u16) -> Hello {
        self.hello(lock(&self.met).get(&peer).copied().unwrap_or(0), 0)
    }

    /// The first frame on a connection that another has opened with `theirs`.
    pub(crate) fn answer(&self, theirs: &Hello, receive_next: u64) -> Hello {
        self.hello(theirs.incarnation, receive_next)
    }

    fn hello(&self, known_incarnation: u64, receive_next: u64) -> Hello {
        let role = Role::Peer { process: self.process };
        Hello { role, cluster: self.cluster, incarnation: self.incarnation, known_incarnation, receive_next }
    }

    /// Judges the first frame of a side that has connected.
    pub(crate) fn admit(&self, hello: &Hello) -> Result<(), Refusal> {
        match hello.role {
            Role::Client if hello.cluster == 0 => Ok(()),
            Role::Client => self.check_cluster(hello),
            Role::Peer { process } => {
                self.check_cluster(hello)?;
                self.check_peer(process, hello)
            }
        }
    }

    /// Judges the answer of the side that this process has connected to, taking it for process `expected`.
    pub(crate) fn check_answer(&self, expected: u16, hello: &Hello) -> Result<(), Refusal> {
        self.check_cluster(hello)?;
        if hello.role != (Role::Peer { process: expected }) {
            let reason = format!(
                "the address of process {expected} is answered by {:?}: check the addresses in the configuration",
                hello.role
            );
            return Err(Refusal::new(RefusalCode::UnknownProcess, reason));
        }
        self.check_peer(expected, hello)
    }

    fn check_cluster(&self, hello: &Hello) -> Result<(), Refusal> {
        if hello.cluster == self.cluster {
            return Ok(());
        }
        let reason = format!(
            "configuration differs (fingerprint {:016x}, that of process {} is {:016x}): use the same cluster file everywhere",
            hello.cluster, self.process, self.cluster
        );
        Err(Refusal::new(RefusalCode::ConfigurationDiffers, reason))
    }

    fn check_peer(&self, process: u16, hello: &Hello) -> Result<(), Refusal> {
        let mut met = lock(&self.met);
        let Some(known) = met.get_mut(&process) else {
            let reason = format!(
                "unknown process {process}: process {} has no such peer in its configuration",
                self.process
            );
            return Err(Refusal::new(RefusalCode::UnknownProcess, reason));
        };
        // Checked before the peer's incarnation is noted: a peer that remembers this process's predecessor must be
        // restarted itself, and its successor must not be taken for the impostor.
        if hello.known_incarnation != 0 && hello.known_incarnation != self.incarnation {
            return Err(restarted(self.process));
        }
        if *known != 0 && *known != hello.incarnation {
            return Err(restarted(process));
        }
        *known = hello.incarnation;
        Ok(())
    }
}

fn restarted(process: u16) -> Refusal {
    let reason =
        format!("process {process} restarted and lost its memory of this cluster: restart the whole cluster");
    Refusal::new(RefusalCode::ProcessRestarted, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: u64 = 7;

    fn process(process: u16, incarnation: u64) -> Membership {
        Membership::new(process, [1, 2], CLUSTER, incarnation)
    }

    /// One connects to the other: what the other says, or what the one holds against the answer.
    fn connect(from: &Membership, to: &Membership) -> Result<(), RefusalCode> {
        let hello = from.hello_to(to.process());
        to.admit(&hello).map_err(|refusal| refusal.code)?;
        from.check_answer(to.process(), &to.answer(&hello, 1)).map_err(|refusal| refusal.code)
    }

    #[test]
    fn the_same_incarnation_may_come_again_and_another_may_not() {
        let (one, two) = (process(1, 11), process(2, 22));
        assert_eq!(connect(&one, &two), Ok(()));
        assert_eq!(connect(&one, &two), Ok(()));
        assert_eq!(connect(&two, &one), Ok(()));
        let restarted = process(1, 12);
        assert_eq!(connect(&restarted, &two), Err(RefusalCode::ProcessRestarted));
        assert_eq!(connect(&two, &restarted), Err(RefusalCode::ProcessRestarted));
    }

    #[test]
    fn a_cluster_restarted_one_process_after_the_other_finds_together() {
        let (old_one, old_two) = (process(1, 11), process(2, 21));
        connect(&old_one, &old_two).unwrap();
        let new_one = process(1, 12);
        connect(&old_two, &new_one).unwrap_err();
        connect(&new_one, &old_two).unwrap_err();
        let new_two = process(2, 22);
        assert_eq!(connect(&new_two, &new_one), Ok(()), "the refused predecessor was not noted");
        assert_eq!(connect(&new_one, &new_two), Ok(()));
    }

    #[test]
    fn strangers_are_told_why() {
        let two = process(2, 22);
        let other_cluster = Membership::new(1, [2], CLUSTER + 1, 11);
        assert_eq!(connect(&other_cluster, &two), Err(RefusalCode::ConfigurationDiffers));
        assert_eq!(connect(&process(3, 33), &two), Err(RefusalCode::UnknownProcess));
        assert_eq!(
            connect(&process(2, 23), &two),
            Err(RefusalCode::UnknownProcess),
            "a process is not its own peer"
        );
        let answer = process(1, 11).answer(&two.hello_to(1), 1);
        assert_eq!(two.check_answer(3, &answer).unwrap_err().code, RefusalCode::UnknownProcess);
    }

    #[test]
    fn a_client_may_leave_the_cluster_open() {
        let one = process(1, 11);
        let hello = |cluster| Hello {
            role: Role::Client,
            cluster,
            incarnation: 0,
            known_incarnation: 0,
            receive_next: 1,
        };
        assert_eq!(one.admit(&hello(0)), Ok(()));
        assert_eq!(one.admit(&hello(CLUSTER)), Ok(()));
        assert_eq!(one.admit(&hello(8)).unwrap_err().code, RefusalCode::ConfigurationDiffers);
    }
}
