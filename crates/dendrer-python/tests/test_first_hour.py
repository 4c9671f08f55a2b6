"""The page of the first hour is a transcript of what happens on a terminal of 80 columns.

``DENDRER_UPDATE=1`` writes what is printed into the page.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "first-hour.md"

#: Longest time of all commands together, in seconds.
LIMIT = 60

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the page needs a terminal of Unix")


def shown(line: str, folder: Path, home: Path) -> tuple[int, str]:
    """Runs a line of a shell on a terminal of 80 columns, and returns its exit code and what it shows."""
    import fcntl
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 500, 80, 0, 0))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"HOME": str(home), "PATH": path, "TERM": "xterm", "TZ": "UTC", "NO_COLOR": "1", "DENDRER_PAGER": "cat"}
    ran = subprocess.Popen(["sh", "-c", line], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux has this in place of an end.
            break
        if not part:
            break
        told += part
    os.close(ours)
    return ran.wait(), told.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """Puts one word in place of what no two runs have in common."""
    varies = [
        (r"^verifier  .*\n  \S+$", "verifier KEY"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"\b[0-9a-f]{32}\b", "STORE"),
        (r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{12}\b|\b[a-f]{12}\b", "HASH"),
        (r"^signer    [0-9a-f]{8}\b", "signer    KEY"),
        (r"\b\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d+Z)?)?\b", "TIME"),
        (r"\bwrote [\d,]+ bytes", "wrote N bytes"),
    ]
    for pattern, word in varies:
        text = re.sub(pattern, word, text, flags=re.M)
    return text


def test_the_first_hour_prints_what_it_shows(tmp_path: Path) -> None:
    """Every block is run in order, by two people with a home each; all of it takes less than a minute."""
    folders = {"me": tmp_path / "desk", "ann": tmp_path / "ann"}
    homes = {who: tmp_path / f"home-{who}" for who in folders}
    for folder in (*folders.values(), *homes.values()):
        folder.mkdir()
    page = PAGE.read_text(encoding="utf-8")
    found: list[str] = []
    last = commands = 0
    begun = time.monotonic()
    for number, part in enumerate(re.split(r"^```", page, flags=re.M)):
        info, _, body = part.partition("\n")
        words = info.split()
        if number % 2 == 0:
            found.append(part)
        elif words[0] == "console":
            who = words[1] if len(words) > 1 else "me"
            block = ""
            for line in re.findall(r"^\$ (.*)$", body, re.M):
                assert last == 0 or line == "echo $?", f"exit code {last} is shown before {line}"
                last, told = shown(f"(exit {last}); {line}", folders[who], homes[who])
                assert max(map(len, told.splitlines() or [""])) <= 80 or "--format github" in line, told
                block += f"$ {line}\n{told}"
                commands += 1
            found.append(f"{info}\n{block}")
        else:
            (folders["me"] / words[1]).write_text(body, encoding="utf-8")
            found.append(part)
    assert time.monotonic() - begun < LIMIT
    assert last == 0 and commands > 20
    text = "```".join(found)
    if os.environ.get("DENDRER_UPDATE"):
        PAGE.write_text(text, encoding="utf-8")
    assert plain(text) == plain(PAGE.read_text(encoding="utf-8"))
