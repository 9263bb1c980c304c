"""The part of the package that is written in Rust; its names are used by way of `anabranch`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeAlias, final, overload

from .policy import CongestionController, Scheduler

_Setting: TypeAlias = str | bool | float | list[Any] | tuple[Any, ...] | dict[str, Any]
_Seeds: TypeAlias = int | Iterable[SupportsIndex]

__all__ = [
    "AckEvent",
    "Assign",
    "BlockView",
    "Dataset",
    "Figure",
    "FreshView",
    "Hold",
    "Idle",
    "IncompleteError",
    "LossView",
    "Mistake",
    "PathView",
    "Penalise",
    "Pick",
    "Policy",
    "PolicyOption",
    "Profile",
    "RateSample",
    "Report",
    "Results",
    "ResultsError",
    "RttView",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SchedulerEvent",
    "SchedulerView",
    "Send",
    "SentEvent",
    "Table",
    "TakeBack",
    "TimeoutEvent",
    "Work",
    "__version__",
    "_stop_policies",
    "commit",
    "plot",
    "policies",
    "profiles",
]

__version__: str
commit: str

def _stop_policies() -> None: ...

class ScenarioError(ValueError):
    mistakes: list[Mistake]

class RunError(RuntimeError): ...
class ResultsError(OSError): ...

class IncompleteError(ResultsError):
    missing: list[Run]

@final
class Mistake:
    def __new__(
        cls, file: str, line: int, column: int, key: str, given: str, allowed: str
    ) -> Self: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def key(self) -> str: ...
    @property
    def given(self) -> str: ...
    @property
    def allowed(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Scenario:
    @staticmethod
    def load(
        path: str | PathLike[str],
        *,
        set: Mapping[str, _Setting] | None = None,
        quick: bool = False,
        policies: Iterable[type[Scheduler | CongestionController]] | None = None,
    ) -> Scenario: ...
    @staticmethod
    def parse(
        text: str,
        *,
        name: str = "scenario",
        files: Mapping[str, str] | None = None,
        set: Mapping[str, _Setting] | None = None,
        quick: bool = False,
        policies: Iterable[type[Scheduler | CongestionController]] | None = None,
    ) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def settings(self) -> list[str]: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def policies(self) -> list[type[Scheduler | CongestionController]]: ...
    @property
    def points(self) -> list[dict[str, str]]: ...
    def with_settings(self, set: Mapping[str, _Setting]) -> Scenario: ...
    def quick(self) -> Scenario: ...
    def runs(self, seeds: _Seeds | None = None) -> list[Run]: ...
    def run(self, run: Run) -> Report: ...
    @overload
    def sweep(
        self,
        seeds: _Seeds | None = None,
        *,
        out: None = None,
        jobs: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Results: ...
    @overload
    def sweep(
        self,
        seeds: _Seeds | None = None,
        *,
        out: str | PathLike[str],
        jobs: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Dataset: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Run:
    @property
    def id(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def point(self) -> dict[str, str]: ...
    @property
    def seed(self) -> int: ...
    @property
    def cost(self) -> float: ...
    def __lt__(self, other: Run, /) -> bool: ...
    def __le__(self, other: Run, /) -> bool: ...
    def __gt__(self, other: Run, /) -> bool: ...
    def __ge__(self, other: Run, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Report:
    @property
    def run(self) -> Run: ...
    @property
    def digest(self) -> str: ...
    @property
    def packet_hops(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def virtual_seconds(self) -> float: ...
    @property
    def scalars(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def samples(self) -> Table: ...
    def value(self, subject: str, metric: str) -> float: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes, scenario: Scenario) -> Report: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Table:
    @property
    def columns(self) -> list[str]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> list[Any]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Results:
    @property
    def scenario(self) -> Scenario: ...
    @property
    def reports(self) -> list[Report]: ...
    @property
    def scalars(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def samples(self) -> Table: ...
    def __len__(self) -> int: ...

@final
class Dataset:
    def __new__(
        cls, path: str | PathLike[str], scenario: Scenario, seeds: _Seeds | None = None
    ) -> Self: ...
    @property
    def path(self) -> Path: ...
    @property
    def scenario(self) -> Scenario: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def scalars(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def samples(self) -> Table: ...
    def runs(self) -> list[Run]: ...
    def missing(self, runs: Iterable[Run] | None = None) -> list[Run]: ...
    def commit(self, reports: Report | Iterable[Report]) -> None: ...
    def merge(self, *directories: str | PathLike[str]) -> list[Run]: ...
    def write(
        self, *, partial: bool = False, partition_by: str | Sequence[str] | None = None
    ) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Figure:
    @property
    def svg(self) -> str: ...
    @property
    def title(self) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def _repr_svg_(self) -> str: ...

def plot(
    results: Dataset | Results | Report,
    metric: str = "goodput_mbps",
    *,
    kind: Literal["summary", "time", "shares", "distribution"] | None = None,
    x: str | None = None,
    subject: str | None = None,
    point: int | None = None,
) -> Figure: ...

@final
class Profile:
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...

@final
class PolicyOption:
    @property
    def key(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def default(self) -> str: ...

@final
class Policy:
    @property
    def axis(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def options(self) -> list[PolicyOption]: ...

def profiles() -> list[Profile]: ...
def policies(axis: str | None = None) -> list[Policy]: ...

@final
class RttView:
    """Round-trip times of a path (RFC 9002 §5), seconds."""

    @property
    def latest(self) -> float:
        """The newest sample."""
    @property
    def smoothed(self) -> float:
        """Smoothed, gain 1/8."""
    @property
    def variation(self) -> float:
        """Mean deviation, gain 1/4."""
    @property
    def min(self) -> float:
        """The least sample in the current observation window."""
    @property
    def queue(self) -> float:
        """The forward delay above the least seen: the queue on the way to the peer."""
    @property
    def forward(self) -> float:
        """The least forward transit, on clocks that are not synchronised: only differences
        between the paths of a connection mean something."""
    @property
    def samples(self) -> int:
        """Number of samples; with 0, `smoothed` is an initial guess."""
    def forward_lead(self, other: RttView) -> float: ...

@final
class LossView:
    """Estimate of the loss probability, and the deviation of what was observed."""

    @property
    def mean(self) -> float:
        """The mean, 0 to 1."""
    @property
    def deviation(self) -> float:
        """The standard deviation of the observed loss fraction, 0 to 1."""

@final
class PathView:
    """One path. Bytes are what congestion control counts: UDP payload and 28 bytes of headers in
    the transport, payload in the models of TCP. Times are seconds, rates bits per second."""

    @property
    def id(self) -> int:
        """Identifier of the path; paths are numbered from 0 in the order of opening."""
    @property
    def slot(self) -> int:
        """Index of the path in tables by path. Unlike `id`, it is used again after the path has
        closed."""
    @property
    def state(self) -> str:
        """State of the path: "validating", "active", "suspect", "probation" or "closed"."""
    @property
    def usable(self) -> bool:
        """True if ordinary data may be sent on the path."""
    @property
    def backup(self) -> bool:
        """True if the path is used only while no other is usable."""
    @property
    def cwnd(self) -> int:
        """Congestion window, bytes."""
    @property
    def ssthresh(self) -> int | None:
        """Slow-start threshold, bytes; None where the controller has none."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes sent that are neither acknowledged nor declared lost."""
    @property
    def bytes_queued(self) -> int:
        """Bytes on the wire of what is assigned to this path and not sent yet."""
    @property
    def packet_size(self) -> int:
        """Size of a full packet, bytes."""
    @property
    def ready(self) -> bool:
        """True if the window and the pacer admit one full packet now."""
    @property
    def next_send(self) -> float:
        """Time at which the pacer admits the next packet; it may have passed."""
    @property
    def pacing_rate(self) -> int | None:
        """Pacing rate in force; None if the path is not paced."""
    @property
    def rate(self) -> int | None:
        """The newest estimate of the rate at which packets leave the bottleneck, lost ones
        included."""
    @property
    def rtt(self) -> RttView:
        """Round-trip times and the standing queue."""
    @property
    def rto(self) -> float:
        """Retransmission or probe timeout in force, back-off included."""
    @property
    def oldest_unacked(self) -> float | None:
        """Time at which the oldest unacknowledged packet was sent; None if there is none."""
    @property
    def loss(self) -> LossView:
        """Loss estimate of the path."""
    @property
    def shares(self) -> int:
        """Slots of the paths that share a bottleneck with this one: bit n is slot n."""
    @property
    def cwnd_packets(self) -> int:
        """Congestion window in full packets, at least 1."""
    @property
    def free_packets(self) -> int:
        """Full packets that the window still admits."""
    @property
    def loss_free_bandwidth(self) -> float:
        """Packets per second that a window per round trip delivers, losses deducted (MPLOT,
        eq. 1)."""

