//! Random values.

use sha2::{Digest as _, Sha256};

use crate::plan::RandomKind;
use crate::types::Datum;

/// The random value of a statement with that number. A digest of both, so that nothing can be told of one by others, and that a block
/// has the same ones when it runs again at its end.
pub(super) fn random(kind: RandomKind, seed: u128, number: u64) -> Datum {
    let digest = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(number.to_le_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    let bits = u128::from_be_bytes(bytes);
    match kind {
        // As many bits as a double has digits.
        RandomKind::Float => Datum::Float((bits >> 75) as f64 / (1u64 << 53) as f64),
        RandomKind::Uuid => {
            let version = 0xF << 76;
            let variant = 0b11 << 62;
            Datum::Uuid(bits & !version & !variant | 4 << 76 | 0b10 << 62)
        }
    }
}
