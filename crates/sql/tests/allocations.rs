//! How often prepared statements that touch known keys ask for memory, from `Bind` to `Sync`: a budget, so that what is added shows. What
//! a transaction of no statements asks for is the node's, with its log entry, its place in the order and its reply, and is not counted.

mod support;

use bytes::Bytes;
use ordain_db::engine::EngineKind;
use ordain_sql::procedure::encode_steps;
use ordain_sql::protocol::frontend::Frontend;
use ordain_sql::session::Database;
use support::{World, told};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Each is run so often; what is asked for now and then, to grow, counts for less than one.
const ROUNDS: u64 = 200;

/// What a call of a procedure with four values may ask for: itself, its shape, its values as SQL, JSON and the procedure have them, two rows, and
/// the same of what it gives.
const CALL_BUDGET: u64 = 36;

/// What most answers fit into.
const ANSWER_BYTES: usize = 1024;

fn query(world: &mut World, text: &str) {
    let answer = told(&world.send("a", Frontend::Query(text.to_owned())));
    assert!(!answer.contains("ERROR"), "{answer}");
}

/// Has the prepared statement `s` executed.
fn execution(parameters: &[&'static str]) -> [Frontend; 3] {
    let bind = Frontend::Bind {
        portal: String::new(),
        statement: "s".to_owned(),
        parameter_formats: Vec::new(),
        parameters: parameters.iter().map(|text| Some(Bytes::from_static(text.as_bytes()))).collect(),
        result_formats: Vec::new(),
    };
    [bind, Frontend::Execute { portal: String::new(), max_rows: 0 }, Frontend::Sync]
}

#[test]
fn what_comes_again_stays_within_its_budget() {
    let cases = [
        // The arguments of the transaction, the row of before, that of after, and its form.
        ("UPDATE t SET n = n + $2 WHERE id = $1", &["1", "2"][..], "UPDATE 1", true, 4),
        // The arguments, the row, what is told of it, its form, that as it has come, and the values of that.
        ("SELECT n FROM t WHERE id = $1", &["1"], "SELECT 1", false, 6),
        // The arguments, the row when its keys are declared, and when it runs, with the list that it is in.
        ("INSERT INTO t VALUES ($1, 0) ON CONFLICT DO NOTHING", &["1"], "INSERT 0 0", true, 4),
    ];
    for (statement, parameters, tag, writes, budget) in cases {
        let mut world = World::new(EngineKind::Calvin, 1);
        query(&mut world, "CREATE TABLE t (id int PRIMARY KEY, n bigint)");
        query(&mut world, "INSERT INTO t VALUES (1, 0)");
        let parse = Frontend::Parse {
            name: "s".to_owned(),
            query: statement.to_owned(),
            parameter_types: Vec::new(),
        };
        world.send("a", parse);
        let asked = own_allocations(&mut world, writes, tag, |_| execution(parameters));
        assert!(asked <= budget, "{statement}: {asked} allocations are more than {budget}");
    }
    // 135, if its text were read and planned each time.
    let mut world = World::new(EngineKind::Calvin, 1);
    let call = |round| [Frontend::Query(format!("SELECT transfer(1, 2, 0, '{round}')"))];
    for round in 0..3 {
        call(round).into_iter().for_each(|message| drop(world.send("a", message)));
    }
    let asked = own_allocations(&mut world, true, "SELECT 1", call);
    assert!(asked <= CALL_BUDGET, "a call: {asked} allocations are more than {CALL_BUDGET}");
}

/// What a round of messages asks for, beside what its transaction does.
fn own_allocations<const N: usize>(
    world: &mut World,
    writes: bool,
    tag: &str,
    round: impl Fn(u64) -> [Frontend; N],
) -> u64 {
    let mut out = Vec::with_capacity(ANSWER_BYTES);
    for message in round(0) {
        world.send_to("a", message, &mut out);
    }
    assert!(told(&out).contains(tag), "{}", told(&out));
    let messages: Vec<Frontend> = (0..ROUNDS).flat_map(round).collect();
    let asked = allocations(|| {
        for message in messages {
            out.clear();
            world.send_to("a", message, &mut out);
        }
    });
    (asked - allocations_of_nothing(world, writes)) / ROUNDS
}

/// What as many transactions of no statements ask for.
fn allocations_of_nothing(world: &World, writes: bool) -> u64 {
    let database = world.database();
    let calls: Vec<Vec<u8>> =
        (0..ROUNDS).map(|_| encode_steps(&[], &[]).expect("nothing is short")).collect();
    allocations(|| {
        for call in calls {
            let answer = if writes { database.call(call) } else { database.read(call) };
            assert!(answer.is_ok());
        }
    })
}

fn allocations(act: impl FnOnce()) -> u64 {
    let _profiler = dhat::Profiler::builder().testing().build();
    act();
    dhat::HeapStats::get().total_blocks
}
