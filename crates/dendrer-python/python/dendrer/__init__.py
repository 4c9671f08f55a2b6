"""dendrer: version control for the runs of AI agents.

Record a run, prove it, find where it first went wrong, compare, fork. ``docs/python.md`` is the tour.

>>> import dendrer
>>> store = dendrer.init("docs")
>>> with dendrer.run("hello", store="docs", state={"price": 0}) as run:
...     for price in (400, 480, 620):
...         reply = run.observe("a price", {"price": price})
>>> store["hello"].bisect(holds="state.price <= 600", lift=True).onset
Onset(tick=3, certainty='exact')
"""

from dendrer import _native
from dendrer._answers import Answers, Bisect, Commitments, Diff, FirstSeen, Moved, Onset, RunSummary, Verification, Why, Write
from dendrer._errors import (
    ApprovalRequired,
    AuthorshipError,
    ContextViolation,
    ContractViolation,
    DendrerError,
    FormatTooNew,
    ImpurePredicate,
    IntegrityError,
    KeyReused,
    NonMonotonePredicate,
    NotFound,
    PredicateRejected,
    Refused,
    ReplayDivergence,
    StageError,
    Stale,
    StaleCheckpoint,
    StoreError,
    StoreLocked,
    TickMismatch,
    Uncertain,
    UsageError,
    ValueNotRecordable,
    VaultLocked,
)
from dendrer._recording import Decision, Recording, Reply, agent, current, run, step, tool
from dendrer._store import Change, Run, Store, Transition, init, open
from dendrer._writer import TraceWriter

__version__ = _native.VERSION

__all__ = [
    "Answers",
    "ApprovalRequired",
    "AuthorshipError",
    "Bisect",
    "Change",
    "Commitments",
    "ContextViolation",
    "ContractViolation",
    "Decision",
    "DendrerError",
    "Diff",
    "FirstSeen",
    "FormatTooNew",
    "ImpurePredicate",
    "IntegrityError",
    "KeyReused",
    "Moved",
    "NonMonotonePredicate",
    "NotFound",
    "Onset",
    "PredicateRejected",
    "Recording",
    "Refused",
    "ReplayDivergence",
    "Reply",
    "Run",
    "RunSummary",
    "StageError",
    "Stale",
    "StaleCheckpoint",
    "Store",
    "StoreError",
    "StoreLocked",
    "TickMismatch",
    "TraceWriter",
    "Transition",
    "Uncertain",
    "UsageError",
    "ValueNotRecordable",
    "VaultLocked",
    "Verification",
    "Why",
    "Write",
    "__version__",
    "agent",
    "current",
    "init",
    "open",
    "run",
    "step",
    "tool",
]