@final
class BlockView:
    """A coding block: the symbols that repairs combine. Over TCP, one segment's worth of the
    data stream. A symbol is in one state at a time: due (or a planned repair), queued, in
    flight, received, or lost and not asked for again. A loss, a take-back or a copy makes it
    due."""

    @property
    def id(self) -> int:
        """Identifier of the block; later blocks of a connection have larger ones."""
    @property
    def first(self) -> int:
        """Number of the first source symbol."""
    @property
    def traffic_class(self) -> str:
        """Class of the data: "interactive", "live" or "bulk"."""
    @property
    def sources(self) -> int:
        """Source symbols of the block so far."""
    @property
    def planned(self) -> int:
        """Source symbols for which the block was opened."""
    @property
    def closed(self) -> bool:
        """True if no further source symbol will join."""
    @property
    def repairs(self) -> int:
        """Repair symbols generated so far."""
    @property
    def proactive_left(self) -> int:
        """Repairs that are planned and not generated yet."""
    @property
    def due(self) -> int:
        """Symbols that must be sent before anything else of this block."""
    @property
    def received(self) -> int:
        """Independent symbols that are known to have arrived."""
    @property
    def in_flight(self) -> int:
        """Distinct symbols sent and neither acknowledged nor declared lost."""
    @property
    def queued(self) -> int:
        """Distinct symbols in the queues of paths, without those that are in flight too."""
    @property
    def opened(self) -> float:
        """Time at which the first symbol was sent, seconds."""
    @property
    def deficit(self) -> int:
        """Symbols that the receiver still lacks, as far as the sender knows."""
    @property
    def has_work(self) -> bool:
        """True if `Work.block` with this block sends something now."""
    @property
    def takeable(self) -> int:
        """Symbols that `Work.block` with this block can send now."""
    @property
    def shortfall(self) -> int:
        """Symbols missing beyond those in flight, queued, due and planned."""
    def in_flight_by(self, path: PathView) -> int: ...
    def queued_by(self, path: PathView) -> int: ...
    def carried_by(self, path: PathView) -> bool: ...
    def lost_by(self, path: PathView) -> bool: ...
    def uncopied(self, path: PathView) -> int: ...

