//! What is run for real.

/// Both engines, as entries of `ordain bench compare`; ratios are to the first.
const BOTH: &[&str] = &["calvin", "aloha"];

/// Epochs of a manager of the paper's length, and those that the database makes by itself.
const EPOCHS: &[&str] = &[
    "calvin --epochs managed --epoch-milliseconds 25",
    "calvin",
    "aloha --epochs managed --epoch-milliseconds 25",
    "aloha",
];

/// Answers when a call has its place, and when it is computed.
const ANSWERS: &[&str] = &["aloha --answer computed", "aloha --answer ordered"];

/// Calls outstanding for each partition, of which the best counts, for each entry by itself.
const CLIENTS: &[u32] = &[64, 256, 1_024];
/// The same where few certainly are too few: with nothing to wait for, or with one partition.
const MANY_CLIENTS: &[u32] = &[256, 1_024];
/// Where the load is a given one.
const AS_GIVEN: &[u32] = &[];

/// A comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Case {
    /// For people.
    pub(super) name: &'static str,
    /// What is compared.
    pub(super) entries: &'static [&'static str],
    /// Calls outstanding for each partition, of which the best counts; none where the workload says what the load is.
    pub(super) clients: &'static [u32],
    /// Partitions.
    pub(super) partitions: u16,
    /// What follows the entries on the command line of `ordain bench compare`.
    pub(super) workload: &'static str,
}

impl Case {
    const fn both(name: &'static str, workload: &'static str) -> Case {
        Case { name, entries: BOTH, clients: CLIENTS, partitions: 2, workload }
    }

    const fn with_many(self) -> Case {
        Case { clients: MANY_CLIENTS, ..self }
    }

    const fn on_one_partition(self) -> Case {
        Case { partitions: 1, ..self }
    }

    const fn as_given(self, entries: &'static [&'static str]) -> Case {
        Case { entries, clients: AS_GIVEN, ..self }
    }

    /// The command line after `ordain bench`.
    pub(super) fn command(&self, entries: &str, rounds: u16, seconds: f64) -> String {
        let Case { partitions, workload, .. } = self;
        format!(
            "--partitions {partitions} --seconds {seconds} compare --entries \"{entries}\" --rounds {rounds} {workload}"
        )
    }

    /// An entry with so many calls outstanding for each partition.
    pub(super) fn with_clients(&self, entry: &str, each: u32) -> String {
        format!("{entry} --clients {}", each * u32::from(self.partitions))
    }
}

/// The names by which statements find cases.
pub(super) const NEW_ORDERS: [&str; 4] =
    ["New Orders, 1W", "New Orders, 10W", "New Orders, 1D", "New Orders, 10D"];
/// See [`NEW_ORDERS`].
pub(super) const ONE_PARTITION: [&str; 2] = ["one partition, micro", "one partition, New Orders"];
/// See [`NEW_ORDERS`]: at the low index and at the high one.
pub(super) const ARITHMETIC: [&str; 2] = ["arithmetic, index 0.0001", "arithmetic, index 0.1"];
/// See [`ARITHMETIC`].
pub(super) const OWN: [&str; 2] = ["own functors, index 0.0001", "own functors, index 0.1"];
/// See [`ARITHMETIC`].
pub(super) const WHOLE: [&str; 2] = ["as a whole, index 0.0001", "as a whole, index 0.1"];
/// See [`NEW_ORDERS`].
pub(super) const LIGHT: &str = "light load, 5,000 additions/s";
/// See [`NEW_ORDERS`].
pub(super) const ANSWERED: &str = "early answers, 5,000 New Orders/s";

/// All of them. With 10 warehouses of a partition there are a tenth of the items, so that there are as many stock rows as with one.
#[rustfmt::skip]
pub(super) const CASES: [Case; 20] = [
    Case::both(NEW_ORDERS[0], "tpcc --warehouses 2 --customers 300 --remote 100"),
    Case::both(NEW_ORDERS[1], "tpcc --warehouses 20 --items 10000 --customers 300 --remote 100"),
    Case::both(NEW_ORDERS[2], "scaled-tpcc --districts-per-partition 1 --customers 300"),
    Case::both(NEW_ORDERS[3], "scaled-tpcc --districts-per-partition 10 --customers 300"),
    Case::both("two processes, New Orders, 1W", "tpcc --warehouses 2 --customers 300 --remote 100 --processes 2"),
    Case::both("two processes, New Orders, 10W", "tpcc --warehouses 20 --items 10000 --customers 300 --remote 100 --processes 2"),
    Case::both("two processes, New Orders, 1D", "scaled-tpcc --districts-per-partition 1 --customers 300 --processes 2"),
    Case::both("two processes, New Orders, 10D", "scaled-tpcc --districts-per-partition 10 --customers 300 --processes 2"),
    Case::both("Payments, 10W", "tpcc --warehouses 20 --items 10000 --customers 300 --new-order 0 --payment-remote 100 --by-name 0").with_many(),
    Case::both(ARITHMETIC[0], "micro --multi-partition 100 --contention-index 0.0001 --adds arithmetic").with_many(),
    Case::both(ARITHMETIC[1], "micro --multi-partition 100 --contention-index 0.1 --adds arithmetic"),
    Case::both(OWN[0], "micro --multi-partition 100 --contention-index 0.0001 --adds own").with_many(),
    Case::both(OWN[1], "micro --multi-partition 100 --contention-index 0.1 --adds own"),
    Case::both(WHOLE[0], "micro --multi-partition 100 --contention-index 0.0001 --adds whole").with_many(),
    Case::both(WHOLE[1], "micro --multi-partition 100 --contention-index 0.1 --adds whole"),
    Case::both(ONE_PARTITION[0], "micro --multi-partition 0").with_many().on_one_partition(),
    Case::both(ONE_PARTITION[1], "tpcc --warehouses 4 --remote 0 --customers 300").with_many().on_one_partition(),
    Case::both(LIGHT, "micro --multi-partition 100 --contention-index 0.001 --adds arithmetic --rate 5000").as_given(EPOCHS),
    Case::both("16 clients, additions", "micro --multi-partition 100 --contention-index 0.001 --adds arithmetic --clients 16").as_given(EPOCHS),
    Case::both(ANSWERED, "tpcc --warehouses 2 --customers 300 --remote 100 --rate 5000").as_given(ANSWERS),
];
