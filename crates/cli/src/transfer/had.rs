//! Bytes of the files that the receiver had before, as the sender learns and counts them.

use std::collections::BTreeMap;

use anabranch_transfer::Manifest;

use super::progress::Progress;

/// Bytes of files that the receiver says it has.
pub(super) struct Had<'a> {
    manifest: &'a Manifest,
    progress: &'a Progress,
    /// Files of which the receiver asked for a checksum only, and the bytes it has: counted once a file is in place.
    checked: BTreeMap<u32, u64>,
    /// Files whose other bytes the receiver has asked for, and the bytes it has: counted already.
    begun: BTreeMap<u32, u64>,
}

impl<'a> Had<'a> {
    /// The receiver has nothing yet.
    pub(super) fn new(manifest: &'a Manifest, progress: &'a Progress) -> Self {
        Had { manifest, progress, checked: BTreeMap::new(), begun: BTreeMap::new() }
    }

    /// The receiver asks for the sum of the first `offset` bytes.
    pub(super) fn check(&mut self, index: u32, offset: u64) {
        self.checked.insert(index, self.bytes(index, offset));
    }

    /// The receiver asks for the bytes from `offset` on. It asks again from 0 if it finds that what it has is part of
    /// another file.
    pub(super) fn fetch(&mut self, index: u32, offset: u64) {
        self.checked.remove(&index);
        let now = self.bytes(index, offset);
        let before = self.begun.insert(index, now).unwrap_or(0);
        self.progress.replace_kept(before, now);
    }

    /// The file is in its place.
    pub(super) fn store(&mut self, index: u32) {
        self.begun.remove(&index);
        if let Some(bytes) = self.checked.remove(&index) {
            self.progress.add_kept(bytes);
        }
        if let Some(file) = self.manifest.entry(index as usize) {
            self.progress.add_stored(&file);
        }
    }

    /// Limits what the receiver says that it has to the size of the file.
    fn bytes(&self, index: u32, offset: u64) -> u64 {
        self.manifest.entry(index as usize).map_or(0, |file| file.size.min(offset))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transfer::{Entry, Kind, Modified, Name};

    use super::*;

    /// Two files of 9 bytes.
    fn manifest() -> Manifest {
        let mut manifest = Manifest::default();
        for name in ["a", "b"] {
            let (name, modified) = (Name::new(name).unwrap(), Modified::default());
            let file =
                Entry { name, kind: Kind::File, mode: 0o644, size: 9, modified, target: None };
            manifest.push(&file).unwrap();
        }
        manifest
    }

    /// Bytes that count as kept after `events`.
    fn kept(events: impl FnOnce(&mut Had)) -> u64 {
        let (manifest, progress) = (manifest(), Progress::default());
        events(&mut Had::new(&manifest, &progress));
        progress.counts().kept
    }

    #[test]
    fn the_rest_of_one_file_and_all_of_another() {
        let bytes = kept(|had| {
            had.check(1, 9);
            had.fetch(0, 4);
            had.store(1);
            had.store(0);
        });
        assert_eq!(bytes, 13);
    }

    #[test]
    fn bytes_of_another_file_do_not_count() {
        let asked_for_all = |had: &mut Had| {
            had.fetch(0, 4);
            had.fetch(0, 0);
        };
        assert_eq!(kept(asked_for_all), 0);
        let sum_differed = |had: &mut Had| {
            had.check(0, 9);
            had.fetch(0, 0);
            had.store(0);
        };
        assert_eq!(kept(sum_differed), 0);
    }

    #[test]
    fn offsets_beyond_the_file_and_files_beyond_the_offer_do_not_count() {
        let hostile = |had: &mut Had| {
            for index in [0, 1, 2, u32::MAX] {
                had.fetch(index, u64::MAX);
                had.fetch(index, u64::MAX - 1);
            }
        };
        assert_eq!(kept(hostile), 18);
        let hostile = |had: &mut Had| {
            for index in [0, 1, 2, u32::MAX] {
                had.check(index, u64::MAX);
                had.store(index);
            }
        };
        assert_eq!(kept(hostile), 18);
    }
}
