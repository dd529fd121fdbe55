//! Requests that are sent again until they are answered, for clusters that keep a log.
//!
//! A request keeps its identity, and takes effect once however often it arrives. So it is sent again, to another replica if
//! there is one, when its connection is lost, when the process that has it shuts down or does not lead, and when no answer
//! comes for [`ANSWER_TIME_MIN`], and then for twice as long each time. After [`PATIENCE`] it ends with [`Error::Unavailable`]: then nobody here knows whether it took
//! effect, or will.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ordain_db::error::{Error, Outcome};
use ordain_db::gateway::not_leading;
use ordain_db::hash::FastMap;
use ordain_db::message::{ClientRequest, Reply, RequestId};
use ordain_db::position::PartitionId;

/// How long a request may be without an answer before it is sent again for the first time: it may have been on its way to a
/// leader that has failed, which nobody tells the client. A little more than a failure takes to be noticed.
pub const ANSWER_TIME_MIN: Duration = Duration::from_millis(300);

/// How long at most.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a request is sent again and again.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The first wait after an answer that says to send again; it doubles up to [`BACK_OFF_MAX`].
const BACK_OFF_MIN: Duration = Duration::from_millis(5);

/// The longest wait after such an answer.
const BACK_OFF_MAX: Duration = Duration::from_millis(80);

/// Most requests without an answer.
pub const REQUESTS_MAX: usize = 128 * 1024;

/// For how long replicas are asked for a snapshot that is not open at some of them: one that began again at a newer checkpoint does not have
/// it, and others may.
const SNAPSHOT_TIME_MAX: Duration = Duration::from_secs(1);

/// After how long a client asks again first the process that it was made to ask first, after it was sent elsewhere.
const NEAR_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// See the [module](self).
pub struct Retries {
    state: Mutex<State>,
    /// Notified when something may be due earlier than before.
    changed: Condvar,
}

struct State {
    under_way: FastMap<RequestId, UnderWay>,
    /// When each of them is to be sent again.
    due: BTreeSet<(Instant, RequestId)>,
    /// The place, among the processes that run a partition, of the one that serves this client best, if there is such a one.
    near: Option<usize>,
    /// By partition: the place of the one to ask first, and since when it is that one.
    preferred: Vec<(usize, Instant)>,
}

struct UnderWay {
    to: PartitionId,
    request: ClientRequest,
    began: Instant,
    due: Instant,
    /// The process that has it, and its place among those that run the partition.
    process: Option<(u16, usize)>,
    /// How many places behind the one to ask first it is sent to.
    elsewhere: usize,
    /// How often it was answered with words that say to send it again.
    refusals: u32,
    /// How often it was sent.
    sendings: u32,
}

impl UnderWay {
    /// How long an answer may take.
    fn answer_time(&self) -> Duration {
        (ANSWER_TIME_MIN * 2_u32.pow(self.sendings.saturating_sub(1).min(8))).min(ANSWER_TIME_MAX)
    }

    /// Whether an answer means that the same request is to be sent again.
    fn says_again(&self, outcome: &Outcome, age: Duration) -> bool {
        match (&self.request, outcome) {
            (_, Err(Error::Unavailable(_))) => true,
            // The replica that is asked is a little behind the one that said that the snapshot is open.
            (ClientRequest::Scan { .. } | ClientRequest::Read { .. }, Err(Error::Busy(_))) => true,
            // Of one that was sent before, it does not say that it was not taken then.
            (_, Err(busy @ Error::Busy(_))) => *busy == not_leading() || self.sendings > 1,
            // Another one may have it.
            (ClientRequest::Scan { .. } | ClientRequest::Read { .. }, Err(Error::NotOpen(_))) => {
                age < SNAPSHOT_TIME_MAX
            }
            _ => false,
        }
    }
}

/// What is to be done now.
#[derive(Default)]
pub struct Due {
    /// Requests to send again, each with how many places behind the one to ask first.
    pub again: Vec<(PartitionId, ClientRequest, usize)>,
    /// The last answers to those that were sent long enough.
    pub given_up: Vec<Reply>,
}

