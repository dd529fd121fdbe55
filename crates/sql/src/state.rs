//! What a process tells of itself as tables: its sessions, and the nodes that it runs.
//!
//! The rows are no part of the order. A statement asks its session for them before it runs, once for each view, as it
//! [asks](crate::bind::Question) for the session's own state; what was answered goes with the statement, so it shows the same wherever it
//! runs, and in a block the same again when that commits.

use crate::catalog::STATE_SCHEMA;
use crate::types::SqlType;

/// A view of the state of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateView {
    /// `pg_stat_activity`: the sessions.
    Activity,
    /// `ordain.partitions`: the nodes, and what is known of others of their groups.
    Partitions,
    /// `ordain.replicas`: the replicas, as the leaders of groups here know them.
    Replicas,
    /// `ordain.transactions`: transactions that wait in the engines.
    Transactions,
    /// `ordain.locks`: keys and ranges that several of these need.
    Locks,
    /// `ordain.snapshots`: open snapshots.
    Snapshots,
    /// `pg_prepared_statements`: those of the session, which knows them itself.
    PreparedStatements,
    /// `pg_cursors`: those of the session, which knows them itself.
    Cursors,
    /// `pg_settings`: the parameters of the session, which knows them itself.
    Settings,
}

/// A column: its name and type.
pub type Column = (&'static str, SqlType);

impl StateView {
    /// All views of the schema of their own, with their names.
    pub const OWN: [(&str, StateView); 5] = [
        ("partitions", StateView::Partitions),
        ("replicas", StateView::Replicas),
        ("transactions", StateView::Transactions),
        ("locks", StateView::Locks),
        ("snapshots", StateView::Snapshots),
    ];

    /// The view with a name.
    pub fn find(schema: Option<&str>, name: &str) -> Option<StateView> {
        match schema {
            None | Some("pg_catalog") => match name {
                "pg_stat_activity" => Some(StateView::Activity),
                "pg_prepared_statements" => Some(StateView::PreparedStatements),
                "pg_cursors" => Some(StateView::Cursors),
                "pg_settings" => Some(StateView::Settings),
                _ => None,
            },
            Some(STATE_SCHEMA) => {
                StateView::OWN.iter().find(|(known, _)| *known == name).map(|(_, view)| *view)
            }
            Some(_) => None,
        }
    }

    /// Its columns.
    pub fn columns(self) -> &'static [Column] {
        match self {
            StateView::Activity => &ACTIVITY,
            StateView::Partitions => &PARTITIONS,
            StateView::Replicas => &REPLICAS,
            StateView::Transactions => &TRANSACTIONS,
            StateView::Locks => &LOCKS,
            StateView::Snapshots => &SNAPSHOTS,
            StateView::PreparedStatements => &PREPARED_STATEMENTS,
            StateView::Cursors => &CURSORS,
            StateView::Settings => &SETTINGS,
        }
    }
}

/// As PostgreSQL has them.
const ACTIVITY: [Column; 22] = [
    ("datid", SqlType::OID),
    ("datname", SqlType::NAME),
    ("pid", SqlType::INT4),
    ("leader_pid", SqlType::INT4),
    ("usesysid", SqlType::OID),
    ("usename", SqlType::NAME),
    ("application_name", SqlType::TEXT),
    ("client_addr", SqlType::TEXT),
    ("client_hostname", SqlType::TEXT),
    ("client_port", SqlType::INT4),
    ("backend_start", SqlType::TIMESTAMPTZ),
    ("xact_start", SqlType::TIMESTAMPTZ),
    ("query_start", SqlType::TIMESTAMPTZ),
    ("state_change", SqlType::TIMESTAMPTZ),
    ("wait_event_type", SqlType::TEXT),
    ("wait_event", SqlType::TEXT),
    ("state", SqlType::TEXT),
    ("backend_xid", SqlType::TEXT),
    ("backend_xmin", SqlType::TEXT),
    ("query_id", SqlType::INT8),
    ("query", SqlType::TEXT),
    ("backend_type", SqlType::TEXT),
];

