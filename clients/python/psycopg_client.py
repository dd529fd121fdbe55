"""psycopg 3: types in both formats, blocks, errors, COPY, pipelines, cursors and cancellation."""

import threading
import time
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.types.json import Json

VALUES = {
    "smallint": -32768,
    "integer": 2147483647,
    "bigint": -9223372036854775808,
    "numeric(20,4)": Decimal("-1234567890.0625"),
    "double precision": 0.1,
    "text": "Grüße, 世界 'quoted' \\ and\nmore",
    "varchar(10)": "ten at mos",
    "boolean": True,
    "date": date(2024, 2, 29),
    "timestamp": datetime(2024, 2, 29, 23, 59, 59, 123456),
    "timestamptz": datetime(2024, 2, 29, 23, 59, 59, tzinfo=timezone(timedelta(hours=2))),
    "interval": timedelta(days=3, hours=4, microseconds=5),
    "bytea": bytes(range(256)),
    "uuid": UUID("0123abcd-89ab-cdef-0123-456789abcdef"),
    "json": {"list": [1, None, "two"], "nested": {"true": False}},
    "jsonb": {"a": 1},
    "integer[]": [1, None, -3],
    "text[]": ["one", 'with "quotes", and commas', ""],
}


def equal(what, found, expected):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def types(connection):
    columns = [f"c{number} {name}" for number, name in enumerate(VALUES)]
    connection.execute(f"CREATE TABLE typed (id integer PRIMARY KEY, {', '.join(columns)})")
    parameters = [Json(value) if isinstance(value, dict) else value for value in VALUES.values()]
    nulls = [None] * len(parameters)
    for place, placeholder in enumerate(("%s", "%b", "%t")):
        values = ", ".join([placeholder] * len(parameters))
        for key, row in ((place, parameters), (place + 10, nulls)):
            connection.execute(f"INSERT INTO typed VALUES ({key}, {values})", row)
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            for place in range(3):
                row = cursor.execute("SELECT * FROM typed WHERE id = %s", [place]).fetchone()
                for name, found, expected in zip(VALUES, row[1:], VALUES.values()):
                    equal(f"{name}, binary={binary}", found, expected)
                row = cursor.execute("SELECT * FROM typed WHERE id = %s", [place + 10]).fetchone()
                equal("nulls", row[1:], tuple(nulls))


def statements(connection):
    """Plain ones, and one that psycopg prepares because it comes again and again."""
    connection.execute("CREATE TABLE account (id bigint PRIMARY KEY, balance numeric NOT NULL)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO account VALUES (%s, %s)", [(number, 100) for number in range(10)])
        equal("executemany", cursor.rowcount, 10)
        for number in range(10):
            cursor.execute("SELECT balance FROM account WHERE id = %s", [number], prepare=True)
            equal("a prepared statement", cursor.fetchone(), (Decimal(100),))
        cursor.execute("UPDATE account SET balance = balance + 1 WHERE id < %s RETURNING id", [3])
        equal("RETURNING", sorted(cursor.fetchall()), [(0,), (1,), (2,)])
        equal("the name of a column", cursor.description[0].name, "id")
    raw = psycopg.RawCursor(connection)
    equal("$1", raw.execute("SELECT $1::int + $2::int", [1, 2]).fetchone(), (3,))


def balance(connection, number):
    return connection.execute("SELECT balance FROM account WHERE id = %s", [number]).fetchone()[0]


def blocks(connection):
    with connection.transaction():
        connection.execute("UPDATE account SET balance = 7 WHERE id = 1")
        try:
            with connection.transaction():  # a savepoint
                connection.execute("UPDATE account SET balance = 8 WHERE id = 1")
                connection.execute("INSERT INTO account VALUES (1, 0)")
        except errors.UniqueViolation as error:
            equal("the table of an error", error.diag.table_name, "account")
            equal("the constraint of an error", error.diag.constraint_name, "account_pkey")
        equal("after ROLLBACK TO", balance(connection, 1), 7)
    try:
        with connection.transaction():
            connection.execute("UPDATE account SET balance = 9 WHERE id = 1")
            raise KeyError
    except KeyError:
        pass
    equal("after ROLLBACK", balance(connection, 1), 7)