impl State {
    /// Changes when a request is to be sent again.
    fn set_due(&mut self, id: RequestId, due: Instant) {
        if let Some(under_way) = self.under_way.get_mut(&id) {
            self.due.remove(&(under_way.due, id));
            under_way.due = due;
            self.due.insert((due, id));
        }
    }

    /// The next time the request goes elsewhere, unless others have found out already.
    fn avoid(&mut self, id: RequestId) {
        let Some(UnderWay { to, process: Some((_, place)), .. }) = self.under_way.get(&id) else { return };
        let preferred = &mut self.preferred[to.index()];
        if preferred.0 == *place {
            *preferred = (place + 1, Instant::now());
        }
    }

    fn end(&mut self, id: &RequestId) -> Option<UnderWay> {
        let under_way = self.under_way.remove(id)?;
        self.due.remove(&(under_way.due, *id));
        Some(under_way)
    }
}

impl Retries {
    /// Nothing under way. Of the processes that run a partition, the one at the place `near` is asked first, as long as it serves.
    pub fn new(partitions: u16, near: Option<usize>) -> Retries {
        let state = State {
            under_way: FastMap::default(),
            due: BTreeSet::new(),
            near,
            preferred: vec![(near.unwrap_or_default(), Instant::now()); usize::from(partitions)],
        };
        Retries { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes new requests. Those that have no answer are not sent again. `false` when too many are under way: none is noted.
    #[must_use]
    pub fn begin(&self, to: PartitionId, requests: &[ClientRequest]) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        if state.under_way.len() + requests.len() > REQUESTS_MAX {
            return false;
        }
        for request in requests {
            let Some(id) = request.id() else { continue };
            let due = now + ANSWER_TIME_MAX;
            let request = request.clone();
            let under_way = UnderWay {
                to,
                request,
                began: now,
                due,
                process: None,
                elsewhere: 0,
                refusals: 0,
                sendings: 0,
            };
            state.end(&id);
            state.under_way.insert(id, under_way);
            state.due.insert((due, id));
        }
        true
    }

    /// The place, among the processes that run a partition, of the one to ask first.
    pub fn preferred(&self, to: PartitionId, processes: usize) -> usize {
        let mut state = self.lock();
        let near = state.near;
        let (place, since) = &mut state.preferred[to.index()];
        let near = near.filter(|_| since.elapsed() > NEAR_AGAIN_AFTER);
        *place = near.unwrap_or(*place) % processes.max(1);
        *place
    }

    /// Notes who is asked, before they are. Takes out what was answered since it was due: it may have been refused, and would take effect
    /// all the same.
    pub fn sent(&self, requests: &mut Vec<ClientRequest>, process: u16, place: usize) {
        let now = Instant::now();
        let mut state = self.lock();
        requests.retain(|request| {
            let Some(id) = request.id() else { return true };
            let Some(under_way) = state.under_way.get_mut(&id) else { return false };
            under_way.process = Some((process, place));
            under_way.sendings += 1;
            let due = now + under_way.answer_time();
            state.set_due(id, due);
            true
        });
    }

    /// Notes that nobody could be asked.
    pub fn not_sent(&self, requests: &[ClientRequest]) {
        let due = Instant::now() + BACK_OFF_MAX;
        let mut state = self.lock();
        requests.iter().filter_map(ClientRequest::id).for_each(|id| state.set_due(id, due));
    }

    /// Takes answers; those that end a request come back.
    pub fn take_replies(&self, replies: Vec<Reply>) -> Vec<Reply> {
        let now = Instant::now();
        let mut state = self.lock();
        let mut ended = Vec::with_capacity(replies.len());
        for reply in replies {
            let id = reply.request;
            // One that was sent twice is answered twice.
            let Some(under_way) = state.under_way.get_mut(&id) else { continue };
            if !under_way.says_again(&reply.outcome, now - under_way.began) {
                state.end(&id);
                ended.push(reply);
                continue;
            }
            let back_off = BACK_OFF_MIN * 2_u32.pow(under_way.refusals.min(6));
            under_way.refusals += 1;
            // Who is asked for rows of a snapshot may be behind another one for a moment, and serves all the same.
            let is_behind =
                matches!(under_way.request, ClientRequest::Scan { .. } | ClientRequest::Read { .. })
                    && matches!(reply.outcome, Err(Error::Busy(_) | Error::NotOpen(_)));
            if is_behind {
                (under_way.elsewhere, under_way.process) = (under_way.elsewhere + 1, None);
            }
            state.set_due(id, now + back_off.min(BACK_OFF_MAX));
            state.avoid(id);
        }
        drop(state);
        self.changed.notify_all();
        ended
    }

    /// A connection is lost: what it had is to be sent again at once.
    pub fn lost(&self, process: u16) {
        let now = Instant::now();
        let mut state = self.lock();
        let has = |under_way: &UnderWay| under_way.process.is_some_and(|(number, _)| number == process);
        let lost: Vec<RequestId> =
            state.under_way.iter().filter(|(_, under_way)| has(under_way)).map(|(id, _)| *id).collect();
        lost.into_iter().for_each(|id| state.set_due(id, now));
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until something is due, but not much longer than `patience`.
    pub fn due(&self, patience: Duration) -> Due {
        let mut state = self.lock();
        let wait =
            state.due.first().map_or(patience, |(due, _)| due.saturating_duration_since(Instant::now()));
        if !wait.is_zero() {
            let waited = self.changed.wait_timeout(state, wait.min(patience));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let now = Instant::now();
        let mut due = Due::default();
        while let Some((_, id)) = state.due.first().copied().filter(|(at, _)| *at <= now) {
            let Some(under_way) = state.under_way.get(&id) else { break };
            if now - under_way.began > PATIENCE {
                let problem = format!(
                    "no replica has answered for {PATIENCE:?}, and whether the request took effect, or will, is not known: look before making a new one of it"
                );
                due.given_up.push(Reply { request: id, outcome: Err(Error::Unavailable(problem)) });
                state.end(&id);
                continue;
            }
            due.again.push((under_way.to, under_way.request.clone(), under_way.elsewhere));
            state.avoid(id);
            state.set_due(id, now + ANSWER_TIME_MAX);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ordain_db::message::{ClientId, Operation, Request};
    use ordain_db::position::Position;
    use ordain_db::procedure::ProcedureId;

    use super::*;

    const HOME: PartitionId = PartitionId(0);

    fn request(sequence: u64) -> ClientRequest {
        let id = RequestId { client: ClientId { home: HOME, number: 7 }, sequence };
        ClientRequest::Ordered(Request { id, acknowledged: 0, operation: Operation::OpenSnapshot })
    }

    fn answer(sequence: u64, outcome: Outcome) -> Vec<Reply> {
        request(sequence).id().map(|request| Reply { request, outcome }).into_iter().collect()
    }

    /// What is sent again within a second.
    fn sent_again(retries: &Retries) -> Vec<ClientRequest> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            let due = retries.due(Duration::from_millis(20));
            assert!(due.given_up.is_empty());
            if !due.again.is_empty() {
                return due.again.into_iter().map(|(_, request, _)| request).collect();
            }
        }
        Vec::new()
    }

    fn sent_to(retries: &Retries, process: u16, place: usize) {
        assert!(retries.begin(HOME, &[request(1)]));
        retries.sent(&mut vec![request(1)], process, place);
    }

    #[test]
    fn an_answer_that_says_so_sends_a_request_again_to_another_replica() {
        for error in [not_leading(), Error::Unavailable("the process is shutting down".to_owned())] {
            let retries = Retries::new(1, None);
            sent_to(&retries, 4, 0);
            assert!(retries.take_replies(answer(1, Err(error))).is_empty(), "nobody is told");
            assert_eq!(sent_again(&retries), [request(1)]);
            assert_eq!(retries.preferred(HOME, 3), 1);
            let answered = answer(1, Ok("done".into()));
            assert_eq!(retries.take_replies(answered.clone()), answered);
            assert!(retries.take_replies(answered).is_empty(), "a second answer is not delivered");
            assert!(sent_again(&retries).is_empty());
        }
    }

    #[test]
    fn other_errors_are_answers() {
        for error in
            [Error::Busy("the inbox is full".to_owned()), Error::Contended, Error::Invalid(String::new())]
        {
            let retries = Retries::new(1, None);
            sent_to(&retries, 4, 0);
            assert_eq!(retries.take_replies(answer(1, Err(error.clone()))), answer(1, Err(error)));
        }
    }

    #[test]
    fn busy_is_no_answer_to_what_may_have_been_taken_before() {
        let retries = Retries::new(1, None);
        sent_to(&retries, 4, 0);
        assert_eq!(sent_again(&retries), [request(1)], "nobody has answered");
        retries.sent(&mut vec![request(1)], 5, 1);
        let busy = Err(Error::Busy("the inbox is full".to_owned()));
        assert!(retries.take_replies(answer(1, busy)).is_empty());
        assert_eq!(sent_again(&retries), [request(1)]);
    }

    #[test]
    fn the_process_that_is_near_is_asked_first_until_it_sends_elsewhere() {
        let retries = Retries::new(1, Some(2));
        assert_eq!(retries.preferred(HOME, 3), 2);
        sent_to(&retries, 4, 2);
        assert!(retries.take_replies(answer(1, Err(not_leading()))).is_empty());
        assert_eq!(retries.preferred(HOME, 3), 0);
        retries.lock().preferred[0].1 -= 2 * NEAR_AGAIN_AFTER;
        assert_eq!(retries.preferred(HOME, 3), 2, "it may serve again");
    }

    #[test]
    fn rows_that_a_replica_does_not_have_yet_are_asked_of_another_one_and_nothing_else_is() {
        let retries = Retries::new(1, None);
        let read = ClientRequest::Read {
            request: request(1).id().unwrap(),
            at: Position::LOADED,
            procedure: ProcedureId(0),
            arguments: Bytes::new(),
        };
        assert!(retries.begin(HOME, std::slice::from_ref(&read)));
        for (place, error) in
            [Error::Busy("wait".to_owned()), Error::NotOpen(Position::LOADED)].iter().enumerate()
        {
            retries.sent(&mut vec![read.clone()], 4, place);
            assert!(retries.take_replies(answer(1, Err(error.clone()))).is_empty());
            std::thread::sleep(BACK_OFF_MAX);
            let again = retries.due(Duration::ZERO).again;
            assert_eq!(again, [(HOME, read.clone(), place + 1)]);
        }
        assert_eq!(retries.preferred(HOME, 3), 0);
    }

    #[test]
    fn what_was_refused_is_not_sent_again_although_it_was_due() {
        let retries = Retries::new(1, None);
        sent_to(&retries, 4, 0);
        let mut again = sent_again(&retries);
        assert_eq!(again, [request(1)], "nobody has answered");
        let busy = Err(Error::Busy("the inbox is full".to_owned()));
        assert_eq!(retries.take_replies(answer(1, busy.clone())), answer(1, busy), "it was sent once so far");
        retries.sent(&mut again, 4, 0);
        assert!(again.is_empty(), "its caller may make a new one of it");
    }

    #[test]
    fn a_lost_connection_sends_again_what_it_had_and_nothing_else() {
        let retries = Retries::new(1, None);
        sent_to(&retries, 4, 0);
        assert!(retries.begin(HOME, &[request(2)]));
        retries.sent(&mut vec![request(2)], 5, 1);
        retries.lost(4);
        assert_eq!(sent_again(&retries), [request(1)]);
    }

    #[test]
    fn what_is_under_way_is_limited() {
        let retries = Retries::new(1, None);
        let all: Vec<ClientRequest> = (0..REQUESTS_MAX as u64).map(request).collect();
        assert!(retries.begin(HOME, &all));
        assert!(!retries.begin(HOME, &[request(u64::MAX)]));
        retries.take_replies(answer(3, Ok("done".into())));
        assert!(retries.begin(HOME, &[request(u64::MAX)]));
    }
}
