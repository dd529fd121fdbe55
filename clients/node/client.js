// pg (node-postgres): types, prepared statements, transactions, errors, COPY, cursors, pools and cancellation.

import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import Cursor from "pg-cursor";

// What is sent, and what comes back: pg leaves numbers that JavaScript may not hold exactly as text.
const VALUES = [
  ["smallint", -32768],
  ["integer", 2147483647],
  ["bigint", "-9223372036854775808"],
  ["numeric(20,4)", "-1234567890.0625"],
  ["real", 1.5],
  ["double precision", 0.1],
  ["text", "Grüße, 世界 'quoted' \\ and\nmore"],
  ["varchar(10)", "ten at mos"],
  ["boolean", true],
  ["timestamp", new Date(2024, 1, 29, 23, 59, 59, 123)],
  ["timestamptz", new Date("2024-02-29T21:59:59.123Z")],
  ["date", new Date(2024, 1, 29)],
  ["bytea", Buffer.from([0, 1, 127, 128, 255])],
  ["uuid", "0123abcd-89ab-cdef-0123-456789abcdef"],
  ["json", { list: [1, null, "two"], nested: { true: false } }],
  ["jsonb", { a: 1 }],
  ["integer[]", [1, null, -3]],
  ["text[]", ["one", 'with "quotes", and commas', ""]],
];

/** Fails unless a promise is rejected with an SQLSTATE; returns the error. */
async function fails(code, promise) {
  const error = await promise.then(
    () => assert.fail(`expected ${code}`),
    (rejection) => rejection,
  );
  assert.equal(error.code, code, error.message);
  return error;
}

async function types(client) {
  const columns = VALUES.map(([type], place) => `c${place} ${type}`).join(", ");
  await client.query(`CREATE TABLE typed (id integer PRIMARY KEY, ${columns})`);
  const places = VALUES.map((_, place) => `$${place + 2}`).join(", ");
  const insert = `INSERT INTO typed VALUES ($1, ${places})`;
  await client.query(insert, [1, ...VALUES.map(([, value]) => value)]);
  await client.query(insert, [2, ...VALUES.map(() => null)]);
  const rows = (await client.query({ text: "SELECT * FROM typed ORDER BY id", rowMode: "array" })).rows;
  VALUES.forEach(([type, value], place) => assert.deepEqual(rows[0][place + 1], value, type));
  assert.deepEqual(rows[1], [2, ...VALUES.map(() => null)]);
  const binary = await client.query({ text: "SELECT 7::int, 0.5::float8, true, 'word'", binary: true, rowMode: "array" });
  assert.deepEqual(binary.rows, [[7, 0.5, true, "word"]]);
}

async function statements(client) {
  await client.query("CREATE TABLE account (id bigint PRIMARY KEY, balance integer NOT NULL)");
  for (let id = 0; id < 5; id += 1) {
    const added = await client.query({ name: "add", text: "INSERT INTO account VALUES ($1, $2)", values: [id, 100] });
    assert.deepEqual([added.command, added.rowCount], ["INSERT", 1]);
  }
  const raised = await client.query("UPDATE account SET balance = balance + $1 WHERE id < 2 RETURNING *", [5]);
  assert.deepEqual(raised.rows[0].balance, 105);
  assert.deepEqual(raised.fields.map((field) => [field.name, field.dataTypeID]), [["id", 20], ["balance", 23]]);
  const several = await client.query("SELECT 1 AS one; SELECT 2 AS two, 3 AS three");
  assert.deepEqual(several.map((result) => result.rows), [[{ one: 1 }], [{ two: 2, three: 3 }]]);
  const listed = await client.query("SELECT count(*)::int AS n FROM account WHERE id = ANY($1)", [[1, 2, 77]]);
  assert.equal(listed.rows[0].n, 2);
}

async function balance(client, id) {
  return (await client.query("SELECT balance FROM account WHERE id = $1", [id])).rows[0].balance;
}

