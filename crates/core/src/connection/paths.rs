//! The paths of a connection, and the snapshots of them that policies see.

use core::ops::{Index, IndexMut};

use anabranch_policy::view::{PathState, PathView};
use anabranch_types::{PathId, Time};

use super::identifiers::Identifiers;
use super::mtu::room_of;
use crate::path::Path;
use crate::wire::ConnectionId;

/// The place of a path in everything that is kept per path. It is used again once the path is closed; the
/// identifier never is, because it is part of the nonce (`docs/spec/wire-0.md`).
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

/// A path; it may be closed as long as its place is not reused.
#[derive(Debug)]
struct Place {
    path: Path,
    /// The path may have changed since its snapshot was made.
    stale: bool,
}

/// All paths, including closed ones whose place has not been reused.
///
/// Borrowing a path to change it makes its snapshot stale, so that policies are shown a new one.
#[derive(Debug, Default)]
pub(super) struct PathTable {
    places: Vec<Place>,
    /// Aligned with `places` once they have been brought up to date.
    views: Vec<PathView>,
    /// When the snapshots were made, and for which length of the longest symbol.
    made: (Time, u16),
    /// Which identifiers have been used up.
    pub(super) identifiers: Identifiers,
    /// Sequence number of the newest path status told to the peer, and of the newest it told.
    statuses: (u64, u64),
    /// Whose turn it is to send.
    turn: u8,
}

impl PathTable {
    /// Every path with its place.
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

    /// Every place, in order.
    pub(super) fn indices(&self) -> impl DoubleEndedIterator<Item = PathIndex> + Clone + use<> {
        (0..self.count()).map(PathIndex)
    }

    /// Paths, closed ones included.
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

    /// The path that comes `step` places after the one whose turn it is to send.
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

    /// Whether a path is closed, or will never be opened.
    pub(super) fn is_over(&self, id: PathId) -> bool {
        self.identifiers.is_closed(id) && self.open(id).is_none()
    }

    /// Paths that are not closed.
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

    /// A path to change, and the snapshots of all as they are.
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
