"""The pages and the docstrings say what happens."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("page", ["python.md", "langgraph.md"])
def test_a_page_shows_what_happens(page: str) -> None:
    """Runs the examples of a page, one after the other."""
    if page == "langgraph.md":
        pytest.importorskip("langgraph.graph")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    # The end of a block is not part of what is printed.
    text = text.replace("```", "")
    ran = doctest.DocTestRunner(optionflags=FLAGS)
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(examples.examples) > 20
    ran.run(examples)
    assert ran.summarize(verbose=False).failed == 0


@pytest.mark.parametrize(
    "module",
    [
        "dendrer",
        "dendrer._answers",
        "dendrer._errors",
        "dendrer._recording",
        "dendrer._store",
        "dendrer._writer",
        "dendrer.aio",
        "dendrer.langgraph",
    ],
)
def test_docstrings_show_what_happens(module: str) -> None:
    """Runs the examples of the docstrings of a module."""
    if module == "dendrer.langgraph":
        pytest.importorskip("langgraph.graph")
    found = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert found.failed == 0


def test_every_public_name_has_a_docstring_with_an_example_or_is_an_answer() -> None:
    """A name without one is hard to use."""
    import dendrer

    for name in dendrer.__all__:
        assert getattr(dendrer, name).__doc__, name
