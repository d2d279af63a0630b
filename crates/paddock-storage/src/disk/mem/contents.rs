//! The bytes of one simulated file: as a process sees them, and what of that could be lost.

use std::collections::BTreeMap;

use paddock_chance::Chance;

use crate::disk::SECTOR_BYTES;

type Sector = [u8; SECTOR_BYTES as usize];

#[derive(Debug, Default)]
pub(super) struct Contents {
    bytes: Vec<u8>,
    durable_len: u64,
    /// Sectors written since the last sync, as they are on the disk.
    unsynced: BTreeMap<u64, Sector>,
    /// Sectors whose sync failed: the system believes that they are clean, and no later sync writes them.
    lost: BTreeMap<u64, Sector>,
}

impl Contents {
    pub(super) fn durable(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), durable_len: bytes.len() as u64, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let start = self.bytes.len().min(offset as usize);
        let count = buffer.len().min(self.bytes.len() - start);
        buffer[..count].copy_from_slice(&self.bytes[start..start + count]);
        count
    }

    pub(super) fn write(&mut self, data: &[u8], offset: u64) {
        if data.is_empty() {
            return;
        }
        let end = offset + data.len() as u64;
        for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            if !self.unsynced.contains_key(&sector) {
                let on_disk = self.lost.remove(&sector).unwrap_or_else(|| self.sector(sector));
                self.unsynced.insert(sector, on_disk);
            }
        }
        if self.len() < end {
            self.bytes.resize(end as usize, 0);
        }
        self.bytes[offset as usize..end as usize].copy_from_slice(data);
    }

    pub(super) fn sync(&mut self) {
        self.unsynced.clear();
        self.durable_len = self.len();
    }

    pub(super) fn fail_sync(&mut self) {
        self.lost.append(&mut self.unsynced);
    }

    pub(super) fn flip(&mut self, offset: u64, bit: u8) -> bool {
        let Some(byte) = self.bytes.get_mut(offset as usize) else { return false };
        *byte ^= 1 << bit;
        let sector = offset / SECTOR_BYTES;
        if let Some(on_disk) = self.unsynced.get_mut(&sector).or(self.lost.get_mut(&sector)) {
            on_disk[(offset % SECTOR_BYTES) as usize] ^= 1 << bit;
        }
        true
    }

    /// Decides for every sector that was not synced whether it is old, new, or torn.
    pub(super) fn crash(&mut self, random: &mut Chance) {
        let mut undecided = std::mem::take(&mut self.lost);
        undecided.append(&mut self.unsynced);
        for (number, on_disk) in undecided {
            let kept = match random.below(3) {
                0 => 0,
                1 => SECTOR_BYTES,
                _ => random.below(SECTOR_BYTES / 8) * 8,
            };
            let start = (number * SECTOR_BYTES + kept).min(self.len()) as usize;
            let end = ((number + 1) * SECTOR_BYTES).min(self.len()) as usize;
            self.bytes[start..end].copy_from_slice(&on_disk[kept as usize..][..end - start]);
        }
        if random.below(2) == 0 {
            self.bytes.truncate(self.durable_len as usize);
        }
        self.durable_len = self.len();
    }

    fn sector(&self, number: u64) -> Sector {
        let mut sector = [0; SECTOR_BYTES as usize];
        self.read(&mut sector, number * SECTOR_BYTES);
        sector
    }
}
