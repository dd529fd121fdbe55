//! Who this process is, who its peers are, and which incarnation of each it has met.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::connection::ConnectionError;
use super::handshake::{Hello, Refusal, RefusalCode, Role};
use super::sync::lock;

/// Most earlier incarnations of a peer that are remembered.
const PAST_MAX: usize = 16;

/// Is told, when a session with a peer begins, the peer and the number of the session.
pub type OnSession = Box<dyn Fn(u16, u64) + Send + Sync>;

/// This process as its peers see it, and what it knows of them. One per process, shared by its [`Listener`](super::Listener)
/// and all its [`Link`](super::Link)s, so that both directions to a peer agree on which incarnation of it they talk to.
///
/// The queues of both directions live in memory. A process that restarts has lost what it had received and not yet
/// acted on, and what it had sent and was not yet acknowledged; going on with it would lose payloads silently. What happens
/// then is chosen when the membership is made:
///
/// - [`Membership::new`]: the first incarnation of a peer that is met is the only one accepted until this process ends.
/// - [`Membership::with_sessions`]: a *session* with the peer's new incarnation begins. Both sides forget what is queued, and
///   are told so before anything of the new session arrives. A side that gives up on what it has queued begins a session
///   too, as if it had restarted.
///
/// A cluster may grow: peers are added while payloads flow ([`Membership::add_peer`]).
pub struct Membership {
    process: u16,
    cluster: u64,
    incarnation: u64,
    peers: RwLock<BTreeMap<u16, Arc<Peer>>>,
    on_session: Option<OnSession>,
    /// Whether only clients are let in, until the process is up.
    peers_come_later: bool,
}

/// What is known of a peer.
struct Peer {
    /// The fingerprint of what this process and the peer must agree on.
    cluster: u64,
    state: Mutex<PeerState>,
    /// Held while something that the peer has sent is delivered, and while a session begins: so nothing of the session
    /// before is delivered after.
    delivery: Mutex<()>,
}

struct PeerState {
    /// The incarnation that the peer is told. Another than that of the process once it has given up a session.
    own: u64,
    /// The incarnation met, 0 before.
    theirs: u64,
    /// Those met before: a connection of theirs that is still on its way is refused.
    past: VecDeque<u64>,
    /// The number of the session, 0 before the first.
    session: u64,
    /// Whether the session has been given up, or there was none.
    is_over: bool,
}

