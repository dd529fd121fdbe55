//! Numbers of functions: those that PostgreSQL gives the functions of types, and all that are here whose name stands for just one there.

/// A function as `pg_proc` has it.
#[derive(Clone, Copy)]
pub(crate) struct Numbered {
    pub number: u32,
    pub name: &'static str,
    /// The number of the type that it gives.
    pub result: u32,
    /// The numbers of the types that it takes, with commas between them.
    arguments: &'static str,
    /// Three letters: its volatility, whether it is strict, and whether it may run in parallel.
    letters: &'static str,
    /// How many rows it gives, if it gives rows.
    pub rows: u16,
    /// How many arguments may be left out.
    pub defaults: u8,
    /// PostgreSQL's name within, if it is another one.
    source: &'static str,
}

impl Numbered {
    /// The numbers of the types that it takes.
    pub fn arguments(&self) -> impl Iterator<Item = u32> {
        self.arguments.split(',').filter_map(|number| number.parse().ok())
    }

    /// `i` if it gives the same for the same always, `s` within a statement, `v` if not.
    pub fn volatility(&self) -> &'static str {
        self.letters.get(..1).unwrap_or_default()
    }

    /// Whether it gives null for null.
    pub fn is_strict(&self) -> bool {
        self.letters.get(1..2) == Some("t")
    }

    /// `s` if it may run in parallel, `r` if only where the statement began, `u` if not.
    pub fn parallel(&self) -> &'static str {
        self.letters.get(2..).unwrap_or_default()
    }

    /// PostgreSQL's name within.
    pub fn source(&self) -> &'static str {
        if self.source == "-" { self.name } else { self.source }
    }
}

/// All of them.
pub(crate) fn numbered() -> impl Iterator<Item = Numbered> {
    FUNCTIONS.lines().filter_map(read)
}

fn read(line: &'static str) -> Option<Numbered> {
    let mut parts = line.split(' ');
    Some(Numbered {
        number: parts.next()?.parse().ok()?,
        name: parts.next()?,
        result: parts.next()?.parse().ok()?,
        arguments: parts.next()?,
        letters: parts.next()?,
        rows: parts.next()?.parse().ok()?,
        defaults: parts.next()?.parse().ok()?,
        source: parts.next()?,
    })
}

/// The number of the function with a name.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    // Of all that is in a line, only names and the three letters have blanks on both sides.
    let at = FUNCTIONS.find(&format!(" {name} "))?;
    let start = FUNCTIONS[..at].rfind('\n').map_or(0, |end| end + 1);
    read(FUNCTIONS[start..].lines().next()?).filter(|found| found.name == name).map(|found| found.number)
}

/// What `regproc` shows for a number.
pub(crate) fn name_of(number: i64) -> String {
    let at = FUNCTIONS.find(&format!("\n{number} "));
    match at.and_then(|at| read(FUNCTIONS[at + 1..].lines().next()?)) {
        Some(function) => super::quote_ident(function.name),
        None if number == 0 => "-".to_owned(),
        None => number.to_string(),
    }
}

