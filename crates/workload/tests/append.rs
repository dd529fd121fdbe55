//! Append: what calls see and leave behind, conditions, footprints, aborts and the shares of the calls.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod checked_access;

use std::collections::{BTreeMap, BTreeSet};

use checked_access::{assert_holds, violated};
use ordain_db::cluster::Cluster;
use ordain_db::data::{Key, Table};
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::footprint::Access;
use ordain_db::procedure::{Stop, encode_arguments};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::append::{
    AbortWhen, Append, Arguments, LIST_NUMBERS_MAX, NUMBERS_PER_CALL, Operation, Options, RowName, Seen,
    TRANSACT,
};
use ordain_workload::limit::PlainStore;
use ordain_workload::{Call, Mode, Part, Totals, Workload};

const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 1 };

/// The plain store takes no writes back, so no call may abort after its first write.
fn options() -> Options {
    Options { sites: 8, lists_per_site: 2, abort_percent: 0.0, ..Options::default() }
}

fn at(site: u16, id: u32) -> RowName {
    RowName { site, id }
}

/// A cluster of 2 partitions with everything loaded.
fn cluster(append: &Append) -> Cluster {
    Cluster::build(EngineKind::Calvin, 2, append.catalog(), 1, |me| {
        let mut storage = MemoryStorage::new();
        let mut put = |key: &Key, row: &[u8]| {
            storage.put(key, key.hash(), row, Position::LOADED);
        };
        append.load(Part::of(me, 2), &mut put).unwrap();
        Box::new(storage)
    })
}

fn arguments(number: u64, operations: &[Operation], abort: Option<AbortWhen>) -> Arguments {
    Arguments { number, operations: operations.iter().copied().collect(), abort }
}

fn transact(cluster: &mut Cluster, append: &Append, arguments: &Arguments) -> Result<Vec<Seen>, Error> {
    let encoded = encode_arguments(arguments).unwrap();
    let request = cluster.call(PartitionId(0), CLIENT, append.procedure(), encoded);
    cluster.run_until_quiet();
    let outcome: &Outcome = cluster.reply(request);
    outcome.clone().map(|result| Append::decode_result(arguments, &result).unwrap())
}

/// Each operation against what it must see, on a cluster, in one call and over calls.
#[test]
fn operations_see_what_those_before_them_wrote() {
    let append = Append::new(Options { sites: 2, ..Options::default() }).unwrap();
    let mut cluster = cluster(&append);
    let (list, far) = (at(0, 3), at(1, 5));
    let appended = |list, length, last| Seen::Appended { list, length, last };
    let first = [
        Operation::Append(list),
        Operation::Append(far),
        Operation::Append(list),
        Operation::ReadList(list),
        Operation::MovePointer { pointer: at(1, 2), target: list },
        Operation::WriteSetting(1),
        Operation::ReadSetting(1),
    ];
    let expected = vec![
        appended(list, 0, 0),
        appended(far, 0, 0),
        appended(list, 1, 16),
        Seen::List(vec![16, 18]),
        Seen::Target(at(1, 2)),
        Seen::Nothing,
        Seen::Setting(21),
    ];
    assert_eq!(transact(&mut cluster, &append, &arguments(1, &first, None)), Ok(expected));
    let range = Operation::ReadNotes { from: at(0, 13), to: at(1, 2), limit: 4 };
    let second = [
        Operation::FollowPointer(at(1, 2)),
        Operation::ReadSetting(1),
        Operation::InsertNote(at(0, 13)),
        Operation::InsertNote(at(0, 14)),
        Operation::DeleteNote(at(1, 0)),
        Operation::DeleteNote(at(1, 1)),
        Operation::WriteNote(at(1, 2)),
        range,
    ];
    let expected = vec![
        appended(list, 2, 18),
        Seen::Setting(21),
        Seen::Note(None),
        Seen::Note(Some(0)),
        Seen::Note(Some(0)),
        Seen::Note(None),
        Seen::Nothing,
        Seen::Notes(vec![(at(0, 13), 34), (at(0, 14), 0), (at(1, 2), 38)]),
    ];
    assert_eq!(transact(&mut cluster, &append, &arguments(2, &second, None)), Ok(expected));
    let third = [range, Operation::ReadList(list), Operation::DeleteNote(at(0, 13)), range];
    let notes = |notes: &[(RowName, u64)]| Seen::Notes(notes.to_vec());
    let expected = vec![
        notes(&[(at(0, 13), 34), (at(0, 14), 0), (at(1, 2), 38)]),
        Seen::List(vec![16, 18, 32]),
        Seen::Note(Some(34)),
        notes(&[(at(0, 14), 0), (at(1, 2), 38)]),
    ];
    assert_eq!(transact(&mut cluster, &append, &arguments(3, &third, None)), Ok(expected));
}

