-- What users of psql do, in one session. Run as `psql -X -a -q < session.sql`, it must print what is in session.expected:
-- cargo xtask clients compares the two, without white space at the ends of lines.

-- Types, as psql shows them.
CREATE TABLE sample (
    id integer PRIMARY KEY,
    small smallint,
    large bigint,
    exact numeric(12,3),
    approximate double precision,
    single real,
    title text NOT NULL DEFAULT 'untitled',
    code varchar(8) UNIQUE,
    fixed char(4),
    valid boolean,
    born date,
    at_hour time,
    seen timestamp,
    seen_by_all timestamptz,
    age interval,
    raw bytea,
    key uuid,
    document json,
    tags text[],
    CHECK (large > 0)
);
INSERT INTO sample VALUES
    (1, -32768, 9223372036854775807, 123456789.125, 0.1, 1.5, 'Grüße, 世界', 'a', 'ab', true, '2024-02-29', '23:59:59.5',
     '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59+02', '1 year 2 days 03:04:05', '\x00ff10',
     '0123abcd-89ab-cdef-0123-456789abcdef', '{"a": [1, null]}', '{one,"two, three",NULL}');
INSERT INTO sample (id) VALUES (2);
\x on
SELECT * FROM sample ORDER BY id;
\x off
SELECT id, small, exact, title, valid, born FROM sample ORDER BY id;
\pset null (none)
SELECT id, large, seen_by_all, raw FROM sample ORDER BY id;
\pset null ''
SELECT small, large, exact, title, code, raw, tags FROM sample WHERE false \gdesc

-- Other forms of output.
\pset format csv
SELECT id, title, tags FROM sample ORDER BY id;
\pset format unaligned
SELECT id, title, tags FROM sample ORDER BY id;
\pset format aligned

-- What there is. The titles of lists differ between versions of psql, so they are left out.
CREATE INDEX sample_born ON sample (born, id);
CREATE VIEW titled AS SELECT id, title FROM sample WHERE title <> 'untitled';
CREATE SEQUENCE ticket START 10;
CREATE TABLE part (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sample_id integer NOT NULL REFERENCES sample ON DELETE CASCADE,
    amount numeric DEFAULT 1
);
\d sample
\d part
\d titled
\d sample_born
\d ticket
\t on
\dt
\di
\dv
\ds
\d sam*
\dt nothing
\t off
\sv titled

-- Queries that psql makes something of.
SELECT 6 * 7 AS answer, 'it''s' AS word \gset
\echo :answer :'word' :"word"
SELECT :answer + 1 AS next, :'word' AS quoted;
SELECT format('CREATE TABLE made_%s (id integer PRIMARY KEY)', number) FROM generate_series(1, 2) AS number \gexec
\t on
\dt made_*
\t off
SELECT year, quarter, amount
FROM (VALUES (2023, 'first', 1), (2023, 'second', 2), (2024, 'second', 4)) AS sold (year, quarter, amount)
ORDER BY year, quarter
\crosstabview year quarter amount
SELECT 1 AS one \; SELECT 2 AS two;
\if :{?answer}
SELECT 'there is an answer' AS message;
\else
SELECT 'there is none' AS message;
\endif

-- Mistakes: what psql prints of them, and their codes.
INSERT INTO sample (id) VALUES (1);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO part (sample_id) VALUES (77);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO sample (id, large) VALUES (3, -1);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO sample (id, title) VALUES (3, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT titel FROM sample;
\echo :LAST_ERROR_SQLSTATE
SELECT 1 / 0;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM nowhere;
\echo :LAST_ERROR_SQLSTATE
SELEC 1;
\echo :LAST_ERROR_SQLSTATE

-- Transactions.
BEGIN;
INSERT INTO part (sample_id, amount) VALUES (1, 2.50), (1, 3.75) RETURNING id, amount;
SAVEPOINT before_mistake;
INSERT INTO sample (id) VALUES (1);
SELECT 'not now';
\echo :LAST_ERROR_SQLSTATE
ROLLBACK TO before_mistake;
UPDATE part SET amount = amount * 2 WHERE id = 2 RETURNING *;
COMMIT;
BEGIN;
DELETE FROM sample;
SELECT count(*) FROM part;
ROLLBACK;
SELECT count(*), sum(amount) FROM part;
\set ON_ERROR_ROLLBACK on
BEGIN;
INSERT INTO sample (id) VALUES (1);
INSERT INTO sample (id) VALUES (3);
COMMIT;
\unset ON_ERROR_ROLLBACK
SELECT id, title FROM sample ORDER BY id;

-- A query that comes in pieces, through a cursor.
\set FETCH_COUNT 3
SELECT number, number * number AS square FROM generate_series(1, 7) AS number;
\unset FETCH_COUNT

-- Data in and out.
COPY part (sample_id, amount) FROM STDIN;
2	10
3	\N
\.
COPY (SELECT sample_id, amount FROM part ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER, NULL 'null');
\copy (SELECT id, title, tags FROM sample ORDER BY id) TO 'sample.txt'
DELETE FROM sample;
SELECT count(*) FROM part;
\copy sample (id, title, tags) FROM 'sample.txt'
SELECT id, title, tags FROM sample ORDER BY id;
COPY sample (id) FROM STDIN;
4
four
\.
SELECT count(*) FROM sample;

-- Statements that are prepared, and how one runs.
PREPARE by_title (text) AS SELECT id FROM sample WHERE title = $1 ORDER BY id;
EXECUTE by_title('untitled');
DEALLOCATE by_title;
SELECT nextval('ticket'), nextval('ticket');
SHOW transaction_isolation;

DROP TABLE part, made_1, made_2;
DROP VIEW titled;
DROP TABLE sample;
DROP SEQUENCE ticket;
\d
