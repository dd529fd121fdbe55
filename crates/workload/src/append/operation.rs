//! What a call of the workload does, and what it saw: all that a checker needs to know of it.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use super::OPERATIONS_MAX;

/// Numbers that belong to one call: each operation's own is the call's number times this, plus the operation's index.
pub const NUMBERS_PER_CALL: u64 = 16;

/// Calls have lower numbers, so that all numbers that they write fit a signed column.
pub const CALL_NUMBER_END: u64 = 1 << 59;

/// Which list, pointer or note: its site and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct RowName {
    /// The site.
    pub site: u16,
    /// The number among the rows of its kind at the site.
    pub id: u32,
}

/// What a call does, in order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The call's own number, from 1 to [`CALL_NUMBER_END`]; no other call has it.
    pub number: u64,
    /// The operations. Each sees what those before it wrote.
    pub operations: ArrayVec<Operation, OPERATIONS_MAX>,
    /// When the call aborts by its logic; `None` means never.
    pub abort: Option<AbortWhen>,
}

impl Arguments {
    /// The number that the operation with this index writes if it writes one. Never 0.
    pub fn number_of(&self, index: usize) -> u64 {
        self.number * NUMBERS_PER_CALL + index as u64
    }
}

/// A condition on what one operation saw, held against it as soon as it has. The operations before it have written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AbortWhen {
    /// Index of the operation.
    pub operation: u8,
    /// The call aborts when [`Seen::measure`] is a multiple of this; 0 is a multiple of everything but 0.
    pub multiple_of: u64,
}

impl AbortWhen {
    /// Whether the call aborts after the operation with this index.
    pub fn holds(&self, index: usize, seen: &Seen) -> bool {
        usize::from(self.operation) == index
            && seen.measure().and_then(|measure| measure.checked_rem(self.multiple_of)) == Some(0)
    }
}

/// One step of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Operation {
    /// Reads a list.
    ReadList(RowName),
    /// Appends the operation's own number to a list.
    Append(RowName),
    /// Reads a pointer and appends to the list that it names. Only data tells which, so the call is a dependent one.
    FollowPointer(RowName),
    /// Lets a pointer name another list.
    MovePointer {
        /// The pointer.
        pointer: RowName,
        /// The list.
        target: RowName,
    },
    /// Reads the first notes of a range. A range over several sites concerns every partition.
    ReadNotes {
        /// The first name.
        from: RowName,
        /// The last name, included.
        to: RowName,
        /// Most notes wanted.
        limit: u32,
    },
    /// Inserts a note with the operation's own number, if there is none.
    InsertNote(RowName),
    /// Deletes a note if there is one.
    DeleteNote(RowName),
    /// Inserts or replaces a note without reading it.
    WriteNote(RowName),
    /// Reads a setting, which every partition holds.
    ReadSetting(u32),
    /// Replaces a setting without reading it, at every partition.
    WriteSetting(u32),
}

/// What an operation saw. A commit's result is one for each operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Seen {
    /// It read nothing.
    Nothing,
    /// All numbers of the list that was read, in their order.
    List(Vec<u64>),
    /// The list that was appended to, as it was before.
    Appended {
        /// Which list: the one that the arguments or the pointer named.
        list: RowName,
        /// How many numbers it had.
        length: u32,
        /// Its last number; 0 when it had none.
        last: u64,
    },
    /// The list that the pointer named before it was moved.
    Target(RowName),
    /// The notes of the range, ascending, with their numbers.
    Notes(Vec<(RowName, u64)>),
    /// The note's number before; `None` when there was no such note. Notes that were loaded have 0.
    Note(Option<u64>),
    /// The setting's number; 0 when nothing was written since the load.
    Setting(u64),
}

impl Seen {
    /// The number that [`AbortWhen`] looks at: a length, a count, or what was read. `None` when nothing was read.
    pub fn measure(&self) -> Option<u64> {
        match self {
            Seen::Nothing => None,
            Seen::List(numbers) => Some(numbers.len() as u64),
            Seen::Appended { length, .. } => Some(u64::from(*length)),
            Seen::Target(list) => Some(u64::from(list.id)),
            Seen::Notes(notes) => Some(notes.len() as u64),
            Seen::Note(number) => Some(number.unwrap_or(0)),
            Seen::Setting(number) => Some(*number),
        }
    }
}
