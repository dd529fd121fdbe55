//! A directory in memory that loses at a crash all that [`Files`] allows it to lose.
//!
//! It is for tests and for the simulator. All that happens is a function of the calls: what a crash does is drawn from the
//! caller's random numbers.
//!
//! # Faults
//!
//! - [`crash`](MemoryFiles::crash): a loss of power; [`power_off_after`](MemoryFiles::power_off_after) has it happen between
//!   two operations, so that a test can go through all of them.
//! - [`fail_after`](MemoryFiles::fail_after): an operation fails. A write that fails has written its first half. A sync that
//!   fails leaves what it was to make durable readable and not durable, and no later sync makes up for it: as Linux does.
//! - [`set_capacity`](MemoryFiles::set_capacity): a full disk.
//! - [`corrupt`](MemoryFiles::corrupt), [`flip`](MemoryFiles::flip), [`misdirect`](MemoryFiles::misdirect): durable sectors
//!   that go bad; [`lose_name`](MemoryFiles::lose_name): a durable name that is gone.
//! - [`lose_write`](MemoryFiles::lose_write): a sector that a sync has not written, although it reported that it has.
//! - [`Mistakes`]: what a wrong implementation of [`Files`] does, to show that a test would notice.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{FileEntry, FileError, FileErrorKind, FileOperation, Files, is_name};

mod file;
#[cfg(test)]
mod tests;

use file::{ChangeKind, File, Sector};

/// Bytes of a sector: the unit that a crash keeps, loses or tears.
pub const SECTOR_BYTES: u64 = 512;

/// The most contents of sectors that a crash draws to be found where nothing was written.
const STALE_SECTORS_MAX: u64 = 4;

/// Mistakes of an implementation of [`Files`] that can be switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mistakes {
    /// [`Files::sync`] and completed tickets make nothing durable, as a disk does that lies.
    pub ignore_sync: bool,
    /// [`Files::sync_directory`] makes nothing durable.
    pub ignore_sync_directory: bool,
}

/// A sync of all files that is under way: see [`MemoryFiles::begin_sync`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncTicket {
    /// The changes that it covers.
    covers: u64,
    generation: u64,
}

/// A sector that a sync did not write although it reported that it did: see [`MemoryFiles::lose_write`].
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unwritten {
    file: u64,
    sector: u64,
    /// What is still on the disk.
    before: Sector,
    /// What it was chosen by.
    choice: u64,
}

/// A write that was lost, until the crash that shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostWrite {
    /// The file that it was for.
    pub name: String,
    /// From the first byte that is not on the disk to the last one.
    pub bytes: Range<u64>,
}

/// What is done to a few names in one step; `None` removes a name.
type NameChange = Vec<(String, Option<u64>)>;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryFiles {
    /// By numbers that are never used again.
    files: BTreeMap<u64, File>,
    next_file: u64,
    /// As they are seen.
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// In the order in which they were made.
    name_changes: Vec<NameChange>,
    capacity_bytes: u64,
    /// Operations that change something, and were called.
    operations: u64,
    /// The operation that fails, by its number, and how.
    fault: Option<(u64, FileErrorKind)>,
    /// The last operation before the power goes.
    power_until: Option<u64>,
    /// Counts the crashes, which make the syncs that were under way void.
    generation: u64,
    /// Of the sectors that the next sync is to write, the one with this number, modulo their count, is lost.
    loses: Option<u64>,
    unwritten: Option<Unwritten>,
    mistakes: Mistakes,
}

impl Default for MemoryFiles {
    fn default() -> MemoryFiles {
        MemoryFiles::new()
    }
}

impl MemoryFiles {
    /// An empty directory on a disk without limit.
    pub fn new() -> MemoryFiles {
        MemoryFiles {
            files: BTreeMap::new(),
            next_file: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            capacity_bytes: u64::MAX,
            operations: 0,
            fault: None,
            power_until: None,
            generation: 0,
            loses: None,
            unwritten: None,
            mistakes: Mistakes::default(),
        }
    }

    /// Sets the bytes that all files may have together. May be less than they have: then nothing can be added.
    pub fn set_capacity(&mut self, bytes: u64) {
        self.capacity_bytes = bytes;
    }

    /// The bytes of all files together, what is only reserved included.
    pub fn bytes(&self) -> u64 {
        self.names.values().map(|number| self.files[number].seen.length()).sum()
    }

    /// Switches mistakes on or off.
    pub fn set_mistakes(&mut self, mistakes: Mistakes) {
        self.mistakes = mistakes;
    }

