//! The forms of what is kept on disks. They follow from types, so a change of a type changes what old files mean: whoever makes one
//! raises the version that [`ordain_db::kept`] names, and only then pins the new form here.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use bytes::Bytes;
use ordain_db::checkpoint::FORMAT_VERSION;
use ordain_db::engine::two_phase::message::{Statement, TransactionId, TwoPhaseRecord};
use ordain_db::error::Error;
use ordain_db::kept::decode_whole;
use ordain_db::message::{ClientId, Ordered, Reconnoitred, RequestId, Work};
use ordain_db::node::SavedNode;
use ordain_db::node::ordering::LoggedBatch;
use ordain_db::position::{Entry, Epoch, NodeId, PartitionId, Position, ReplicaId};
use ordain_db::procedure::ProcedureId;
use serde::Serialize;
use serde::de::DeserializeOwned;

const REQUEST: RequestId = RequestId { client: ClientId { home: PartitionId(1), number: 300 }, sequence: 7 };

const ENTRY: Entry = Entry { node: NodeId { partition: PartitionId(1), replica: ReplicaId(2) }, life: 300 };

const AT: Position = Position { epoch: Epoch(9), origin: PartitionId(1), index: 2 };

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a value has the form that is pinned, and comes back from it.
fn pin<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, form: &str) {
    let bytes = postcard::to_allocvec(value).unwrap();
    assert_eq!(
        hexadecimal(&bytes),
        form.replace(' ', ""),
        "a form that is kept on disks has changed: raise its version (see ordain_db::kept)"
    );
    assert_eq!(&decode_whole::<T>(&bytes).unwrap(), value);
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(decode_whole::<T>(&longer).unwrap_err(), "1 bytes too many");
}

#[test]
fn a_batch_has_its_form() {
    let call = |reconnoitred| Work::Call {
        procedure: ProcedureId(3),
        arguments: Bytes::from_static(b"ab"),
        reconnoitred,
    };
    let found = Reconnoitred { footprint: Bytes::from_static(b"f"), restarts: 1 };
    let works = [
        call(None),
        call(Some(found)),
        Work::OpenSnapshot(ENTRY),
        Work::GiveUp(Error::Busy("b".to_owned())),
        Work::CloseSnapshot(AT),
        Work::Checkpoint(Some(ReplicaId(2))),
    ];
    let ordered = |work| Ordered { request: REQUEST, acknowledged: 5, work };
    let batch = LoggedBatch {
        epoch: Epoch(9),
        closed_at: 130,
        delivered: Epoch(8),
        shed: 10,
        held_back: 11,
        transactions: works.map(ordered).to_vec(),
    };
    pin(
        &batch,
        "09 8201 08 0a 0b 06 \
         01ac0207 05 00 03 026162 00 \
         01ac0207 05 00 03 026162 01 0166 01 \
         01ac0207 05 01 01 02 ac02 \
         01ac0207 05 02 02 0162 \
         01ac0207 05 03 09 01 02 \
         01ac0207 05 04 01 02",
    );
}

#[test]
fn a_record_of_two_phase_has_its_form() {
    let statement = Statement {
        request: REQUEST,
        acknowledged: 5,
        procedure: ProcedureId(3),
        arguments: Bytes::from_static(b"ab"),
        footprint: Some(Bytes::from_static(b"f")),
    };
    let id = TransactionId { started: 200, coordinator: PartitionId(1), life: 3, attempt: 4 };
    let reads = vec![(PartitionId(2), Bytes::from_static(b"r"))];
    let records = [
        TwoPhaseRecord::Started,
        TwoPhaseRecord::Local { position: AT, statement: statement.clone() },
        TwoPhaseRecord::Prepared { id, statement: statement.clone(), reads: reads.clone() },
        TwoPhaseRecord::Decided { id, position: Some(AT) },
        TwoPhaseRecord::Committed { id, position: AT, statement, reads, participants: vec![PartitionId(2)] },
        TwoPhaseRecord::Snapshot { at: AT, request: Some((REQUEST, 5)) },
        TwoPhaseRecord::Forgotten { id },
    ];
    pin(
        &records.to_vec(),
        "07 00 \
         01 090102 01ac0207 05 03 026162 010166 \
         02 c8010103 04 01ac0207 05 03 026162 010166 01 020172 \
         03 c8010103 04 01 090102 \
         04 c8010103 04 090102 01ac0207 05 03 026162 010166 01 020172 01 02 \
         05 090102 01 01ac0207 05 \
         06 c8010103 04",
    );
}

/// The fields of a node's state are its own: here they are written as plain tuples.
#[test]
fn the_state_of_a_node_has_its_form() {
    let sessions = [((1_u16, 300_u64), 4_u64, [(7_u64, (2_u8, (9_u64, 1_u16, 2_u32)))].to_vec())].to_vec();
    let dependent = [((1_u16, 300_u64, 7_u64), (3_u16, b"ab".to_vec(), 1_u32, None::<u8>))].to_vec();
    let counters = [1_u64, 2, 3, 4, 5, 6, 7, 8];
    let gateway = (sessions, dependent, counters);
    let snapshots = [((9_u64, 1_u16, 2_u32), ((1_u16, 2_u16), 300_u64))].to_vec();
    let membership = ([0_u16, 1].to_vec(), Vec::<u16>::new(), [2_u16].to_vec(), Vec::<u16>::new());
    let saved = (gateway, snapshots, 12_u128, [1_u64, 1].to_vec(), (30_u64, 2_u64, membership));
    let bytes = postcard::to_allocvec(&saved).unwrap();
    let decoded: SavedNode = decode_whole(&bytes).unwrap_or_else(|error| {
        panic!(
            "{error}: the state of a node has changed: raise FORMAT_VERSION ({FORMAT_VERSION}) of checkpoints"
        )
    });
    assert_eq!(postcard::to_allocvec(&decoded).unwrap(), bytes);
    assert_eq!((decoded.terms.as_slice(), decoded.log.index, decoded.written), (&[1, 1][..], 30, 12));
}
