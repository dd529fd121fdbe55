//! Values that are nearly as long as a key may be, or longer, sought by seeds in a table with keys and indexes and in one with the same rows and
//! none: both must give the same. Only what is to be written may be too long.

#[expect(dead_code, reason = "its messages are for the tests of the protocol")]
mod random;
mod support;

use ordain_db::engine::EngineKind;
use random::Generator;
use support::World;

/// Lengths of the values of single keys, of those of two columns and of bytes that are escaped are at their limits here.
const LENGTHS: [usize; 12] = [0, 2, 160, 167, 200, 251, 334, 495, 500, 930, 1000, 1009];

struct Values {
    generator: Generator,
    /// Whether they are bytes.
    is_bytes: bool,
}

impl Values {
    /// A value: one part again and again, and perhaps another one at the end.
    fn value(&mut self) -> String {
        let beyond = if self.generator.one_in(8) { 1000 } else { 0 };
        let length = LENGTHS[self.generator.below(LENGTHS.len())] + self.generator.below(9) + beyond;
        if self.is_bytes {
            let part = self.generator.pick(&["00", "00", "01", "ff"]);
            let last = self.generator.pick(&["", "", "00", "01", "ff", "0000", "00ff"]);
            return format!("'\\x{}{last}'::bytea", part.repeat(length));
        }
        let (part, last) =
            (self.generator.pick(&["x", "x", "y"]), self.generator.pick(&["", "", "w", "x", "y"]));
        match self.generator.below(3) {
            0 => format!("repeat('{part}', {length}) || '{last}'"),
            _ => format!("'{}{last}'", part.repeat(length)),
        }
    }

    fn operator(&mut self) -> &'static str {
        self.generator.pick(&["=", "<", "<=", ">", ">="])
    }

    fn condition(&mut self) -> String {
        let column = self.generator.pick(&["a", "a", "u", "n"]);
        let (operator, one, other) = (self.operator(), self.value(), self.value());
        let row = 4 * self.generator.below(40);
        match self.generator.below(9) {
            0 => format!("{column} IN ({one}, {other})"),
            1 => format!("{column} = ANY (ARRAY[{one}, {other}])"),
            2 => format!("{column} BETWEEN {one} AND {other}"),
            3 => format!("a = {one} AND b {operator} {other}"),
            4 => format!("a = (SELECT a FROM m WHERE v = {row}) AND b {operator} {other}"),
            5 => format!(
                "a IN ({one}, (SELECT a FROM m WHERE v = {row})) AND b IN ({other}, (SELECT b FROM m WHERE v = {row}))"
            ),
            6 => format!("n = {one} AND u {operator} {other}"),
            _ => format!("{column} {operator} {one}"),
        }
    }

    fn query(&mut self) -> String {
        let form = self.generator.pick(&[
            "SELECT v FROM {} WHERE [] ORDER BY v",
            "SELECT v FROM {} WHERE [] AND [] ORDER BY v",
            "SELECT v FROM {} WHERE [] OR [] ORDER BY v",
            "SELECT v FROM {} WHERE [] ORDER BY a DESC, b DESC LIMIT 3",
            "SELECT v FROM {} WHERE [] ORDER BY u, v LIMIT 3",
            "SELECT count(*), max(v) FROM {} WHERE []",
            "SELECT l.id, x.v FROM l LEFT JOIN {} x ON x.u = l.t ORDER BY 1, 2",
            "SELECT l.id, x.v FROM l LEFT JOIN {} x ON x.a = l.t AND [] ORDER BY 1, 2",
            "SELECT l.id, x.v FROM l JOIN {} x ON x.a = (SELECT a FROM m WHERE v = l.id * 4) AND x.b = l.t ORDER BY 1, 2",
            "SELECT id, (SELECT count(*) FROM {} x WHERE x.a > l.t), (SELECT max(v) FROM {} x WHERE x.n <= l.t) FROM l ORDER BY id",
            "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM {} x WHERE x.u = l.t) ORDER BY id",
            "UPDATE {} SET v = v WHERE []",
            "UPDATE {} SET v = v FROM l WHERE {}.a = l.t",
            "DELETE FROM {} WHERE [] AND []",
            "DELETE FROM {} WHERE [] AND v % 5 = 0",
        ]);
        let mut query = form.to_owned();
        while query.contains("[]") {
            query = query.replacen("[]", &format!("({})", self.condition()), 1);
        }
        query
    }
}

