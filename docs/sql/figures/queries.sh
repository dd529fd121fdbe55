#!/usr/bin/env bash
# Milliseconds of general queries on one server, the best of three runs each.
#
#   cargo install tpchgen-cli; tpchgen-cli -s 0.1 --output-dir FOLDER
#   queries.sh FOLDER [arguments for psql that tell the server, the user and the database]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
shift
ask() { psql -X -q -v ON_ERROR_STOP=1 "$@"; }
ask "$@" -f "$here/tpch-tables.sql"
for table in region nation supplier customer part partsupp orders lineitem; do
    # Each line ends with a delimiter too many.
    sed 's/|$//' "$folder/$table.tbl" | ask "$@" -c "\\copy $table FROM pstdin DELIMITER '|'"
done
ask "$@" -c 'VACUUM ANALYZE'
for _ in 1 2 3; do
    ask "$@" -o /dev/null -c '\timing on' -f "$here/queries.sql"
done | awk '
    /^Time: / { if (!(name in best)) order[++count] = name; if (!(name in best) || $2 < best[name]) best[name] = $2; next }
    { name = $0 }
    END { for (place = 1; place <= count; place++) printf "%-30s %8.0f\n", order[place], best[order[place]] }'
