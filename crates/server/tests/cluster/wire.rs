//! The encoding of payloads: what is written is read the same, and what is not written is never more than an error.

use bytes::Bytes;
use ordain::db::data::{Direction, Key, KeyRange};
use ordain::db::error::{Error, Outcome};
use ordain::db::execution::remote_reads;
use ordain::db::message::*;
use ordain::db::node::GroupStatus;
use ordain::db::position::{Entry, Epoch, NodeId, PartitionId, Position, ReplicaId};
use ordain::db::procedure::ProcedureId;
use ordain::db::sequencer::{Basis, Load};
use ordain::transport::limits::FRAME_PAYLOAD_BYTES_MAX;
use ordain::wire::*;

use super::support::Random;

/// Makes values of all shapes.
struct Any(Random);

impl Any {
    fn number(&mut self) -> u64 {
        let bits = self.0.below(65) as u32;
        self.0.next().checked_shr(64 - bits).unwrap_or(0)
    }

    fn blob(&mut self) -> Bytes {
        let count = self.0.below(40);
        self.0.bytes(count).into()
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Any) -> T) -> Vec<T> {
        (0..self.0.below(4)).map(|_| item(self)).collect()
    }

    fn partition(&mut self) -> PartitionId {
        PartitionId(self.number() as u16)
    }

    fn node(&mut self) -> NodeId {
        NodeId { partition: self.partition(), replica: ReplicaId(self.number() as u16) }
    }

    fn entry(&mut self) -> Entry {
        Entry { node: self.node(), life: self.number() }
    }

    fn id(&mut self) -> RequestId {
        let client = ClientId { home: self.partition(), number: self.number() };
        RequestId { client, sequence: self.number() }
    }

    fn position(&mut self) -> Position {
        Position { epoch: Epoch(self.number()), origin: self.partition(), index: self.number() as u32 }
    }

    fn key(&mut self) -> Key {
        Key::from_bytes(&self.blob())
    }

    fn range(&mut self) -> KeyRange {
        KeyRange { start: self.key(), end: self.key() }
    }

    fn error(&mut self) -> Error {
        let text = String::from_utf8_lossy(&self.blob()).into_owned();
        match self.0.below(7) {
            0 => Error::Aborted(text),
            1 => Error::Invalid(text),
            2 => Error::Busy(text),
            3 => Error::Contended,
            4 => Error::Acknowledged(self.number()),
            5 => Error::NotOpen(self.position()),
            _ => Error::Unavailable(text),
        }
    }

    fn outcome(&mut self) -> Outcome {
        if self.0.below(2) == 0 { Ok(self.blob()) } else { Err(self.error()) }
    }

    fn request(&mut self) -> Request {
        let operation = match self.0.below(4) {
            0 => Operation::OpenSnapshot,
            1 => Operation::AskOutcome { of: self.number() },
            2 => {
                let (procedure, arguments) = (ProcedureId(self.number() as u16), self.blob());
                Operation::CallEarly { procedure, arguments }
            }
            _ => Operation::Call { procedure: ProcedureId(self.number() as u16), arguments: self.blob() },
        };
        Request { id: self.id(), acknowledged: self.number(), operation }
    }

    fn client_request(&mut self) -> ClientRequest {
        match self.0.below(6) {
            0 => ClientRequest::Ordered(self.request()),
            1 => ClientRequest::Scan {
                request: self.id(),
                at: self.position(),
                range: self.range(),
                direction: self.direction(),
                rows: self.number() as u32,
            },
            2 => ClientRequest::CloseSnapshot(self.position()),
            3 => ClientRequest::ChangeMembership {
                request: self.id(),
                voters: self.list(|any| ReplicaId(any.number() as u16)),
                learners: self.list(|any| ReplicaId(any.number() as u16)),
            },
            4 => ClientRequest::Read {
                request: self.id(),
                at: self.position(),
                procedure: ProcedureId(self.number() as u16),
                arguments: self.blob(),
            },
            _ => ClientRequest::Status { request: self.id(), digest: self.0.below(2) == 0 },
        }
    }

    fn reply(&mut self) -> Reply {
        Reply { request: self.id(), outcome: self.outcome() }
    }

    fn ordered(&mut self) -> Ordered {
        let work = match self.0.below(5) {
            0 => Work::OpenSnapshot(self.entry()),
            1 => Work::CloseSnapshot(self.position()),
            2 => Work::GiveUp(self.error()),
            3 => Work::Checkpoint((self.0.below(2) == 0).then(|| self.node().replica)),
            _ => Work::Call {
                procedure: ProcedureId(self.number() as u16),
                arguments: self.blob(),
                reconnoitred: (self.0.below(2) == 0)
                    .then(|| Reconnoitred { footprint: self.blob(), restarts: self.number() as u32 }),
            },
        };
        Ordered { request: self.id(), acknowledged: self.number(), work }
    }

    fn report(&mut self) -> Report {
        let verdict = match self.0.below(3) {
            0 => Verdict::Committed(self.blob()),
            1 => Verdict::Failed(self.error()),
            _ => Verdict::FootprintMissed,
        };
        Report { position: self.position(), request: self.id(), verdict }
    }

    fn basis(&mut self) -> Basis {
        Basis { epoch: Epoch(self.number()), lineage: self.number() }
    }

    fn direction(&mut self) -> Direction {
        if self.0.below(2) == 0 { Direction::Ascending } else { Direction::Descending }
    }

    fn want(&mut self) -> Want {
        match self.0.below(2) {
            0 => Want::Key(self.key()),
            _ => Want::Range { range: self.range(), direction: self.direction(), limit: self.number() },
        }
    }

    fn load(&mut self) -> Load {
        Load { backlog: self.number(), level: self.number() as u16 }
    }

    fn message(&mut self) -> Message {
        match self.0.below(15) {
            0 => Message::Batch {
                epoch: Epoch(self.number()),
                term: self.number(),
                load: self.load(),
                transactions: self.list(|any| (any.number() as u32, any.ordered())),
            },
            1 => Message::Reads { basis: self.basis(), reads: self.blob() },
            2 => Message::Reports { basis: self.basis(), reports: self.list(Any::report) },
            3 => Message::SnapshotReady { request: self.id(), at: self.position(), lineage: self.number() },
            4 => Message::CloseSnapshot(self.position()),
            5 => Message::Forward { entry: self.entry(), requests: self.list(Any::request) },
            6 => Message::Replies(self.list(Any::reply)),
            7 => Message::Fetch { ticket: self.number(), want: self.want() },
            8 => Message::Consensus(self.blob()),
            9 => Message::Follow(Epoch(self.number())),
            10 => Message::Subscribe {
                after: Epoch(self.number()),
                delivered: Epoch(self.number()),
                term: self.number(),
            },
            11 => Message::Unsubscribe,
            12 => Message::Load { load: self.load(), room: self.number() },
            13 => Message::Alive(Reached {
                handed_on: Epoch(self.number()),
                delivered: Epoch(self.number()),
                executed: Epoch(self.number()),
            }),
            _ => Message::Fetched {
                ticket: self.number(),
                want: self.want(),
                rows: self.list(|any| (any.key(), any.blob())),
            },
        }
    }

    fn standing(&mut self) -> Standing {
        let replicas = |any: &mut Any| any.list(|any| ReplicaId(any.number() as u16));
        Standing {
            directory: u128::from(self.number()) << 64 | u128::from(self.number()),
            established: self.0.below(2) == 0,
            founders: self.list(|any| (any.number() as u16, u128::from(any.number()))),
            groups: self.list(|any| {
                let group = GroupStatus {
                    replica: ReplicaId(any.number() as u16),
                    leader: (any.0.below(2) == 0).then(|| ReplicaId(any.number() as u16)),
                    term: any.number(),
                    start: any.number(),
                    committed: any.number(),
                    last: any.number(),
                    voters: replicas(any),
                    outgoing: replicas(any),
                    learners: replicas(any),
                    followers: Vec::new(),
                };
                (any.node(), group)
            }),
        }
    }

    /// The payloads that tools send and get.
    fn push_of_tools(&mut self, token: u64, payloads: &mut Vec<Bytes>) {
        let file = "partitions = 1".repeat(self.0.below(9));
        let outcome = if self.0.below(2) == 0 { Ok(file.clone()) } else { Err(file.clone()) };
        let standing = self.standing();
        let asks = [
            (ClientPayload::encode_standing(token), ClientPayload::Standing { token }),
            (ClientPayload::encode_grow(token, &file), ClientPayload::Grow { token, file }),
        ];
        for (payload, said) in asks {
            assert_eq!(ClientPayload::decode(&payload), Ok(said));
            payloads.push(payload);
        }
        let answers = [
            (ServerPayload::encode_standing(token, &standing), ServerPayload::Standing { token, standing }),
            (ServerPayload::encode_grown(token, &outcome), ServerPayload::Grown { token, outcome }),
        ];
        for (payload, said) in answers {
            assert_eq!(ServerPayload::decode(&payload), Ok(said));
            payloads.push(payload);
        }
    }

    /// A payload of each direction, with what it says.
    fn payloads(&mut self) -> Vec<Bytes> {
        let (from, to) = (self.node(), self.node());
        let messages: Vec<Message> = (0..1 + self.0.below(5)).map(|_| self.message()).collect();
        let requests: Vec<ClientRequest> = (0..1 + self.0.below(5)).map(|_| self.client_request()).collect();
        let replies: Vec<Reply> = (0..1 + self.0.below(5)).map(|_| self.reply()).collect();
        let token = self.number();
        let usage = Usage {
            partitions_cpu_nanoseconds: self.number(),
            process_cpu_nanoseconds: self.number(),
            ready: self.0.below(2) == 0,
        };
        let mut payloads = PeerPayload::encode_messages(from, to, &messages).unwrap();
        let expected = PeerPayload::Messages { from, to, messages };
        assert_eq!(PeerPayload::decode(&payloads[0]), Ok(expected));
        let to = to.partition;
        payloads.extend(ClientPayload::encode_requests(to, &requests).unwrap());
        assert_eq!(ClientPayload::decode(&payloads[1]), Ok(ClientPayload::Requests { to, requests }));
        payloads.extend(ServerPayload::encode_replies(&replies));
        assert_eq!(ServerPayload::decode(&payloads[2]), Ok(ServerPayload::Replies(replies)));
        payloads.push(ClientPayload::encode_usage(token));
        assert_eq!(ClientPayload::decode(&payloads[3]), Ok(ClientPayload::Usage { token }));
        payloads.push(ServerPayload::encode_usage(token, &usage));
        assert_eq!(ServerPayload::decode(&payloads[4]), Ok(ServerPayload::Usage { token, usage }));
        self.push_of_tools(token, &mut payloads);
        payloads.push(PeerPayload::encode_leaving());
        payloads.push(PeerPayload::encode_finished());
        payloads
    }
}

