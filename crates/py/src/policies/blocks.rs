//! Coding blocks and new data as schedulers written in Python see them.

use anabranch_policy::scheduler::Work as Chosen;
use anabranch_policy::view::{self, BlockId, Blocked};
use anabranch_types::{PathId, Time};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::answers::Work;
use super::view::{PathView, snapshot};

fn blocked(blocked: Blocked) -> &'static str {
    match blocked {
        Blocked::Application => "application",
        Blocked::FlowControl => "flow-control",
        Blocked::DecoderCredit => "decoder-credit",
    }
}

snapshot! {
    /// A coding block: the symbols that repairs combine. Over TCP, one segment's worth of the data stream.
    ///
    /// A symbol is in one state at a time: due (or a planned repair), queued, in flight, received, or lost
    /// and not asked for again. A loss, a take-back or a copy makes it due.
    BlockView of view::BlockView {
        /// Identifier of the block; rises within a connection.
        id: u64 = |block| block.id.0;
        /// First source symbol of the block.
        first: u64 = |block| block.first.0;
        /// How the data wants to be treated: "interactive", "live" or "bulk".
        traffic_class: &'static str = |block| block.class.name();
        /// Source symbols in it so far.
        sources: u16 = |block| block.sources;
        /// Source symbols that it was opened for.
        planned: u16 = |block| block.planned;
        /// No further source symbols will join.
        closed: bool = |block| block.closed;
        /// Repair symbols generated so far.
        repairs: u16 = |block| block.repairs;
        /// Repairs planned but not generated yet.
        proactive_left: u16 = |block| block.proactive_left;
        /// Symbols that must be sent before anything else of this block.
        due: u16 = |block| block.due;
        /// Independent symbols known to have arrived.
        received: u16 = |block| block.received;
        /// Distinct symbols sent and neither acknowledged nor declared lost.
        in_flight: u16 = |block| block.in_flight;
        /// Distinct symbols that wait in the queues of paths and are not in flight as well.
        queued: u16 = |block| block.queued;
        /// When the block's first symbol was sent, seconds.
        opened: f64 = |block| block.opened.as_secs_f64();
        /// Symbols still missing at the receiver, as far as is known.
        deficit: u16 = |block| block.deficit();
        /// Whether `Work.block` of it sends something now.
        has_work: bool = |block| block.has_work();
        /// Symbols that `Work.block` of it can send now.
        takeable: u32 = |block| block.takeable();
        /// Symbols missing beyond those in flight, queued, due and planned.
        shortfall: u16 = |block| block.shortfall();
    }

    /// Symbols of it in flight on `path`.
    fn in_flight_by(&self, path: &PathView) -> u16 {
        self.0.in_flight_by(&path.0)
    }

    /// Symbols of it queued on `path`.
    fn queued_by(&self, path: &PathView) -> u16 {
        self.0.queued_by(&path.0)
    }

    /// Whether `path` has sent a symbol of it.
    fn carried_by(&self, path: &PathView) -> bool {
        self.0.carried_by(&path.0)
    }

    /// Whether a symbol of it that is due was last carried by `path`.
    fn lost_by(&self, path: &PathView) -> bool {
        self.0.lost_by(&path.0)
    }

    /// Symbols in flight that `path` neither carries nor has queued, which `Work.copy` can send on it.
    fn uncopied(&self, path: &PathView) -> u16 {
        self.0.uncopied(&path.0)
    }
}

snapshot! {
    /// Data that the application has ready beyond the open blocks.
    FreshView of view::FreshView {
        /// Source symbols of the next class that could be made now.
        symbols: u32 = |fresh| fresh.symbols;
        /// Source symbols of less urgent classes that could be made after those.
        beyond: u32 = |fresh| fresh.beyond;
        /// The number of the next source symbol.
        next: u64 = |fresh| fresh.next.0;
        /// The application has more to write than the send buffer took.
        more: bool = |fresh| fresh.more;
        /// The class of the next source symbol: "interactive", "live" or "bulk".
        traffic_class: &'static str = |fresh| fresh.class.name();
        /// The payload of a symbol, bytes.
        symbol_size: u16 = |fresh| fresh.symbol_size;
        /// Why no source symbol could be made: "application", "flow-control" or "decoder-credit"; None if one could.
        blocked: Option<&'static str> = |fresh| fresh.blocked.map(blocked);
        /// Symbols that may be made before the receiver grants more.
        credit: u32 = |fresh| fresh.credit;
        /// Symbols that may be outstanding in all.
        window: u32 = |fresh| fresh.window;
    }
}