/// In a line each: number, name, the type that it gives, those that it takes, its letters, rows, arguments that may be left out, and source.
const FUNCTIONS: &str = "
31 byteaout 2275 17 its 0 0 -
33 charout 2275 18 its 0 0 -
34 namein 19 2275 its 0 0 -
35 nameout 2275 19 its 0 0 -
38 int2in 21 2275 its 0 0 -
39 int2out 2275 21 its 0 0 -
40 int2vectorin 22 2275 its 0 0 -
41 int2vectorout 2275 22 its 0 0 -
42 int4in 23 2275 its 0 0 -
43 int4out 2275 23 its 0 0 -
44 regprocin 24 2275 sts 0 0 -
45 regprocout 2275 24 sts 0 0 -
46 textin 25 2275 its 0 0 -
47 textout 2275 25 its 0 0 -
48 tidin 27 2275 its 0 0 -
49 tidout 2275 27 its 0 0 -
50 xidin 28 2275 its 0 0 -
51 xidout 2275 28 its 0 0 -
52 cidin 29 2275 its 0 0 -
53 cidout 2275 29 its 0 0 -
54 oidvectorin 30 2275 its 0 0 -
55 oidvectorout 2275 30 its 0 0 -
89 version 25 - sts 0 0 pgsql_version
109 unknownin 705 2275 its 0 0 -
110 unknownout 2275 705 its 0 0 -
200 float4in 700 2275 its 0 0 -
201 float4out 2275 700 its 0 0 -
214 float8in 701 2275 its 0 0 -
215 float8out 2275 701 its 0 0 -
321 json_in 114 2275 its 0 0 -
322 json_out 2275 114 its 0 0 -
323 json_recv 114 2281 its 0 0 -
324 json_send 17 114 its 0 0 -
378 array_append 5078 5078,5077 ifs 0 0 -
379 array_prepend 5078 5077,5078 ifs 0 0 -
383 array_cat 5078 5078,5078 ifs 0 0 -
460 int8in 20 2275 its 0 0 -
461 int8out 2275 20 its 0 0 -
683 network 650 869 its 0 0 network_network
696 netmask 869 869 its 0 0 network_netmask
697 masklen 23 869 its 0 0 network_masklen
698 broadcast 869 869 its 0 0 network_broadcast
699 host 25 869 its 0 0 network_host
711 family 23 869 its 0 0 network_family
721 get_byte 23 17,23 its 0 0 byteaGetByte
747 array_dims 25 2277 its 0 0 -
748 array_ndims 23 2277 its 0 0 -
750 array_in 2277 2275,26,23 sts 0 0 -
751 array_out 2275 2277 sts 0 0 -
868 strpos 23 25,25 its 0 0 textpos
872 initcap 25 25 its 0 0 -
878 translate 25 25,25,25 its 0 0 -
910 inet_in 869 2275 its 0 0 -
911 inet_out 2275 869 its 0 0 -
928 network_subeq 16 869,869 its 0 0 -
930 network_supeq 16 869,869 its 0 0 -
1044 bpcharin 1042 2275,26,23 its 0 0 -
1045 bpcharout 2275 1042 its 0 0 -
1046 varcharin 1043 2275,26,23 its 0 0 -
1047 varcharout 2275 1043 its 0 0 -
1081 format_type 25 26,23 sfs 0 0 -
1084 date_in 1082 2275 sts 0 0 -
1085 date_out 2275 1082 sts 0 0 -
1143 time_in 1083 2275,26,23 sts 0 0 -
1144 time_out 2275 1083 its 0 0 -
1150 timestamptz_in 1184 2275,26,23 sts 0 0 -
1151 timestamptz_out 2275 1184 sts 0 0 -
1160 interval_in 1186 2275,26,23 sts 0 0 -
1161 interval_out 2275 1186 sts 0 0 -
1175 justify_hours 1186 1186 its 0 0 interval_justify_hours
1242 boolin 16 2275 its 0 0 -
1243 boolout 2275 16 its 0 0 -
1244 byteain 17 2275 its 0 0 -
1245 charin 18 2275 its 0 0 -
1267 cidr_in 650 2275 its 0 0 -
1282 quote_ident 25 25 its 0 0 -
1295 justify_days 1186 1186 its 0 0 interval_justify_days
1299 now 1184 - sts 0 0 -
1312 timestamp_in 1114 2275,26,23 sts 0 0 -
1313 timestamp_out 2275 1114 sts 0 0 -
1345 cbrt 701 701 its 0 0 dcbrt
1362 hostmask 869 869 its 0 0 network_hostmask
1376 factorial 1700 20 its 0 0 numeric_fac
1427 cidr_out 2275 650 its 0 0 -
1574 nextval 20 2205 vtu 0 0 nextval_oid
1575 currval 20 2205 vtu 0 0 currval_oid
1598 random 701 - vtr 0 0 drandom
1600 asin 701 701 its 0 0 dasin
1601 acos 701 701 its 0 0 dacos
1602 atan 701 701 its 0 0 datan
1603 atan2 701 701,701 its 0 0 datan2
1604 sin 701 701 its 0 0 dsin
1605 cos 701 701 its 0 0 dcos
1606 tan 701 701 its 0 0 dtan
1607 cot 701 701 its 0 0 dcot
1608 degrees 701 701 its 0 0 -
1609 radians 701 701 its 0 0 -
1610 pi 701 - its 0 0 dpi
1619 pg_typeof 2206 2276 sfs 0 0 -
1620 ascii 23 25 its 0 0 -
1621 chr 25 23 its 0 0 -
1622 repeat 25 25,23 its 0 0 -
1665 pg_get_serial_sequence 25 25,25 sts 0 0 -
1701 numeric_in 1700 2275,26,23 its 0 0 -
1702 numeric_out 2275 1700 its 0 0 -
1714 convert_from 25 17,19 sts 0 0 pg_convert_from
1717 convert_to 17 25,19 sts 0 0 pg_convert_to
1777 to_number 1700 25,25 sts 0 0 numeric_to_number
1780 to_date 1082 25,25 sts 0 0 -
1798 oidin 26 2275 its 0 0 -
1799 oidout 2275 26 its 0 0 -
1946 encode 25 17,25 its 0 0 binary_encode
1947 decode 17 25,25 its 0 0 binary_decode
1973 div 1700 1700,1700 its 0 0 numeric_div_trunc
2087 replace 25 25,25,25 its 0 0 replace_text
2088 split_part 25 25,25,23 its 0 0 -
2091 array_lower 23 2277,23 its 0 0 -
2092 array_upper 23 2277,23 its 0 0 -
2176 array_length 23 2277,23 its 0 0 -
2218 regclassin 2205 2275 sts 0 0 -
2219 regclassout 2275 2205 sts 0 0 -
2220 regtypein 2206 2275 sts 0 0 -
2221 regtypeout 2275 2206 sts 0 0 -
2290 record_in 2249 2275,26,23 sts 0 0 -
2291 record_out 2275 2249 sts 0 0 -
2292 cstring_in 2275 2275 its 0 0 -
2293 cstring_out 2275 2275 its 0 0 -
2294 any_in 2276 2275 its 0 0 -
2295 any_out 2275 2276 its 0 0 -
2296 anyarray_in 2277 2275 its 0 0 -
2297 anyarray_out 2275 2277 sts 0 0 -
2298 void_in 2278 2275 its 0 0 -
2299 void_out 2275 2278 its 0 0 -
2312 anyelement_in 2283 2275 its 0 0 -
2313 anyelement_out 2275 2283 its 0 0 -
2400 array_recv 2277 2281,26,23 sts 0 0 -
2401 array_send 17 2277 sts 0 0 -
2402 record_recv 2249 2281,26,23 sts 0 0 -
2403 record_send 17 2249 sts 0 0 -
2404 int2recv 21 2281 its 0 0 -
2405 int2send 17 21 its 0 0 -
2406 int4recv 23 2281 its 0 0 -
2407 int4send 17 23 its 0 0 -
2408 int8recv 20 2281 its 0 0 -
2409 int8send 17 20 its 0 0 -
2410 int2vectorrecv 22 2281 its 0 0 -
2411 int2vectorsend 17 22 its 0 0 -
2412 bytearecv 17 2281 its 0 0 -
2413 byteasend 17 17 its 0 0 -
2414 textrecv 25 2281 sts 0 0 -
2415 textsend 17 25 sts 0 0 -
2416 unknownrecv 705 2281 its 0 0 -
2417 unknownsend 17 705 its 0 0 -
2418 oidrecv 26 2281 its 0 0 -
2419 oidsend 17 26 its 0 0 -
2420 oidvectorrecv 30 2281 its 0 0 -
2421 oidvectorsend 17 30 its 0 0 -
2422 namerecv 19 2281 sts 0 0 -
2423 namesend 17 19 sts 0 0 -
2424 float4recv 700 2281 its 0 0 -
2425 float4send 17 700 its 0 0 -
2426 float8recv 701 2281 its 0 0 -
2427 float8send 17 701 its 0 0 -
2430 bpcharrecv 1042 2281,26,23 sts 0 0 -
2431 bpcharsend 17 1042 sts 0 0 -
2432 varcharrecv 1043 2281,26,23 sts 0 0 -
2433 varcharsend 17 1043 sts 0 0 -
2434 charrecv 18 2281 its 0 0 -
2435 charsend 17 18 its 0 0 -
2436 boolrecv 16 2281 its 0 0 -
2437 boolsend 17 16 its 0 0 -
2438 tidrecv 27 2281 its 0 0 -
2439 tidsend 17 27 its 0 0 -
2440 xidrecv 28 2281 its 0 0 -
2441 xidsend 17 28 its 0 0 -
2442 cidrecv 29 2281 its 0 0 -
2443 cidsend 17 29 its 0 0 -
2444 regprocrecv 24 2281 its 0 0 -
2445 regprocsend 17 24 its 0 0 -
2452 regclassrecv 2205 2281 its 0 0 -
2453 regclasssend 17 2205 its 0 0 -
2454 regtyperecv 2206 2281 its 0 0 -
2455 regtypesend 17 2206 its 0 0 -
2460 numeric_recv 1700 2281,26,23 its 0 0 -
2461 numeric_send 17 1700 its 0 0 -
2462 sinh 701 701 its 0 0 dsinh
2463 cosh 701 701 its 0 0 dcosh
2464 tanh 701 701 its 0 0 dtanh
2468 date_recv 1082 2281 its 0 0 -
2469 date_send 17 1082 its 0 0 -
2470 time_recv 1083 2281,26,23 its 0 0 -
2471 time_send 17 1083 its 0 0 -
2474 timestamp_recv 1114 2281,26,23 its 0 0 -
2475 timestamp_send 17 1114 its 0 0 -
2476 timestamptz_recv 1184 2281,26,23 its 0 0 -
2477 timestamptz_send 17 1184 its 0 0 -
2478 interval_recv 1186 2281,26,23 its 0 0 -
2479 interval_send 17 1186 its 0 0 -
2496 inet_recv 869 2281 its 0 0 -
2497 inet_send 17 869 its 0 0 -
2498 cidr_recv 650 2281 its 0 0 -
2499 cidr_send 17 650 its 0 0 -
2500 cstring_recv 2275 2281 sts 0 0 -
2501 cstring_send 17 2275 sts 0 0 -
2502 anyarray_recv 2277 2281 sts 0 0 -
2503 anyarray_send 17 2277 sts 0 0 -
2599 pg_timezone_abbrevs 2249 - sts 1000 0 -
2647 transaction_timestamp 1184 - sts 0 0 now
2711 justify_interval 1186 1186 its 0 0 interval_justify_interval
2747 arrayoverlap 16 2277,2277 its 0 0 -
2748 arraycontains 16 2277,2277 its 0 0 -
2749 arraycontained 16 2277,2277 its 0 0 -
2856 pg_timezone_names 2249 - sts 1000 0 -
2903 intervaltypmodin 23 1263 its 0 0 -
2904 intervaltypmodout 2275 23 its 0 0 -
2905 timestamptypmodin 23 1263 its 0 0 -
2906 timestamptypmodout 2275 23 its 0 0 -
2907 timestamptztypmodin 23 1263 its 0 0 -
2908 timestamptztypmodout 2275 23 its 0 0 -
2909 timetypmodin 23 1263 its 0 0 -
2910 timetypmodout 2275 23 its 0 0 -
2913 bpchartypmodin 23 1263 its 0 0 -
2914 bpchartypmodout 2275 23 its 0 0 -
2915 varchartypmodin 23 1263 its 0 0 -
2916 varchartypmodout 2275 23 its 0 0 -
2917 numerictypmodin 23 1263 its 0 0 -
2918 numerictypmodout 2275 23 its 0 0 -
2952 uuid_in 2950 2275 its 0 0 -
2953 uuid_out 2275 2950 its 0 0 -
2961 uuid_recv 2950 2281 its 0 0 -
2962 uuid_send 17 2950 its 0 0 -
3060 left 25 25,23 its 0 0 text_left
3061 right 25 25,23 its 0 0 text_right
3062 reverse 25 25 its 0 0 text_reverse
3120 void_recv 2278 2281 its 0 0 -
3121 void_send 17 2278 its 0 0 -
3167 array_remove 5078 5078,5077 ifs 0 0 -
3168 array_replace 5078 5078,5077,5077 ifs 0 0 -
3176 to_json 114 2283 sts 0 0 -
3179 cardinality 23 2277 its 0 0 array_cardinality
3207 jsonb_array_length 23 3802 its 0 0 -
3208 jsonb_each 2249 3802 its 100 0 -
3210 jsonb_typeof 25 3802 its 0 0 -
3214 jsonb_object_field_text 25 3802,25 its 0 0 -
3215 jsonb_array_element 3802 3802,23 its 0 0 -
3216 jsonb_array_element_text 25 3802,23 its 0 0 -
3219 jsonb_array_elements 3802 3802 its 100 0 -
3261 json_strip_nulls 114 114 its 0 0 -
3262 jsonb_strip_nulls 3802 3802 its 0 0 -
3279 array_positions 1007 5078,5077 ifs 0 0 -
3281 scale 23 1700 its 0 0 numeric_scale
3301 jsonb_concat 3802 3802,3802 its 0 0 -
3304 jsonb_delete_path 3802 3802,1009 its 0 0 -
3305 jsonb_set 3802 3802,1009,3802,16 its 0 1 -
3306 jsonb_pretty 25 3802 its 0 0 -
3419 sha224 17 17 its 0 0 sha224_bytea
3420 sha256 17 17 its 0 0 sha256_bytea
3421 sha384 17 17 its 0 0 sha384_bytea
3422 sha512 17 17 its 0 0 sha512_bytea
3432 gen_random_uuid 2950 - vts 0 0 -
3461 make_timestamp 1114 23,23,23,23,23,701 its 0 0 -
3464 make_interval 1186 23,23,23,23,23,23,701 its 0 7 -
3465 jsonb_array_elements_text 25 3802 its 100 0 -
3478 jsonb_object_field 3802 3802,25 its 0 0 -
3493 to_regtype 2206 25 sts 0 0 -
3495 to_regclass 2205 25 sts 0 0 -
3551 network_overlap 16 869,869 its 0 0 -
3579 jsonb_insert 3802 3802,1009,3802,16 its 0 1 -
3696 starts_with 16 25,25 its 0 0 text_starts_with
3787 to_jsonb 3802 2283 sts 0 0 -
3803 jsonb_send 17 3802 its 0 0 -
3804 jsonb_out 2275 3802 its 0 0 -
3805 jsonb_recv 3802 2281 its 0 0 -
3806 jsonb_in 3802 2275 its 0 0 -
3816 array_typanalyze 16 2281 sts 0 0 -
3846 make_date 1082 23,23,23 its 0 0 -
3847 make_time 1083 23,23,701 its 0 0 -
3931 jsonb_object_keys 25 3802 its 100 0 -
3932 jsonb_each_text 2249 3802 its 100 0 -
3947 json_object_field 114 114,25 its 0 0 -
3948 json_object_field_text 25 114,25 its 0 0 -
3949 json_array_element 114 114,23 its 0 0 -
3950 json_array_element_text 25 114,23 its 0 0 -
3955 json_array_elements 114 114 its 100 0 -
3956 json_array_length 23 114 its 0 0 -
3957 json_object_keys 25 114 its 100 0 -
3958 json_each 2249 114 its 100 0 -
3959 json_each_text 2249 114 its 100 0 -
3968 json_typeof 25 114 its 0 0 -
3969 json_array_elements_text 25 114 its 100 0 -
4046 jsonb_contains 16 3802,3802 its 0 0 -
4047 jsonb_exists 16 3802,25 its 0 0 -
4048 jsonb_exists_any 16 3802,1009 its 0 0 -
4049 jsonb_exists_all 16 3802,1009 its 0 0 -
4050 jsonb_contained 16 3802,3802 its 0 0 -
4063 inet_merge 650 869,869 its 0 0 -
4071 inet_same_family 16 869,869 its 0 0 -
4084 regnamespacein 4089 2275 sts 0 0 -
4085 regnamespaceout 2275 4089 sts 0 0 -
4087 regnamespacerecv 4089 2281 its 0 0 -
4088 regnamespacesend 17 4089 its 0 0 -
4092 regroleout 2275 4096 sts 0 0 -
4094 regrolerecv 4096 2281 its 0 0 -
4095 regrolesend 17 4096 its 0 0 -
4098 regrolein 4096 2275 sts 0 0 -
5086 anycompatible_in 5077 2275 its 0 0 -
5087 anycompatible_out 2275 5077 its 0 0 -
5088 anycompatiblearray_in 5078 2275 its 0 0 -
5089 anycompatiblearray_out 2275 5078 sts 0 0 -
5090 anycompatiblearray_recv 5078 2281 sts 0 0 -
5091 anycompatiblearray_send 17 5078 sts 0 0 -
6172 trim_array 2277 2277,23 its 0 0 -
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_can_be_read_and_found() {
        assert_eq!(numbered().count() + 1, FUNCTIONS.lines().count());
        for function in numbered() {
            assert_eq!(number_of(function.name), Some(function.number));
            assert_eq!(name_of(function.number.into()).trim_matches('"'), function.name);
            assert!(matches!(function.volatility(), "i" | "s" | "v") && function.parallel().len() == 1);
        }
        assert_eq!(number_of("its"), None);
        assert_eq!(number_of("nothing"), None);
        assert_eq!(name_of(1), "1");
    }
}
