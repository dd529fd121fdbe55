//! How many nodes take part in a transaction (ALO-X02).

use ordain_db::error::Error;
use ordain_db::position::PartitionId;
use ordain_db::procedure::{Catalog, Footprint};
use ordain_workload::{Part, Workload};

/// Calls of each node that are looked at.
const CALLS: u32 = 200;

/// Their mean over the first calls of each node. Calls whose keys depend on data are not counted: no workload here has any.
///
/// # Errors
/// When a call cannot be made or declared.
pub(super) fn mean(workload: &dyn Workload, nodes: u16) -> Result<f64, Error> {
    let Catalog { schema, procedures } = workload.catalog();
    let (mut participants, mut calls) = (0, 0);
    let mut footprint = Footprint::default();
    for home in (0..nodes).map(PartitionId) {
        let mut generator = workload.generator(1, u32::from(home.0), Part::of(home, nodes))?;
        for _ in 0..CALLS {
            let call = generator.next();
            footprint.clear();
            procedures.declare(call.procedure, &call.arguments, schema, nodes, &mut footprint)?;
            participants += footprint.participants(home).len();
            calls += 1;
        }
    }
    Ok(participants as f64 / f64::from(calls.max(1)))
}

#[cfg(test)]
mod tests {
    use super::super::AlohaWorkload;
    use super::*;

    #[test]
    fn only_the_scaled_form_has_more_participants_on_more_nodes() {
        let on =
            |workload: AlohaWorkload, nodes| mean(&*workload.plan(nodes).build().unwrap(), nodes).unwrap();
        assert_eq!(on(AlohaWorkload::NewOrder { warehouses: 1 }, 4), 2.0);
        assert_eq!(on(AlohaWorkload::Payment { warehouses: 1 }, 4), 2.0);
        let scaled = [2, 4, 8].map(|nodes| on(AlohaWorkload::Scaled { districts: 1 }, nodes));
        assert!(scaled.is_sorted() && scaled[0] > 1.9 && scaled[2] > 5.0, "{scaled:?}");
    }
}
