//! Where replies go: by the number of the client that asked.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use ordain_db::message::Reply;

/// Takes the replies to one or several clients.
pub trait ReplySink: Send + Sync {
    /// Takes some replies. Called by partition threads: it must return soon and not block. A reply may come to a request
    /// that has been answered before, and is to be ignored then.
    fn deliver(&self, replies: Vec<Reply>);

    /// No more replies will come. May be told more than once.
    fn end(&self);
}

/// The clients that are connected to a process.
#[derive(Default)]
pub struct Replies {
    sinks: RwLock<HashMap<u64, Arc<dyn ReplySink>>>,
}

impl Replies {
    /// From now on delivers the replies to a client number to `sink`.
    pub fn open(&self, number: u64, sink: Arc<dyn ReplySink>) {
        self.sinks.write().unwrap_or_else(PoisonError::into_inner).insert(number, sink);
    }

    /// Ends the delivery to a client number.
    pub fn close(&self, number: u64) {
        self.sinks.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    /// Tells all clients that no more replies will come.
    pub fn end(&self) {
        let sinks = std::mem::take(&mut *self.sinks.write().unwrap_or_else(PoisonError::into_inner));
        sinks.values().for_each(|sink| sink.end());
    }

    /// Delivers replies, those to one sink together. What a client that has gone would have got is dropped: it can ask again.
    pub fn deliver(&self, replies: Vec<Reply>) {
        let Some(first) = replies.first() else { return };
        let number = first.request.client.number;
        if replies.iter().all(|reply| reply.request.client.number == number) {
            let sink = self.sinks.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
            if let Some(sink) = sink {
                sink.deliver(replies);
            }
            return;
        }
        for (sink, replies) in self.by_sink(replies) {
            sink.deliver(replies);
        }
    }

    /// Sorts replies to several clients: clients of one connection share a sink.
    fn by_sink(&self, replies: Vec<Reply>) -> Vec<(Arc<dyn ReplySink>, Vec<Reply>)> {
        let sinks = self.sinks.read().unwrap_or_else(PoisonError::into_inner);
        let mut groups: Vec<(Arc<dyn ReplySink>, Vec<Reply>)> = Vec::new();
        for reply in replies {
            let Some(sink) = sinks.get(&reply.request.client.number) else { continue };
            match groups.iter_mut().find(|(other, _)| Arc::ptr_eq(other, sink)) {
                Some((_, group)) => group.push(reply),
                None => groups.push((Arc::clone(sink), vec![reply])),
            }
        }
        groups
    }
}