/// What was agreed on in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    /// The number of the session to which the connection belongs.
    pub(crate) session: u64,
    /// The incarnation that the other side is told.
    pub(crate) own: u64,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} in incarnation {:016x}", self.process, self.incarnation)
    }
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
        let membership = Membership {
            process,
            cluster: cluster.max(1),
            incarnation: incarnation.max(1),
            peers: RwLock::default(),
            on_session: None,
            peers_come_later: false,
        };
        peers.into_iter().for_each(|peer| membership.add_peer(peer, cluster));
        membership
    }

    /// The same, for processes that may restart: see the [type](Membership). `on_session` is called before anything of the
    /// new session is delivered; it must not call the transport, and must return soon.
    pub fn with_sessions(
        process: u16,
        peers: impl IntoIterator<Item = u16>,
        cluster: u64,
        incarnation: u64,
        on_session: OnSession,
    ) -> Membership {
        Membership { on_session: Some(on_session), ..Membership::new(process, peers, cluster, incarnation) }
    }

    /// A process that is not up yet: clients may ask it how it stands, and peers are told to try again.
    pub fn for_clients(process: u16, cluster: u64, incarnation: u64) -> Membership {
        Membership { peers_come_later: true, ..Membership::new(process, [], cluster, incarnation) }
    }

    /// Adds another process of the cluster; nothing changes if it is known, or this process itself. `cluster` is the
    /// fingerprint of what the two must agree on.
    pub fn add_peer(&self, process: u16, cluster: u64) {
        if process == self.process {
            return;
        }
        let state =
            PeerState { own: self.incarnation, theirs: 0, past: VecDeque::new(), session: 0, is_over: true };
        let peer = Peer { cluster: cluster.max(1), state: Mutex::new(state), delivery: Mutex::new(()) };
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.entry(process).or_insert_with(|| Arc::new(peer));
    }

    fn peer(&self, process: u16) -> Option<Arc<Peer>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).get(&process).cloned()
    }

    /// This process.
    pub fn process(&self) -> u16 {
        self.process
    }

    /// The other processes of the cluster, in ascending order.
    pub fn peers(&self) -> Vec<u16> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Whether `process` is another process of the cluster.
    pub fn is_peer(&self, process: u16) -> bool {
        self.peer(process).is_some()
    }

    /// Whether a peer may restart, and a session with it begin anew.
    pub fn has_sessions(&self) -> bool {
        self.on_session.is_some()
    }

    /// The first frame to `peer` on a connection that this process opens.
    pub(crate) fn hello_to(&self, peer: u16) -> Hello {
        let (cluster, own, theirs) = self.peer(peer).map_or((self.cluster, self.incarnation, 0), |peer| {
            let state = lock(&peer.state);
            (peer.cluster, state.own, state.theirs)
        });
        self.hello(cluster, own, theirs, 0)
    }

    /// The first frame on a connection that another has opened with `theirs`.
    pub(crate) fn answer(&self, theirs: &Hello, meeting: Meeting, receive_next: u64) -> Hello {
        let cluster = match theirs.role {
            Role::Peer { process } => self.peer(process).map_or(self.cluster, |peer| peer.cluster),
            Role::Client => self.cluster,
        };
        self.hello(cluster, meeting.own, theirs.incarnation, receive_next)
    }

    fn hello(&self, cluster: u64, incarnation: u64, known_incarnation: u64, receive_next: u64) -> Hello {
        let role = Role::Peer { process: self.process };
        Hello { role, cluster, incarnation, known_incarnation, receive_next }
    }

    /// Judges the first frame of a side that has connected.
    pub(crate) fn admit(&self, hello: &Hello) -> Result<Meeting, Refusal> {
        match hello.role {
            Role::Client => {
                if hello.cluster != 0 {
                    self.check_cluster(hello, self.cluster)?;
                }
                Ok(Meeting { session: 0, own: self.incarnation })
            }
            Role::Peer { .. } if self.peers_come_later => {
                let reason = format!("process {} is not up yet: try again", self.process);
                Err(Refusal::new(RefusalCode::Busy, reason))
            }
            Role::Peer { process } => self.meet(process, hello),
        }
    }

    /// Judges the answer of the side that this process has connected to, taking it for process `expected`.
    pub(crate) fn check_answer(&self, expected: u16, hello: &Hello) -> Result<Meeting, Refusal> {
        if hello.role != (Role::Peer { process: expected }) {
            let reason = format!(
                "the address of process {expected} is answered by {:?}: check the addresses in the configuration",
                hello.role
            );
            return Err(Refusal::new(RefusalCode::UnknownProcess, reason));
        }
        if let Some(peer) = self.peer(expected)
            && self.has_sessions()
            && hello.known_incarnation != lock(&peer.state).own
        {
            let reason = "the session was given up during the handshake: try again";
            return Err(Refusal::new(RefusalCode::Busy, reason));
        }
        self.meet(expected, hello)
    }

    fn check_cluster(&self, hello: &Hello, own: u64) -> Result<(), Refusal> {
        if hello.cluster == own {
            return Ok(());
        }
        let reason = format!(
            "configuration differs (fingerprint {:016x}, that of process {} is {own:016x}): use the same cluster file everywhere",
            hello.cluster, self.process
        );
        Err(Refusal::new(RefusalCode::ConfigurationDiffers, reason))
    }

    fn meet(&self, process: u16, hello: &Hello) -> Result<Meeting, Refusal> {
        let Some(peer) = self.peer(process) else {
            let reason = format!(
                "unknown process {process}: process {} has no such peer in its configuration; if it is new, `ordain replica add` tells the others of it",
                self.process
            );
            return Err(Refusal::new(RefusalCode::UnknownProcess, reason));
        };
        self.check_cluster(hello, peer.cluster)?;
        match &self.on_session {
            None => self.meet_once(process, &mut lock(&peer.state), hello),
            Some(on_session) => {
                let _nothing_is_delivered = peer.delivery();
                meet_again(process, &mut lock(&peer.state), hello, on_session)
            }
        }
    }

    /// Only the first incarnation is accepted.
    fn meet_once(&self, process: u16, state: &mut PeerState, hello: &Hello) -> Result<Meeting, Refusal> {
        // Checked before the peer's incarnation is noted: a peer that remembers this process's predecessor must be
        // restarted itself, and its successor must not be taken for the impostor.
        if hello.known_incarnation != 0 && hello.known_incarnation != self.incarnation {
            return Err(restarted(self.process));
        }
        if state.theirs != 0 && state.theirs != hello.incarnation {
            return Err(restarted(process));
        }
        state.theirs = hello.incarnation;
        Ok(Meeting { session: 0, own: state.own })
    }

    /// Gives up what is queued for a peer: a new session begins with the next connection.
    pub(crate) fn give_up_session(&self, process: u16) {
        if let Some(peer) = self.peer(process) {
            let mut state = lock(&peer.state);
            state.own = state.own.wrapping_add(1).max(1);
            state.is_over = true;
        }
    }

    /// Delivers something that came in a session, unless that is over.
    pub(crate) fn deliver<T>(
        &self,
        process: u16,
        session: u64,
        deliver: impl FnOnce() -> T,
    ) -> Result<T, ConnectionError> {
        let Some(peer) = self.peer(process).filter(|_| self.has_sessions()) else {
            return Ok(deliver());
        };
        let _no_session_begins = peer.delivery();
        if lock(&peer.state).session != session {
            return Err(ConnectionError::Superseded);
        }
        Ok(deliver())
    }
}