/// Reads bytes in every direction; how many took them for a payload.
fn decode_everywhere(bytes: &[u8]) -> usize {
    [
        PeerPayload::decode(bytes).is_ok(),
        ClientPayload::decode(bytes).is_ok(),
        ServerPayload::decode(bytes).is_ok(),
    ]
    .into_iter()
    .filter(|taken| *taken)
    .count()
}

#[test]
fn payloads_round_trip_and_are_taken_in_one_direction_only() {
    let mut any = Any(Random(1));
    for _ in 0..500 {
        for payload in any.payloads() {
            assert_eq!(decode_everywhere(&payload), 1, "{payload:?}");
        }
    }
}

#[test]
fn every_cut_and_every_longer_payload_is_refused() {
    let mut any = Any(Random(2));
    for _ in 0..50 {
        for payload in any.payloads() {
            for cut in 0..payload.len() {
                assert_eq!(decode_everywhere(&payload[..cut]), 0);
            }
            assert_eq!(decode_everywhere(&[&payload[..], b"x"].concat()), 0);
        }
    }
}

#[test]
fn mutated_and_random_bytes_are_never_more_than_an_error() {
    let mut any = Any(Random(3));
    for _ in 0..2000 {
        for payload in any.payloads() {
            let mut mutated = payload.to_vec();
            for _ in 0..1 + any.0.below(4) {
                let at = any.0.below(mutated.len());
                mutated[at] = if any.0.below(2) == 0 { any.0.next() as u8 } else { 0xff };
            }
            decode_everywhere(&mutated);
        }
        let count = any.0.below(300);
        let mut bytes = any.0.bytes(count);
        decode_everywhere(&bytes);
        // Past version and kind.
        bytes.splice(0..0, [WIRE_VERSION, [1, 16, 17, 18, 19, 32, 33, 34, 35][any.0.below(9)]]);
        decode_everywhere(&bytes);
    }
}