const PREPARED_STATEMENTS: [Column; 7] = [
    ("name", SqlType::TEXT),
    ("statement", SqlType::TEXT),
    ("prepare_time", SqlType::TIMESTAMPTZ),
    ("parameter_types", SqlType::TEXT.array_of()),
    ("from_sql", SqlType::BOOL),
    ("generic_plans", SqlType::INT8),
    ("custom_plans", SqlType::INT8),
];

const CURSORS: [Column; 6] = [
    ("name", SqlType::TEXT),
    ("statement", SqlType::TEXT),
    ("is_holdable", SqlType::BOOL),
    ("is_binary", SqlType::BOOL),
    ("is_scrollable", SqlType::BOOL),
    ("creation_time", SqlType::TIMESTAMPTZ),
];

const SETTINGS: [Column; 17] = [
    ("name", SqlType::TEXT),
    ("setting", SqlType::TEXT),
    ("unit", SqlType::TEXT),
    ("category", SqlType::TEXT),
    ("short_desc", SqlType::TEXT),
    ("extra_desc", SqlType::TEXT),
    ("context", SqlType::TEXT),
    ("vartype", SqlType::TEXT),
    ("source", SqlType::TEXT),
    ("min_val", SqlType::TEXT),
    ("max_val", SqlType::TEXT),
    ("enumvals", SqlType::TEXT.array_of()),
    ("boot_val", SqlType::TEXT),
    ("reset_val", SqlType::TEXT),
    ("sourcefile", SqlType::TEXT),
    ("sourceline", SqlType::INT4),
    ("pending_restart", SqlType::BOOL),
];

const PARTITIONS: [Column; 18] = [
    ("partition", SqlType::INT4),
    ("replica", SqlType::INT4),
    ("here", SqlType::BOOL),
    ("alive", SqlType::BOOL),
    ("role", SqlType::TEXT),
    ("term", SqlType::INT8),
    ("epoch", SqlType::INT8),
    ("lag_epochs", SqlType::INT8),
    ("log_start", SqlType::INT8),
    ("log_end", SqlType::INT8),
    ("lag_entries", SqlType::INT8),
    ("rows", SqlType::INT8),
    ("old_versions", SqlType::INT8),
    ("record_bytes", SqlType::INT8),
    ("index_bytes", SqlType::INT8),
    ("waiting_transactions", SqlType::INT8),
    ("live_transactions", SqlType::INT8),
    ("checkpoint_epoch", SqlType::INT8),
];

const REPLICAS: [Column; 6] = [
    ("replica", SqlType::INT4),
    ("here", SqlType::BOOL),
    ("partitions", SqlType::INT4),
    ("leads", SqlType::INT4),
    ("alive", SqlType::INT4),
    ("lag_entries_max", SqlType::INT8),
];

const TRANSACTIONS: [Column; 7] = [
    ("partition", SqlType::INT4),
    ("position", SqlType::TEXT),
    ("procedure", SqlType::TEXT),
    ("phase", SqlType::TEXT),
    ("awaits", SqlType::INT4.array_of()),
    ("keys", SqlType::INT8),
    ("ranges", SqlType::INT8),
];

const LOCKS: [Column; 8] = [
    ("partition", SqlType::INT4),
    ("kind", SqlType::TEXT),
    ("relation", SqlType::TEXT),
    ("key", SqlType::BYTEA),
    ("key_end", SqlType::BYTEA),
    ("readers", SqlType::INT8),
    ("writers", SqlType::INT8),
    ("first_position", SqlType::TEXT),
];

const SNAPSHOTS: [Column; 4] = [
    ("partition", SqlType::INT4),
    ("position", SqlType::TEXT),
    ("age", SqlType::INTERVAL),
    ("lag_epochs", SqlType::INT8),
];

/// What a session does to another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
pub enum Signal {
    /// Interrupts the statement that runs.
    Cancel,
    /// Ends the session.
    Terminate,
}
