//! An index is filled a piece at a time, while others may write the rows of its table anew.

mod support;

use ordain_db::data::SchemaBuilder;
use ordain_db::engine::EngineKind;
use ordain_db::kept::decode_whole;
use ordain_sql::execute::Output;
use ordain_sql::keys::Storages;
use ordain_sql::plan::{Action, Plan};
use ordain_sql::procedure::{Steps, encode_steps};
use ordain_sql::protocol::frontend::Frontend;
use ordain_sql::session::Database;
use ordain_sql::types::Datum;
use support::{World, told};

fn query(world: &mut World, text: &str) {
    let answer = told(&world.send("a", Frontend::Query(text.to_owned())));
    assert!(!answer.contains("ERROR"), "{answer}");
}

/// The plans of the calls since this was asked last.
fn plans(world: &mut World) -> Vec<Plan> {
    let steps = world.called().into_iter().map(|arguments| decode_whole::<Steps>(&arguments).expect("steps"));
    steps.flat_map(|steps| steps.steps).map(|step| Plan::clone(&step.plan)).collect()
}

/// The next piece begins after a row of where the rows were before. Between there and where they are now others may lie.
#[test]
fn filling_goes_on_where_the_rows_are_now() {
    let mut world = World::new(EngineKind::Calvin, 1);
    query(&mut world, "CREATE TABLE before (id text PRIMARY KEY)");
    world.called();
    query(&mut world, "INSERT INTO before VALUES ('a'), ('b')");
    let plan = plans(&mut world).pop().expect("an insertion");
    let storages = Storages::register(&mut SchemaBuilder::new()).expect("a schema without tables");
    let elsewhere = storages.row(&plan.tables[0], &[Datum::Text("a".to_owned())]).expect("a short key");

    query(&mut world, "CREATE TABLE t (id int PRIMARY KEY, a int)");
    query(&mut world, "INSERT INTO t SELECT g, g FROM generate_series(1, 10) g");
    world.called();
    query(&mut world, "CREATE INDEX i ON t (a)");
    let is_fill = |plan: &Plan| matches!(plan.action, Action::Fill { .. });
    let mut plan = plans(&mut world).into_iter().find(is_fill).expect("a piece");
    if let Action::Fill { after, .. } = &mut plan.action {
        *after = Some(elsewhere.bytes().to_vec());
    }
    plan.reliances.clear();
    let step = ordain_sql::procedure::Step {
        plan: plan.into(),
        inputs: ordain_sql::execute::Inputs::default(),
        shown: None,
    };
    let answer = world.database().call(encode_steps(&[step], &[]).expect("few")).expect("it is filled");
    assert_eq!(decode_whole::<Output>(&answer).expect("an output").written, 10);
}
