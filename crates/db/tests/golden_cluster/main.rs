//! Golden scripts of whole clusters, node by node and message by message.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
#[path = "../interpreted/mod.rs"]
mod interpreted;
#[macro_use]
#[path = "../scripts/mod.rs"]
mod scripts;
mod commands;
mod display;
mod network;

use commands::Runner;

scripts!(
    "cluster",
    Runner::new(),
    abort_by_logic,
    analysis_at_the_end_of_a_step,
    blind_writes,
    contended,
    distributed_read_only,
    early_answers,
    early_reconnoitred,
    entry_at_a_non_participant,
    finish_out_of_order,
    footprint_miss,
    footprint_too_large,
    forward_and_back,
    gateway_limits,
    helped,
    key_and_range,
    live_transactions_are_limited,
    outside_of_declaration,
    passive_participant,
    reads_before_transaction,
    reads_too_large,
    reconnaissance,
    reconnaissance_of_scans,
    replicated_table,
    said_again,
    same_request_twice,
    sequencer_full,
    serial_waits_in_turn,
    snapshot,
    split_range,
    writes_too_large,
);

mod two_phase {
    use super::*;

    scripts!(
        "two_phase",
        Runner::new(),
        commit,
        deadlock_of_three_nodes,
        deadlock_of_two_nodes,
        early_is_refused,
        growing_footprint,
        live_transactions_are_limited,
        load_control,
        local_deadlock,
        lock_wait_timeout,
        locks_as_it_goes,
        phantom_deadlock,
        presumed_abort,
        ready_order,
        snapshots,
        without_commit_protocol,
    );
}

mod aloha {
    use super::*;

    scripts!(
        "aloha",
        Runner::new(),
        abort_is_whole,
        abort_reaches_every_functor,
        aborted_versions,
        blind_writes,
        chain_across_partitions,
        changed_footprint,
        deferred_writes_elsewhere,
        deleted_keys,
        deleting_functor,
        dependent_keys,
        determinate_without_write,
        early_answers,
        functors,
        g1_as_a_whole,
        g1_early,
        g1_other_direction,
        g1_with_functors,
        guard_at_its_position,
        guards_go_first,
        latest_reads,
        nested_ranges,
        overflow,
        push_before_functor,
        pushes_said_again,
        reads_of_one_range,
        sibling_reads,
        straggler,
        transfers,
        unchanged_is_not_aborted,
    );
}

mod managed_epochs {
    use super::*;

    scripts!("managed_epochs", Runner::new(), gap_transactions_are_invisible, historical_reads, latest_reads,);
}