impl Peer {
    /// Code of the receiver runs under this lock: its panic leaves nothing half done here.
    fn delivery(&self) -> MutexGuard<'_, ()> {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With a new incarnation a session begins.
fn meet_again(
    process: u16,
    state: &mut PeerState,
    hello: &Hello,
    on_session: &OnSession,
) -> Result<Meeting, Refusal> {
    if state.past.contains(&hello.incarnation) {
        let reason = format!("this connection of process {process} is of an earlier session: connect again");
        return Err(Refusal::new(RefusalCode::ProcessRestarted, reason));
    }
    if state.theirs != hello.incarnation || state.is_over {
        if state.theirs != 0 && state.theirs != hello.incarnation {
            state.past.push_back(state.theirs);
            if state.past.len() > PAST_MAX {
                state.past.pop_front();
            }
        }
        state.theirs = hello.incarnation;
        state.is_over = false;
        state.session += 1;
        on_session(process, state.session);
    }
    Ok(Meeting { session: state.session, own: state.own })
}

fn restarted(process: u16) -> Refusal {
    let reason =
        format!("process {process} restarted and lost its memory of this cluster: restart the whole cluster");
    Refusal::new(RefusalCode::ProcessRestarted, reason)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const CLUSTER: u64 = 7;

    fn process(process: u16, incarnation: u64) -> Membership {
        Membership::new(process, [1, 2], CLUSTER, incarnation)
    }

    /// One connects to the other: what the other says, or what the one holds against the answer.
    fn connect(from: &Membership, to: &Membership) -> Result<(), RefusalCode> {
        meet(from, to).map(|_| ())
    }

    /// The numbers of the session at both.
    fn meet(from: &Membership, to: &Membership) -> Result<(u64, u64), RefusalCode> {
        let hello = from.hello_to(to.process());
        let at_to = to.admit(&hello).map_err(|refusal| refusal.code)?;
        let answer = to.answer(&hello, at_to, 1);
        let at_from = from.check_answer(to.process(), &answer).map_err(|refusal| refusal.code)?;
        Ok((at_from.session, at_to.session))
    }

    /// Sessions that have begun: with whom, and their numbers.
    type Begun = Arc<Mutex<Vec<(u16, u64)>>>;

    /// A process with sessions, and those that have begun.
    fn resilient(number: u16, incarnation: u64) -> (Membership, Begun) {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&begun);
        let on_session: OnSession = Box::new(move |peer, session| lock(&note).push((peer, session)));
        (Membership::with_sessions(number, [1, 2], CLUSTER, incarnation, on_session), begun)
    }