/// Everything that a scheduler may look at, as it was when the scheduler was asked. The view may be kept.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct SchedulerView {
    now: Time,
    paths: Vec<view::PathView>,
    blocks: Vec<view::BlockView>,
    fresh: view::FreshView,
    by_repairs: bool,
    symbols_per_packet: u16,
    shown_paths: PyOnceLock<Py<PyTuple>>,
    shown_blocks: PyOnceLock<Py<PyTuple>>,
}

impl SchedulerView {
    pub(super) fn of(view: &view::SchedulerView<'_>) -> Self {
        SchedulerView {
            now: view.now,
            paths: view.paths.to_vec(),
            blocks: view.blocks.to_vec(),
            fresh: view.fresh,
            by_repairs: view.demand.by_repairs(),
            symbols_per_packet: view.demand.symbols_per_packet(),
            shown_paths: PyOnceLock::new(),
            shown_blocks: PyOnceLock::new(),
        }
    }

    /// Whether ordinary data may go on `path` now: it is usable, and no backup unless there is nothing else.
    fn is_carrier(&self, path: &view::PathView) -> bool {
        let others = self.paths.iter().any(|path| path.usable() && !path.backup);
        path.usable() && !(others && path.backup)
    }
}

#[pymethods]
impl SchedulerView {
    /// Now, seconds since the run began.
    #[getter]
    fn now(&self) -> f64 {
        self.now.as_secs_f64()
    }

    /// The paths, by rising slot.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shown = self.shown_paths.get_or_try_init(py, || {
            PyTuple::new(py, self.paths.iter().map(|path| PathView(*path))).map(Bound::unbind)
        })?;
        Ok(shown.bind(py).clone())
    }

    /// The paths on which ordinary data may go now: usable ones, backups only if there is nothing else.
    #[getter]
    fn carriers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let all = self.paths(py)?;
        if self.paths.iter().all(|path| self.is_carrier(path)) {
            return Ok(all);
        }
        let carriers = self.paths.iter().zip(all.iter());
        let carriers = carriers.filter(|(path, _)| self.is_carrier(path)).map(|(_, shown)| shown);
        PyTuple::new(py, carriers.collect::<Vec<_>>())
    }

    /// Blocks not yet recovered at the receiver, oldest first. Over TCP some may be left out, but not the oldest
    /// of all, the oldest that has work, nor the oldest of which the asking path could take a copy.
    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shown = self.shown_blocks.get_or_try_init(py, || {
            PyTuple::new(py, self.blocks.iter().map(|block| BlockView(*block))).map(Bound::unbind)
        })?;
        Ok(shown.bind(py).clone())
    }

    /// The blocks that have work, oldest first: faster than looking through all of them.
    #[getter]
    fn with_work<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let blocks = self.blocks.iter().filter(|block| block.has_work());
        PyTuple::new(py, blocks.map(|block| BlockView(*block)).collect::<Vec<_>>())
    }

    /// Data that the application has ready.
    #[getter]
    fn fresh(&self) -> FreshView {
        FreshView(self.fresh)
    }

    /// Whether blocks that need more get repairs, by `Work.repair`. Otherwise, what is lost is due by itself.
    #[getter]
    fn by_repairs(&self) -> bool {
        self.by_repairs
    }

    /// Most symbols that share a packet, as far as they fit.
    #[getter]
    fn symbols_per_packet(&self) -> u16 {
        self.symbols_per_packet
    }

    /// The first symbol of the oldest block that is not known to be recovered, or the next new
    /// symbol.
    #[getter]
    fn floor(&self) -> u64 {
        self.blocks.first().map_or(self.fresh.next, |block| block.first).0
    }

    /// The path with this identifier, or None.
    fn path<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.paths.iter().position(|path| path.id == PathId(id)) {
            Some(place) => self.paths(py)?.get_item(place).map(Some),
            None => Ok(None),
        }
    }

    /// The block with this identifier, if it is shown.
    fn block(&self, id: u64) -> Option<BlockView> {
        let place = self.blocks.binary_search_by_key(&BlockId(id), |block| block.id).ok()?;
        self.blocks.get(place).map(|block| BlockView(*block))
    }

    /// The oldest work that is due, else new data, else None.
    fn first_in_line(&self) -> Option<Work> {
        let due = self.blocks.iter().find(|block| block.has_work());
        let fresh = (self.fresh.symbols > 0).then_some(Chosen::Fresh);
        due.map(|block| Chosen::Block(block.id)).or(fresh).map(Work)
    }

    fn __repr__(&self) -> String {
        format!(
            "SchedulerView(now={:?}, {} paths, {} blocks, {} fresh symbols)",
            self.now(),
            self.paths.len(),
            self.blocks.len(),
            self.fresh.symbols
        )
    }
}
