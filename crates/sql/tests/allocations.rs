//! How often prepared statements that touch known keys ask for memory, from `Bind` to `Sync`: a budget, so that what is added shows. Within
//! it are the node, with its log entry, its place in the order and its reply, and this test's own messages.

mod support;

use bytes::Bytes;
use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Each is run so often; what is asked for now and then, to grow, counts for less than one.
const ROUNDS: u64 = 200;

fn query(world: &mut World, text: &str) {
    let answer = told(&world.send("a", Frontend::Query(text.to_owned())));
    assert!(!answer.contains("ERROR"), "{answer}");
}

/// Executes the prepared statement `s`; the answer, which comes when no more is to follow.
fn execute(world: &mut World, parameters: &[&'static str]) -> Vec<u8> {
    let bind = Frontend::Bind {
        portal: String::new(),
        statement: "s".to_owned(),
        parameter_formats: Vec::new(),
        parameters: parameters.iter().map(|text| Some(Bytes::from_static(text.as_bytes()))).collect(),
        result_formats: Vec::new(),
    };
    world.send("a", bind);
    world.send("a", Frontend::Execute { portal: String::new(), max_rows: 0 });
    world.send("a", Frontend::Sync)
}

#[test]
fn a_prepared_statement_stays_within_its_budget() {
    let cases = [
        ("UPDATE t SET n = n + $2 WHERE id = $1", &["1", "2"][..], "UPDATE 1", 38),
        ("SELECT n FROM t WHERE id = $1", &["1"], "SELECT 1", 30),
        ("INSERT INTO t VALUES ($1, 0) ON CONFLICT DO NOTHING", &["1"], "INSERT 0 0", 34),
    ];
    for (statement, parameters, tag, budget) in cases {
        let mut world = World::new(EngineKind::Calvin, 1);
        query(&mut world, "CREATE TABLE t (id int PRIMARY KEY, n bigint)");
        query(&mut world, "INSERT INTO t VALUES (1, 0)");
        let parse = Frontend::Parse {
            name: "s".to_owned(),
            query: statement.to_owned(),
            parameter_types: Vec::new(),
        };
        world.send("a", parse);
        let answer = told(&execute(&mut world, parameters));
        assert!(answer.contains(tag), "{answer}");
        let asked = allocations(|| (0..ROUNDS).for_each(|_| drop(execute(&mut world, parameters))));
        let each = asked / ROUNDS;
        assert!(each <= budget, "{statement}: {each} allocations are more than {budget}");
    }
}

fn allocations(act: impl FnOnce()) -> u64 {
    let _profiler = dhat::Profiler::builder().testing().build();
    act();
    dhat::HeapStats::get().total_blocks
}