    #[test]
    fn both_directions_share_a_session_and_a_restart_begins_another_on_both_sides() {
        let ((one, at_one), (two, at_two)) = (resilient(1, 11), resilient(2, 21));
        for _ in 0..2 {
            assert_eq!(meet(&one, &two), Ok((1, 1)));
            assert_eq!(meet(&two, &one), Ok((1, 1)));
        }
        let (again, at_again) = resilient(2, 22);
        assert_eq!(meet(&one, &again), Ok((2, 1)), "noticed in the answer");
        assert_eq!(meet(&again, &one), Ok((1, 2)));
        let (third, _) = resilient(2, 23);
        assert_eq!(meet(&third, &one), Ok((1, 3)), "noticed in the greeting");
        assert_eq!(*lock(&at_one), [(2, 1), (2, 2), (2, 3)]);
        assert_eq!((&*lock(&at_two), &*lock(&at_again)), (&vec![(1, 1)], &vec![(1, 1)]));
    }

    #[test]
    fn a_session_that_one_side_gives_up_is_over_at_both() {
        let ((one, _), (two, _)) = (resilient(1, 11), resilient(2, 21));
        assert_eq!(meet(&one, &two), Ok((1, 1)));
        let hello = two.hello_to(1);
        one.give_up_session(2);
        assert_eq!(meet(&one, &two), Ok((2, 2)));
        assert_eq!(meet(&two, &one), Ok((2, 2)));
        // A greeting from before is answered: the other side finds out by the answer.
        assert_eq!(one.admit(&hello).map(|meeting| meeting.session), Ok(2));
        // And so is one by the other side while this one has not connected yet.
        two.give_up_session(1);
        assert_eq!(meet(&one, &two), Ok((3, 3)));
    }

    #[test]
    fn a_handshake_that_began_before_its_session_was_given_up_does_not_count() {
        let ((one, _), (two, _)) = (resilient(1, 11), resilient(2, 21));
        let hello = one.hello_to(2);
        let meeting = two.admit(&hello).unwrap();
        one.give_up_session(2);
        let refusal = one.check_answer(2, &two.answer(&hello, meeting, 1)).unwrap_err();
        assert_eq!(refusal.code, RefusalCode::Busy);
        assert_eq!(meet(&one, &two), Ok((1, 2)));
        assert_eq!(two.admit(&hello).unwrap_err().code, RefusalCode::ProcessRestarted, "an old connection");
    }

    #[test]
    fn what_comes_of_an_old_session_is_not_delivered() {
        let ((one, _), (two, _)) = (resilient(1, 11), resilient(2, 21));
        meet(&one, &two).unwrap();
        assert!(two.deliver(1, 1, || ()).is_ok());
        meet(&resilient(1, 12).0, &two).unwrap();
        assert!(two.deliver(1, 1, || ()).is_err());
        assert!(two.deliver(1, 2, || ()).is_ok());
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
        let meeting = Meeting { session: 0, own: 11 };
        let answer = process(1, 11).answer(&two.hello_to(1), meeting, 1);
        assert_eq!(two.check_answer(3, &answer).unwrap_err().code, RefusalCode::UnknownProcess);
    }

    #[test]
    fn a_peer_that_is_added_later_must_agree_on_the_two() {
        let (one, _) = resilient(1, 11);
        let third = |cluster| Membership::new(3, [1], cluster, 33);
        assert_eq!(connect(&third(5), &one), Err(RefusalCode::UnknownProcess));
        one.add_peer(3, 5);
        assert_eq!(connect(&third(6), &one), Err(RefusalCode::ConfigurationDiffers));
        assert_eq!(connect(&third(5), &one), Ok(()));
        one.add_peer(3, 6);
        assert_eq!(connect(&third(5), &one), Ok(()), "one that is known stays as it is");
        assert_eq!(one.peers(), [2, 3]);
    }

    #[test]
    fn a_process_that_is_not_up_lets_in_clients_alone() {
        let waiting = Membership::for_clients(2, CLUSTER, 21);
        assert_eq!(connect(&process(1, 11), &waiting), Err(RefusalCode::Busy));
        let client = Hello {
            role: Role::Client,
            cluster: CLUSTER,
            incarnation: 0,
            known_incarnation: 0,
            receive_next: 1,
        };
        assert!(waiting.admit(&client).is_ok());
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
        assert!(one.admit(&hello(0)).is_ok());
        assert!(one.admit(&hello(CLUSTER)).is_ok());
        assert_eq!(one.admit(&hello(8)).unwrap_err().code, RefusalCode::ConfigurationDiffers);
    }
}
