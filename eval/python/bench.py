"""Ratios of processor time, each against a peer in the same run.

``python bench.py [FOLDER]`` records in FOLDER (``/dev/shm`` is memory, so that no disk is measured). A ratio below 1 is less than the peer.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dendrer


def used() -> float:
    """Processor time of this process, in seconds."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


@contextmanager
def folder(base: str) -> Generator[Path, None, None]:
    """An empty folder."""
    made = Path(tempfile.mkdtemp(dir=base))
    before = os.getcwd()
    os.chdir(made)
    try:
        yield made
    finally:
        os.chdir(before)
        shutil.rmtree(made)


def observe(count: int, sync: int) -> float:
    """Seconds of processor for a step of 1 KB through dendrer."""
    dendrer.init("s")
    with dendrer.run("r", store="s", sync=sync) as run:
        run.observe("warm")
        run.flush()
        begun = used()
        for number in range(count):
            run.observe("x" * 900, {"n": number}, confidence=0.5, step=number)
        run.flush()
        return (used() - begun) / count


def standard(count: int, sync: int) -> float:
    """The same with the standard library alone: JSON lines with a chain of SHA-256."""
    previous = bytes(32)
    with open("log.jsonl", "wb") as file:
        begun = used()
        for number in range(count):
            intent = {"description": "x" * 900, "confidence": 0.5, "step": number}
            delta = [{"set": "/n", "value": number}]
            record: dict[str, Any] = {"type": "observation.add", "agent": "agent", "intent": intent, "delta": delta, "tick": number}
            record.update({"ts": time.time(), "prev": previous.hex()})
            line = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
            previous = hashlib.sha256(line).digest()
            file.write(line + b"\n")
            if number % sync == sync - 1:
                file.flush()
                os.fsync(file.fileno())
        file.flush()
        return (used() - begun) / count


def saver(kind: str) -> Any:
    """A saver of one kind, in the current folder."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    from dendrer.langgraph import DendrerSaver

    return DendrerSaver("d") if kind == "dendrer" else SqliteSaver.from_conn_string("x.db")


def checkpoints(kind: str, count: int, grows: bool, writes: bool) -> tuple[float, int]:
    """Seconds of processor for a put (and a put_writes), and the bytes that are stored."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.base.id import uuid6

    draw = random.Random(7)
    value: Any = [] if grows else "x" * 1024
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with saver(kind) as opened:
        if kind != "dendrer":
            opened.setup()
        begun = used()
        for number in range(count):
            if grows:
                value = [*value, "".join(chr(97 + draw.randrange(26)) for _ in range(1024))]
            made: Any = {**empty_checkpoint(), "id": str(uuid6(clock_seq=number)), "channel_values": {"k": value}}
            made["channel_versions"] = {"k": number + 1}
            config = opened.put(config, made, {"source": "loop", "step": number}, {"k": number + 1})
            if writes:
                opened.put_writes(config, [("k", value)], f"task {number}")
        took = (used() - begun) / count
    stored = sum(file.stat().st_size for file in Path().rglob("*") if file.is_file())
    return took, stored


def compared(name: str, base: str, ours: Callable[[], float], theirs: Callable[[], float], limit: str) -> None:
    """Runs both nine times in turn, and prints the median ratio."""
    ratios: list[float] = []
    times: list[tuple[float, float]] = []
    for _ in range(9):
        with folder(base):
            mine = ours()
        with folder(base):
            peer = theirs()
        ratios.append(mine / peer)
        times.append((mine, peer))
    mine, peer = sorted(times)[4]
    print(f"{name:<58} {statistics.median(ratios):6.2f}   {mine * 1e6:7.1f} us against {peer * 1e6:7.1f} us   limit {limit}")


def main() -> None:
    """Prints every ratio."""
    base = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    compared("observe 1 KB / JSON lines with SHA-256, no syncs", base, lambda: observe(5000, 10**9), lambda: standard(5000, 10**9), "1.5")
    compared("observe 1 KB / the same, synced by the hundred", base, lambda: observe(5000, 100), lambda: standard(5000, 100), "1.5")
    for grows, count, limit in ((False, 500, "1.5 in memory, 1.2 on disk"), (True, 400, "0.9")):
        name = "a list that grows by 1 KB" if grows else "1 KB"
        sizes: dict[str, int] = {}

        def run(kind: str, grows: bool = grows, count: int = count, sizes: dict[str, int] = sizes) -> float:
            took, sizes[kind] = checkpoints(kind, count, grows, not grows)
            return took

        compared(f"saver, {name} / SqliteSaver", base, partial(run, "dendrer"), partial(run, "sqlite"), limit)
        if grows:
            print(f"{'  bytes of 400 steps, SqliteSaver / dendrer':<58} {sizes['sqlite'] / sizes['dendrer']:6.1f}   limit 20")
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    bare = time.perf_counter() - begun
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import dendrer"], check=True)
    print(f"import dendrer: {(time.perf_counter() - begun - bare) * 1000:.0f} ms more than an empty program, limit 50")


if __name__ == "__main__":
    main()
