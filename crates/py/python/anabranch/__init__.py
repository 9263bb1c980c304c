"""Simulations of multipath transport: scenarios, their runs, and what these measured.

>>> import anabranch as ab
>>> scenario = ab.Scenario.parse('''
... name = "two-paths"
... duration = "2s"
...
... [[path]]
... name = "lte"
... rate = "8mbit"
... delay = "30ms"
... loss = "2%"
...
... [[path]]
... name = "wifi"
... rate = "20mbit"
... delay = "8ms"
...
... [[flow]]
... name = "bulk"
... profile = "anabranch"
... paths = ["lte", "wifi"]
... ''')
>>> report = scenario.run(scenario.runs()[0])
>>> 20 < report.value("bulk", "goodput_mbps") < 28
True
"""

from ._native import (
    Dataset,
    Figure,
    IncompleteError,
    Mistake,
    Policy,
    PolicyOption,
    Profile,
    Report,
    Results,
    ResultsError,
    Run,
    RunError,
    Scenario,
    ScenarioError,
    Table,
    __version__,
    commit,
    plot,
    policies,
    profiles,
)
from .policy import (
    AckEvent,
    Assign,
    BlockView,
    CongestionController,
    FreshView,
    Hold,
    Idle,
    LossView,
    PathView,
    Penalise,
    Pick,
    RateSample,
    RttView,
    Scheduler,
    SchedulerEvent,
    SchedulerView,
    Send,
    SentEvent,
    TakeBack,
    TimeoutEvent,
    Work,
)

__all__ = [
    "AckEvent",
    "Assign",
    "BlockView",
    "CongestionController",
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
    "Scheduler",
    "SchedulerEvent",
    "SchedulerView",
    "Send",
    "SentEvent",
    "Table",
    "TakeBack",
    "TimeoutEvent",
    "Work",
    "__version__",
    "commit",
    "plot",
    "policies",
    "profiles",
]
