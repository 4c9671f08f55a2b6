"""The official suite for savers of LangGraph: every clause passes, and none is skipped."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance")

from langgraph.checkpoint.conformance import checkpointer_test, validate

from dendrer.langgraph import DendrerSaver

#: What the suite of 0.0.2 has, by capability.
CLAUSES = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


def report_of(make: type[DendrerSaver]) -> None:
    """Runs the suite, and counts what passed."""

    @checkpointer_test(name="DendrerSaver")
    async def factory() -> AsyncIterator[DendrerSaver]:
        async with make(f"store-{uuid.uuid4().hex[:8]}") as saver:
            yield saver

    report = asyncio.run(validate(factory))
    found = {name: result for name, result in report.results.items()}
    failures = {name: result.failures for name, result in found.items() if result.failures}
    assert failures == {}
    assert {name: result.tests_passed for name, result in found.items()} == CLAUSES
    assert sum(result.tests_skipped for result in found.values()) == 0
    assert sum(CLAUSES.values()) == 81
    assert report.passed_all()


class Synchronous(DendrerSaver):
    """The synchronous methods under the names that the suite calls."""

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        """As the synchronous one."""
        return self.put(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        """As the synchronous one."""
        self.put_writes(*args, **kwargs)

    async def aget_tuple(self, config: Any) -> Any:
        """As the synchronous one."""
        return self.get_tuple(config)

    async def alist(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """As the synchronous one."""
        for one in self.list(*args, **kwargs):
            yield one

    async def adelete_thread(self, thread_id: str) -> None:
        """As the synchronous one."""
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        """As the synchronous one."""
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As the synchronous one."""
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        """As the synchronous one."""
        self.prune(thread_ids, strategy=strategy)


def test_the_synchronous_methods_pass_the_same_clauses() -> None:
    """The suite itself asks asynchronous methods alone."""
    report_of(Synchronous)


def test_every_clause_passes_and_none_is_skipped() -> None:
    """81 clauses of the suite on PyPI."""
    report_of(DendrerSaver)