#[test]
fn a_count_that_lies_makes_no_room() {
    for kind in [1, 16, 32] {
        let head: &[u8] = match kind {
            1 => &[WIRE_VERSION, 1, 0, 0, 0, 0],
            16 => &[WIRE_VERSION, 16, 0, 0],
            _ => &[WIRE_VERSION, 32],
        };
        let lying = [head, &u32::MAX.to_le_bytes(), &[0; 100]].concat();
        assert_eq!(decode_everywhere(&lying), 0);
    }
    // Many short items: bounded by their number, not only by the bytes that announce them.
    let id = RequestId { client: ClientId { home: PartitionId(0), number: 0 }, sequence: 0 };
    let requests = vec![ClientRequest::Status { request: id, digest: false }; PAYLOAD_ITEMS_MAX + 1];
    let payloads = ClientPayload::encode_requests(PartitionId(0), &requests).unwrap();
    assert_eq!(payloads.len(), 2);
    let mut both = payloads[0].to_vec();
    both.extend_from_slice(&payloads[1][8..]);
    both[4..8].copy_from_slice(&(PAYLOAD_ITEMS_MAX as u32 + 1).to_le_bytes());
    let error = ClientPayload::decode(&both).unwrap_err();
    assert!(error.to_string().contains("announces 65537 items"), "{error}");
}

