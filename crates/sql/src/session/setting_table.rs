//! The parameters of a session: their names, first values, and what values they take.

use crate::bind::VERSION_NUMBER;

/// The parameter that says from which urgency on notices are told.
pub(super) const LEAST_TOLD: &str = "client_min_messages";

/// A parameter of the session.
pub(super) struct Setting {
    /// In lower case.
    pub name: &'static str,
    /// What it is at first.
    pub value: &'static str,
    pub rule: Rule,
    pub kind: Kind,
}

/// Whether a parameter can be set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Free,
    /// It stays as it is; other values are accepted and mean nothing, since clients send them as a matter of course.
    Fixed,
    Constant,
}

/// What values a parameter takes.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Boolean,
    Number,
    /// A time, whose unit is the millisecond unless it is said otherwise.
    Time,
    /// A size of memory, whose unit is so many kB unless it is said otherwise.
    Memory(u32),
    /// One of several words.
    Word(&'static [&'static str]),
    Text,
}

impl Setting {
    /// The parameter with a name, which is in lower case.
    pub(super) fn find(name: &str) -> Option<&'static Setting> {
        let place = SETTINGS.binary_search_by_key(&name, |setting| setting.name).ok()?;
        SETTINGS.get(place)
    }

    /// Whether clients are told of it.
    pub(super) fn is_reported(&self) -> bool {
        REPORTED.contains(&self.name)
    }

    /// Its name in PostgreSQL's spelling, which for some has capitals.
    pub(super) fn spelled(&self) -> &'static str {
        match self.name {
            "datestyle" => "DateStyle",
            "intervalstyle" => "IntervalStyle",
            "timezone" => "TimeZone",
            other => other,
        }
    }
}

/// Those that a client is told of when it connects and when they change.
const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "datestyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "intervalstyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "timezone",
];

const LEVELS: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];

const fn flag(name: &'static str, value: &'static str, rule: Rule) -> Setting {
    Setting { name, value, rule, kind: Kind::Boolean }
}

const fn text(name: &'static str, value: &'static str, rule: Rule) -> Setting {
    Setting { name, value, rule, kind: Kind::Text }
}

const fn number(name: &'static str, value: &'static str, rule: Rule) -> Setting {
    Setting { name, value, rule, kind: Kind::Number }
}

const fn time(name: &'static str, value: &'static str) -> Setting {
    Setting { name, value, rule: Rule::Free, kind: Kind::Time }
}

const fn memory(name: &'static str, value: &'static str, unit: u32) -> Setting {
    Setting { name, value, rule: Rule::Free, kind: Kind::Memory(unit) }
}

const fn word(
    name: &'static str,
    value: &'static str,
    rule: Rule,
    words: &'static [&'static str],
) -> Setting {
    Setting { name, value, rule, kind: Kind::Word(words) }
}

