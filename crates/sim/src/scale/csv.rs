//! Points as comma-separated values (RFC 4180, with line feeds), for other tools.

use std::fmt::Write as _;

use super::Point;

/// The names of the columns.
const HEADER: &str = "workload,nodes,contention_index,multi_partition_percent,throughput_txn_s,per_node_txn_s,\
                      latency_us_p50,latency_us_p99,busy_percent";

/// A line for each point, in their order, under a line with the names of the columns. Rates have one decimal.
pub fn csv(points: &[Point]) -> String {
    let mut out = format!("{HEADER}\n");
    for point in points {
        let Point { workload, nodes, contention_index, multi_partition_percent, throughput, .. } = point;
        let Point { latency_us_p50, latency_us_p99, busy_percent, .. } = point;
        let (workload, per_node) = (workload.name(), point.per_node());
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{workload},{nodes},{contention_index},{multi_partition_percent},{throughput:.1},{per_node:.1},\
             {latency_us_p50},{latency_us_p99},{busy_percent:.1}"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Benchmark;
    use super::*;

    #[test]
    fn every_column_has_a_value() {
        let point = Point {
            workload: Benchmark::NewOrder,
            nodes: 8,
            contention_index: 0.0001,
            multi_partition_percent: 10.0,
            throughput: 100_000.04,
            latency_us_p50: 1_500,
            latency_us_p99: 9_000,
            busy_percent: 99.96,
        };
        let text = csv(&[point.clone(), Point { nodes: 3, ..point }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], "new-order,8,0.0001,10,100000.0,12500.0,1500,9000,100.0");
        assert!(lines[2].starts_with("new-order,3,0.0001,10,100000.0,33333.3,"), "{}", lines[2]);
        assert!(lines.iter().all(|line| line.split(',').count() == HEADER.split(',').count()));
    }
}