    /// How many operations that change something were called: all but [`Files::list`] and [`Files::read`], failed ones
    /// included.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Lets one operation fail: the next one that changes something if `operations` is 0, the one after it if it is 1.
    /// Replaces a fault that has not happened.
    pub fn fail_after(&mut self, operations: u64, kind: FileErrorKind) {
        self.fault = Some((self.operations + operations, kind));
    }

    /// Takes the power away after this many more operations that change something: each later one fails, and reads too,
    /// until the [crash](MemoryFiles::crash).
    pub fn power_off_after(&mut self, operations: u64) {
        self.power_until = Some(self.operations + operations);
    }

    /// Forgets the faults that have not happened.
    pub fn clear_faults(&mut self) {
        (self.fault, self.power_until) = (None, None);
    }

    /// Whether an operation failed for want of power.
    pub fn is_off(&self) -> bool {
        self.power_until.is_some_and(|last| self.operations > last)
    }

    /// Begins to make durable what was written so far, to all files. Names are not covered. Several syncs may be under way.
    pub fn begin_sync(&mut self) -> SyncTicket {
        // Changes are stamped with the number of their operation, so that this is after each of them.
        SyncTicket { covers: self.operations, generation: self.generation }
    }

    /// Ends a sync. Returns whether what it covers is durable now: not if there was a crash since it began.
    pub fn complete_sync(&mut self, ticket: SyncTicket) -> bool {
        let valid = ticket.generation == self.generation;
        if valid && !self.mistakes.ignore_sync {
            self.make_durable(None, ticket.covers);
        }
        valid
    }

    /// Makes durable what was done up to a stamp, to one file or to all of them.
    fn make_durable(&mut self, only: Option<u64>, through: u64) {
        let covered = |(number, file): (&u64, &File)| {
            let number = *number;
            let sectors =
                if only.is_none_or(|only| only == number) { file.covered(through) } else { BTreeSet::new() };
            sectors.into_iter().map(move |sector| (number, sector))
        };
        if self.loses.is_some() || self.unwritten.is_some() {
            let sectors: Vec<(u64, u64)> = self.files.iter().flat_map(covered).collect();
            // The operating system writes whole sectors, from memory: what was lost is written with what comes later.
            let written = self.unwritten.take_if(|lost| sectors.contains(&(lost.file, lost.sector)));
            if let Some(choice) = self.loses.take_if(|_| !sectors.is_empty()) {
                let (file, sector) = sectors[(choice % sectors.len() as u64) as usize];
                let before = self.files[&file].durable.sector(sector);
                self.unwritten = Some(Unwritten { file, sector, before, choice });
            }
            self.loses = written.map(|lost| lost.choice.rotate_right(1)).or(self.loses);
        }
        for (_, file) in self.files.iter_mut().filter(|(number, _)| only.is_none_or(|only| only == **number))
        {
            file.sync(through);
        }
    }

    /// The machine loses power and is started again. What is left is durable, also where it is nonsense. Faults that have
    /// not happened are forgotten.
    ///
    /// `random(bound)` is a random number below `bound`, which is not 0.
    pub fn crash(&mut self, random: &mut impl FnMut(u64) -> u64) {
        let stale = self.stale_sectors(random);
        self.loses = None;
        if let Some(lost) = self.unwritten.take()
            && let Some(file) = self.files.get_mut(&lost.file)
        {
            file.durable.set_sector(lost.sector, &lost.before);
        }
        for file in self.files.values_mut() {
            file.crash(random, &stale);
        }
        // Either the first ones have happened, as with a journal of the file system, or any of them.
        let in_order = random(2) == 0;
        let kept = random(self.name_changes.len() as u64 + 1) as usize;
        for (index, change) in std::mem::take(&mut self.name_changes).into_iter().enumerate() {
            let happened = if in_order { index < kept } else { random(2) == 0 };
            if happened {
                apply(&mut self.durable_names, change);
            }
        }
        self.names = self.durable_names.clone();
        self.forget_nameless();
        self.clear_faults();
        self.generation += 1;
    }

    /// A few of the contents that sectors of the disk have or had.
    fn stale_sectors(&self, random: &mut impl FnMut(u64) -> u64) -> Vec<Sector> {
        let files: Vec<&File> = self.files.values().filter(|file| file.seen.length() > 0).collect();
        if files.is_empty() {
            return Vec::new();
        }
        (0..STALE_SECTORS_MAX)
            .map(|_| {
                let file = files[random(files.len() as u64) as usize];
                file.seen.sector(random(file.seen.length().div_ceil(SECTOR_BYTES)))
            })
            .collect()
    }

