"""Built-in policies, written once more in Python."""

from __future__ import annotations

import anabranch as ab


def name_carrier(path: int, view: ab.SchedulerView) -> ab.Idle | None:
    """Why a path may not carry data, if so."""
    if any(carrier.id == path for carrier in view.carriers):
        return None
    mine = view.path(path)
    if mine is not None and mine.usable:
        return ab.Idle("backup, not needed")
    return ab.Idle("path not usable")


class InTurn(ab.Scheduler):
    """`round-robin`."""

    name = "in-turn"

    def __init__(self, *, quota: int = 1) -> None:
        self.quota = quota
        self.turn: int | None = None
        self.taken = 0

    def next(self, view: ab.SchedulerView) -> int | None:
        ready = [path.id for path in view.carriers if path.ready]
        if self.turn is None:
            return ready[0] if ready else None
        if self.taken < self.quota and self.turn in ready:
            return self.turn
        later = [path for path in ready if path > self.turn]
        return (later or ready or [None])[0]

    def pull(self, path: int, view: ab.SchedulerView) -> object:
        idle = name_carrier(path, view)
        if idle is not None:
            return idle
        turn = self.next(view)
        if turn is not None and turn != path:
            return ab.Idle("another path's turn")
        work = view.first_in_line()
        if work is None:
            return ab.Idle("nothing to send")
        if self.turn != path or self.taken >= self.quota:
            self.taken = 0
        self.taken += 1
        self.turn = path
        return ab.Send(work, "its turn")


class LeastRtt(ab.Scheduler):
    """`min-rtt:full=wait`."""

    name = "least-rtt"

    def is_first(self, block: ab.BlockView | None, path: int, view: ab.SchedulerView) -> bool:
        room = [other for other in view.carriers if other.ready or other.id == path]
        if block is not None:
            room = [other for other in room if not block.lost_by(other)] or room
        best = min(room, key=lambda other: (other.rtt.smoothed, other.id))
        return best.id == path

    def pull(self, path: int, view: ab.SchedulerView) -> object:
        idle = name_carrier(path, view)
        if idle is not None:
            return idle
        due = view.with_work
        for block in due:
            if self.is_first(block, path, view):
                return ab.Send(ab.Work.block(block), "least RTT")
        if view.fresh.symbols == 0:
            return ab.Idle("a better path has room" if due else "nothing to send")
        if self.is_first(None, path, view):
            return ab.Send(ab.Work.FRESH, "least RTT")
        return ab.Idle("a faster path has room")


class Reno(ab.CongestionController):
    """`reno`."""

    name = "reno-again"
    most = 1 << 40

    def __init__(self, *, initial: int = 10) -> None:
        self.cwnd = initial * self.packet_size
        self.threshold: int | None = None
        self.credit = 0
        self.last_cut: float | None = None

    @property
    def ssthresh(self) -> int | None:
        return self.threshold

    @property
    def phase(self) -> str:
        slow = self.threshold is None or self.cwnd < self.threshold
        return "slow-start" if slow else "congestion-avoidance"

    def answered(self, sent: float) -> bool:
        return self.last_cut is not None and sent <= self.last_cut

    def on_ack(self, event: ab.AckEvent, siblings: object) -> None:
        lost = event.largest_lost_sent
        marked = event.ce_packets > 0 and not self.answered(event.largest_acked_sent)
        if (lost is not None and not self.answered(lost)) or marked:
            half = self.cwnd // 2
            self.threshold = max(half, 2 * self.packet_size)
            self.cwnd = max(min(self.cwnd, max(half, 2 * self.packet_size)), 1)
            self.credit = 0
            self.last_cut = event.now
        elif (
            not event.app_limited
            and event.acked_packets > 0
            and not self.answered(event.largest_acked_sent)
        ):
            self.grow(min(event.acked_bytes, self.most))

    def grow(self, acked: int) -> None:
        if self.threshold is None or self.cwnd < self.threshold:
            step = acked if self.threshold is None else min(acked, self.threshold - self.cwnd)
            self.cwnd += step
            acked -= step
        self.credit += acked
        packets, self.credit = divmod(self.credit, self.cwnd)
        self.cwnd = min(self.cwnd + packets * self.packet_size, self.most)

    def on_timeout(self, event: ab.TimeoutEvent) -> None:
        if event.consecutive == 1:
            self.threshold = max(event.bytes_in_flight // 2, 2 * self.packet_size)
        self.cwnd = max(min(self.cwnd, self.packet_size), self.packet_size)
        self.credit = 0
        self.last_cut = event.now

    def penalise(self) -> None:
        if self.threshold is not None and self.cwnd >= self.threshold:
            self.threshold = max(self.threshold // 2, 2 * self.packet_size)
        self.cwnd = max(self.cwnd // 2, self.packet_size)
        self.credit = 0

    def set_packet_size(self, bytes: int) -> None:
        self.packet_size = bytes
        self.cwnd = max(self.cwnd, bytes)
