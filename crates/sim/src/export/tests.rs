//! A small history in all three formats, byte for byte.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::message::{ClientId, Operation as Ordered, RequestId};
use ordain_db::position::PartitionId;
use ordain_db::procedure::{ProcedureId, encode_arguments};
use ordain_workload::append::{Append, Arguments, Operation, Options, RowName, Seen};

use super::{awdit, elle, operations};
use crate::history::{History, Invocation};
use crate::time::Nanoseconds;

const FIRST: RowName = RowName { site: 0, id: 1 };
const SECOND: RowName = RowName { site: 1, id: 0 };
const POINTER: RowName = RowName { site: 0, id: 0 };

type Reply = (Nanoseconds, Result<Vec<Seen>, Error>);

/// Requests of clients in the order of their numbers.
struct Requests(BTreeMap<RequestId, Invocation>);

impl Requests {
    /// Adds a call with the number `call`.
    fn add(&mut self, client: u64, call: u64, operations: &[Operation], invoked_at: u64, replies: &[Reply]) {
        let operations = operations.iter().copied().collect();
        let arguments = encode_arguments(&Arguments { number: call, operations, abort: None });
        let encode = |seen: &Vec<Seen>| Bytes::from(encode_arguments(seen).unwrap());
        let replies =
            replies.iter().map(|(at, reply)| (*at, reply.as_ref().map(encode).map_err(Error::clone)));
        let arguments = arguments.unwrap().into();
        self.0.insert(
            RequestId { client: ClientId { home: PartitionId(0), number: client }, sequence: call },
            Invocation {
                operation: Ordered::Call { procedure: ProcedureId(0), arguments },
                invoked_at,
                replies: replies.collect(),
                attempts: 1,
            },
        );
    }

    fn history(self) -> History {
        History {
            engine: EngineKind::Calvin,
            partitions: 1,
            may_lose: false,
            requests: self.0,
            log: BTreeMap::new(),
            executed: BTreeMap::new(),
            snapshots: Vec::new(),
            pages: Vec::new(),
            sessions: None,
            rows: Vec::new(),
            statuses: Vec::new(),
            disagreements: Vec::new(),
            gauges: Vec::new(),
            conditions: Vec::new(),
            unfinished: None,
        }
    }
}

fn append() -> Append {
    Append::new(Options { sites: 2, lists_per_site: 2, ..Options::default() }).unwrap()
}

fn appended(list: RowName, length: u32, last: u64) -> Seen {
    Seen::Appended { list, length, last }
}

/// Client 0 calls 1, and 2 when that was answered; client 7 has 3, 4 and 5 under way together.
fn history() -> History {
    let busy = || Err(Error::Busy("a test".to_owned()));
    let mut requests = Requests(BTreeMap::new());
    let both = [Operation::Append(FIRST), Operation::ReadList(FIRST), Operation::ReadSetting(0)];
    let saw = vec![appended(FIRST, 0, 0), Seen::List(vec![16]), Seen::Setting(0)];
    requests.add(0, 1, &both, 10, &[(15, busy()), (20, Ok(saw.clone())), (25, Ok(saw))]);
    let follow = [Operation::FollowPointer(POINTER), Operation::ReadList(SECOND)];
    let saw = vec![appended(SECOND, 1, 64), Seen::List(vec![64, 32])];
    requests.add(0, 2, &follow, 20, &[(50, Ok(saw))]);
    let aborted = Err(Error::Aborted("a test".to_owned()));
    requests.add(7, 3, &[Operation::Append(FIRST), Operation::ReadList(FIRST)], 12, &[(40, aborted)]);
    // Their numbers tell that call 4 took effect, and where; of call 5 nobody saw anything.
    let unanswered = [Operation::FollowPointer(POINTER), Operation::ReadList(FIRST)];
    requests.add(7, 4, &unanswered, 12, &[]);
    requests.add(7, 5, &[Operation::FollowPointer(POINTER), Operation::Append(FIRST)], 30, &[(35, busy())]);
    requests.add(7, 6, &[Operation::WriteSetting(0)], 31, &[]);
    let snapshot = RequestId { client: ClientId { home: PartitionId(0), number: 9 }, sequence: 0 };
    let operation = Ordered::OpenSnapshot;
    let invocation = Invocation { operation, invoked_at: 1, replies: Vec::new(), attempts: 1 };
    requests.0.insert(snapshot, invocation);
    requests.history()
}

