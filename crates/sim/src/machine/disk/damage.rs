//! Damage to what a disk has durably, where it is certain to be noticed.

use std::ops::Range;

use ordain_consensus::disk_log::WitnessedPart;
use ordain_consensus::files::{Files, SECTOR_BYTES};
use ordain_db::disk::{checkpoint_name, stable_name};
use ordain_db::position::Epoch;

use super::Disk;

impl Disk {
    /// Damages a part of the log, if there is one whose damage must be noticed: flips bits, or writes another sector over one.
    /// Whether it did.
    pub fn damage(&mut self, misdirect: bool) -> bool {
        let Some(parts) = self.node.as_ref().and_then(|node| node.log().witnessed_parts().ok()) else {
            return false;
        };
        if misdirect { self.misdirect(&parts) } else { self.flip_bits(&parts) }
    }

    fn misdirect(&mut self, parts: &[WitnessedPart]) -> bool {
        let sectors = |bytes: &Range<u64>| bytes.start.div_ceil(SECTOR_BYTES)..bytes.end / SECTOR_BYTES;
        let whole: Vec<(&str, u64)> = parts
            .iter()
            .flat_map(|part| sectors(&part.bytes).map(|sector| (part.name.as_str(), sector)))
            .collect();
        if whole.is_empty() {
            return false;
        }
        let mut draw = || whole[self.faults.below(whole.len() as u64) as usize];
        let (from, to) = (draw(), draw());
        self.files.get().misdirect(from, to).unwrap_or(false)
    }

    fn flip_bits(&mut self, parts: &[WitnessedPart]) -> bool {
        let parts: Vec<&WitnessedPart> = parts.iter().filter(|part| !part.bytes.is_empty()).collect();
        if parts.is_empty() {
            return false;
        }
        let WitnessedPart { name, bytes } = parts[self.faults.below(parts.len() as u64) as usize];
        let first = bytes.start + self.faults.below(bytes.end - bytes.start);
        let last = (first + self.faults.below(SECTOR_BYTES)).min(bytes.end - 1);
        let mut files = self.files.get();
        // Never the same byte twice, so that no flip undoes another.
        let hit = files.flip(name, first, 1 << self.faults.below(8));
        hit.is_ok() && (last == first || files.flip(name, last, 1 << self.faults.below(8)).is_ok())
    }

    /// Damages the checkpoint that is marked as the one to go on from: flips bits of it, writes another sector over one of it,
    /// or loses the name of its file or that of the mark. Whether it did: there may be no such checkpoint.
    pub fn damage_checkpoint(&mut self) -> bool {
        let Some((name, length, mark)) = self.marked_checkpoint() else { return false };
        let (random, mut files) = (&mut self.latent, self.files.get());
        match random.below(4) {
            0 => files.flip(&name, random.below(length), 1 << random.below(8)).is_ok(),
            1 => {
                let sectors = length / SECTOR_BYTES;
                let (from, to) = (random.below(sectors.max(1)), random.below(sectors.max(1)));
                // One sector may be the whole file.
                let differs = sectors > 1 && files.misdirect((&name, from), (&name, to)).unwrap_or(false);
                differs || files.flip(&name, random.below(length), 1 << random.below(8)).is_ok()
            }
            2 => files.lose_name(&name).is_ok(),
            _ => files.lose_name(&mark).is_ok(),
        }
    }

    /// The name of the checkpoint to go on from, its bytes, and the name of its mark.
    fn marked_checkpoint(&self) -> Option<(String, u64, String)> {
        let entries = self.files.get().list().ok()?;
        let mark = entries.iter().map(|entry| &entry.name).filter(|name| name.ends_with(".stable")).max()?;
        let epoch = Epoch(mark.strip_suffix(".stable")?.parse().ok()?);
        let name = checkpoint_name(epoch);
        let length = entries.iter().find(|entry| entry.name == name)?.length;
        (length > 0).then(|| (name, length, stable_name(epoch)))
    }

    /// Lets the next sync lose the write of a sector, if a node uses the disk; whether one does. The next crash shows that, where
    /// it is certain to be noticed then.
    pub fn lose_write(&mut self) -> bool {
        if self.node.is_some() {
            self.files.get().lose_write(self.latent.bits());
        }
        self.node.is_some()
    }

    /// A crash is about to show a write that was lost. One of the last records of the log could not be told from a torn tail, and
    /// nothing promises that it is not taken for one: such a write is taken to have been done after all.
    pub(super) fn show_what_is_noticed(&mut self) {
        let Some(lost) = self.files.get().lost_write() else { return };
        // Where the power has gone already, it is still known what was where.
        self.files.get().clear_faults();
        let marked = self.marked_checkpoint().is_some_and(|(name, ..)| name == lost.name);
        let parts = self.node.as_ref().and_then(|node| node.log().witnessed_parts().ok()).unwrap_or_default();
        let overlaps = |part: &WitnessedPart| {
            part.name == lost.name && part.bytes.start < lost.bytes.end && lost.bytes.start < part.bytes.end
        };
        if !marked && !parts.iter().any(overlaps) {
            self.files.get().write_what_was_lost();
        }
    }
}