struct Run {
    world: World,
}

impl Run {
    fn ask(&mut self, text: &str) -> String {
        self.world.ask("a", text)
    }

    fn must(&mut self, text: &str) -> String {
        self.world.must("a", text)
    }

    /// Whether a row could be written; if not, it is too long or there.
    fn writes(&mut self, text: &str) -> bool {
        let answer = self.ask(text);
        let is_known = answer.contains("ERROR 54000: key: key of") || answer.contains("ERROR 23505");
        assert!(is_known || !answer.contains("ERROR"), "{text}: {answer}");
        !answer.contains("ERROR")
    }
}

fn run(engine: EngineKind, partitions: u16, seed: u64, is_bytes: bool) {
    let mut run = Run { world: World::new(engine, partitions) };
    let mut values = Values { generator: Generator(seed), is_bytes };
    let data_type = if is_bytes { "bytea" } else { "text" };
    let columns = format!("a {data_type}, b {data_type}, u {data_type}, n {data_type}, v int");
    run.must(&format!("CREATE TABLE t ({columns}, PRIMARY KEY (a, b))"));
    run.must("CREATE UNIQUE INDEX t_u ON t (u)");
    run.must("CREATE INDEX t_n ON t (n, u)");
    run.must(&format!("CREATE TABLE m ({columns})"));
    run.must(&format!("CREATE TABLE l (id int PRIMARY KEY, t {data_type})"));
    run.must(&format!("CREATE TABLE f (id int PRIMARY KEY, u {data_type} REFERENCES t (u))"));
    for id in 0..12 {
        let value = values.value();
        run.must(&format!("INSERT INTO l VALUES ({id}, {value})"));
    }
    let (mut written, mut refused, mut given) = (0, 0, 0);
    for step in 0..160 {
        let [a, b, u, n] = [(); 4].map(|()| values.value());
        // Most rows have one long value at most, since all go into the key of one.
        let (b, n) = if step % 4 == 0 { (b, n) } else { ("'x'".to_owned(), "'x'".to_owned()) };
        let row = format!("VALUES ({a}, {b}, {u}, {n}, {step})");
        if run.writes(&format!("INSERT INTO t {row}")) {
            run.must(&format!("INSERT INTO m {row}"));
            written += 1;
        } else {
            refused += 1;
        }
        let in_block = step % 5 == 0;
        if in_block {
            run.must("BEGIN");
        }
        for _ in 0..3 {
            let query = values.query();
            let [one, other] = ["t", "m"].map(|table| run.must(&query.replace("{}", table)));
            assert_eq!(one, other, "{engine:?} {query}");
            given += usize::from(!one.contains("SELECT 0"));
        }
        if in_block {
            run.must("COMMIT");
        }
        if step % 4 == 0 {
            let sought = values.value();
            let is_there = !run.must(&format!("SELECT 1 FROM m WHERE u = {sought}")).contains("SELECT 0");
            let answer = run.ask(&format!("INSERT INTO f VALUES ({step}, {sought})"));
            assert_eq!(is_there, !answer.contains("ERROR"), "{answer}");
            assert!(is_there || answer.contains("ERROR 23503"), "{answer}");
            run.must("DELETE FROM f");
        }
    }
    let all = "SELECT v, length(a), length(b), length(u), length(n) FROM {} ORDER BY v";
    assert_eq!(run.must(&all.replace("{}", "t")), run.must(&all.replace("{}", "m")));
    assert!(written > 20 && refused > 20 && given > 150, "{written} {refused} {given}");
}

#[test]
fn long_values_are_found_where_they_are() {
    for (seed, is_bytes) in [(1, false), (2, true)] {
        run(EngineKind::Calvin, 1, seed, is_bytes);
        run(EngineKind::CalvinVll, 3, seed + 2, is_bytes);
        run(EngineKind::Aloha, 2, seed + 4, is_bytes);
        run(EngineKind::Serial, 1, seed + 6, is_bytes);
    }
}
