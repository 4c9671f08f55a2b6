"""Lines of the golden files fit their page, by the widths of another library than that of the program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from wcwidth import wcswidth

TESTS = Path(__file__).parents[2] / "dendrer-cli" / "tests"

#: Golden files whose commands name their width.
PRINTED = sorted((TESTS / "it" / "printed").glob("*.txt"))

#: Golden files that are named by their width.
THREADS = [TESTS / "data" / "threads" / f"{width}.txt" for width in (60, 80, 200)]


def lines(file: Path) -> Iterator[tuple[int, str, str]]:
    """Each printed line, with its width and its command."""
    width, command = 0, ""
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line.startswith("$ "):
            command = line
            width = int(file.stem) if file in THREADS else int(line.rsplit(" --width ", 1)[1])
        # Lines of the dendrer paper are printed as it has them.
        elif "--format paper" not in command:
            yield width, command, line.removeprefix("(stderr) ")


@pytest.mark.parametrize("file", [*PRINTED, *THREADS], ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_line_is_wider_than_its_page(file: Path) -> None:
    found = list(lines(file))
    assert len(found) > 100
    assert [entry for entry in found if not 0 <= wcswidth(entry[2]) <= entry[0]] == []


def test_each_width_has_lines() -> None:
    assert len(PRINTED) >= 4
    for file in PRINTED:
        assert {width for width, _, _ in lines(file)} == {60, 80, 200}