@final
class FreshView:
    """Data of the application that is in no block yet."""

    @property
    def symbols(self) -> int:
        """Source symbols that can be made now of the next class."""
    @property
    def beyond(self) -> int:
        """Source symbols that can be made after those, of less urgent classes."""
    @property
    def next(self) -> int:
        """The number of the next source symbol."""
    @property
    def more(self) -> bool:
        """True if the application has more to write than the send buffer took."""
    @property
    def traffic_class(self) -> str:
        """Class of the next source symbol: "interactive", "live" or "bulk"."""
    @property
    def symbol_size(self) -> int:
        """The payload of a symbol, bytes."""
    @property
    def blocked(self) -> str | None:
        """Reason why no symbol can be made: "application", "flow-control" or "decoder-credit"; None
        if one can."""
    @property
    def credit(self) -> int:
        """Symbols that may be made before the receiver grants more."""
    @property
    def window(self) -> int:
        """Symbols that may be outstanding in all."""

@final
class RateSample:
    """A measurement of the rate at which a path moves packets."""

    @property
    def delivered(self) -> int:
        """Bytes acknowledged during the sample."""
    @property
    def lost(self) -> int:
        """Bytes declared lost during the sample."""
    @property
    def departure(self) -> float:
        """Time in which the bytes of the sample were sent, seconds."""
    @property
    def arrival(self) -> float:
        """Time in which the bytes of the sample were acknowledged, seconds."""
    @property
    def app_limited(self) -> bool:
        """True if the sender had nothing to send for a part of the time, so that the rate is a
        lower bound."""
    @property
    def prior_delivered(self) -> int:
        """Bytes that the path had delivered in all when the sampled packet was sent."""
    @property
    def delivery_rate(self) -> int:
        """Bits delivered per second."""
    @property
    def resolved_rate(self) -> int:
        """Bits that crossed the bottleneck per second, delivered or lost after it."""

