//! The way of a record into a segment: where it goes, and how a batch is written.

use std::collections::VecDeque;

use super::batch::{Chunk, segment_bytes_needed};
use super::form::Former;
use super::groups::Ranges;
use super::housekeeper::Spare;
use super::record::{Record, Stored};
use super::segment::{SEGMENT_BYTES_MAX, Segment, SegmentHeader, VERSION, next_capacity, segment_path};
use super::{Log, LogError};

/// Offset of the next record, if the segment has room for it.
pub(super) struct Position {
    number: u64,
    pub(super) capacity: u64,
    pub(super) end: u64,
}

impl Log {
    pub(super) fn position(&self) -> Option<Position> {
        if let Some(chunk) = self.pending.back() {
            return Some(Position { number: chunk.number, capacity: chunk.capacity, end: chunk.end() });
        }
        let segment = self.segments.back()?;
        Some(Position { number: segment.number, capacity: segment.capacity, end: segment.end })
    }

    /// Takes a record into the next batch, in the form that it has behind those before it in its segment.
    pub(super) fn append_formed(&mut self, former: &mut Former, record: &Record<'_>) {
        let number = self.position().map_or(1, |position| position.number);
        let mut stored = former.form(number, record);
        let has_room = |position: Position| position.end + stored.bytes() <= position.capacity;
        if !self.position().is_some_and(has_room) {
            stored = former.form(number + 1, record);
        }
        let chunk = self.chunk_with_room(stored.bytes());
        chunk.push(record, &stored);
        former.came_into(chunk.number, record);
    }

    pub(super) fn chunk_with_room(&mut self, bytes: u64) -> &mut Chunk {
        match self.position() {
            Some(Position { capacity, end, .. }) if end + bytes > capacity => self.start_segment(bytes),
            None => self.start_segment(bytes),
            Some(Position { number, capacity, end }) if self.pending.is_empty() => {
                let buffer = std::mem::take(&mut self.buffer);
                self.pending.push_back(Chunk::new(number, capacity, end, buffer));
            }
            Some(_) => {}
        }
        self.pending.back_mut().expect("there is one by now")
    }

    /// Plans a new segment: its header, then the hard states as they are, so that the segments before it can go.
    fn start_segment(&mut self, first_record: u64) {
        let last = self.position();
        let capacity = next_capacity(last.as_ref().map(|last| last.capacity), self.segment_bytes);
        let (number, previous_end) = last.map_or((1, 0), |last| (last.number + 1, last.end));
        let carried: Vec<Record<'_>> = self
            .hard_states
            .iter()
            .map(|(group, payload)| Record::HardState { group: *group, payload })
            .collect();
        let carried_bytes = carried.iter().map(|record| Stored::from(*record).bytes()).sum();
        let capacity = capacity.max(segment_bytes_needed(carried_bytes, first_record));
        assert!(
            capacity <= SEGMENT_BYTES_MAX,
            "{carried_bytes} bytes of hard states do not fit into a segment"
        );
        let header = SegmentHeader { version: VERSION, number, capacity, previous_end };
        let mut chunk = Chunk::start_segment(header, std::mem::take(&mut self.buffer));
        carried.iter().for_each(|record| chunk.push(record, &Stored::from(*record)));
        self.pending.push_back(chunk);
    }

    /// Takes all the segments that the batch needs, or none: so a full disk is noticed before anything is written.
    pub(super) fn take_spares(&mut self) -> Result<VecDeque<Spare>, LogError> {
        let mut spares = VecDeque::new();
        for chunk in self.pending.iter().filter(|chunk| chunk.starts_segment()) {
            match self.housekeeper.take(chunk.capacity) {
                Ok(spare) => spares.push_back(spare),
                Err(error) => {
                    spares.into_iter().for_each(|spare| self.housekeeper.put_back(spare));
                    self.poisoned = !error.is_passing();
                    return Err(error);
                }
            }
        }
        Ok(spares)
    }

    /// Writes a chunk into the segment that it is for, which is there by now.
    pub(super) fn write(&mut self, chunk: Chunk) -> Result<(), LogError> {
        let segment = self.segments.back_mut().expect("the first chunk brings the first segment");
        let file = self.file.as_ref().expect("there is a file with every segment");
        assert!(
            segment.number == chunk.number && segment.end == chunk.offset,
            "the batch is written in order"
        );
        // All behind it is zero: it was so in the spare, and `repair` closes a segment that has anything else there.
        file.write_synced(&chunk.bytes, chunk.offset)
            .map_err(LogError::io("write and sync log segment", &segment.path))?;
        segment.end = chunk.end();
        self.housekeeper.note_left(segment.capacity - segment.end);
        let mut chunk = chunk;
        segment.ranges.merge(std::mem::take(&mut chunk.ranges));
        self.buffer = chunk.into_buffer();
        Ok(())
    }

    /// Gives a spare the name of the next segment. The one before is synced by now, which recovery relies on.
    /// After an error that passes it has its old name again.
    pub(super) fn adopt(&mut self, chunk: &Chunk, spare: Spare) -> Result<(), LogError> {
        let path = segment_path(&self.dir, chunk.number);
        let rename = |from, to| self.disk.rename(from, to).map_err(LogError::io("name log segment", &path));
        let mut named = rename(&spare.path, &path);
        if named.is_ok() {
            named = self.disk.sync_dir(&self.dir).map_err(LogError::io("sync directory", &self.dir));
            if named.as_ref().is_err_and(LogError::is_passing) {
                rename(&path, &spare.path).map_err(LogError::for_good)?;
            }
        }
        if let Err(error) = named {
            if error.is_passing() {
                self.housekeeper.put_back(spare);
            }
            return Err(error);
        }
        let Chunk { number, capacity, .. } = *chunk;
        self.segments.push_back(Segment { number, path, capacity, end: 0, ranges: Ranges::default() });
        self.file = Some(spare.file);
        self.housekeeper.set_segment_bytes(next_capacity(Some(capacity), self.segment_bytes));
        Ok(())
    }
}
