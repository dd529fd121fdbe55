//! Statements that are long, and others that would be nested too deeply.

mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

fn answer(world: &mut World, text: &str) -> String {
    told(&world.send("a", Frontend::Query(text.to_owned())))
}

fn world() -> World {
    let mut world = World::new(EngineKind::Calvin, 1);
    answer(&mut world, "CREATE TABLE t (id int PRIMARY KEY, note text)");
    answer(&mut world, "INSERT INTO t SELECT i, 'old' FROM generate_series(1, 5001) i");
    world
}

#[test]
fn what_is_wrong_far_inside_is_read_few_times() {
    let mut world = world();
    for begin in [
        "((SELECT 1) UNION (SELECT ",
        "1 IN (((SELECT 1) UNION (SELECT ",
        "1 IN ((SELECT ((SELECT 1) UNION (SELECT ",
        "f(((SELECT 1) UNION (SELECT ",
        "a.f(((SELECT 1) UNION (SELECT ",
        "CASE ((SELECT 1) UNION (SELECT ",
        "CASE WHEN true THEN ((SELECT 1) UNION (SELECT ",
        "current_time(((SELECT 1) UNION (SELECT ",
        "interval ((SELECT 1) UNION (SELECT ",
        "position(((SELECT 1) UNION (SELECT ",
        "trim(((SELECT 1) UNION (SELECT ",
        "cast(((SELECT 1) UNION (SELECT ",
        "ARRAY[((SELECT 1) UNION (SELECT ",
        "NOT ((SELECT 1) UNION (SELECT ",
        "a[((SELECT 1) UNION (SELECT ",
        "(SELECT 1 FROM ((SELECT ((SELECT 1) UNION (SELECT ",
        "(SELECT 1 FROM f(((SELECT 1) UNION (SELECT ",
        "(SELECT 1 LIMIT ((SELECT 1) UNION (SELECT ",
        "(SELECT 1 GROUP BY (((SELECT 1) UNION (SELECT ",
        "(VALUES (((SELECT 1) UNION (SELECT ",
    ] {
        for depth in [12, 24, 45] {
            let text = format!("SELECT {} 1 1 1", begin.repeat(depth));
            let answer = answer(&mut world, &text);
            assert!(answer.starts_with("ERROR"), "{text:.80}: {answer}");
        }
    }
}
