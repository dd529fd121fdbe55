//! Processes of the engine `two-phase` that are killed when they have promised to commit and do not know how it ends.

use ordain::db::engine::EngineKind;

use super::operate::{inspect, statuses};
use super::support::*;

/// Transfers between the two sites, each of which is a partition. The library has p0 coordinate them all, so p1 takes part.
const DISTRIBUTED: &str = "name = \"bank\"\naccounts = 400\nmulti_partition_percent = 100";

/// Who is killed, in turn: who takes part, both, who coordinates.
const VICTIMS: [&[usize]; 3] = [&[1], &[0, 1], &[0]];

/// How often at most, until p1 has been in doubt after each of the first two.
const KILLS_MAX: usize = 12;

/// How many transactions are in doubt, as the log of a process that does not run says.
fn promised(cluster: &Cluster, process: usize) -> u64 {
    let printed = inspect(cluster, process);
    let count = printed.split(" transactions in doubt").next().and_then(|before| before.rsplit(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{printed}"))
}

/// How many were when a process started.
fn in_doubt_at_start(cluster: &Cluster, process: usize) -> u64 {
    statuses(cluster, process)[0].deadlocks.in_doubt
}

#[test]
fn what_a_killed_participant_had_promised_is_settled_when_it_starts_again() {
    let folder = TemporaryFolder::create();
    let mut file = durable_file(&folder, 1, 2, 2, DISTRIBUTED);
    (file.engine, file.sites) = (EngineKind::TwoPhase, Some(2));
    let mut cluster = Cluster::spawn_ready(file);
    let load = Load::start(&cluster, 2);
    let mut in_doubt = [0; 3];
    for kill in 0..KILLS_MAX {
        load.wait_for_commits(200);
        let victims = VICTIMS[kill % 3];
        cluster.kill(victims);
        let told = victims.iter().map(|victim| promised(&cluster, *victim)).collect::<Vec<_>>();
        victims.iter().for_each(|victim| cluster.restart(*victim));
        assert!(cluster.wait_until_ready(), "it has its port again");
        let found = victims.iter().map(|victim| in_doubt_at_start(&cluster, *victim)).collect::<Vec<_>>();
        assert_eq!(found, told, "in doubt at {victims:?}");
        println!("killed {victims:?}: in doubt {found:?}");
        in_doubt[kill % 3] += found.iter().sum::<u64>();
        if kill % 3 == 2 && in_doubt[0] > 0 && in_doubt[1] > 0 {
            break;
        }
    }
    assert!(in_doubt[0] > 0 && in_doubt[1] > 0, "p1 had promised something and was killed: {in_doubt:?}");
    load.wait_for_commits(200);
    let tally = load.finish();
    eventually("nothing is under way, and all know how everything ended", || {
        (0..2).all(|process| statuses(&cluster, process)[0].live == 0)
    });
    cluster.check(&tally.totals);
    cluster.check_transfers(&tally);
    let before = digest(&cluster.connect());
    cluster.kill(&[0, 1]);
    for process in 0..2 {
        assert_eq!(promised(&cluster, process), 0);
        cluster.restart(process);
    }
    assert!(cluster.wait_until_ready(), "it has its port again");
    assert_eq!([0, 1].map(|process| in_doubt_at_start(&cluster, process)), [0, 0]);
    assert_eq!(digest(&cluster.connect()), before);
    cluster.stop();
}
