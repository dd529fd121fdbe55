//! Lists of items inside payloads: written into as many payloads as they need, read back with care.

use bytes::Bytes;
use ordain_db::execution::remote_reads;
use ordain_db::message::{ClientRequest, Message, Reply};
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{PAYLOAD_BYTES_TARGET, PAYLOAD_ITEMS_MAX, WIRE_VERSION, WireError};
use crate::transport::limits::FRAME_PAYLOAD_BYTES_MAX;

/// Room for items that is made before they have been read.
const ITEMS_AHEAD_MAX: usize = 1024;

/// An item of a list.
pub(super) trait Item: Serialize + Sized {
    /// Two items that say the same when they arrive one after the other; `None` if it cannot be cut.
    fn halves(&self) -> Option<(Self, Self)> {
        None
    }
}

impl Item for ClientRequest {}

impl Item for Reply {}

impl Item for Message {
    fn halves(&self) -> Option<(Message, Message)> {
        match self {
            Message::Reads { basis, reads } => {
                let part = |reads| Message::Reads { basis: *basis, reads };
                remote_reads::halves(reads).map(|(first, second)| (part(first), part(second)))
            }
            Message::Reports { basis, reports } => {
                let (first, second) = halves_of(reports)?;
                let part = |reports| Message::Reports { basis: *basis, reports };
                Some((part(first), part(second)))
            }
            Message::Forward { entry, requests } => {
                let (first, second) = halves_of(requests)?;
                let forward = |requests| Message::Forward { entry: *entry, requests };
                Some((forward(first), forward(second)))
            }
            Message::Replies(replies) => {
                halves_of(replies).map(|(first, second)| (Message::Replies(first), Message::Replies(second)))
            }
            // The limits of the database keep all others below that of a frame.
            _ => None,
        }
    }
}

/// A list cut in the middle; `None` if it has a single item.
fn halves_of<T: Clone>(items: &[T]) -> Option<(Vec<T>, Vec<T>)> {
    let (first, second) = items.split_at_checked(items.len().div_ceil(2))?;
    (!second.is_empty()).then(|| (first.to_vec(), second.to_vec()))
}

/// Makes payloads of a list: each a head, the number of items as u32, and the items.
pub(super) struct ListEncoder {
    payloads: Vec<Bytes>,
    buffer: Vec<u8>,
    /// Bytes of the head and the number.
    start: usize,
    count: u32,
    bytes_target: usize,
    bytes_max: usize,
}

impl ListEncoder {
    pub(super) fn new(head: &[u8]) -> ListEncoder {
        let mut buffer = Vec::with_capacity(256);
        buffer.extend_from_slice(head);
        buffer.extend_from_slice(&[0; 4]);
        let start = buffer.len();
        let (bytes_target, bytes_max) = (PAYLOAD_BYTES_TARGET, FRAME_PAYLOAD_BYTES_MAX);
        ListEncoder { payloads: Vec::new(), buffer, start, count: 0, bytes_target, bytes_max }
    }

    pub(super) fn push<T: Item>(&mut self, item: &T) -> Result<(), WireError> {
        let before = self.buffer.len();
        append(item, &mut self.buffer);
        if self.buffer.len() > self.bytes_max && self.count > 0 {
            let item = self.buffer.split_off(before);
            self.cut();
            self.buffer.extend_from_slice(&item);
        }
        let bytes = self.buffer.len() - self.start;
        if self.buffer.len() > self.bytes_max {
            self.buffer.truncate(self.start);
            let (first, second) = item.halves().ok_or(WireError::TooLong { bytes })?;
            self.push(&first)?;
            return self.push(&second);
        }
        self.count += 1;
        if self.buffer.len() >= self.bytes_target || self.count as usize == PAYLOAD_ITEMS_MAX {
            self.cut();
        }
        Ok(())
    }

    /// Ends a payload and begins the next.
    fn cut(&mut self) {
        self.buffer[self.start - 4..self.start].copy_from_slice(&self.count.to_le_bytes());
        self.count = 0;
        let head = self.buffer[..self.start].to_vec();
        self.payloads.push(Bytes::from(std::mem::replace(&mut self.buffer, head)));
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        if self.count > 0 {
            self.buffer[self.start - 4..self.start].copy_from_slice(&self.count.to_le_bytes());
            self.payloads.push(Bytes::from(self.buffer));
        }
        self.payloads
    }
}

/// Appends the postcard form of an item.
pub(super) fn append<T: Serialize>(item: &T, out: &mut Vec<u8>) {
    let appended = postcard::serialize_with_flavor::<T, Append<'_>, ()>(item, Append(out));
    assert!(appended.is_ok(), "messages have no parts that postcard cannot write, and memory grows");
}

struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// What has not been read of a payload.
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// Reads version and kind.
    pub(super) fn open(payload: &'a [u8]) -> Result<(Cursor<'a>, u8), WireError> {
        match payload {
            [WIRE_VERSION, kind, rest @ ..] => Ok((Cursor(rest), *kind)),
            [WIRE_VERSION] | [] => Err(malformed("it has no kind")),
            [theirs, ..] => Err(WireError::Version { theirs: *theirs }),
        }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(|| malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, WireError> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub(super) fn item<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        let (item, rest) = postcard::take_from_bytes(self.0).map_err(malformed)?;
        self.0 = rest;
        Ok(item)
    }

    pub(super) fn list<T: DeserializeOwned>(&mut self, items_max: usize) -> Result<Vec<T>, WireError> {
        let count = self.u32()? as usize;
        if count > items_max || count > self.0.len() {
            return Err(malformed(format!("it announces {count} items")));
        }
        let mut items = Vec::with_capacity(count.min(ITEMS_AHEAD_MAX));
        for _ in 0..count {
            items.push(self.item()?);
        }
        Ok(items)
    }

    /// Makes sure that nothing is left.
    pub(super) fn end<T>(self, payload: T) -> Result<T, WireError> {
        match self.0.len() {
            0 => Ok(payload),
            bytes => Err(malformed(format!("{bytes} bytes follow its end"))),
        }
    }
}

fn malformed(detail: impl ToString) -> WireError {
    WireError::Malformed { detail: detail.to_string() }
}

#[cfg(test)]
mod tests {
    use ordain_db::message::{ClientId, RequestId};
    use ordain_db::position::PartitionId;

    const BASIS: ordain_db::sequencer::Basis =
        ordain_db::sequencer::Basis { epoch: ordain_db::position::Epoch(1), lineage: 0 };

    use super::super::PeerPayload;
    use super::*;

    fn reply(sequence: u64, bytes: usize) -> Reply {
        let client = ClientId { home: PartitionId(1), number: 2 };
        Reply { request: RequestId { client, sequence }, outcome: Ok(vec![7; bytes].into()) }
    }

    fn decoded(payloads: &[Bytes]) -> Vec<Vec<Message>> {
        let decode = |payload: &Bytes| match PeerPayload::decode(payload) {
            Ok(PeerPayload::Messages { messages, .. }) => messages,
            other => panic!("{other:?}"),
        };
        payloads.iter().map(decode).collect()
    }

    #[test]
    fn lists_are_cut_at_the_target_and_below_the_limit() {
        let mut lists = ListEncoder::new(&[WIRE_VERSION, 1, 1, 0, 0, 0, 2, 0, 0, 0]);
        (lists.bytes_target, lists.bytes_max) = (100, 300);
        for bytes in [10, 100, 90, 250, 10] {
            lists.push(&Message::Consensus(vec![1; bytes].into())).unwrap();
        }
        let payloads = lists.finish();
        assert!(payloads.iter().all(|payload| payload.len() <= 300));
        let sizes: Vec<Vec<usize>> = decoded(&payloads)
            .iter()
            .map(|messages| messages.iter().map(|message| message.payload_bytes() - 16).collect())
            .collect();
        assert_eq!(sizes, [vec![10, 100], vec![90], vec![250], vec![10]]);
    }

    #[test]
    fn what_is_too_long_for_a_frame_is_sent_in_halves_or_refused() {
        let mut lists = ListEncoder::new(&[WIRE_VERSION, 1, 1, 0, 0, 0, 2, 0, 0, 0]);
        (lists.bytes_target, lists.bytes_max) = (200, 200);
        let replies: Vec<Reply> = (0..10).map(|sequence| reply(sequence, 50)).collect();
        lists.push(&Message::CloseSnapshot(ordain_db::position::Position::LOADED)).unwrap();
        lists.push(&Message::Replies(replies.clone())).unwrap();
        let error = lists.push(&Message::Reads { basis: BASIS, reads: vec![1; 300].into() }).unwrap_err();
        assert!(matches!(error, WireError::TooLong { bytes } if bytes > 300), "{error}");
        lists.push(&Message::Reports { basis: BASIS, reports: Vec::new() }).unwrap();
        let mut arrived = Vec::new();
        for message in decoded(&lists.finish()).into_iter().flatten() {
            if let Message::Replies(replies) = message {
                arrived.extend(replies);
            }
        }
        assert_eq!(arrived, replies, "all, once, in order");
    }
}
