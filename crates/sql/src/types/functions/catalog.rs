//! Functions that programs ask the catalog with.

use super::*;

pub(super) const TABLE: &[Entry] =
    &[lenient("format_type", &[Kind::Of(SqlType::OID), INT4], TEXT, |arguments, _| {
        let Some(Datum::Int(oid)) = arguments.first() else { return Ok(Datum::Null) };
        let modifier = match arguments.get(1) {
            Some(Datum::Int(modifier)) => Some(*modifier as i32),
            _ => None,
        };
        Ok(Datum::Text(format_type(*oid as u32, modifier)))
    })];

fn format_type(oid: u32, modifier: Option<i32>) -> String {
    match SqlType::from_oid(oid, modifier.unwrap_or(-1)) {
        // Not the same as `character`, which has the length 1.
        Some(ty) if ty.is_same(SqlType::CHAR) && modifier == Some(-1) => "bpchar".to_owned(),
        Some(ty) => ty.name(),
        None if oid == 0 => "-".to_owned(),
        None => "???".to_owned(),
    }
}