def fails(error, action, *arguments):
    try:
        action(*arguments)
    except error:
        return
    raise AssertionError(f"expected {error.sqlstate} {error.__name__}")


def mistakes(connection):
    execute = connection.execute
    fails(errors.UniqueViolation, execute, "INSERT INTO account VALUES (1, 1)")
    fails(errors.NotNullViolation, execute, "INSERT INTO account VALUES (77, NULL)")
    fails(errors.UndefinedTable, execute, "SELECT * FROM nowhere")
    fails(errors.UndefinedColumn, execute, "SELECT nothing FROM account")
    fails(errors.SyntaxError, execute, "SELEC 1")
    fails(errors.DivisionByZero, execute, "SELECT 1 / %s", [0])
    fails(errors.InvalidTextRepresentation, execute, "SELECT 'x'::integer")
    execute("BEGIN")
    fails(errors.DivisionByZero, execute, "SELECT 1 / 0")
    fails(errors.InFailedSqlTransaction, execute, "SELECT 1")
    execute("ROLLBACK")


def conflicts(connection):
    """Each block reads what the other one writes, so one of them must fail."""
    with psycopg.connect() as other:
        first = balance(other, 1)
        with connection.transaction():
            second = balance(connection, 2)
            connection.execute("UPDATE account SET balance = %s WHERE id = 1", [second + 1])

        def finish():
            other.execute("UPDATE account SET balance = %s WHERE id = 2", [first + 1])
            other.commit()

        fails(errors.SerializationFailure, finish)


def copies(connection):
    connection.execute("CREATE TABLE copied (id integer PRIMARY KEY, word text, moment timestamptz)")
    moment = datetime(2024, 1, 1, tzinfo=timezone.utc)
    rows = [(number, None if number % 7 == 0 else f"tab\t{number}", moment) for number in range(1000)]
    for form in ("TEXT", "BINARY"):
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY copied FROM STDIN (FORMAT {form})") as copy:
                copy.set_types(["int4", "text", "timestamptz"])
                for row in rows:
                    copy.write_row(row)
            equal("rows copied", cursor.rowcount, len(rows))
            with cursor.copy(f"COPY (SELECT * FROM copied ORDER BY id) TO STDOUT (FORMAT {form})") as copy:
                copy.set_types(["int4", "text", "timestamptz"])
                equal(f"COPY of {form}", list(copy.rows()), rows)
            cursor.execute("TRUNCATE copied")


def pipelines(connection):
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int * 2", [number]) for number in range(100)]
        equal("a pipeline", [cursor.fetchone()[0] for cursor in cursors], list(range(0, 200, 2)))

    def break_one():
        with connection.pipeline():
            connection.execute("UPDATE account SET balance = 0 WHERE id = 5")
            connection.execute("SELECT 1 / 0")
            connection.execute("UPDATE account SET balance = 0 WHERE id = 6")

    fails(errors.DivisionByZero, break_one)
    equal("what came before the mistake in a pipeline", balance(connection, 5), 100)
    equal("what came behind it", balance(connection, 6), 100)
    equal("after a broken pipeline", connection.execute("SELECT 1").fetchone(), (1,))


def cursors(connection):
    with connection.transaction():
        with connection.cursor("steps", scrollable=True) as cursor:
            cursor.execute("SELECT number FROM generate_series(1, 100) AS number")
            equal("FETCH", cursor.fetchmany(2), [(1,), (2,)])
            cursor.scroll(10)
            equal("FETCH after MOVE", cursor.fetchone(), (13,))
    with connection.cursor() as cursor:
        rows = cursor.stream("SELECT number FROM generate_series(1, 100) AS number")
        equal("rows one by one", sum(row[0] for row in rows), 5050)


def cancellation(connection):
    def cancel():
        time.sleep(0.2)
        connection.cancel_safe()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    fails(errors.QueryCanceled, connection.execute, "SELECT pg_sleep(60)")
    canceller.join()
    equal("after a cancellation", connection.execute("SELECT 1").fetchone(), (1,))


if __name__ == "__main__":
    with psycopg.connect(autocommit=True) as opened:
        for check in (types, statements, blocks, mistakes, conflicts, copies, pipelines, cursors, cancellation):
            check(opened)
            print(f"psycopg: {check.__name__}")
