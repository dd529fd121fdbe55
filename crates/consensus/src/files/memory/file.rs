//! One file of [`MemoryFiles`](super::MemoryFiles): what is seen of it, what is durable of it, and what lies between.

use std::collections::BTreeSet;

use super::SECTOR_BYTES;

/// A sector's contents.
pub(super) type Sector = [u8; SECTOR_BYTES as usize];

/// The bytes of a file. What is beyond `bytes` and within `length` is zeros, so that space which is only reserved costs
/// nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Image {
    bytes: Vec<u8>,
    length: u64,
}

impl Image {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn set_length(&mut self, length: u64) {
        self.length = length;
        if (self.bytes.len() as u64) > length {
            self.bytes.truncate(length as usize);
        }
    }

    pub(super) fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let end = offset.saturating_add(length).min(self.length);
        let begin = offset.min(end);
        let kept = self.bytes.len() as u64;
        let mut found = self.bytes[begin.min(kept) as usize..end.min(kept) as usize].to_vec();
        found.resize((end - begin) as usize, 0);
        found
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset as usize..end].copy_from_slice(bytes);
        self.length = self.length.max(end as u64);
    }

    pub(super) fn sector(&self, sector: u64) -> Sector {
        let mut found = [0; SECTOR_BYTES as usize];
        let bytes = self.read(sector * SECTOR_BYTES, SECTOR_BYTES);
        found[..bytes.len()].copy_from_slice(&bytes);
        found
    }

    /// Replaces a sector as far as the file reaches.
    pub(super) fn set_sector(&mut self, sector: u64, contents: &Sector) {
        let begin = sector * SECTOR_BYTES;
        let length = self.length.saturating_sub(begin).min(SECTOR_BYTES);
        if length > 0 {
            self.write(begin, &contents[..length as usize]);
        }
    }
}

/// Something that was done to a file and is not durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// Ascends with the operations of all files.
    pub(super) stamp: u64,
    pub(super) kind: ChangeKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ChangeKind {
    Write { offset: u64, bytes: Vec<u8> },
    SetLength(u64),
}

impl ChangeKind {
    fn apply(&self, image: &mut Image) {
        match self {
            ChangeKind::Write { offset, bytes } => image.write(*offset, bytes),
            ChangeKind::SetLength(length) => image.set_length(*length),
        }
    }

    /// The length that a file has after this, when it had another one before.
    fn length_after(&self, length: u64) -> u64 {
        match self {
            ChangeKind::Write { offset, bytes } => length.max(offset + bytes.len() as u64),
            ChangeKind::SetLength(length) => *length,
        }
    }

    /// The sectors that are written to.
    fn sectors(&self) -> std::ops::Range<u64> {
        match self {
            ChangeKind::Write { offset, bytes } if !bytes.is_empty() => {
                offset / SECTOR_BYTES..(offset + bytes.len() as u64).div_ceil(SECTOR_BYTES)
            }
            _ => 0..0,
        }
    }

    /// Writes what concerns a sector into it, of that only the first `bytes_max` bytes.
    fn apply_to_sector(&self, sector: u64, contents: &mut Sector, bytes_max: u64) {
        let ChangeKind::Write { offset, bytes } = self else { return };
        let begin = (sector * SECTOR_BYTES).max(*offset);
        let end = ((sector + 1) * SECTOR_BYTES).min(offset + bytes.len() as u64);
        let end = end.min(begin.saturating_add(bytes_max));
        if begin < end {
            let at = (begin % SECTOR_BYTES) as usize;
            let part = &bytes[(begin - offset) as usize..(end - offset) as usize];
            contents[at..at + part.len()].copy_from_slice(part);
        }
    }
}

/// A file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct File {
    /// As it is read now.
    pub(super) seen: Image,
    /// As it is on the disk. Equals `seen` with the changes undone, unless a sync failed.
    pub(super) durable: Image,
    /// In the order in which they were made.
    pub(super) changes: Vec<Change>,
    /// The sectors of which some write has reached the disk: no crash makes noise of them.
    settled: BTreeSet<u64>,
}

impl File {
    pub(super) fn change(&mut self, stamp: u64, kind: ChangeKind) {
        kind.apply(&mut self.seen);
        self.changes.push(Change { stamp, kind });
    }

    /// The sectors that were written to up to a stamp, and are not durable.
    pub(super) fn covered(&self, through: u64) -> BTreeSet<u64> {
        let covered = self.changes.iter().take_while(|change| change.stamp <= through);
        covered.flat_map(|change| change.kind.sectors()).collect()
    }

    /// Makes durable what was done up to a stamp.
    pub(super) fn sync(&mut self, through: u64) {
        let covered = self.changes.partition_point(|change| change.stamp <= through);
        for change in self.changes.drain(..covered) {
            change.kind.apply(&mut self.durable);
            self.settled.extend(change.kind.sectors());
        }
    }

    /// A sync that failed: what was not durable is no longer waiting to be written, and is seen all the same.
    pub(super) fn fail_sync(&mut self) {
        self.changes.clear();
    }

    /// Loses what may be lost; see the [module of files](crate::files). `stale` are contents of sectors that the disk had.
    pub(super) fn crash(&mut self, random: &mut impl FnMut(u64) -> u64, stale: &[Sector]) {
        let changes = std::mem::take(&mut self.changes);
        let mut lengths = vec![self.durable.length()];
        for change in &changes {
            lengths.push(change.kind.length_after(lengths[lengths.len() - 1]));
        }
        let touched: BTreeSet<u64> = changes.iter().flat_map(|change| change.kind.sectors()).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        self.durable.set_length(longest);
        for sector in &touched {
            let contents = self.crashed_sector(*sector, &changes, random, stale);
            self.durable.set_sector(*sector, &contents);
        }
        let kept = random(lengths.len() as u64) as usize;
        // Where the file was cut and grew again, it has zeros.
        for cut in lengths[..=kept].windows(2).filter(|pair| pair[1] < pair[0]) {
            self.durable.set_length(cut[1]);
        }
        self.durable.set_length(lengths[kept]);
        self.settled.extend(touched);
        self.seen = self.durable.clone();
    }

    /// What a crash leaves of a sector that was written to.
    fn crashed_sector(
        &self,
        sector: u64,
        changes: &[Change],
        random: &mut impl FnMut(u64) -> u64,
        stale: &[Sector],
    ) -> Sector {
        let writes: Vec<&ChangeKind> = changes
            .iter()
            .map(|change| &change.kind)
            .filter(|change| change.sectors().contains(&sector))
            .collect();
        let mut contents = self.durable.sector(sector);
        let kept = random(writes.len() as u64 + 1) as usize;
        if kept == 0 && !self.settled.contains(&sector) {
            match random(4) {
                0 => contents.fill_with(|| random(256) as u8),
                1 if !stale.is_empty() => contents = stale[random(stale.len() as u64) as usize],
                _ => {}
            }
        }
        for write in &writes[..kept] {
            write.apply_to_sector(sector, &mut contents, SECTOR_BYTES);
        }
        if let Some(torn) = writes.get(kept).filter(|_| random(3) == 0) {
            let part = random(SECTOR_BYTES);
            torn.apply_to_sector(sector, &mut contents, part);
        }
        contents
    }

    /// Changes what is durable and what is seen alike, as a fault of the disk does.
    pub(super) fn damage(&mut self, sector: u64, damage: impl Fn(&mut Sector)) {
        for image in [&mut self.durable, &mut self.seen] {
            let mut contents = image.sector(sector);
            damage(&mut contents);
            image.set_sector(sector, &contents);
        }
    }
}
