import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

/** pgjdbc: types, prepared statements, transactions, errors, batches, COPY, cursors, metadata and cancellation. */
class Client {
    /** What can throw anything. */
    interface Action {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        for (String mode : List.of("extended", "extendedForPrepared", "extendedCacheEverything", "simple")) {
            try (Connection connection = connect("preferQueryMode=" + mode + "&prepareThreshold=2")) {
                types(connection);
                statements(connection);
                transactions(connection);
                mistakes(connection);
                conflicts(connection);
                batches(connection);
                if (!mode.equals("simple")) {
                    copies(connection);
                    descriptions(connection);
                }
                cursors(connection);
                cancellation(connection);
                metadata(connection);
                execute(connection, "DROP TABLE typed", "DROP TABLE entry", "DROP TABLE account");
            }
            System.out.println("pgjdbc: preferQueryMode=" + mode);
        }
    }

    static Connection connect(String options) throws SQLException {
        String host = System.getenv("PGHOST") + ":" + System.getenv("PGPORT");
        String url = "jdbc:postgresql://" + host + "/" + System.getenv("PGDATABASE") + "?" + options;
        return DriverManager.getConnection(url, System.getenv("PGUSER"), "");
    }

    static void equal(String what, Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError(what + ": expected " + shown(expected) + ", found " + shown(found));
        }
    }

    static String shown(Object value) {
        String deep = Arrays.deepToString(new Object[] {value});
        return value == null ? "null" : deep + " of " + value.getClass().getName();
    }

    /** Fails unless something fails with an SQLSTATE. */
    static PSQLException fails(String code, Action action) throws Exception {
        try {
            action.run();
        } catch (BatchUpdateException error) {
            equal("the code of an error in a batch", error.getSQLState(), code);
            return null;
        } catch (PSQLException error) {
            equal("the code of an error (" + error.getMessage() + ")", error.getSQLState(), code);
            return error;
        }
        throw new AssertionError("expected " + code);
    }

    static void execute(Connection connection, String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    /** The first value of the first row. */
    static Object value(Connection connection, String query, Object... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            for (int place = 0; place < parameters.length; place++) {
                statement.setObject(place + 1, parameters[place]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? rows.getObject(1) : "no row";
            }
        }
    }

    static final List<String> TYPES = List.of(
        "smallint", "integer", "bigint", "numeric(20,4)", "real", "double precision", "text", "varchar(10)", "boolean", "date",
        "time", "timestamp", "timestamptz", "bytea", "uuid");

    static final Object[] VALUES = {
        -32768, Integer.MAX_VALUE, Long.MIN_VALUE, new BigDecimal("-1234567890.0625"), 1.5f, 0.1,
        "Grüße, 世界 'quoted' \\ and\nmore", "ten at mos", true, LocalDate.of(2024, 2, 29), LocalTime.of(23, 59, 59, 123456000),
        LocalDateTime.of(2024, 2, 29, 23, 59, 59, 123456000),
        OffsetDateTime.of(2024, 2, 29, 23, 59, 59, 123456000, ZoneOffset.UTC), new byte[] {0, 1, 127, -128, -1},
        UUID.fromString("0123abcd-89ab-cdef-0123-456789abcdef"),
    };

    static void types(Connection connection) throws Exception {
        StringBuilder columns = new StringBuilder();
        for (int place = 0; place < TYPES.size(); place++) {
            columns.append(", c").append(place).append(' ').append(TYPES.get(place));
        }
        execute(connection, "CREATE TABLE typed (id integer PRIMARY KEY, tags text[]" + columns + ", document json)");
        String insert = "INSERT INTO typed VALUES (?, ?" + ", ?".repeat(TYPES.size()) + ", ?::json)";
        // Often enough that the driver prepares the statement and goes over to binary.
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int id = 0; id < 5; id++) {
                statement.setInt(1, id);
                statement.setArray(2, connection.createArrayOf("text", new String[] {"one", "two, \"three\"", null}));
                for (int place = 0; place < TYPES.size(); place++) {
                    statement.setObject(place + 3, VALUES[place]);
                }
                statement.setString(TYPES.size() + 3, "{\"a\": [1, null]}");
                equal("rows", statement.executeUpdate(), 1);
            }
            statement.setInt(1, 5);
            for (int place = 2; place <= TYPES.size() + 3; place++) {
                statement.setNull(place, place == 2 ? Types.ARRAY : Types.NULL);
            }
            statement.executeUpdate();
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM typed WHERE id = ?")) {
            for (int id = 0; id <= 5; id++) {
                statement.setInt(1, id);
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    for (int place = 0; place < TYPES.size(); place++) {
                        Object expected = VALUES[place];
                        Class<?> form = place == 0 ? Integer.class : expected.getClass();
                        Object found = form == byte[].class ? row.getBytes(place + 3) : row.getObject(place + 3, form);
                        equal(TYPES.get(place), found, id == 5 ? null : expected);
                    }
                    if (id < 5) {
                        equal("text[]", row.getArray(2).getArray(), new String[] {"one", "two, \"three\"", null});
                        equal("json", row.getString("document"), "{\"a\": [1, null]}");
                    }
                }
            }
        }
    }

    static void statements(Connection connection) throws Exception {
        execute(connection, "CREATE TABLE account (id bigint PRIMARY KEY, balance integer NOT NULL)",
            "CREATE TABLE entry (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,"
                + " account bigint REFERENCES account ON DELETE CASCADE, amount numeric(10, 2) DEFAULT 0)",
            "INSERT INTO account SELECT id, 100 FROM generate_series(0, 9) AS id");
        for (int id = 0; id < 10; id++) {
            equal("a prepared statement", value(connection, "SELECT balance FROM account WHERE id = ?", id), 100);
        }
        String insert = "INSERT INTO entry (account, amount) VALUES (1, 2.5), (1, 3.5)";
        try (Statement statement = connection.createStatement()) {
            equal("rows", statement.executeUpdate(insert, Statement.RETURN_GENERATED_KEYS), 2);
            ResultSet keys = statement.getGeneratedKeys();
            List<Long> found = new ArrayList<>();
            while (keys.next()) {
                found.add(keys.getLong("id"));
            }
            equal("generated keys", found, List.of(1L, 2L));
            equal("several statements", statement.execute("SELECT 1; SELECT 2"), true);
            equal("the next result", statement.getMoreResults(), true);
        }
        Object sum = value(connection, "SELECT sum(amount) FROM entry WHERE account = ANY(?)",
            connection.createArrayOf("bigint", new Long[] {1L, 7L}));
        equal("an array as parameter", sum, new BigDecimal("6.00"));
    }

    static Object balance(Connection connection, int id) throws SQLException {
        return value(connection, "SELECT balance FROM account WHERE id = ?", id);
    }

    static void transactions(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        execute(connection, "UPDATE account SET balance = 7 WHERE id = 1");
        Savepoint savepoint = connection.setSavepoint("here");
        execute(connection, "UPDATE account SET balance = 8 WHERE id = 1");
        fails("23505", () -> execute(connection, "INSERT INTO account VALUES (1, 0)"));
        fails("25P02", () -> execute(connection, "SELECT 1"));
        connection.rollback(savepoint);
        connection.commit();
        equal("after ROLLBACK TO", balance(connection, 1), 7);
        execute(connection, "DELETE FROM entry");
        connection.rollback();
        equal("after ROLLBACK", value(connection, "SELECT count(*) FROM entry"), 2L);
        connection.commit();
        connection.setReadOnly(true);
        fails("25006", () -> execute(connection, "DELETE FROM entry"));
        connection.rollback();
        connection.setReadOnly(false);
        connection.setAutoCommit(true);
    }

    static void mistakes(Connection connection) throws Exception {
        var message = fails("23505", () -> execute(connection, "INSERT INTO account VALUES (1, 1)")).getServerErrorMessage();
        equal("the table of an error", message.getTable(), "account");
        equal("the constraint of an error", message.getConstraint(), "account_pkey");
        message = fails("23502", () -> execute(connection, "INSERT INTO account VALUES (99, NULL)")).getServerErrorMessage();
        equal("the column of an error", message.getColumn(), "balance");
        fails("23503", () -> execute(connection, "INSERT INTO entry (account) VALUES (99)"));
        fails("42P01", () -> execute(connection, "SELECT * FROM nowhere"));
        fails("42601", () -> execute(connection, "SELEC 1"));
        fails("22012", () -> value(connection, "SELECT 1 / ?", 0));
    }

    /** Each transaction reads what the other one writes, so one of them must fail. */
    static void conflicts(Connection connection) throws Exception {
        try (Connection other = connect("")) {
            for (Connection each : List.of(connection, other)) {
                each.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                each.setAutoCommit(false);
            }
            Object first = balance(connection, 1);
            Object second = balance(other, 2);
            value(connection, "UPDATE account SET balance = ? WHERE id = 2 RETURNING id", first);
            connection.commit();
            fails("40001", () -> {
                value(other, "UPDATE account SET balance = ? WHERE id = 1 RETURNING id", second);
                other.commit();
            });
            connection.setAutoCommit(true);
        }
    }

    static void batches(Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO entry (account, amount) VALUES (?, ?)")) {
            for (int number = 0; number < 300; number++) {
                statement.setInt(1, number % 10);
                statement.setBigDecimal(2, new BigDecimal("0.25"));
                statement.addBatch();
            }
            equal("a batch", Arrays.stream(statement.executeBatch()).sum(), 300);
            for (int account : new int[] {1, 99}) {
                statement.setInt(1, account);
                statement.setBigDecimal(2, null);
                statement.addBatch();
            }
            fails("23503", statement::executeBatch);
        }
        equal("after a broken batch", value(connection, "SELECT sum(amount) FROM entry"), new BigDecimal("81.00"));
    }

    static void copies(Connection connection) throws Exception {
        var copies = connection.unwrap(PGConnection.class).getCopyAPI();
        String lines = "1000,word\n1001,\n";
        execute(connection, "CREATE TABLE copied (id integer, word text)");
        equal("rows copied", copies.copyIn("COPY copied FROM STDIN (FORMAT csv)", new StringReader(lines)), 2L);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        copies.copyOut("COPY (SELECT * FROM copied ORDER BY id) TO STDOUT WITH CSV", out);
        equal("what was copied", out.toString(StandardCharsets.UTF_8), lines);
        execute(connection, "DROP TABLE copied");
    }

    static void cursors(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        try (PreparedStatement statement = connection.prepareStatement("SELECT number FROM generate_series(1, ?) AS number")) {
            statement.setFetchSize(30);
            statement.setInt(1, 200);
            int sum = 0;
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    sum += rows.getInt(1);
                }
            }
            equal("rows that come in pieces", sum, 20100);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    static void cancellation(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            fails("57014", () -> statement.execute("SELECT pg_sleep(60)"));
        }
        equal("after a time limit", connection.isValid(1), true);
    }

    /** A column of the rows that a query of the metadata gives. */
    static List<Object> column(ResultSet rows, String name) throws SQLException {
        List<Object> values = new ArrayList<>();
        while (rows.next()) {
            values.add(rows.getObject(name));
        }
        return values;
    }

    static void metadata(Connection connection) throws Exception {
        DatabaseMetaData metadata = connection.getMetaData();
        execute(connection, "CREATE INDEX entry_account ON entry (account)", "CREATE VIEW total AS SELECT account, amount FROM entry");
        String[] tables = {"TABLE"};
        equal("tables", column(metadata.getTables(null, "public", "%", tables), "TABLE_NAME"), List.of("account", "entry", "typed"));
        equal("views", column(metadata.getTables(null, "public", "%", new String[] {"VIEW"}), "TABLE_NAME"), List.of("total"));
        equal("columns", column(metadata.getColumns(null, "public", "entry", "%"), "COLUMN_NAME"), List.of("id", "account", "amount"));
        equal("types", column(metadata.getColumns(null, null, "entry", "%"), "TYPE_NAME"), List.of("int8", "int8", "numeric"));
        equal("columns of a view", column(metadata.getColumns(null, null, "total", "%"), "TYPE_NAME"), List.of("int8", "numeric"));
        equal("nullable", column(metadata.getColumns(null, null, "entry", "%"), "IS_NULLABLE"), List.of("NO", "YES", "YES"));
        equal("primary key", column(metadata.getPrimaryKeys(null, "public", "entry"), "COLUMN_NAME"), List.of("id"));
        equal("indexes", column(metadata.getIndexInfo(null, "public", "entry", false, true), "INDEX_NAME"), List.of("entry_pkey", "entry_account"));
        equal("imported keys", column(metadata.getImportedKeys(null, "public", "entry"), "PKTABLE_NAME"), List.of("account"));
        equal("exported keys", column(metadata.getExportedKeys(null, "public", "account"), "FKCOLUMN_NAME"), List.of("account"));
        equal("schemas", column(metadata.getSchemas(null, "pub%"), "TABLE_SCHEM"), List.of("public"));
        execute(connection, "DROP VIEW total");
    }

    /** What the server tells of a statement before it runs. */
    static void descriptions(Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("SELECT id, amount FROM entry WHERE account = ?")) {
            equal("a column of a query", statement.getMetaData().getColumnTypeName(2), "numeric");
            equal("its scale", statement.getMetaData().getScale(2), 2);
            equal("its table", statement.getMetaData().getTableName(2), "entry");
            equal("whether it counts up", statement.getMetaData().isAutoIncrement(1), true);
            equal("a parameter", statement.getParameterMetaData().getParameterTypeName(1), "int8");
        }
    }
}
