//! Where replies go: by the number of the client that asked.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use ordain_db::message::Reply;

/// Takes the replies to one client.
pub trait ReplySink: Send + Sync {
    /// Takes some replies. Called by partition threads: it must return soon and not block.
    fn deliver(&self, replies: Vec<Reply>);

    /// No more replies will come.
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

    /// Delivers replies, those to one client together. What a client that has gone would have got is dropped: it can ask again.
    pub fn deliver(&self, mut replies: Vec<Reply>) {
        while let Some(first) = replies.first() {
            let number = first.request.client.number;
            let own = if replies.iter().all(|reply| reply.request.client.number == number) {
                std::mem::take(&mut replies)
            } else {
                replies.extract_if(.., |reply| reply.request.client.number == number).collect()
            };
            let sink = self.sinks.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
            if let Some(sink) = sink {
                sink.deliver(own);
            }
        }
    }
}
