//! System tables that have no rows here, and columns that have no values, as far as clients ask for them.

use super::{Column, System};
use crate::types::{Datum, SqlType};

/// The tables, with their columns and the types of these.
const TABLES: &[(&str, &str)] = &[
    (
        "pg_aggregate",
        "aggfnoid:regproc aggkind:text aggnumdirectargs:int2 aggtransfn:regproc aggfinalfn:regproc \
         aggcombinefn:regproc aggserialfn:regproc aggdeserialfn:regproc aggmtransfn:regproc \
         aggminvtransfn:regproc aggmfinalfn:regproc aggfinalextra:bool aggmfinalextra:bool \
         aggfinalmodify:text aggmfinalmodify:text aggsortop:oid aggtranstype:oid aggtransspace:int4 \
         aggmtranstype:oid aggmtransspace:int4 agginitval:text aggminitval:text",
    ),
    (
        "pg_amop",
        "oid:oid amopfamily:oid amoplefttype:oid amoprighttype:oid amopstrategy:int2 \
         amoppurpose:text amopopr:oid amopmethod:oid amopsortfamily:oid",
    ),
    (
        "pg_amproc",
        "oid:oid amprocfamily:oid amproclefttype:oid amprocrighttype:oid amprocnum:int2 \
         amproc:oid",
    ),
    ("pg_auth_members", "roleid:oid member:oid admin_option:bool"),
    (
        "pg_available_extension_versions",
        "name:name version:text installed:bool superuser:bool trusted:bool relocatable:bool schema:name \
         requires:name[] comment:text",
    ),
    ("pg_available_extensions", "name:name default_version:text installed_version:text comment:text"),
    ("pg_cast", "oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:text castmethod:text"),
    (
        "pg_collation",
        "oid:oid collname:name collnamespace:oid collowner:oid collprovider:text \
         collisdeterministic:bool collencoding:int4 collcollate:text collctype:text \
         colliculocale:text",
    ),
    (
        "pg_conversion",
        "oid:oid conname:name connamespace:oid conowner:oid conforencoding:int4 \
         contoencoding:int4 conproc:text condefault:bool",
    ),
    ("pg_db_role_setting", "setdatabase:oid setrole:oid setconfig:text[]"),
    ("pg_default_acl", "oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:text defaclacl:text[]"),
    ("pg_enum", "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    (
        "pg_event_trigger",
        "oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:text \
         evttags:text[]",
    ),
    (
        "pg_extension",
        "oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool extversion:text \
         extconfig:oid[] extcondition:text[]",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:text[] \
         fdwoptions:text[]",
    ),
    (
        "pg_foreign_server",
        "oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text srvversion:text srvacl:text[] \
         srvoptions:text[]",
    ),
    ("pg_foreign_table", "ftrelid:oid ftserver:oid"),
    ("pg_inherits", "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool"),
    (
        "pg_language",
        "oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid \
         laninline:oid lanvalidator:oid lanacl:text[]",
    ),
    ("pg_largeobject_metadata", "oid:oid lomowner:oid lomacl:text[]"),
    (
        "pg_locks",
        "locktype:text database:oid relation:oid page:int4 tuple:int2 virtualxid:text \
         transactionid:oid classid:oid objid:oid objsubid:int2 virtualtransaction:text pid:int4 \
         mode:text granted:bool fastpath:bool waitstart:timestamptz",
    ),
    (
        "pg_matviews",
        "schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool \
         ispopulated:bool definition:text",
    ),
    (
        "pg_operator",
        "oid:oid oprname:name oprnamespace:oid oprowner:oid oprkind:text oprcanmerge:bool \
         oprcanhash:bool oprleft:oid oprright:oid oprresult:oid oprcom:oid oprnegate:oid \
         oprcode:oid",
    ),
    ("pg_opfamily", "oid:oid opfmethod:oid opfname:name opfnamespace:oid opfowner:oid"),
    ("pg_partitioned_table", "partrelid:oid partstrat:text"),
    (
        "pg_policies",
        "schemaname:name tablename:name policyname:name permissive:text roles:name[] cmd:text qual:text \
         with_check:text",
    ),
    (
        "pg_policy",
        "oid:oid polname:name polrelid:oid polcmd:text polpermissive:bool polroles:oid[] \
         polqual:text polwithcheck:text",
    ),
    ("pg_prepared_xacts", "transaction:text gid:text prepared:timestamptz owner:name database:name"),
    (
        "pg_publication",
        "oid:oid pubname:name puballtables:bool pubowner:oid pubinsert:bool pubupdate:bool \
         pubdelete:bool pubtruncate:bool pubviaroot:bool",
    ),
    ("pg_publication_namespace", "pnpubid:oid pnnspid:oid"),
    ("pg_publication_rel", "prpubid:oid prrelid:oid prqual:text prattrs:int2[]"),
    (
        "pg_range",
        "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid \
         rngcanonical:oid rngsubdiff:oid",
    ),
    (
        "pg_replication_slots",
        "slot_name:name plugin:name slot_type:text datoid:oid database:name temporary:bool active:bool \
         active_pid:int4 xmin:text catalog_xmin:text restart_lsn:text confirmed_flush_lsn:text \
         wal_status:text safe_wal_size:int8 two_phase:bool",
    ),
    ("pg_rewrite", "oid:oid rulename:name ev_class:oid ev_type:text ev_enabled:text is_instead:bool"),
    ("pg_rules", "schemaname:name tablename:name rulename:name definition:text"),
    ("pg_seclabel", "objoid:oid classoid:oid objsubid:int4 provider:text label:text"),
    (
        "pg_stat_bgwriter",
        "checkpoints_timed:int8 checkpoints_req:int8 checkpoint_write_time:float8 \
         checkpoint_sync_time:float8 buffers_checkpoint:int8 buffers_clean:int8 maxwritten_clean:int8 \
         buffers_backend:int8 buffers_backend_fsync:int8 buffers_alloc:int8 stats_reset:timestamptz",
    ),
    (
        "pg_stat_database",
        "datid:oid datname:name numbackends:int4 xact_commit:int8 xact_rollback:int8 blks_read:int8 \
         blks_hit:int8 tup_returned:int8 tup_fetched:int8 tup_inserted:int8 tup_updated:int8 \
         tup_deleted:int8 conflicts:int8 temp_files:int8 temp_bytes:int8 deadlocks:int8 \
         checksum_failures:int8 checksum_last_failure:timestamptz blk_read_time:float8 \
         blk_write_time:float8 session_time:float8 active_time:float8 idle_in_transaction_time:float8 \
         sessions:int8 sessions_abandoned:int8 sessions_fatal:int8 sessions_killed:int8 \
         stats_reset:timestamptz",
    ),
    ("pg_stat_gssapi", "pid:int4 gss_authenticated:bool principal:text encrypted:bool"),
    (
        "pg_stat_replication",
        "pid:int4 usesysid:oid usename:name application_name:text client_addr:text client_hostname:text \
         client_port:int4 backend_start:timestamptz backend_xmin:text state:text sent_lsn:text \
         write_lsn:text flush_lsn:text replay_lsn:text write_lag:interval flush_lag:interval \
         replay_lag:interval sync_priority:int4 sync_state:text reply_time:timestamptz",
    ),
    (
        "pg_stat_ssl",
        "pid:int4 ssl:bool version:text cipher:text bits:int4 client_dn:text client_serial:numeric \
         issuer_dn:text",
    ),
    (
        "pg_stat_user_indexes",
        "relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_scan:int8 \
         idx_tup_read:int8 idx_tup_fetch:int8",
    ),
    (
        "pg_statistic_ext",
        "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxkind:text[] stxstattarget:int4 \
         stxowner:oid",
    ),
    (
        "pg_stats",
        "schemaname:name tablename:name attname:name inherited:bool null_frac:float4 avg_width:int4 \
         n_distinct:float4 most_common_vals:text most_common_freqs:float4[] histogram_bounds:text \
         correlation:float4 most_common_elems:text most_common_elem_freqs:float4[] \
         elem_count_histogram:float4[]",
    ),
    (
        "pg_subscription",
        "oid:oid subdbid:oid subname:name subowner:oid subenabled:bool subbinary:bool \
         substream:bool subtwophasestate:text subdisableonerr:bool subconninfo:text \
         subslotname:name subsynccommit:text subpublications:text[] subskiplsn:text",
    ),
    (
        "pg_trigger",
        "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:text \
         tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:bool \
         tginitdeferred:bool tgnargs:int2 tgattr:int2vector tgargs:bytea tgqual:text tgoldtable:name \
         tgnewtable:name",
    ),
    ("pg_ts_config", "oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid"),
    (
        "pg_ts_dict",
        "oid:oid dictname:name dictnamespace:oid dictowner:oid dicttemplate:oid \
         dictinitoption:text",
    ),
    ("pg_ts_parser", "oid:oid prsname:name prsnamespace:oid"),
    ("pg_ts_template", "oid:oid tmplname:name tmplnamespace:oid"),
    ("pg_user_mappings", "umid:oid srvid:oid srvname:name umuser:oid usename:name umoptions:text[]"),
];