    /// A latent fault: flips one to eight bits of a sector, durably.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`].
    pub fn corrupt(
        &mut self,
        name: &str,
        sector: u64,
        random: &mut impl FnMut(u64) -> u64,
    ) -> Result<(), FileError> {
        let first = random(SECTOR_BYTES);
        // Never the same byte twice, so that no flip undoes another.
        let flips: Vec<(usize, u8)> = (0..=random(8))
            .map(|flip| (((first + flip * (SECTOR_BYTES / 8)) % SECTOR_BYTES) as usize, 1 << random(8)))
            .collect();
        self.file_mut(FileOperation::Write, name)?.damage(sector, |contents| {
            for (at, mask) in &flips {
                contents[*at] ^= mask;
            }
        });
        Ok(())
    }

    /// A latent fault: changes one byte, durably, by exclusive or with a mask.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`].
    pub fn flip(&mut self, name: &str, offset: u64, mask: u8) -> Result<(), FileError> {
        let at = (offset % SECTOR_BYTES) as usize;
        self.file_mut(FileOperation::Write, name)?
            .damage(offset / SECTOR_BYTES, |contents| contents[at] ^= mask);
        Ok(())
    }

    /// A latent fault: a write of a durable sector went astray and hit another one, durably. (The disk is taken to have
    /// written it to its right place later.) Returns whether that changed anything.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`].
    pub fn misdirect(&mut self, from: (&str, u64), to: (&str, u64)) -> Result<bool, FileError> {
        let source = self.file(FileOperation::Write, from.0)?.durable.sector(from.1);
        let target = self.file_mut(FileOperation::Write, to.0)?;
        let changes = target.durable.sector(to.1) != source;
        target.damage(to.1, |contents| *contents = source);
        Ok(changes)
    }

    /// A durable name is gone, as if the file had been removed and that had become durable.
    ///
    /// # Errors
    /// [`FileErrorKind::NotFound`].
    pub fn lose_name(&mut self, name: &str) -> Result<(), FileError> {
        self.file(FileOperation::Remove, name)?;
        self.names.remove(name);
        self.durable_names.remove(name);
        for change in &mut self.name_changes {
            change.retain(|(changed, _)| changed != name);
        }
        self.forget_nameless();
        Ok(())
    }

    /// The next sync that makes bytes durable loses the write of one sector, which keeps what it has: the one with this number,
    /// modulo their count, among those that the sync covers. The sync reports a success, and all is read as it was written, from
    /// the memory of the operating system, until a crash. If the sector is written and synced again before, it is as it should be,
    /// and the next sync loses another one.
    ///
    /// One write is lost at a time: what was lost before is taken to have been written.
    pub fn lose_write(&mut self, choice: u64) {
        (self.loses, self.unwritten) = (Some(choice), None);
    }

    /// The write that a crash now would show to be lost.
    pub fn lost_write(&self) -> Option<LostWrite> {
        let Unwritten { file, sector, before, .. } = self.unwritten.as_ref()?;
        let (name, _) = self.names.iter().find(|(_, number)| *number == file)?;
        let image = &self.files.get(file)?.durable;
        let begin = sector * SECTOR_BYTES;
        let reaches = image.length().saturating_sub(begin).min(SECTOR_BYTES) as usize;
        let (written, kept) = (&image.sector(*sector)[..reaches], &before[..reaches]);
        let mut differing = (0..reaches).filter(|at| written[*at] != kept[*at]);
        let first = differing.next()?;
        let last = differing.next_back().unwrap_or(first);
        Some(LostWrite { name: name.clone(), bytes: begin + first as u64..begin + last as u64 + 1 })
    }

    /// What was lost is written after all.
    pub fn write_what_was_lost(&mut self) {
        self.unwritten = None;
    }

    /// Counts an operation that changes something, and says whether it fails.
    fn begin(&mut self, operation: FileOperation, name: &str) -> Result<(), FileError> {
        let number = self.operations;
        self.operations += 1;
        self.check_power(operation, name)?;
        match self.fault.take_if(|(fails, _)| *fails == number) {
            Some((_, kind)) => Err(error(operation, name, kind)),
            None => Ok(()),
        }
    }

    fn check_power(&self, operation: FileOperation, name: &str) -> Result<(), FileError> {
        if self.is_off() {
            return Err(error(operation, name, FileErrorKind::Other("the power is off".into())));
        }
        Ok(())
    }

    fn file(&self, operation: FileOperation, name: &str) -> Result<&File, FileError> {
        let number = self.names.get(name).ok_or_else(|| error(operation, name, FileErrorKind::NotFound))?;
        Ok(&self.files[number])
    }

    fn file_mut(&mut self, operation: FileOperation, name: &str) -> Result<&mut File, FileError> {
        let number = self.names.get(name);
        let file = number.and_then(|number| self.files.get_mut(number));
        file.ok_or_else(|| error(operation, name, FileErrorKind::NotFound))
    }