@final
class SentEvent:
    """A packet left."""

    @property
    def now(self) -> float:
        """Now, seconds."""
    @property
    def bytes(self) -> int:
        """Bytes of the packet."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes in flight, this packet included."""

@final
class AckEvent:
    """An acknowledgement, for one path: the packets that it newly acknowledges, and those that
    are lost by it. Times are seconds."""

    @property
    def now(self) -> float:
        """Now."""
    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged."""
    @property
    def acked_packets(self) -> int:
        """Packets newly acknowledged."""
    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost."""
    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""
    @property
    def ce_packets(self) -> int:
        """Packets newly reported with a Congestion Experienced mark."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes in flight after this acknowledgement."""
    @property
    def prior_in_flight(self) -> int:
        """Bytes in flight before this acknowledgement."""
    @property
    def largest_acked_sent(self) -> float:
        """Time at which the newest acknowledged packet was sent."""
    @property
    def largest_lost_sent(self) -> float | None:
        """Time at which the newest lost packet was sent; None if none was lost."""
    @property
    def total_delivered(self) -> int:
        """Bytes acknowledged on the path so far."""
    @property
    def rate(self) -> RateSample | None:
        """A rate sample, if this acknowledgement allows one."""
    @property
    def rtt(self) -> RttView:
        """Round-trip times after this acknowledgement."""
    @property
    def loss(self) -> LossView:
        """Loss estimate of the path."""
    @property
    def app_limited(self) -> bool:
        """True if the window was not filled when these packets were sent; it must not grow then."""
    @property
    def path(self) -> int | None:
        """Index of the path among its siblings; None if the connection has one path."""

@final
class TimeoutEvent:
    """No feedback about the path arrived for a retransmission timeout."""

    @property
    def now(self) -> float:
        """Now, seconds."""
    @property
    def bytes_in_flight(self) -> int:
        """Bytes in flight when the timer fired."""
    @property
    def consecutive(self) -> int:
        """Timeouts in a row, this one included."""

@final
class SchedulerEvent:
    """An event of which a scheduler is told."""

    @property
    def kind(self) -> str:
        """ "acked", "lost", "cwnd-reduced", "timeout", "path-up", "path-down" (of a path),
        "recovered" (of a block), "receiver-limited", "sender-limited" or "wakeup"."""
    @property
    def path(self) -> int | None:
        """The path, if the event is about one."""
    @property
    def block(self) -> int | None:
        """The block, if the event is its recovery."""
    @property
    def cwnd(self) -> int | None:
        """The reduced window, bytes."""
    @property
    def full(self) -> bool:
        """With "sender-limited": true if no byte of the send buffer is free."""