#[test]
fn aborts_take_back_what_was_written_before() {
    let append = Append::new(Options { sites: 2, ..Options::default() }).unwrap();
    let mut cluster = cluster(&append);
    let operations = [
        Operation::Append(at(0, 0)),
        Operation::WriteNote(at(1, 1)),
        Operation::Append(at(1, 0)),
        Operation::ReadList(at(0, 0)),
    ];
    let when = |operation, multiple_of| Some(AbortWhen { operation, multiple_of });
    for (number, abort, ends) in [
        (1, when(3, 1), Err("operation 3 saw Some(1), a multiple of 1")),
        (2, when(3, 2), Ok(1)),
        (3, when(3, 2), Err("operation 3 saw Some(2), a multiple of 2")),
        (4, when(2, 1), Err("operation 2 saw Some(1), a multiple of 1")),
        (5, when(1, 1), Ok(2)),
        (6, when(3, 0), Ok(3)),
    ] {
        let result = transact(&mut cluster, &append, &arguments(number, &operations, abort));
        match ends {
            Ok(length) => assert!(matches!(&result.unwrap()[3], Seen::List(list) if list.len() == length)),
            Err(reason) => assert_eq!(result, Err(Error::Aborted(reason.to_owned()))),
        }
    }
    let read =
        [Operation::ReadList(at(0, 0)), Operation::ReadList(at(1, 0)), Operation::DeleteNote(at(1, 1))];
    let expected = vec![Seen::List(vec![32, 80, 96]), Seen::List(vec![34, 82, 98]), Seen::Note(Some(97))];
    assert_eq!(transact(&mut cluster, &append, &arguments(7, &read, None)), Ok(expected));
}