/// Those of `information_schema`.
const INFORMATION: &[(&str, &str)] = &[
    ("administrable_role_authorizations", "grantee:name role_name:name is_grantable:varchar"),
    ("applicable_roles", "grantee:name role_name:name is_grantable:varchar"),
    ("collations", "collation_catalog:name collation_schema:name collation_name:name pad_attribute:varchar"),
    (
        "column_domain_usage",
        "domain_catalog:name domain_schema:name domain_name:name table_catalog:name table_schema:name \
         table_name:name column_name:name",
    ),
    (
        "column_privileges",
        "grantor:name grantee:name table_catalog:name table_schema:name table_name:name column_name:name \
         privilege_type:varchar is_grantable:varchar",
    ),
    (
        "domain_constraints",
        "constraint_catalog:name constraint_schema:name constraint_name:name domain_catalog:name \
         domain_schema:name domain_name:name is_deferrable:varchar initially_deferred:varchar",
    ),
    (
        "domains",
        "domain_catalog:name domain_schema:name domain_name:name data_type:varchar \
         character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name \
         character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name \
         collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
         datetime_precision:int4 interval_type:varchar interval_precision:int4 domain_default:varchar \
         udt_catalog:name udt_schema:name udt_name:name scope_catalog:name scope_schema:name \
         scope_name:name maximum_cardinality:int4 dtd_identifier:name",
    ),
    (
        "parameters",
        "specific_catalog:name specific_schema:name specific_name:name ordinal_position:int4 \
         parameter_mode:varchar is_result:varchar as_locator:varchar parameter_name:name \
         data_type:varchar character_maximum_length:int4 character_octet_length:int4 \
         character_set_catalog:name character_set_schema:name character_set_name:name \
         collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 \
         numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar \
         interval_precision:int4 udt_catalog:name udt_schema:name udt_name:name scope_catalog:name \
         scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name \
         parameter_default:varchar",
    ),
    (
        "role_column_grants",
        "grantor:name grantee:name table_catalog:name table_schema:name table_name:name column_name:name \
         privilege_type:varchar is_grantable:varchar",
    ),
    (
        "role_routine_grants",
        "grantor:name grantee:name specific_catalog:name specific_schema:name specific_name:name \
         routine_catalog:name routine_schema:name routine_name:name privilege_type:varchar \
         is_grantable:varchar",
    ),
    (
        "routine_privileges",
        "grantor:name grantee:name specific_catalog:name specific_schema:name specific_name:name \
         routine_catalog:name routine_schema:name routine_name:name privilege_type:varchar \
         is_grantable:varchar",
    ),
    (
        "routines",
        "specific_catalog:name specific_schema:name specific_name:name routine_catalog:name \
         routine_schema:name routine_name:name routine_type:varchar module_catalog:name \
         module_schema:name module_name:name udt_catalog:name udt_schema:name udt_name:name \
         data_type:varchar character_maximum_length:int4 character_octet_length:int4 \
         character_set_catalog:name character_set_schema:name character_set_name:name \
         collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 \
         numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar \
         interval_precision:int4 type_udt_catalog:name type_udt_schema:name type_udt_name:name \
         scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 \
         dtd_identifier:name routine_body:varchar routine_definition:varchar external_name:varchar \
         external_language:varchar parameter_style:varchar is_deterministic:varchar \
         sql_data_access:varchar is_null_call:varchar sql_path:varchar schema_level_routine:varchar \
         max_dynamic_result_sets:int4 is_user_defined_cast:varchar is_implicitly_invocable:varchar \
         security_type:varchar to_sql_specific_catalog:name to_sql_specific_schema:name \
         to_sql_specific_name:name as_locator:varchar created:timestamptz last_altered:timestamptz \
         new_savepoint_level:varchar is_udt_dependent:varchar result_cast_from_data_type:varchar \
         result_cast_as_locator:varchar result_cast_char_max_length:int4 \
         result_cast_char_octet_length:int4 result_cast_char_set_catalog:name \
         result_cast_char_set_schema:name result_cast_char_set_name:name \
         result_cast_collation_catalog:name result_cast_collation_schema:name \
         result_cast_collation_name:name result_cast_numeric_precision:int4 \
         result_cast_numeric_precision_radix:int4 result_cast_numeric_scale:int4 \
         result_cast_datetime_precision:int4 result_cast_interval_type:varchar \
         result_cast_interval_precision:int4 result_cast_type_udt_catalog:name \
         result_cast_type_udt_schema:name result_cast_type_udt_name:name result_cast_scope_catalog:name \
         result_cast_scope_schema:name result_cast_scope_name:name result_cast_maximum_cardinality:int4 \
         result_cast_dtd_identifier:name",
    ),
    (
        "triggers",
        "trigger_catalog:name trigger_schema:name trigger_name:name event_manipulation:varchar \
         event_object_catalog:name event_object_schema:name event_object_table:name action_order:int4 \
         action_condition:varchar action_statement:varchar action_orientation:varchar \
         action_timing:varchar action_reference_old_table:name action_reference_new_table:name \
         action_reference_old_row:name action_reference_new_row:name created:timestamptz",
    ),
    (
        "udt_privileges",
        "grantor:name grantee:name udt_catalog:name udt_schema:name udt_name:name privilege_type:varchar \
         is_grantable:varchar",
    ),
    (
        "usage_privileges",
        "grantor:name grantee:name object_catalog:name object_schema:name object_name:name \
         object_type:varchar privilege_type:varchar is_grantable:varchar",
    ),
    (
        "view_column_usage",
        "view_catalog:name view_schema:name view_name:name table_catalog:name table_schema:name \
         table_name:name column_name:name",
    ),
    (
        "view_table_usage",
        "view_catalog:name view_schema:name view_name:name table_catalog:name table_schema:name \
         table_name:name",
    ),
];