    fn check_space(&self, operation: FileOperation, name: &str, more: u64) -> Result<(), FileError> {
        if more > 0 && more > self.capacity_bytes.saturating_sub(self.bytes()) {
            return Err(error(operation, name, FileErrorKind::Full));
        }
        Ok(())
    }

    fn change_names(&mut self, change: NameChange) {
        apply(&mut self.names, change.clone());
        self.name_changes.push(change);
    }

    /// Gives back the space of files that no name can lead to any more.
    fn forget_nameless(&mut self) {
        let MemoryFiles { files, names, durable_names, name_changes, .. } = self;
        let changed = name_changes.iter().flatten().filter_map(|(_, number)| *number);
        let kept: BTreeSet<u64> =
            names.values().chain(durable_names.values()).copied().chain(changed).collect();
        files.retain(|number, _| kept.contains(number));
    }
}

fn apply(names: &mut BTreeMap<String, u64>, change: NameChange) {
    for (name, number) in change {
        match number {
            Some(number) => names.insert(name, number),
            None => names.remove(&name),
        };
    }
}

fn error(operation: FileOperation, name: &str, kind: FileErrorKind) -> FileError {
    FileError { operation, name: name.into(), kind }
}

fn check_name(operation: FileOperation, name: &str) -> Result<(), FileError> {
    if is_name(name) {
        return Ok(());
    }
    let reason = "a name has letters, digits, `-`, `_` and `.` only, and does not begin with `.`";
    Err(error(operation, name, FileErrorKind::Other(reason.into())))
}

impl Files for MemoryFiles {
    fn list(&self) -> Result<Vec<FileEntry>, FileError> {
        self.check_power(FileOperation::List, "")?;
        let entry = |(name, number): (&String, &u64)| FileEntry {
            name: name.clone(),
            length: self.files[number].seen.length(),
        };
        Ok(self.names.iter().map(entry).collect())
    }

    fn read(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        self.check_power(FileOperation::Read, name)?;
        Ok(self.file(FileOperation::Read, name)?.seen.read(offset, length))
    }

    fn create(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        let operation = FileOperation::Create;
        self.begin(operation, name)?;
        check_name(operation, name)?;
        if self.names.contains_key(name) {
            return Err(error(operation, name, FileErrorKind::Exists));
        }
        self.check_space(operation, name, length)?;
        let number = self.next_file;
        self.next_file += 1;
        let mut file = File::default();
        file.change(self.operations, ChangeKind::SetLength(length));
        self.files.insert(number, file);
        self.change_names(vec![(name.into(), Some(number))]);
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let operation = FileOperation::Write;
        let begun = self.begin(operation, name);
        let failed = begun.is_err() && !self.is_off();
        if !failed {
            begun.clone()?;
        }
        let length = self.file(operation, name)?.seen.length();
        let bytes = if failed { &bytes[..bytes.len() / 2] } else { bytes };
        self.check_space(operation, name, (offset + bytes.len() as u64).saturating_sub(length))?;
        let stamp = self.operations;
        self.file_mut(operation, name)?.change(stamp, ChangeKind::Write { offset, bytes: bytes.to_vec() });
        begun
    }

    fn set_length(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        let operation = FileOperation::SetLength;
        self.begin(operation, name)?;
        let before = self.file(operation, name)?.seen.length();
        self.check_space(operation, name, length.saturating_sub(before))?;
        let stamp = self.operations;
        self.file_mut(operation, name)?.change(stamp, ChangeKind::SetLength(length));
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let operation = FileOperation::Rename;
        self.begin(operation, from)?;
        check_name(operation, to)?;
        let number = *self.names.get(from).ok_or_else(|| error(operation, from, FileErrorKind::NotFound))?;
        self.change_names(vec![(from.into(), None), (to.into(), Some(number))]);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), FileError> {
        let operation = FileOperation::Remove;
        self.begin(operation, name)?;
        self.file(operation, name)?;
        self.change_names(vec![(name.into(), None)]);
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<(), FileError> {
        let operation = FileOperation::Sync;
        let begun = self.begin(operation, name);
        let (off, lies) = (self.is_off(), self.mistakes.ignore_sync);
        let number = *self.names.get(name).ok_or_else(|| error(operation, name, FileErrorKind::NotFound))?;
        match &begun {
            Ok(()) if !lies => self.make_durable(Some(number), u64::MAX),
            Err(_) if !off => self.file_mut(operation, name)?.fail_sync(),
            _ => {}
        }
        begun
    }

    fn sync_directory(&mut self) -> Result<(), FileError> {
        self.begin(FileOperation::SyncDirectory, "")?;
        if !self.mistakes.ignore_sync_directory {
            self.durable_names = self.names.clone();
            self.name_changes.clear();
            self.forget_nameless();
        }
        Ok(())
    }
}
