//! The paths of a connection, and the snapshots of them that policies see.

use core::ops::{Index, IndexMut};

use anabranch_policy::view::{PathState, PathView};
use anabranch_types::{PathId, Time};

use super::identifiers::Identifiers;
use super::mtu::room_of;
use crate::path::Path;
use crate::wire::ConnectionId;

/// The index of a path in all per-path tables. Unlike the identifier, which is part of the nonce
/// (`docs/spec/wire-0.md`), the index is reused once the path is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathIndex(pub(super) u8);

impl PathIndex {
    /// The path's bit in masks of paths.
    pub(super) fn bit(self) -> u16 {
        1 << self.0
    }
}

impl From<PathIndex> for usize {
    fn from(index: PathIndex) -> usize {
        index.0.into()
    }
}

/// A place in the table with its path, which stays there after it is closed until another path gets
/// the place.
#[derive(Debug)]
struct Place {
    path: Path,
    /// Whether the path may have changed since its snapshot was made.
    stale: bool,
}

/// All paths, including closed ones whose place has not been reused.
///
/// Borrowing a path mutably makes its snapshot stale, so that policies get a new one.
#[derive(Debug, Default)]
pub(super) struct PathTable {
    places: Vec<Place>,
    /// The snapshots of `places`, in the same order, as of the last refresh.
    views: Vec<PathView>,
    /// When the snapshots were made, and for which length of the longest symbol.
    made: (Time, u16),
    /// Which identifiers have been used up.
    pub(super) identifiers: Identifiers,
    /// Sequence numbers of the newest path status sent to the peer, and of the newest received.
    statuses: (u64, u64),
    /// The index of the path whose turn it is to send.
    turn: u8,
}

impl PathTable {
    /// Every path with its index.
    pub(super) fn indexed(&self) -> impl Iterator<Item = (PathIndex, &Path)> {
        self.iter().enumerate().map(|(at, path)| (PathIndex(at as u8), path))
    }

    /// Every path.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| &place.path)
    }

    /// Every path, mutably; all snapshots become stale.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.places.iter_mut().map(Place::change)
    }

    /// Every index, in order.
    pub(super) fn indices(&self) -> impl DoubleEndedIterator<Item = PathIndex> + Clone + use<> {
        (0..self.count()).map(PathIndex)
    }

    /// The number of paths, including closed ones.
    pub(super) fn count(&self) -> u8 {
        self.places.len() as u8
    }

    /// The sequence number of the next path status for the peer.
    pub(super) fn next_status(&mut self) -> u64 {
        self.statuses.0 += 1;
        self.statuses.0
    }

    /// Whether the peer's path status with this sequence number is the newest so far.
    pub(super) fn is_new_status(&mut self, sequence: u64) -> bool {
        let news = sequence > self.statuses.1;
        self.statuses.1 = self.statuses.1.max(sequence);
        news
    }

    /// The path that is `step` places after the one whose turn it is to send.
    pub(super) fn at_turn(&self, step: u8) -> PathIndex {
        PathIndex((self.turn + step).checked_rem(self.count()).unwrap_or(0))
    }

    /// Gives this path the turn to send.
    pub(super) fn set_turn(&mut self, index: PathIndex) {
        self.turn = index.0;
    }

    /// The first path for which `is` holds.
    pub(super) fn find(&self, is: impl Fn(&Path) -> bool) -> Option<PathIndex> {
        self.iter().position(is).map(|at| PathIndex(at as u8))
    }

    /// The open path with this identifier.
    #[inline]
    pub(super) fn open(&self, id: PathId) -> Option<PathIndex> {
        self.find(|path| path.id == id && path.state() != PathState::Closed)
    }

    /// The open path on which this side receives under a connection id.
    #[inline]
    pub(super) fn named(&self, local: ConnectionId) -> Option<PathIndex> {
        let local = Some(local);
        self.find(|path| path.names.local == local && path.state() != PathState::Closed)
    }

    /// Whether a path is closed or will never be opened.
    pub(super) fn is_over(&self, id: PathId) -> bool {
        self.identifiers.is_closed(id) && self.open(id).is_none()
    }

    /// The number of paths that are not closed.
    pub(super) fn count_open(&self) -> usize {
        self.iter().filter(|path| path.state() != PathState::Closed).count()
    }

    /// Puts a path in the first free place.
    pub(super) fn insert(&mut self, path: Path) -> PathIndex {
        let free = self.find(|path| path.state() == PathState::Closed);
        let index = free.unwrap_or(PathIndex(self.count()));
        let new = Place { path, stale: true };
        match self.places.get_mut(usize::from(index)) {
            Some(place) => *place = new,
            None => self.places.push(new),
        }
        index
    }

    /// The snapshots as [`refresh`](Self::refresh) left them.
    pub(super) fn views(&self) -> &[PathView] {
        &self.views
    }

    /// A path, mutably, and the current snapshots of all paths.
    pub(super) fn with_views(&mut self, index: PathIndex) -> (&mut Path, &[PathView]) {
        (self.places[usize::from(index)].change(), &self.views)
    }

    /// Brings the snapshots up to date. The longest symbol that is still needed has `widest` bytes.
    pub(super) fn refresh(&mut self, now: Time, widest: u16) {
        let all = self.made != (now, widest);
        self.made = (now, widest);
        for (at, place) in self.places.iter_mut().enumerate() {
            if !all && !place.stale {
                continue;
            }
            place.stale = false;
            let path = &place.path;
            let mut view = path.view(now, at as u8);
            if path.is_usable() && room_of(path) < widest {
                view.state = PathState::Validating;
            }
            match self.views.get_mut(at) {
                Some(place) => *place = view,
                None => self.views.push(view),
            }
        }
    }
}

impl Place {
    /// The path, mutably; its snapshot becomes stale.
    #[inline]
    fn change(&mut self) -> &mut Path {
        self.stale = true;
        &mut self.path
    }
}

impl Index<PathIndex> for PathTable {
    type Output = Path;

    #[inline]
    fn index(&self, index: PathIndex) -> &Path {
        &self.places[usize::from(index)].path
    }
}

impl IndexMut<PathIndex> for PathTable {
    #[inline]
    fn index_mut(&mut self, index: PathIndex) -> &mut Path {
        self.places[usize::from(index)].change()
    }
}