#[test]
fn elle() {
    let expected = "\
{:type :invoke, :f :txn, :value [[:append 1 16] [:r 1 nil]], :process 0, :time 10, :index 0}
{:type :invoke, :f :txn, :value [[:append 1 48] [:r 1 nil]], :process 1, :time 12, :index 1}
{:type :invoke, :f :txn, :value [[:append 2 64] [:r 1 nil]], :process 2, :time 12, :index 2}
{:type :ok, :f :txn, :value [[:append 1 16] [:r 1 [16]]], :process 0, :time 20, :index 3}
{:type :invoke, :f :txn, :value [[:append 2 32] [:r 2 nil]], :process 0, :time 20, :index 4}
{:type :invoke, :f :txn, :value [[:append 1 81]], :process 3, :time 30, :index 5}
{:type :fail, :f :txn, :value [[:append 1 48] [:r 1 nil]], :process 1, :time 40, :index 6}
{:type :ok, :f :txn, :value [[:append 2 32] [:r 2 [64 32]]], :process 0, :time 50, :index 7}
{:type :info, :f :txn, :value [[:append 2 64] [:r 1 nil]], :process 2, :time 50, :index 8}
{:type :info, :f :txn, :value [[:append 1 81]], :process 3, :time 50, :index 9}
";
    assert_eq!(elle::export(&history(), &append()).unwrap(), expected);
}

#[test]
fn awdit() {
    let expected = "\
r(1,0,0,0)
w(1,16,0,0)
r(1,16,0,0)
w(1,48,1,-1)
w(2,64,2,2)
r(2,64,0,3)
w(2,32,0,3)
r(2,32,0,3)
";
    assert_eq!(awdit::export(&history(), &append()).unwrap(), expected);
}

#[test]
fn operations() {
    let expected = "\
{\"client\":0,\"call\":10,\"return\":20,\"key\":1,\"kind\":\"append\",\"input\":16,\"output\":0}
{\"client\":0,\"call\":10,\"return\":20,\"key\":1,\"kind\":\"read\",\"input\":null,\"output\":[16]}
{\"client\":3,\"call\":30,\"return\":null,\"key\":1,\"kind\":\"append\",\"input\":81,\"output\":null}
{\"client\":2,\"call\":12,\"return\":null,\"key\":2,\"kind\":\"append\",\"input\":64,\"output\":null}
{\"client\":0,\"call\":20,\"return\":50,\"key\":2,\"kind\":\"append\",\"input\":32,\"output\":64}
{\"client\":0,\"call\":20,\"return\":50,\"key\":2,\"kind\":\"read\",\"input\":null,\"output\":[64,32]}
";
    assert_eq!(operations::export(&history(), &append()).unwrap(), expected);
}

/// Requests at the time of an answer count as after it, each before its own answer even if that took no time.
#[test]
fn equal_times_have_one_order() {
    let mut requests = Requests(BTreeMap::new());
    let read = [Operation::ReadList(FIRST)];
    let saw = || Ok(vec![Seen::List(Vec::new())]);
    requests.add(0, 1, &read, 1, &[(5, saw())]);
    requests.add(1, 2, &read, 5, &[(5, saw())]);
    requests.add(1, 3, &read, 5, &[(9, saw())]);
    let text = elle::export(&requests.history(), &append()).unwrap();
    let order: Vec<(bool, &str)> = text
        .lines()
        .map(|line| {
            (line.contains(":invoke"), line.split(":process ").nth(1).unwrap().split(',').next().unwrap())
        })
        .collect();
    let expected = [(true, "0"), (false, "0"), (true, "1"), (false, "1"), (true, "1"), (false, "1")];
    assert_eq!(order, expected);
}

#[test]
fn what_is_none_of_the_workloads_is_refused() {
    let mut requests = Requests(BTreeMap::new());
    requests.add(0, 1, &[Operation::ReadList(FIRST)], 1, &[(5, Ok(Vec::new()))]);
    let problem = elle::export(&requests.history(), &append()).unwrap_err().to_string();
    assert!(problem.contains("0 results for 1 operations"), "{problem}");
}
