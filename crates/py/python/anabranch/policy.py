"""Policies that are written in Python: schedulers and congestion controllers.

A class that is given to :meth:`anabranch.Scenario.load` can be named in the scenario like a
built-in policy, with options (``mine:quota=2``), for flows of every protocol, TCP's too:

>>> import anabranch as ab
>>> class InTurn(ab.Scheduler):
...     "Paths with room take turns."
...     name = "in-turn"
...
...     def __init__(self, *, first: int = 0) -> None:
...         self.turn = first
...
...     def pull(self, path, view):
...         ready = [other.id for other in view.carriers if other.ready]
...         turn = next((id for id in ready if id >= self.turn), ready[0])
...         if path != turn:
...             return ab.Idle("another path's turn")
...         self.turn = path + 1
...         return view.first_in_line()

Policies decide by what they are shown and told. They read no clock and draw no random numbers but
``self.random``'s, so that a run with the same seed is the same run everywhere. An exception that
leaves a policy ends the run, and is raised by what made the run.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import inspect
import random
import types
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from ._native import (
    AckEvent,
    Assign,
    BlockView,
    FreshView,
    Hold,
    Idle,
    LossView,
    PathView,
    Penalise,
    Pick,
    RateSample,
    RttView,
    SchedulerEvent,
    SchedulerView,
    Send,
    SentEvent,
    TakeBack,
    TimeoutEvent,
    Work,
    _stop_policies,
)

__all__ = [
    "AckEvent",
    "Assign",
    "BlockView",
    "CongestionController",
    "FreshView",
    "Hold",
    "Idle",
    "LossView",
    "PathView",
    "Penalise",
    "Pick",
    "RateSample",
    "RttView",
    "Scheduler",
    "SchedulerEvent",
    "SchedulerView",
    "Send",
    "SentEvent",
    "TakeBack",
    "TimeoutEvent",
    "Work",
]


class _Policy:
    """What schedulers and controllers have in common."""

    name: ClassVar[str]
    """What scenarios call it: lower case letters, digits and hyphens."""
    summary: ClassVar[str] = ""
    """One line on what it does; without it, the first line of the docstring."""
    source: ClassVar[str] = ""
    """The paper and equation, or RFC and section, that it follows."""
    version: ClassVar[str | None] = None
    """Tells runs of this policy from runs of another version. Without it, a hash of the class's
    code, of the functions, classes and plain values of its module that the code names, and of its
    bases: it differs between versions of Python."""

    _seed: str = "0 0"
    _random: random.Random | None = None

    @property
    def random(self) -> random.Random:
        """Random numbers of this policy's own, which follow from the run's seed."""
        if self._random is None:
            self._random = random.Random(self._seed)
        return self._random


class Scheduler(_Policy):
    """Chooses what each path sends.

    Subclass it, give it a ``name``, and write :meth:`pull`. One object is made for each connection.
    The keyword parameters of ``__init__`` are the policy's options; each needs a default, whose
    type is how the option is read (a ``bool``, ``int``, ``float`` or ``str``). An underscore is a
    hyphen in scenarios.
    """

    def pull(self, path: int, view: SchedulerView) -> Any:
        """``path`` has window and pacing room: say what it sends.

        Returns a :class:`Work` (a symbol of it), a :class:`Pick`, a list of these, :class:`Send`,
        :class:`Hold` (not before a time), or :class:`Idle` or None (nothing until something
        changes). After something was sent, the path asks again for the next packet.
        """
        raise NotImplementedError(f"{type(self).__name__} has no pull(self, path, view)")

    def on_event(self, event: SchedulerEvent, view: SchedulerView) -> Any:
        """Something happened. Returns None, an :class:`Assign`, :class:`TakeBack` or
        :class:`Penalise`, or a list of these. It is called only if the subclass has it."""

    def wakeup(self) -> float | None:
        """When to be told "wakeup", seconds since the run began. Asked after every call, if the
        subclass has it."""


class CongestionController(_Policy):
    """Says how much may be in flight on one path, and how fast it is sent.

    Subclass it, give it a ``name``, set ``self.cwnd`` in ``__init__``, and write :meth:`on_ack` and
    :meth:`on_timeout`. One object is made for each path. What it allows are its attributes, which
    are read after each of its methods and hold until the next. They may be properties. The keyword
    parameters of ``__init__`` are the policy's options, as a :class:`Scheduler`'s are.
    """

    cwnd: float
    """Congestion window, bytes; fractions are cut off."""
    ssthresh: float | None = None
    """Slow-start threshold, bytes, where there is one."""
    pacing_rate: float | None = None
    """Rate at which to pace, bits per second; None: as the window allows."""
    bandwidth: float | None = None
    """Estimated rate of the bottleneck, bits per second, if one is kept."""
    own_queue: float | None = None
    """How far the forward delay is above what it is while nothing of ours waits, seconds, if
    known."""
    phase: str = "steady"
    """The name of the state that it is in, for traces."""
    packet_size: int = 1200
    """Size of a full packet, bytes; set before ``__init__`` is called."""

    governs_recovery: ClassVar[bool] = False
    """Its window holds while lost packets are made good: nothing else reduces it then."""
    reads_siblings: ClassVar[bool] = False
    """Its window depends on those of the connection's other paths."""
    couples: ClassVar[bool] = False
    """It takes one flow's share together with the paths that share a bottleneck with its own."""

    def on_sent(self, event: SentEvent) -> None:
        """A packet left. It is called only if the subclass has it."""

    def on_ack(self, event: AckEvent, siblings: Sequence[PathView]) -> None:
        """Feedback arrived: acknowledgements, losses (``event.lost_packets``) and marks
        (``event.ce_packets``). ``siblings`` are the open paths of the connection."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack(self, event, siblings)")

    def on_timeout(self, event: TimeoutEvent) -> None:
        """The retransmission timer fired."""
        raise NotImplementedError(f"{type(self).__name__} has no on_timeout(self, event)")

    def penalise(self) -> None:
        """A scheduler asks to hold this path back: halve the window at most."""

    def set_packet_size(self, bytes: int) -> None:
        """The size of a full packet changed."""
        self.packet_size = bytes


_BASES = {"scheduler": Scheduler, "congestion": CongestionController}
_METHODS = ("pull", "on_event", "wakeup", "on_sent")
_TRAITS = ("governs_recovery", "reads_siblings", "couples")


class _OptionError(ValueError):
    """The value of an option is not of its form."""

    def __init__(self, option: str, given: str, allowed: str) -> None:
        super().__init__(f"{option}={given} is not {allowed}")
        self._option, self._given, self._allowed = option, given, allowed


def _classes(policies: Any) -> list[type[_Policy]]:
    """The classes among ``policies``, checked."""
    if isinstance(policies, type) or not isinstance(policies, Iterable):
        raise TypeError(f"policies={policies!r}: give a list of classes, such as policies=[Mine]")
    classes = list(policies)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, (Scheduler, CongestionController))):
            raise TypeError(
                f"policies: {cls!r} is no subclass of anabranch.Scheduler or"
                " anabranch.CongestionController (give the class, not an object)"
            )
        if not isinstance(getattr(cls, "name", None), str):
            raise TypeError(f'policies: {cls.__name__} has no name; write name = "…" in the class')
    return classes


def _describe(cls: type[_Policy]) -> Any:
    """What the simulator has to know of a class."""
    axis = next(axis for axis, base in _BASES.items() if issubclass(cls, base))
    base = _BASES[axis]
    missing = [method for method in ("pull", "on_ack", "on_timeout") if _lacks(cls, base, method)]
    if missing:
        raise TypeError(f"policies: {cls.__name__} has no {' and no '.join(missing)}")
    has = [
        method
        for method in _METHODS
        if getattr(cls, method, None) is not getattr(base, method, None)
    ]
    has += [trait for trait in _TRAITS if getattr(cls, trait, False)]
    doc = (cls.__doc__ or "").strip().partition("\n")[0]
    options = [(key, kind, _written(default)) for key, (kind, default) in _options(cls).items()]
    return _Description(
        axis, cls.name, cls.summary or doc, cls.source, options, has, cls.version or _version(cls)
    )


def _lacks(cls: type, base: type, method: str) -> bool:
    return hasattr(base, method) and getattr(cls, method) is getattr(base, method)


class _Description:
    def __init__(self, *fields: Any) -> None:
        (
            self.axis,
            self.name,
            self.summary,
            self.source,
            self.options,
            self.methods,
            self.version,
        ) = fields


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _options(cls: type[_Policy]) -> dict[str, tuple[str, Any]]:
    """The options of a class: kind and default by key."""
    if cls.__init__ is object.__init__:
        return {}
    options = {}
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        where = f"policies: {cls.__name__}.__init__({parameter.name})"
        if parameter.default is parameter.empty:
            raise TypeError(f"{where} has no default: every option needs one")
        kind = _KINDS.get(type(parameter.default))
        if kind is None:
            allowed = "a bool, int, float or str"
            raise TypeError(
                f"{where} has the default {parameter.default!r}, which is not {allowed}"
            )
        options[parameter.name.replace("_", "-")] = (kind, parameter.default)
    return options


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(key: str, text: str, default: Any) -> Any:
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text]
        return kind(text)
    except (KeyError, ValueError):
        raise _OptionError(key, text, _KINDS[kind]) from None


def _make(cls: type[_Policy], given: dict[str, str], packet_size: int, seed: str) -> _Policy:
    """An object of a policy with the options that a scenario gave it."""
    options = _options(cls)
    values = {
        key.replace("-", "_"): _read(key, text, options[key][1]) for key, text in given.items()
    }
    policy = cls.__new__(cls)
    policy._seed = seed
    if isinstance(policy, CongestionController):
        policy.packet_size = packet_size
    policy.__init__(**values)  # type: ignore[misc]
    if isinstance(policy, CongestionController) and not hasattr(policy, "cwnd"):
        raise AttributeError(f"{cls.__name__}.__init__ does not set self.cwnd, the window in bytes")
    return policy


def _interrupt(threads: list[int]) -> None:
    """Raises an exception in what Python's code these threads are in, if they are in any."""
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for thread in threads:
        raise_in(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


# Threads that call policies must not be in the middle of it when the interpreter goes.
atexit.register(_stop_policies)


def _version(cls: type) -> str:
    """A hash of the code of a class and of what it refers to."""
    parts: list[str] = []
    _Identity(cls.__module__, parts).of_class(cls)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


_ANNOTATIONS = ("__annotate__", "__annotate_func__")


class _Identity:
    """Gathers what makes a class decide as it does, from its code, which travels with it where its
    source does not."""

    def __init__(self, module: str, parts: list[str]) -> None:
        self.module = module
        self.parts = parts
        self.seen: set[int] = set()

    def of_class(self, cls: type) -> None:
        if id(cls) in self.seen or cls.__module__.partition(".")[0] in ("anabranch", "builtins"):
            return
        self.seen.add(id(cls))
        self.parts.append(f"class {cls.__qualname__}")
        for base in cls.__bases__:
            self.of_class(base)
        for name, value in sorted(vars(cls).items()):
            dunder = name.startswith("__") and name.endswith("__")
            if not dunder or (isinstance(value, types.FunctionType) and name not in _ANNOTATIONS):
                self.parts.append(name)
                self.of(value)

    def of(self, value: Any) -> None:
        if isinstance(value, (staticmethod, classmethod)):
            self.of(value.__func__)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                self.of(part)
        elif isinstance(value, types.FunctionType):
            self.of_function(value)
        elif isinstance(value, type):
            if value.__module__ == self.module:
                self.of_class(value)
            else:
                self.parts.append(f"{value.__module__}.{value.__qualname__}")
        elif isinstance(value, types.CodeType):
            self.of_code(value)
        elif isinstance(value, (set, frozenset)):
            self.parts.append(repr(sorted(map(repr, value))))
        elif isinstance(value, (tuple, list)):
            self.parts.append(type(value).__name__)
            for item in value:
                self.of(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                self.parts.append(repr(key))
                self.of(item)
        elif isinstance(value, (bool, int, float, complex, str, bytes, type(None), type(...))):
            self.parts.append(repr(value))
        elif isinstance(value, types.ModuleType):
            self.parts.append(value.__name__)
        elif hasattr(value, "tobytes"):
            # Arrays, whose text leaves values out.
            self.parts += [repr(getattr(value, "dtype", "")), value.tobytes().hex()]
        elif id(value) not in self.seen:
            self.of_object(value)

    def of_object(self, value: Any) -> None:
        self.seen.add(id(value))
        self.of(type(value))
        text = repr(value)
        if " at 0x" not in text:
            self.parts.append(text)
        for name, item in sorted(getattr(value, "__dict__", {}).items()):
            self.parts.append(name)
            self.of(item)

    def of_function(self, function: types.FunctionType) -> None:
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self.of_code(function.__code__)
        self.of(function.__defaults__)
        self.of(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.of(cell.cell_contents)
            except ValueError:
                self.parts.append("empty")
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                value = function.__globals__[name]
                own = getattr(value, "__module__", None) == self.module
                if own or not isinstance(value, (types.FunctionType, types.ModuleType, type)):
                    self.parts.append(name)
                    self.of(value)

    def of_code(self, code: types.CodeType) -> None:
        self.parts += [code.co_code.hex(), *code.co_names, *code.co_varnames]
        self.of(code.co_consts)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names