#[test]
fn errors_say_what_to_do() {
    let version = PeerPayload::decode(&[WIRE_VERSION + 1, 1]).unwrap_err();
    assert_eq!(version, WireError::Version { theirs: WIRE_VERSION + 1 });
    let stray = PeerPayload::decode(&ClientPayload::encode_usage(1)).unwrap_err();
    assert_eq!(stray, WireError::Kind { kind: 17, from: "peer" });
    for error in [version, stray, ClientPayload::decode(&[WIRE_VERSION, 16, 0]).unwrap_err()] {
        assert!(error.to_string().contains("run the same release of Ordain on both sides"), "{error}");
    }
    let basis = Basis { epoch: Epoch(1), lineage: 0 };
    let message = Message::Reads { basis, reads: vec![0; FRAME_PAYLOAD_BYTES_MAX].into() };
    let error = PeerPayload::encode_messages(
        NodeId::first(PartitionId(0)),
        NodeId::first(PartitionId(1)),
        &[message],
    )
    .unwrap_err();
    assert!(error.to_string().contains("make it smaller"), "{error}");
}

#[test]
fn read_results_are_cut_between_transactions() {
    let entry = |index: u32, bytes: usize| {
        let mut entry = Vec::new();
        entry.extend_from_slice(&7_u64.to_le_bytes());
        entry.extend_from_slice(&1_u16.to_le_bytes());
        entry.extend_from_slice(&index.to_le_bytes());
        entry.extend_from_slice(&(bytes as u32).to_le_bytes());
        entry.resize(entry.len() + bytes, 0);
        entry
    };
    let message = |sizes: &[usize]| -> Bytes {
        (0..).zip(sizes).flat_map(|(index, bytes)| entry(index, *bytes)).collect::<Vec<u8>>().into()
    };
    for sizes in [&[10, 10][..], &[10, 1000], &[1000, 10], &[1, 2, 3, 400, 5, 6]] {
        let whole = message(sizes);
        let (first, second) = remote_reads::halves(&whole).unwrap();
        assert!(!first.is_empty() && !second.is_empty());
        assert_eq!([&first[..], &second[..]].concat(), whole);
        let (mut parts, mut touched) = (remote_reads::Inbox::default(), Vec::new());
        parts.receive(PartitionId(1), &first, &mut touched).unwrap();
        parts.receive(PartitionId(1), &second, &mut touched).unwrap();
        assert_eq!(touched.len(), sizes.len());
    }
    assert_eq!(remote_reads::halves(&message(&[100])), None);
    assert_eq!(remote_reads::halves(&Bytes::new()), None);
    assert_eq!(remote_reads::halves(&Bytes::from_static(&[0xff; 19])), None, "nonsense stays whole");
}
