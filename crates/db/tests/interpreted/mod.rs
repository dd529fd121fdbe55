//! A tiny database for tests: four tables, one of each placement, and a procedure that interprets a list of operations.
//!
//! | table | key | placement |
//! |---|---|---|
//! | `account` | site int32, number int64 | by column: partition = site modulo the number of partitions |
//! | `word` | word text | by a hash of the key |
//! | `line` | id int64, part int32 | by range: boundaries 10, 20, 30 |
//! | `item` | id int32 | replicated |
//!
//! Every row has a value (int64), a rank (nullable int32) and a note (nullable text): a fixed, a fixed nullable and a
//! variable column. Operations have a notation, see [`operation`], in which scripts are written and failures are printed.

pub(crate) mod model;
pub(crate) mod name;
pub(crate) mod operation;
pub(crate) mod part;
pub(crate) mod procedure;
pub(crate) mod random;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ordain_db::data::{ColumnType, Key, Schema, SchemaBuilder, Table};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{Catalog, ProcedureId, Procedures, encode_arguments};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;

use self::name::Name;
use self::operation::Program;
use self::procedure::Interpreter;

/// The number of the one procedure.
pub(crate) const INTERPRET: ProcedureId = ProcedureId(0);

/// The column of every row that has the value.
pub(crate) const VALUE: &str = "value";

/// The tables.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) account: Table,
    pub(crate) word: Table,
    pub(crate) line: Table,
    pub(crate) item: Table,
}

impl Tables {
    fn define() -> (Tables, Schema) {
        let with_row = |builder: ordain_db::data::TableBuilder| {
            builder
                .column(VALUE, ColumnType::Int64)
                .nullable("rank", ColumnType::Int32)
                .nullable("note", ColumnType::Text)
        };
        let mut schema = SchemaBuilder::new();
        let account = Table::builder("account")
            .column("site", ColumnType::Int32)
            .column("number", ColumnType::Int64)
            .primary_key(&["site", "number"])
            .partition_by_column("site");
        let word = Table::builder("word").column("word", ColumnType::Text).primary_key(&["word"]);
        let line = Table::builder("line")
            .column("id", ColumnType::Int64)
            .column("part", ColumnType::Int32)
            .primary_key(&["id", "part"])
            .partition_by_range(&[10, 20, 30]);
        let item = Table::builder("item").column("id", ColumnType::Int32).primary_key(&["id"]).replicated();
        let tables = Tables {
            account: schema.table(with_row(account)).unwrap(),
            word: schema.table(with_row(word)).unwrap(),
            line: schema.table(with_row(line)).unwrap(),
            item: schema.table(with_row(item)).unwrap(),
        };
        (tables, schema.finish())
    }
}

/// The tables and the procedure, with a count of its runs.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) tables: Tables,
    pub(crate) catalog: Catalog,
    runs: Arc<AtomicUsize>,
}

impl Database {
    pub(crate) fn new() -> Database {
        let (tables, schema) = Tables::define();
        let runs = Arc::new(AtomicUsize::new(0));
        let mut procedures = Procedures::new();
        let interpreter = Interpreter::new(tables.clone(), runs.clone());
        assert_eq!(procedures.register(interpreter).unwrap(), INTERPRET);
        Database { tables, catalog: Catalog { schema, procedures }, runs }
    }

    /// How often the procedure's logic was begun, reconnaissance included.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

impl Database {
    /// An encoded row.
    pub(crate) fn row(&self, value: i64) -> Vec<u8> {
        self.tables.item.row((value, None::<i32>, "put")).unwrap()
    }

    /// Rows that tests begin with: half of the names that random programs use, with values up to 500.
    pub(crate) fn initial(&self) -> Vec<(Key, Vec<u8>)> {
        let accounts = (0..4).flat_map(|site| (0..4).map(move |number| Name::Account(site, number)));
        let words = ["a0", "a1", "f0", "f1", "k0", "k1"].map(|word| Name::Word(word.to_owned()));
        let lines = (0..8).flat_map(|id| (0..3).map(move |part| Name::Line(id * 5, part)));
        let all = accounts.chain(words).chain(lines).chain((0..4).map(Name::Item));
        let half = all.enumerate().filter(|(index, _)| index % 2 == 0);
        half.map(|(index, name)| (name.key(&self.tables), self.row(index as i64 * 37 % 501))).collect()
    }

    /// A partition's storage with its share of rows.
    pub(crate) fn load(&self, rows: &[(Key, Vec<u8>)], me: PartitionId, partitions: u16) -> MemoryStorage {
        let mut storage = MemoryStorage::new();
        for (key, row) in rows {
            if self.catalog.schema.owner(key, partitions).unwrap().includes(me) {
                storage.put(key, key.hash(), row, Position::LOADED);
            }
        }
        storage
    }
}

/// The encoded arguments of a call.
pub(crate) fn arguments(program: &Program) -> Vec<u8> {
    encode_arguments(program).unwrap()
}