@final
class SchedulerView:
    """The state of the connection when the scheduler was asked. The view may be kept."""

    @property
    def now(self) -> float:
        """Now, seconds since the run began."""
    @property
    def paths(self) -> tuple[PathView, ...]:
        """The paths, by rising slot."""
    @property
    def carriers(self) -> tuple[PathView, ...]:
        """The paths on which ordinary data may go now: usable ones, backups only if there is
        nothing else."""
    @property
    def blocks(self) -> tuple[BlockView, ...]:
        """Blocks not yet recovered at the receiver, oldest first. Over TCP some may be left out,
        but not the oldest of all, the oldest that has work, nor the oldest of which the asking path
        could take a copy."""
    @property
    def with_work(self) -> tuple[BlockView, ...]:
        """The blocks that have work, oldest first; faster than a search through `blocks`."""
    @property
    def fresh(self) -> FreshView:
        """Data of the application that is in no block yet."""
    @property
    def by_repairs(self) -> bool:
        """True if blocks that lack symbols get repairs by `Work.repair`. Otherwise, lost symbols
        are due by themselves."""
    @property
    def symbols_per_packet(self) -> int:
        """Largest number of symbols in a packet, as far as they fit."""
    @property
    def floor(self) -> int:
        """The oldest symbol that the receiver is not known to have; the symbols of a block count
        as one."""
    def path(self, id: int) -> PathView | None:
        """The path with this identifier, or None."""
    def block(self, id: int) -> BlockView | None:
        """The block with this identifier, if it is shown."""
    def first_in_line(self) -> Work | None:
        """The oldest work that is due, else new data, else None."""

@final
class Work:
    """Symbols to send: `Work.FRESH`, `Work.AHEAD`, or those of a block."""

    FRESH: ClassVar[Work]
    """The next new source symbol."""
    AHEAD: ClassVar[Work]
    """New source symbols that are cut without being sent; they are due from then on."""
    @staticmethod
    def block(block: BlockView | int) -> Work:
        """The next symbol of this block that is due: a repair, or a lost symbol again."""
    @staticmethod
    def copy(block: BlockView | int) -> Work:
        """A copy of this block's oldest symbol in flight that the path neither carries nor has
        queued."""
    @staticmethod
    def repair(block: BlockView | int) -> Work:
        """The next symbol of this closed block that is due; if none is, a further repair."""

@final
class Pick:
    """Some work for a path: `count` symbols of it, on `path` (None: the path that asks), not before
    the time `not_before`. What is not for the asking path at once waits in the path's queue."""

    def __new__(
        cls, work: Work, count: int = 1, path: int | None = None, not_before: float = 0.0
    ) -> Pick: ...

@final
class Send:
    """An answer to a path that asks: send these picks; records show the reason."""

    def __new__(
        cls, picks: Work | Pick | Sequence[Work | Pick], reason: str = "chosen"
    ) -> Send: ...

@final
class Hold:
    """An answer to a path that asks: do not ask for it again before the time `until`, whatever
    happens."""

    def __new__(cls, until: float, reason: str = "held") -> Hold: ...

@final
class Idle:
    """An answer to a path that asks: nothing for it until something changes."""

    def __new__(cls, reason: str = "nothing chosen") -> Idle: ...

@final
class Assign:
    """An action beside pulls: assign a pick to its path ahead of the path's window."""

    def __new__(cls, pick: Pick) -> Assign: ...

@final
class TakeBack:
    """An action beside pulls: take back what waits in the queue of `path` beyond its first `keep`
    symbols."""

    def __new__(cls, path: int, keep: int = 0) -> TakeBack: ...

@final
class Penalise:
    """An action beside pulls: hold `path` back through its congestion controller."""

    def __new__(cls, path: int) -> Penalise: ...
