#!/bin/sh
# Measures Ordain beside PostgreSQL with pgbench, by turns, and prints a line for each script: transactions per second of each round, and the
# ratio of the medians.
#
#     measure.sh POSTGRESQL_PORT ORDAIN_PORT [ROUNDS [SECONDS]]
#
# Both are reached at 127.0.0.1: PostgreSQL with the databases `scale1`, `scale32` (`pgbench -i -s 1` and `-s 32`, then `VACUUM ANALYZE`), `hot`
# (with the table of figures.md) and `tpcc` (new-order-postgresql.sql), as user postgres; Ordain as it comes, with the same tables, of which those
# of `pgbench -i` are at scale 1 or 32, as user ordain. SCALE says which lines are measured: 1, 32, hot or tpcc. POSTGRESQL_OPTIONS are settings of
# PostgreSQL's sessions, such as `-c enable_seqscan=off`.
set -eu
postgresql=$1 ordain=$2 rounds=${3:-3} seconds=${4:-5}
here=$(dirname "$0")

# One round against one server; transactions per second, and how many failed.
run() {
    port=$1 user=$2 database=$3
    shift 3
    options=''
    [ "$user" != postgres ] || options=${POSTGRESQL_OPTIONS:-}
    PGOPTIONS=$options pgbench -n -T "$seconds" "$@" -h 127.0.0.1 -p "$port" -U "$user" "$database" 2>/dev/null | awk '
        /^tps/ { tps = $3 }
        /^number of failed transactions/ { failed = $6; gsub(/[()]/, "", failed) }
        END { printf "%.0f(%s) ", tps, failed == "" ? "0%" : failed }'
}

measure() {
    database=$1 title=$2
    shift 2
    [ "$database" = "$SCALE" ] || [ "scale$SCALE" = "$database" ] || return 0
    theirs='' ours=''
    for _ in $(seq "$rounds"); do
        theirs="$theirs$(run "$postgresql" postgres "$database" "$@")"
        ours="$ours$(run "$ordain" ordain ordain "$@")"
    done
    median() { echo "$1" | tr ' ' '\n' | sed '/^$/d; s/(.*//' | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
    ratio=$(awk "BEGIN { printf \"%.2f\", $(median "$ours") / $(median "$theirs") }")
    echo "| $title | $theirs| $ours| $ratio |"
}

measure scale1 'TPC-B-like, as sent (-c 8 -j 2)' -c 8 -j 2
measure scale1 'TPC-B-like, prepared (-M prepared -c 8 -j 2)' -M prepared -c 8 -j 2
measure scale1 'TPC-B-like, tried again (--max-tries=50 -c 8 -j 2)' --max-tries=50 -c 8 -j 2
measure scale32 'TPC-B-like (-M prepared -c 1)' -M prepared -c 1
measure scale32 'TPC-B-like, as sent (-c 1)' -c 1
measure scale32 'TPC-B-like (-M prepared -c 8 -j 2)' -M prepared -c 8 -j 2
measure scale32 'simple update (-N -M prepared -c 1)' -N -M prepared -c 1
measure scale32 'simple update (-N -M prepared -c 8 -j 2)' -N -M prepared -c 8 -j 2
measure scale32 'simple update (-N -M prepared -c 32 -j 2)' -N -M prepared -c 32 -j 2
measure scale32 'simple update, as sent (-N -c 1)' -N -c 1
measure scale32 'simple update, as sent (-N -c 8 -j 2)' -N -c 8 -j 2
measure scale32 'select only (-S -M prepared -c 1)' -S -M prepared -c 1
measure scale32 'select only (-S -M prepared -c 8 -j 2)' -S -M prepared -c 8 -j 2
measure scale32 'select only (-S -M prepared -c 32 -j 2)' -S -M prepared -c 32 -j 2
measure scale32 'select only, as sent (-S -c 8 -j 2)' -S -c 8 -j 2
measure hot 'hot row (-M prepared --max-tries=50 -c 32 -j 2)' -M prepared --max-tries=50 -f "$here/hot.sql" -c 32 -j 2
measure tpcc 'New Order (--max-tries=50 -c 8 -j 2)' --max-tries=50 -f "$here/new-order.pgbench" -c 8 -j 2
measure tpcc 'New Order (--max-tries=50 -c 32 -j 2)' --max-tries=50 -f "$here/new-order.pgbench" -c 32 -j 2
