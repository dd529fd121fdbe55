//! Plans that run often: encoded once and decoded once.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ordain_db::hash::FastMap;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::Plan;

/// How many decoded plans each thread remembers. When there are more, it begins again: those that run often are soon back.
const PLANS_MAX: usize = 1024;

/// The longest encoded plan that is remembered. Longer ones have rows written into them, and hardly come again.
const PLAN_BYTES_MAX: usize = 8 << 10;

thread_local! {
    /// What was decoded, by its encoded form. It saves time and decides nothing, as the same bytes are always the same plan.
    static DECODED: RefCell<FastMap<Bytes, SharedPlan>> = RefCell::default();
}

/// A plan that is cheap to clone. It travels as bytes of its own, which are made once; whoever gets the same ones again does not decode them
/// again.
#[derive(Clone)]
pub struct SharedPlan(Arc<Shared>);

struct Shared {
    plan: Plan,
    encoded: OnceLock<Bytes>,
}

impl From<Plan> for SharedPlan {
    fn from(plan: Plan) -> SharedPlan {
        SharedPlan(Arc::new(Shared { plan, encoded: OnceLock::new() }))
    }
}

impl Deref for SharedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0.plan
    }
}

impl PartialEq for SharedPlan {
    fn eq(&self, other: &SharedPlan) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for SharedPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl Serialize for SharedPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.encoded().map_err(ser::Error::custom)?)
    }
}

impl SharedPlan {
    /// Its encoded form.
    ///
    /// # Errors
    /// When it has none: a mistake of Ordain.
    pub fn encoded(&self) -> Result<&Bytes, postcard::Error> {
        Ok(match self.0.encoded.get() {
            Some(encoded) => encoded,
            None => {
                let bytes = postcard::to_allocvec(&**self)?;
                self.0.encoded.get_or_init(|| bytes.into())
            }
        })
    }
}

impl<'de> Deserialize<'de> for SharedPlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedPlan, D::Error> {
        struct Encoded;

        impl Visitor<'_> for Encoded {
            type Value = SharedPlan;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an encoded plan")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<SharedPlan, E> {
                decode(bytes).map_err(E::custom)
            }
        }

        deserializer.deserialize_bytes(Encoded)
    }
}

fn decode(bytes: &[u8]) -> Result<SharedPlan, postcard::Error> {
    let known = DECODED.with_borrow(|decoded| decoded.get(bytes).cloned());
    if let Some(known) = known {
        return Ok(known);
    }
    let plan = SharedPlan::from(postcard::from_bytes::<Plan>(bytes)?);
    if bytes.len() <= PLAN_BYTES_MAX {
        let encoded = plan.0.encoded.get_or_init(|| Bytes::copy_from_slice(bytes)).clone();
        DECODED.with_borrow_mut(|decoded| {
            if decoded.len() >= PLANS_MAX {
                decoded.clear();
            }
            decoded.insert(encoded, plan.clone());
        });
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Action, Expression, Node};
    use crate::types::Datum;

    fn plan(number: i64) -> SharedPlan {
        let row = vec![Expression::Constant(Datum::Int(number))];
        let action = Action::Query(Node::Values(vec![row]));
        let (tables, sequences, foreign_keys) = (Vec::new(), Vec::new(), Vec::new());
        Plan { reliances: Vec::new(), tables, sequences, foreign_keys, action }.into()
    }

    #[test]
    fn what_was_decoded_is_not_decoded_again() {
        let bytes = postcard::to_allocvec(&plan(1)).unwrap();
        let [first, second]: [SharedPlan; 2] = [1, 2].map(|_| postcard::from_bytes(&bytes).unwrap());
        assert!(Arc::ptr_eq(&first.0, &second.0));
        assert_eq!(first, plan(1));
        assert_ne!(first, plan(2));
    }

    #[test]
    fn no_more_is_remembered_than_may_be() {
        for number in 0..2 * PLANS_MAX as i64 {
            let bytes = postcard::to_allocvec(&plan(number)).unwrap();
            assert_eq!(postcard::from_bytes::<SharedPlan>(&bytes).unwrap(), plan(number));
        }
        assert!(DECODED.with_borrow(|decoded| decoded.len()) <= PLANS_MAX);
    }

    #[test]
    fn bytes_that_are_no_plan_are_an_error() {
        postcard::from_bytes::<SharedPlan>(&[3, 255, 255, 255]).unwrap_err();
    }
}