/// In order of their names. What a planner is told by them changes nothing here, nor do sizes of memory.
pub(super) const SETTINGS: &[Setting] = &[
    text("application_name", "", Rule::Free),
    flag("array_nulls", "on", Rule::Fixed),
    text("as_of", "", Rule::Free),
    // As many bytes as a page of PostgreSQL has, which some tools divide sizes by.
    number("block_size", "8192", Rule::Constant),
    text("bytea_output", "hex", Rule::Fixed),
    flag("check_function_bodies", "on", Rule::Fixed),
    text("client_encoding", "UTF8", Rule::Fixed),
    text(LEAST_TOLD, "notice", Rule::Free),
    word("constraint_exclusion", "partition", Rule::Free, &["partition", "on", "off"]),
    number("cpu_index_tuple_cost", "0.005", Rule::Free),
    number("cpu_operator_cost", "0.0025", Rule::Free),
    number("cpu_tuple_cost", "0.01", Rule::Free),
    number("cursor_tuple_fraction", "0.1", Rule::Free),
    text("datestyle", "ISO, MDY", Rule::Fixed),
    number("default_statistics_target", "100", Rule::Free),
    text("default_table_access_method", "heap", Rule::Fixed),
    text("default_tablespace", "", Rule::Fixed),
    flag("default_transaction_deferrable", "off", Rule::Fixed),
    word("default_transaction_isolation", "serializable", Rule::Fixed, LEVELS),
    flag("default_transaction_read_only", "off", Rule::Free),
    memory("effective_cache_size", "4GB", 8),
    number("effective_io_concurrency", "1", Rule::Free),
    flag("enable_async_append", "on", Rule::Free),
    flag("enable_bitmapscan", "on", Rule::Free),
    flag("enable_gathermerge", "on", Rule::Free),
    flag("enable_hashagg", "on", Rule::Free),
    flag("enable_hashjoin", "on", Rule::Free),
    flag("enable_incremental_sort", "on", Rule::Free),
    flag("enable_indexonlyscan", "on", Rule::Free),
    flag("enable_indexscan", "on", Rule::Free),
    flag("enable_material", "on", Rule::Free),
    flag("enable_memoize", "on", Rule::Free),
    flag("enable_mergejoin", "on", Rule::Free),
    flag("enable_nestloop", "on", Rule::Free),
    flag("enable_parallel_append", "on", Rule::Free),
    flag("enable_parallel_hash", "on", Rule::Free),
    flag("enable_partition_pruning", "on", Rule::Free),
    flag("enable_partitionwise_aggregate", "off", Rule::Free),
    flag("enable_partitionwise_join", "off", Rule::Free),
    flag("enable_seqscan", "on", Rule::Free),
    flag("enable_sort", "on", Rule::Free),
    flag("enable_tidscan", "on", Rule::Free),
    flag("escape_string_warning", "on", Rule::Fixed),
    number("extra_float_digits", "1", Rule::Free),
    word("force_parallel_mode", "off", Rule::Free, &["off", "on", "regress"]),
    number("from_collapse_limit", "8", Rule::Free),
    flag("geqo", "on", Rule::Free),
    number("geqo_threshold", "12", Rule::Free),
    number("hash_mem_multiplier", "2", Rule::Free),
    time("idle_in_transaction_session_timeout", "0"),
    time("idle_session_timeout", "0"),
    flag("in_hot_standby", "off", Rule::Constant),
    flag("integer_datetimes", "on", Rule::Constant),
    text("intervalstyle", "postgres", Rule::Free),
    flag("is_superuser", "on", Rule::Constant),
    flag("jit", "off", Rule::Fixed),
    number("join_collapse_limit", "8", Rule::Free),
    text("lc_collate", "C", Rule::Constant),
    text("lc_ctype", "C.UTF-8", Rule::Constant),
    text("lc_messages", "C", Rule::Fixed),
    text("lc_monetary", "C", Rule::Fixed),
    text("lc_numeric", "C", Rule::Fixed),
    text("lc_time", "C", Rule::Fixed),
    time("lock_timeout", "0"),
    memory("maintenance_work_mem", "64MB", 1),
    number("max_identifier_length", "63", Rule::Constant),
    number("max_index_keys", "32", Rule::Constant),
    number("max_parallel_maintenance_workers", "0", Rule::Free),
    number("max_parallel_workers", "0", Rule::Free),
    number("max_parallel_workers_per_gather", "0", Rule::Free),
    number("max_prepared_transactions", "0", Rule::Constant),
    memory("min_parallel_index_scan_size", "512kB", 8),
    memory("min_parallel_table_scan_size", "8MB", 8),
    flag("parallel_leader_participation", "on", Rule::Free),
    number("parallel_setup_cost", "1000", Rule::Free),
    number("parallel_tuple_cost", "0.1", Rule::Free),
    text("password_encryption", "scram-sha-256", Rule::Fixed),
    word("plan_cache_mode", "auto", Rule::Free, &["auto", "force_generic_plan", "force_custom_plan"]),
    flag("quote_all_identifiers", "off", Rule::Fixed),
    number("random_page_cost", "4", Rule::Free),
    flag("row_security", "on", Rule::Fixed),
    text("search_path", "public", Rule::Free),
    number("seq_page_cost", "1", Rule::Free),
    text("server_encoding", "UTF8", Rule::Constant),
    text("server_version", "15.0", Rule::Constant),
    number("server_version_num", VERSION_NUMBER, Rule::Constant),
    text("session_authorization", "ordain", Rule::Fixed),
    text("session_replication_role", "origin", Rule::Fixed),
    text("standard_conforming_strings", "on", Rule::Fixed),
    time("statement_timeout", "0"),
    flag("synchronize_seqscans", "on", Rule::Fixed),
    word("synchronous_commit", "on", Rule::Fixed, &["local", "remote_write", "remote_apply", "on", "off"]),
    memory("temp_buffers", "8MB", 8),
    text("timezone", "UTC", Rule::Free),
    flag("transaction_deferrable", "off", Rule::Fixed),
    word("transaction_isolation", "serializable", Rule::Fixed, LEVELS),
    flag("transaction_read_only", "off", Rule::Fixed),
    flag("transform_null_equals", "off", Rule::Fixed),
    memory("work_mem", "4MB", 1),
    word("xmloption", "content", Rule::Fixed, &["content", "document"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_in_order_of_their_names() {
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name));
        assert!(REPORTED.iter().all(|name| Setting::find(name).is_some()));
    }
}
