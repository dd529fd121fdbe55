//! The storage in memory passes the conformance suite.

use ordain_db::storage::conformance;
use ordain_db::storage::memory::MemoryStorage;

#[test]
fn memory_storage_conforms() {
    conformance::check_all(&mut MemoryStorage::new);
}
