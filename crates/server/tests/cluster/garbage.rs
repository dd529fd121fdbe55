//! Noise at the port of a live cluster, while others work with it.

use std::io::Write;
use std::net::{Shutdown, TcpStream};

use bytes::Bytes;
use ordain::db::message::ClientRequest;
use ordain::db::position::PartitionId;
use ordain::transport::frame::{Frame, FrameKind};
use ordain::transport::{Hello, Role};
use ordain::wire::ClientPayload;
use ordain_workload::Part;

use super::support::*;

const KINDS: [FrameKind; 5] =
    [FrameKind::Hello, FrameKind::Refusal, FrameKind::Data, FrameKind::Ack, FrameKind::Heartbeat];

fn encoded(kind: FrameKind, sequence: u64, payload: Bytes) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame { kind, sequence, payload }.encode_into(&mut bytes);
    bytes
}

fn hello() -> Vec<u8> {
    let hello =
        Hello { role: Role::Client, cluster: 0, incarnation: 0, known_incarnation: 0, receive_next: 1 };
    encoded(FrameKind::Hello, 0, hello.encode())
}

/// Bytes that are nearly a frame.
fn mutated(mut frame: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..1 + random.below(3) {
        let at = random.below(frame.len());
        frame[at] ^= 1 << random.below(8);
    }
    if random.below(4) == 0 {
        frame.truncate(1 + random.below(frame.len()));
    }
    frame
}

/// Sends bytes on a connection of their own. The server may hang up at any time.
fn throw(address: &str, pieces: &[Vec<u8>]) {
    let mut stream = TcpStream::connect(address).unwrap();
    for piece in pieces {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn twenty_thousand_wrong_frames_harm_nobody() {
    let cluster = Cluster::start(2, 2, BANK);
    let load = Load::start(&cluster, 2);
    let workload = cluster.file.workload().unwrap();
    let mut generator = workload.generator(5, 5, Part::WHOLE).unwrap();
    let mut random = Random(17);
    for round in 0..500 {
        let address = cluster.address(round % 2);
        // 20 random ones: bare, and behind a good handshake in a frame whose checksum is right.
        let bare: Vec<Vec<u8>> = (0..10)
            .map(|_| {
                let count = random.below(200);
                random.bytes(count)
            })
            .collect();
        throw(address, &bare);
        let mut greeted = vec![hello()];
        for sequence in 1..=10 {
            let count = random.below(100);
            let payload = Bytes::from(random.bytes(count));
            let kind = if sequence < 3 { FrameKind::Data } else { KINDS[random.below(5)] };
            greeted.push(encoded(kind, sequence, payload));
        }
        throw(address, &greeted);
        // 20 mutated ones: frames that are damaged, and payloads that are, in good frames.
        let to = PartitionId((round % 2) as u16);
        let requests: Vec<ClientRequest> = (0..3)
            .map(|sequence| {
                ordered(request_id(to.0, random.next(), sequence), 0, operation(generator.next()))
            })
            .collect();
        let payload = ClientPayload::encode_requests(to, &requests).unwrap().remove(0);
        let (mut damaged, mut wrong) = (vec![hello()], vec![hello()]);
        for sequence in 1..=10 {
            damaged.push(mutated(encoded(FrameKind::Data, sequence, payload.clone()), &mut random));
            let payload = Bytes::from(mutated(payload.to_vec(), &mut random));
            wrong.push(encoded(FrameKind::Data, sequence, payload));
        }
        throw(address, &damaged);
        throw(address, &wrong);
    }
    load.wait_for_commits(50);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0, "nobody else has lost a connection");
    // Transfers that came through the noise unharmed are as good as any: money is conserved all the same.
    cluster.check(&tally.totals);
    for process in &cluster.processes {
        assert!(!process.log().contains("panicked"), "{}", process.log());
    }
    cluster.stop();
}
