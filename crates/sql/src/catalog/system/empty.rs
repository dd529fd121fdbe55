//! System tables that have no rows here, and columns that have no values, as far as clients ask for them.

use super::{Column, System};
use crate::types::{Datum, SqlType};

/// The tables, with their columns and the types of these.
const TABLES: &[(&str, &str)] = &[
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
    ("pg_description", "objoid:oid classoid:oid objsubid:int4 description:text"),
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
        "pg_opclass",
        "oid:oid opcmethod:oid opcname:name opcnamespace:oid opcdefault:bool opcowner:oid \
         opcfamily:oid opcintype:oid opckeytype:oid",
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
        "pg_policy",
        "oid:oid polname:name polrelid:oid polcmd:text polpermissive:bool polroles:oid[] \
         polqual:text polwithcheck:text",
    ),
    (
        "pg_proc",
        "oid:oid proname:name pronamespace:oid proowner:oid prokind:text proretset:bool \
         prorettype:oid proargtypes:oid[] prosrc:text prolang:oid pronargs:int2 \
         proargnames:text[] proargmodes:text[] provolatile:text proparallel:text prosecdef:bool \
         proleakproof:bool proisstrict:bool proacl:text[] provariadic:oid",
    ),
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
    ("pg_rewrite", "oid:oid rulename:name ev_class:oid ev_type:text ev_enabled:text is_instead:bool"),
    ("pg_rules", "schemaname:name tablename:name rulename:name definition:text"),
    ("pg_seclabel", "objoid:oid classoid:oid objsubid:int4 provider:text label:text"),
    ("pg_shdescription", "objoid:oid classoid:oid description:text"),
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
        "pg_subscription",
        "oid:oid subdbid:oid subname:name subowner:oid subenabled:bool subbinary:bool \
         substream:bool subtwophasestate:text subdisableonerr:bool subconninfo:text \
         subslotname:name subsynccommit:text subpublications:text[] subskiplsn:text",
    ),
    (
        "pg_trigger",
        "oid:oid tgrelid:oid tgname:name tgisinternal:bool tgenabled:text tgparentid:oid \
         tgconstraint:oid tgdeferrable:bool",
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

/// Columns of other tables that are null in all rows.
const NULLS: &[(&str, &str)] = &[
    ("pg_am", "amhandler:oid"),
    ("pg_constraint", "contypid:oid"),
    ("pg_namespace", "nspacl:text[]"),
    (
        "pg_settings",
        "unit:text category:text short_desc:text context:text vartype:text source:text boot_val:text \
         reset_val:text",
    ),
    ("pg_type", "typdefault:text typacl:text[]"),
];

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

fn parsed(columns: &'static str) -> impl Iterator<Item = Column> {
    columns.split(' ').filter_map(|column| {
        let (name, data_type) = column.split_once(':')?;
        let (plain, is_array) = match data_type.strip_suffix("[]") {
            Some(plain) => (plain, true),
            None => (data_type, false),
        };
        let plain = match plain {
            "bool" => SqlType::BOOL,
            "float4" => SqlType::FLOAT4,
            "int2" => SqlType::INT2,
            "int4" => SqlType::INT4,
            "int8" => SqlType::INT8,
            "name" => SqlType::NAME,
            "oid" => SqlType::OID,
            "timestamptz" => SqlType::TIMESTAMPTZ,
            _ => SqlType::TEXT,
        };
        Some((name, if is_array { plain.array_of() } else { plain }))
    })
}
