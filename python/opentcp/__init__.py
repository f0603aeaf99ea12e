"""TCP congestion control for whole networks, in the simulator.

    import opentcp

    scenario = opentcp.Scenario.read("dumbbell.toml")
    result = scenario.set("traffic.old.cc", "vegas").run(seed=3)
    print(result)                      # a line of numbers
    result.flows                       # a table: polars, pandas, pyarrow and DuckDB take it without a copy

docs/python.md is the tutorial and the reference.
"""

from ._algorithm import Algorithm, BuiltIn, algorithms
from ._errors import Diagnostic, InputError, OpenTCPError, PolicyError, RunError, ScenarioError
from ._native import AckSample, Column, RateSample, Socket, Table, __version__
from ._policy import Change, Decision, Policy, Trial
from ._progress import Progress
from ._results import Result, Slowdown, SlowdownOf, Summary, Sweep
from ._scenario import Scenario
from ._study import Comparison, Study, studies, study
from ._toml import Value

__all__ = [
    "AckSample",
    "Algorithm",
    "BuiltIn",
    "Change",
    "Column",
    "Comparison",
    "Decision",
    "Diagnostic",
    "InputError",
    "OpenTCPError",
    "Policy",
    "PolicyError",
    "Progress",
    "RateSample",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Slowdown",
    "SlowdownOf",
    "Socket",
    "Study",
    "Summary",
    "Sweep",
    "Table",
    "Trial",
    "Value",
    "__version__",
    "algorithms",
    "studies",
    "study",
]