#[test]
fn what_does_not_exist_and_what_is_full_aborts() {
    let append = Append::new(Options { sites: 2, ..Options::default() }).unwrap();
    let mut cluster = cluster(&append);
    let mut refused = |number, operation| -> String {
        match transact(&mut cluster, &append, &arguments(number, &[operation], None)) {
            Err(Error::Aborted(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(1, Operation::ReadList(at(0, 8))).starts_with("there is no list"));
    assert!(refused(2, Operation::FollowPointer(at(2, 0))).starts_with("there is no pointer"));
    let nowhere = Operation::MovePointer { pointer: at(0, 0), target: at(0, 8) };
    assert!(refused(3, nowhere).starts_with("there is no list"));
    assert!(refused(4, Operation::WriteNote(at(0, 16))).contains("outside of the names"));
    assert!(refused(5, Operation::WriteSetting(2)).starts_with("there is no setting"));
    assert!(refused(0, Operation::ReadSetting(1)).starts_with("a call has a number from 1"));
    let mut store = PlainStore::load(&append).unwrap();
    let lists = append.catalog().schema.table_named("lists").unwrap();
    let call = |number| Call {
        procedure: append.procedure(),
        arguments: encode_arguments(&arguments(number, &[Operation::Append(at(1, 1))], None)).unwrap().into(),
        home: 1,
        mode: Mode::Ordered,
    };
    store.put_row(&lists.key((1, 1_i64)).unwrap(), &numbers_row(lists, LIST_NUMBERS_MAX as u64 - 1));
    store.run(append.catalog(), &call(1 << 40)).unwrap();
    let Err(Stop::Abort(reason)) = store.run(append.catalog(), &call(1 << 41)) else { panic!("an abort") };
    assert!(reason.ends_with("a list holds 2000 numbers"), "{reason}");
    assert_holds(&append.check(&mut store, &Totals::new()).unwrap());
}

/// A row of `lists` with this many numbers of as many calls.
fn numbers_row(lists: &Table, count: u64) -> Vec<u8> {
    let bytes: Vec<u8> = (1..=count).flat_map(|call| (call * NUMBERS_PER_CALL).to_le_bytes()).collect();
    lists.row((bytes,)).unwrap()
}

/// What calls saw is what a plain model of the lists holds, and the conditions hold after them.
#[test]
fn conditions_hold_after_a_run() {
    let append = Append::new(options()).unwrap();
    let mut lists: BTreeMap<RowName, Vec<u64>> = BTreeMap::new();
    let mut seen_kinds = BTreeSet::new();
    let (mut store, totals) = checked_access::run(&append, 3_000, 1, |call, result| {
        let arguments = Append::decode_arguments(&call.arguments).unwrap();
        let seen = Append::decode_result(&arguments, result.as_ref().unwrap()).unwrap();
        for (index, (operation, seen)) in arguments.operations.iter().zip(seen).enumerate() {
            match (operation, &seen) {
                (Operation::ReadList(name), Seen::List(numbers)) => {
                    assert_eq!(numbers, lists.entry(*name).or_default());
                }
                (
                    Operation::Append(_) | Operation::FollowPointer(_),
                    Seen::Appended { list, length, last },
                ) => {
                    let numbers = lists.entry(*list).or_default();
                    assert_eq!((*length as usize, *last), (numbers.len(), numbers.last().map_or(0, |n| *n)));
                    numbers.push(arguments.number_of(index));
                }
                (Operation::ReadList(_) | Operation::Append(_) | Operation::FollowPointer(_), other) => {
                    panic!("{operation:?} saw {other:?}")
                }
                _ => {}
            }
            let debug = format!("{operation:?}");
            seen_kinds.insert(debug.split([' ', '(']).next().unwrap().to_owned());
        }
    });
    assert_eq!(totals.of(TRANSACT).committed, 3_000);
    assert_eq!(seen_kinds.len(), 10, "{seen_kinds:?}");
    assert!(lists.values().all(|numbers| numbers.len() > 100));
    assert_holds(&append.check(&mut store, &totals).unwrap());
}

#[test]
fn the_check_notices_what_cannot_be() {
    let append = Append::new(options()).unwrap();
    let table = |name| append.catalog().schema.table_named(name).unwrap();
    let (lists, notes) = (table("lists"), table("notes"));
    let list_row = |numbers: &[u64]| {
        lists.row((numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>(),)).unwrap()
    };
    let (list, other) = (lists.key((2, 1_i64)).unwrap(), lists.key((3, 0_i64)).unwrap());
    let check = |change: &dyn Fn(&mut PlainStore)| {
        let mut store = PlainStore::load(&append).unwrap();
        change(&mut store);
        let lines = append.check(&mut store, &Totals::new()).unwrap();
        violated(&lines).iter().map(|line| (*line).to_owned()).collect::<Vec<String>>()
    };
    assert!(check(&|_| ()).is_empty());
    assert_eq!(
        check(&|store| store.put_row(&list, &list_row(&[16, 17, 16]))),
        ["each number was written once"]
    );
    let in_two_lists = |store: &mut PlainStore| {
        store.put_row(&list, &list_row(&[16]));
        store.put_row(&other, &list_row(&[16]));
    };
    assert_eq!(check(&in_two_lists), ["each number was written once"]);
    let in_list_and_note = |store: &mut PlainStore| {
        store.put_row(&list, &list_row(&[16]));
        store.put_row(&notes.key((3, 0_i64)).unwrap(), &notes.row((16_i64,)).unwrap());
    };
    assert_eq!(check(&in_list_and_note), ["each number was written once"]);
    assert_eq!(
        check(&|store| store.put_row(&list, &list_row(&[24]))),
        ["each number is one that calls write"]
    );
    let full = numbers_row(lists, LIST_NUMBERS_MAX as u64 + 1);
    assert_eq!(check(&|store| store.put_row(&list, &full)), ["numbers of a list <= 2,000"]);
    let lost = |name: &'static str, key: Key| {
        assert_eq!(
            check(&|store| store.delete_row(&key)),
            ["lists, pointers and settings = those loaded"],
            "{name}"
        );
    };
    lost("list", list.clone());
    lost("pointer", table("pointers").key((7, 3_i64)).unwrap());
    lost("setting", table("settings").key((1_i64,)).unwrap());
    let stray = |store: &mut PlainStore| store.put_row(&lists.key((0, 9_i64)).unwrap(), &list_row(&[]));
    assert_eq!(check(&stray), ["lists, pointers and settings = those loaded"]);
    let wild = |store: &mut PlainStore| {
        let pointers = table("pointers");
        store.put_row(&pointers.key((0, 0_i64)).unwrap(), &pointers.row((8, 0_i64)).unwrap());
    };
    assert_eq!(check(&wild), ["each pointer names a list"]);
    let outside = |store: &mut PlainStore| {
        store.put_row(&notes.key((0, 16_i64)).unwrap(), &notes.row((0_i64,)).unwrap());
    };
    assert_eq!(check(&outside), ["0 <= id of a note < notes_per_site"]);
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    let append = Append::new(options()).unwrap();
    checked_access::assert_load_is_the_same_everywhere(&append);
    checked_access::assert_generator_is_deterministic(&append);
}

#[test]
fn footprints_name_each_key_with_the_access_that_it_needs() {
    let append = Append::new(options()).unwrap();
    let declare = |operations: &[Operation]| {
        let arguments = encode_arguments(&arguments(1, operations, None)).unwrap().into();
        let call = Call { procedure: append.procedure(), arguments, home: 0, mode: Mode::Ordered };
        checked_access::declare(append.catalog(), &call, 4)
    };
    let footprint = declare(&[
        Operation::ReadList(at(0, 0)),
        Operation::Append(at(1, 0)),
        Operation::MovePointer { pointer: at(1, 1), target: at(2, 1) },
        Operation::InsertNote(at(0, 1)),
        Operation::DeleteNote(at(0, 2)),
        Operation::WriteNote(at(0, 3)),
        Operation::ReadSetting(0),
        Operation::ReadNotes { from: at(3, 1), to: at(3, 4), limit: 1 },
    ])
    .unwrap();
    let accesses: Vec<Access> = footprint.keys().iter().map(|entry| entry.access).collect();
    let (read, update, write) = (Access::READ, Access::UPDATE, Access::WRITE);
    assert_eq!(accesses, [read, update, update, update, update, write, read]);
    let ranges: Vec<Access> = footprint.ranges().iter().map(|entry| entry.access).collect();
    assert_eq!(ranges, [read]);
    let participants = |operations: &[Operation]| {
        let participants = declare(operations).unwrap().participants(PartitionId(1));
        (0..4).filter(|partition| participants.contains(PartitionId(*partition))).collect::<Vec<u16>>()
    };
    assert_eq!(participants(&[Operation::ReadSetting(0)]), [1]);
    assert_eq!(participants(&[Operation::WriteSetting(0)]), [0, 1, 2, 3]);
    let range = Operation::ReadNotes { from: at(2, 1), to: at(2, 4), limit: 1 };
    assert_eq!(participants(&[range, Operation::ReadList(at(7, 0))]), [2, 3]);
    let over_sites = Operation::ReadNotes { from: at(2, 1), to: at(3, 4), limit: 1 };
    assert_eq!(participants(&[over_sites]), [0, 1, 2, 3]);
    assert!(declare(&[Operation::ReadList(at(0, 0)), Operation::FollowPointer(at(0, 0))]).is_none());
}

#[test]
fn shares_and_numbers_are_as_asked() {
    let append = Append::new(Options {
        sites: 4,
        operations_max: 5,
        multi_site_percent: 25.0,
        dependent_percent: 10.0,
        range_percent: 20.0,
        replicated_percent: 5.0,
        abort_percent: 40.0,
        hot_list_percent: 50.0,
        ..Options::default()
    })
    .unwrap();
    let [mut sites, mut dependent, mut range, mut replicated, mut abort] = [0; 5];
    let (mut lists, mut hot) = (0, 0);
    let mut numbers = BTreeSet::new();
    for client in 0..2 {
        let mut generator = append.generator(3, client, Part::WHOLE).unwrap();
        for _ in 0..4_000 {
            let call = generator.next();
            let arguments = Append::decode_arguments(&call.arguments).unwrap();
            let operations = &arguments.operations;
            assert!((1..=5).contains(&operations.len()) && numbers.insert(arguments.number));
            let has = |kind: fn(&Operation) -> bool| u32::from(operations.iter().any(kind));
            dependent += has(|operation| matches!(operation, Operation::FollowPointer(_)));
            range += has(|operation| matches!(operation, Operation::ReadNotes { .. }));
            replicated += has(|operation| matches!(operation, Operation::WriteSetting(_)));
            abort += u32::from(arguments.abort.is_some());
            let touched: BTreeSet<u16> = operations.iter().filter_map(site_of).collect();
            sites += u32::from(touched.len() > 1);
            for operation in operations {
                if let Operation::ReadList(list) | Operation::Append(list) = operation {
                    lists += 1;
                    hot += u32::from(list.id == 0);
                }
            }
        }
    }
    let about = |count: u32, percent: u32| (percent * 80 - 240..percent * 80 + 240).contains(&count);
    assert!(about(sites, 25), "{sites}");
    assert!(about(dependent, 10), "{dependent}");
    assert!(about(range, 20), "{range}");
    assert!(about(replicated, 5), "{replicated}");
    assert!(about(abort, 40), "{abort}");
    let hot_percent = hot * 100 / lists;
    assert!((53..=59).contains(&hot_percent), "half of the draws and an eighth of the others: {hot_percent}");
}

fn site_of(operation: &Operation) -> Option<u16> {
    match operation {
        Operation::ReadList(name)
        | Operation::Append(name)
        | Operation::FollowPointer(name)
        | Operation::InsertNote(name)
        | Operation::DeleteNote(name)
        | Operation::WriteNote(name)
        | Operation::MovePointer { pointer: name, .. } => Some(name.site),
        Operation::ReadNotes { .. } | Operation::ReadSetting(_) | Operation::WriteSetting(_) => None,
    }
}

#[test]
fn one_operation_and_one_row_of_each_are_enough() {
    let options = Options {
        sites: 2,
        lists_per_site: 1,
        pointers_per_site: 1,
        notes_per_site: 1,
        settings: 1,
        operations_max: 1,
        multi_site_percent: 100.0,
        dependent_percent: 50.0,
        range_percent: 50.0,
        replicated_percent: 50.0,
        hot_list_percent: 0.0,
        ..options()
    };
    let append = Append::new(options).unwrap();
    let (mut store, totals) = checked_access::run(&append, 1_000, 1, |call, _| {
        assert_eq!(Append::decode_arguments(&call.arguments).unwrap().operations.len(), 1);
    });
    assert_holds(&append.check(&mut store, &totals).unwrap());
}

#[test]
fn options_that_cannot_be_say_what_to_give() {
    let problem = |options: Options| Append::new(options).err().unwrap().to_string();
    let none = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        problem(options)
    };
    assert_eq!(none(|options| options.sites = 0), "invalid: append: sites is 0: give at least 1");
    assert_eq!(
        none(|options| options.lists_per_site = 0),
        "invalid: append: lists_per_site is 0: give at least 1"
    );
    assert!(none(|options| options.pointers_per_site = 0).contains("pointers_per_site is 0"));
    assert!(none(|options| options.notes_per_site = 0).contains("notes_per_site is 0"));
    assert!(none(|options| options.settings = 0).contains("settings is 0"));
    assert_eq!(
        none(|options| options.operations_max = 9),
        "invalid: append: operations_max is 9: give 1 to 8"
    );
    assert!(none(|options| options.operations_max = 0).contains("operations_max is 0"));
    assert!(none(|options| options.abort_percent = 101.0).contains("abort_percent is 101"));
    assert!(none(|options| options.hot_list_percent = f64::NAN).contains("hot_list_percent is NaN"));
}

#[test]
fn results_of_other_calls_are_refused() {
    let read = arguments(1, &[Operation::ReadSetting(0)], None);
    let seen = encode_arguments(&vec![Seen::Setting(0), Seen::Nothing]).unwrap();
    let problem = Append::decode_result(&read, &seen).unwrap_err().to_string();
    assert_eq!(problem, "invalid: append: 2 results for 1 operations: they belong to another call");
    assert!(Append::decode_arguments(&[0xff]).unwrap_err().to_string().contains("append: arguments"));
}