async function transactions(client) {
  await client.query("BEGIN");
  await client.query("UPDATE account SET balance = 7 WHERE id = 1");
  await client.query("SAVEPOINT here");
  await client.query("UPDATE account SET balance = 8 WHERE id = 1");
  await fails("23505", client.query("INSERT INTO account VALUES (1, 0)"));
  await fails("25P02", client.query("SELECT 1"));
  await client.query("ROLLBACK TO SAVEPOINT here");
  await client.query("COMMIT");
  assert.equal(await balance(client, 1), 7);
  await client.query("BEGIN");
  await client.query("DELETE FROM account");
  await client.query("ROLLBACK");
  assert.equal(await balance(client, 1), 7);
}

async function mistakes(client) {
  const double = await fails("23505", client.query("INSERT INTO account VALUES ($1, 1)", [1]));
  assert.deepEqual([double.table, double.constraint], ["account", "account_pkey"]);
  assert.equal(double.detail, "Key (id)=(1) already exists.");
  const empty = await fails("23502", client.query("INSERT INTO account VALUES (9, NULL)"));
  assert.equal(empty.column, "balance");
  await fails("42P01", client.query("SELECT * FROM nowhere"));
  await fails("42601", client.query("SELEC 1"));
  await fails("22012", client.query("SELECT 1 / $1::int", [0]));
  await fails("22P02", client.query("SELECT $1::int", ["no number"]));
}

// Each transaction reads what the other one writes, so one of them must fail.
async function conflicts(client) {
  const other = new pg.Client();
  await other.connect();
  const begin = async (session, read, written) => {
    await session.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
    const value = await balance(session, read);
    await session.query("UPDATE account SET balance = $1 WHERE id = $2", [value + 1, written]);
  };
  await begin(client, 1, 2);
  await begin(other, 2, 1);
  await client.query("COMMIT");
  await fails("40001", other.query("COMMIT"));
  await other.end();
}

async function copies(client) {
  await client.query("CREATE TABLE copied (id integer PRIMARY KEY, word text)");
  const lines = Array.from({ length: 1000 }, (_, id) => `${id}\t${id % 7 ? `word ${id}` : "\\N"}\n`);
  const into = client.query(copyFrom("COPY copied FROM STDIN"));
  await pipeline(Readable.from(lines), into);
  assert.equal(into.rowCount, 1000);
  const chunks = [];
  for await (const chunk of client.query(copyTo("COPY (SELECT * FROM copied ORDER BY id) TO STDOUT"))) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), lines.join(""));
  const wrong = client.query(copyFrom("COPY copied FROM STDIN"));
  await fails("22P02", pipeline(Readable.from(["no number\tx\n"]), wrong));
  assert.equal((await client.query("SELECT count(*)::int AS n FROM copied")).rows[0].n, 1000);
}

async function cursors(client) {
  const cursor = client.query(new Cursor("SELECT * FROM generate_series(1, $1::int) AS n", [250]));
  let sum = 0;
  for (let rows = await cursor.read(100); rows.length > 0; rows = await cursor.read(100)) {
    for (const row of rows) sum += row.n;
  }
  assert.equal(sum, 31375);
  await cursor.close();
}

async function cancellation(client) {
  const other = new pg.Client();
  await other.connect();
  const query = new pg.Query("SELECT pg_sleep(60)");
  const ended = once(query, "end");
  other.query(query);
  await sleep(200);
  new pg.Client().cancel(other, query);
  await fails("57014", ended);
  assert.deepEqual((await other.query("SELECT 1 AS one")).rows, [{ one: 1 }]);
  await other.end();
}

async function pools() {
  const pool = new pg.Pool({ max: 4 });
  const before = await balance(pool, 3);
  const increment = "UPDATE account SET balance = balance + 1 WHERE id = 3";
  await Promise.all(Array.from({ length: 50 }, () => pool.query(increment)));
  assert.equal(await balance(pool, 3), before + 50);
  await pool.end();
}

const client = new pg.Client();
await client.connect();
for (const check of [types, statements, transactions, mistakes, conflicts, copies, cursors, cancellation, pools]) {
  await check(client);
  console.log(`pg: ${check.name}`);
}
await client.end();
