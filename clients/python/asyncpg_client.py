"""asyncpg: types in binary, prepared statements, blocks, errors, COPY, cursors, pools and cancellation."""

import asyncio
import io
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import asyncpg

VALUES = {
    "smallint": -32768,
    "integer": 2147483647,
    "bigint": -9223372036854775808,
    "numeric(20,4)": Decimal("-1234567890.0625"),
    "real": 1.5,
    "double precision": 0.1,
    "text": "Grüße, 世界 'quoted' \\ and\nmore",
    "varchar(10)": "ten at mos",
    "boolean": True,
    "date": date(2024, 2, 29),
    "time": time(23, 59, 59, 123456),
    "timestamp": datetime(2024, 2, 29, 23, 59, 59, 123456),
    "timestamptz": datetime(2024, 2, 29, 23, 59, 59, tzinfo=timezone(timedelta(hours=2))),
    "interval": timedelta(days=3, hours=4, microseconds=5),
    "bytea": bytes(range(256)),
    "uuid": UUID("0123abcd-89ab-cdef-0123-456789abcdef"),
    "json": '{"list": [1, null, "two"]}',
    "integer[]": [1, None, -3],
    "text[]": ["one", 'with "quotes", and commas', ""],
}


def equal(what, found, expected):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


async def fails(error, awaitable):
    try:
        await awaitable
    except error as found:
        return found
    raise AssertionError(f"expected {error.sqlstate} {error.__name__}")


async def types(connection):
    columns = ", ".join(f"c{number} {name}" for number, name in enumerate(VALUES))
    await connection.execute(f"CREATE TABLE passed (id integer PRIMARY KEY, {columns})")
    places = ", ".join(f"${number}" for number in range(1, len(VALUES) + 2))
    insert = await connection.prepare(f"INSERT INTO passed VALUES ({places})")
    equal("types of parameters", [p.name for p in insert.get_parameters()][:3], ["int4", "int2", "int4"])
    await insert.fetch(1, *VALUES.values())
    await insert.fetch(2, *[None] * len(VALUES))
    row = await connection.fetchrow("SELECT * FROM passed WHERE id = $1", 1)
    for name, found, expected in zip(VALUES, row[1:], VALUES.values()):
        equal(name, found, expected)
    row = await connection.fetchrow("SELECT * FROM passed WHERE id = $1", 2)
    equal("nulls", list(row)[1:], [None] * len(VALUES))


async def statements(connection):
    await connection.execute("CREATE TABLE stock (id bigint PRIMARY KEY, amount integer NOT NULL); SELECT 1")
    await connection.executemany("INSERT INTO stock VALUES ($1, $2)", [(number, 10) for number in range(20)])
    equal("status", await connection.execute("UPDATE stock SET amount = 11 WHERE id < $1", 5), "UPDATE 5")
    equal("fetchval", await connection.fetchval("SELECT sum(amount) FROM stock"), 205)
    rows = await connection.fetch("SELECT id FROM stock WHERE id = ANY($1::bigint[]) ORDER BY id", [3, 1])
    equal("an array as parameter", [row["id"] for row in rows], [1, 3])
    rows = await connection.fetchmany("INSERT INTO stock VALUES ($1, 1) RETURNING id", [(30,), (31,)])
    equal("fetchmany", [row["id"] for row in rows], [30, 31])
    statement = await connection.prepare("SELECT amount AS left_over FROM stock WHERE id = $1")
    equal("columns", [(a.name, a.type.name) for a in statement.get_attributes()], [("left_over", "int4")])
    equal("a prepared statement", [await statement.fetchval(key) for key in (0, 9)], [11, 10])


async def blocks(connection):
    amount = "SELECT amount FROM stock WHERE id = 1"
    async with connection.transaction():
        await connection.execute("UPDATE stock SET amount = 70 WHERE id = 1")
        savepoint = connection.transaction()
        await savepoint.start()
        await connection.execute("UPDATE stock SET amount = 80 WHERE id = 1")
        await savepoint.rollback()
        equal("after ROLLBACK TO", await connection.fetchval(amount), 70)
    whole = connection.transaction()
    await whole.start()
    await connection.execute("UPDATE stock SET amount = 90 WHERE id = 1")
    await fails(asyncpg.DivisionByZeroError, connection.execute("SELECT 1 / 0"))
    await fails(asyncpg.InFailedSQLTransactionError, connection.execute("SELECT 1"))
    await whole.rollback()
    equal("after ROLLBACK", await connection.fetchval(amount), 70)
    async with connection.transaction(readonly=True):
        await fails(asyncpg.ReadOnlySQLTransactionError, connection.execute("DELETE FROM stock"))