/// Columns of other tables that are null in all rows.
const NULLS: &[(&str, &str)] = &[
    ("pg_am", "amhandler:oid"),
    ("pg_constraint", "contypid:oid"),
    ("pg_namespace", "nspacl:text[]"),
    ("pg_type", "typdefault:text typacl:text[]"),
];

/// The view of `information_schema` with a name, if it is one that has no rows.
pub(super) fn information(name: &str) -> Option<System> {
    let (_, columns) = INFORMATION.iter().find(|(known, _)| *known == name)?;
    Some((Vec::new(), parsed(columns).collect()))
}

/// Whether there is a table of this name without rows.
pub(super) fn is_named(name: &str) -> bool {
    TABLES.iter().any(|(known, _)| *known == name)
}

/// The table with a name, if it is one that has no rows.
pub(super) fn table(name: &str) -> Option<System> {
    let (_, columns) = TABLES.iter().find(|(known, _)| *known == name)?;
    Some((Vec::new(), parsed(columns).collect()))
}

/// Adds to a table the columns that it has besides: its number as `tableoid`, and those without values.
pub(super) fn extended(name: &str, (mut rows, mut columns): System) -> System {
    let more = NULLS.iter().find(|(known, _)| *known == name);
    let more = more.into_iter().flat_map(|(_, more)| parsed(more));
    let more: Vec<Column> = more.filter(|(new, _)| !columns.iter().any(|(known, _)| known == new)).collect();
    columns.extend(more);
    rows.iter_mut().for_each(|row| row.resize(columns.len(), Datum::Null));
    if let Some(object) = super::table_object(name) {
        columns.push((TABLE_NUMBER, SqlType::OID));
        rows.iter_mut().for_each(|row| row.push(super::number(object)));
    }
    (rows, columns)
}

/// The column with the number of the table that a row is of, which `*` does not stand for.
pub(crate) const TABLE_NUMBER: &str = "tableoid";

pub(super) fn parsed(columns: &'static str) -> impl Iterator<Item = Column> {
    columns.split_whitespace().filter_map(|column| {
        let (name, data_type) = column.split_once(':')?;
        let (plain, is_array) = match data_type.strip_suffix("[]") {
            Some(plain) => (plain, true),
            None => (data_type, false),
        };
        let plain = match plain {
            "bool" => SqlType::BOOL,
            "bytea" => SqlType::BYTEA,
            "float4" => SqlType::FLOAT4,
            "float8" => SqlType::FLOAT8,
            "int2" => SqlType::INT2,
            "int4" => SqlType::INT4,
            "int8" => SqlType::INT8,
            "interval" => SqlType::INTERVAL,
            "name" => SqlType::NAME,
            "numeric" => SqlType::NUMERIC,
            "oid" => SqlType::OID,
            "regproc" => SqlType::REGPROC,
            "timestamptz" => SqlType::TIMESTAMPTZ,
            "varchar" => SqlType::VARCHAR,
            _ => SqlType::TEXT,
        };
        Some((name, if is_array { plain.array_of() } else { plain }))
    })
}
