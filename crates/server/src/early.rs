//! A call that was acknowledged before it was computed, as its client holds it.

use std::marker::PhantomData;
use std::sync::Arc;

use ordain_db::error::Error;
use ordain_db::message::Operation;
use ordain_db::position::Position;
use ordain_db::procedure::{Procedure, decode_output};

use crate::caller::{Caller, Kept, Pending};

/// A call that has its place in the order: nothing but its own logic can abort it any more, and whatever is called from now on
/// stands behind it. See [`Connection::call_early`](crate::Connection::call_early).
///
/// The database keeps what becomes of the call until this is dropped. Those of one home partition that are not dropped may have
/// numbers that lie [`SESSION_WINDOW_MAX`](ordain_db::limits::SESSION_WINDOW_MAX) apart: after that, calls through the connection
/// are refused as busy, and so are questions for outcomes, which have numbers, too. Keep half as many at most.
pub struct Early<P> {
    caller: Arc<Caller>,
    kept: Kept,
    position: Position,
    procedure: PhantomData<fn() -> P>,
}

impl<P: Procedure> Early<P> {
    pub(crate) fn new(caller: Arc<Caller>, kept: Kept, position: Position) -> Early<P> {
        Early { caller, kept, position, procedure: PhantomData }
    }

    /// The call's place in the order.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Waits until the call is computed, and says what became of it. It may be asked again.
    ///
    /// # Errors
    /// Those of a [call](crate::Connection::call): that it was acknowledged does not mean that its logic commits. With asynchronous
    /// replication it may have been lost with a leader, and an idle session may be forgotten: that is [`Error::Invalid`], and says so.
    pub fn outcome(&self) -> Result<P::Output, Error> {
        decode_output(&self.ask().wait()?)
    }

    /// The same; the future is ready when the call is computed. Keep this until then.
    pub fn outcome_async(&self) -> impl Future<Output = Result<P::Output, Error>> + Send + use<P> {
        let pending = self.ask();
        async move { decode_output(&pending.await?) }
    }

    fn ask(&self) -> Pending {
        let call = self.kept.request();
        self.caller.order(call.client.home, Operation::AskOutcome { of: call.sequence })
    }
}