async def mistakes(connection):
    error = await fails(asyncpg.UniqueViolationError, connection.execute("INSERT INTO stock VALUES (1, 1)"))
    equal("the constraint of an error", error.constraint_name, "stock_pkey")
    error = await fails(asyncpg.NotNullViolationError, connection.execute("INSERT INTO stock VALUES (99, NULL)"))
    equal("the column of an error", (error.table_name, error.column_name), ("stock", "amount"))
    await fails(asyncpg.UndefinedTableError, connection.fetch("SELECT * FROM nowhere"))
    await fails(asyncpg.PostgresSyntaxError, connection.fetch("SELEC 1"))
    await fails(asyncpg.DataError, connection.fetch("SELECT $1::integer", "no number"))


async def conflicts(connection):
    """Each block reads what the other one writes, so one of them must fail."""
    other = await asyncpg.connect()

    async def write_what_is_read(client, read, written):
        amount = await client.fetchval("SELECT amount FROM stock WHERE id = $1", read)
        await client.execute("UPDATE stock SET amount = $1 WHERE id = $2", amount + 1, written)

    first, second = connection.transaction(), other.transaction()
    await first.start()
    await second.start()
    await write_what_is_read(connection, 1, 2)

    async def finish():
        await write_what_is_read(other, 2, 1)
        await first.commit()
        await second.commit()

    await fails(asyncpg.SerializationError, finish())
    await other.close()


async def copies(connection):
    await connection.execute("CREATE TABLE loaded (id integer PRIMARY KEY, word text, born date)")
    records = [(number, None if number % 7 == 0 else f"word {number}", date(2024, 1, 1)) for number in range(5000)]
    equal("COPY", await connection.copy_records_to_table("loaded", records=records), "COPY 5000")
    equal("the rows", [tuple(row) for row in await connection.fetch("SELECT * FROM loaded ORDER BY id")], records)
    out = io.BytesIO()
    status = await connection.copy_from_query("SELECT id, word FROM loaded WHERE id < $1 ORDER BY id", 3, output=out, format="csv")
    equal("COPY of a query", (status, out.getvalue()), ("COPY 3", b"0,\n1,word 1\n2,word 2\n"))


async def cursors(connection):
    async with connection.transaction():
        rows = [row[0] async for row in connection.cursor("SELECT * FROM generate_series(1, 200)", prefetch=30)]
        equal("a portal", sum(rows), 20100)
        cursor = await connection.cursor("SELECT * FROM generate_series(1, 200)")
        equal("some rows", [row[0] for row in await cursor.fetch(2)], [1, 2])
        equal("the next one", (await cursor.fetchrow())[0], 3)


async def cancellation(connection):
    await fails(asyncio.TimeoutError, connection.fetch("SELECT pg_sleep(60)", timeout=0.3))
    equal("after a time limit", await connection.fetchval("SELECT 1"), 1)


async def pools(_):
    """Connections that are taken from a pool are made as new (DISCARD, and the like) when they come back."""
    async with asyncpg.create_pool(min_size=2, max_size=4) as pool:
        counts = await asyncio.gather(*[pool.fetchval("SELECT count(*) FROM stock") for _ in range(20)])
        equal("counts", set(counts), {22})
        increment = "UPDATE stock SET amount = amount + 1 WHERE id = 7"
        before = await pool.fetchval("SELECT amount FROM stock WHERE id = 7")
        await asyncio.gather(*[pool.execute(increment) for _ in range(50)])
        equal("increments", await pool.fetchval("SELECT amount FROM stock WHERE id = 7"), before + 50)


async def main():
    connection = await asyncpg.connect()
    for check in (types, statements, blocks, mistakes, conflicts, copies, cursors, cancellation, pools):
        await check(connection)
        print(f"asyncpg: {check.__name__}")
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
