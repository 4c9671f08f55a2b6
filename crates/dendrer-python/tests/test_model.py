"""Random sequences of puts, forks, writes, deletions and restarts, beside the saver that LangGraph keeps in memory.

DENDRER_DEEP=1 draws 10,000 sequences, a push 150.
"""

from __future__ import annotations

import copy
import os
import random
from typing import Any, cast

import pytest

pytest.importorskip("langgraph.graph")

from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver

from dendrer.langgraph import DendrerSaver

SEQUENCES = 10_000 if os.environ.get("DENDRER_DEEP") else 150


class Both:
    """The two savers, asked the same."""

    def __init__(self, place: str, chance: random.Random) -> None:
        """Opens an empty store at a place."""
        self.place = place
        self.chance = chance
        self.memory = InMemorySaver()
        self.saver = DendrerSaver(place)
        # Of each checkpoint, by thread and namespace: its config and what it holds.
        self.known: dict[tuple[str, str], list[tuple[Any, Checkpoint]]] = {}

    def each(self) -> list[BaseCheckpointSaver[Any]]:
        """Both savers."""
        return [self.memory, self.saver]

    def thread(self) -> tuple[str, str]:
        """A thread and a namespace."""
        return self.chance.choice(["a", "b", "user:1"]), self.chance.choice(["", "", "sub:1"])

    def put(self) -> None:
        """Puts a checkpoint after the newest of its namespace, or in time travel after an older one."""
        name, space = self.thread()
        if space and not self.known.get((name, "")):
            return
        known = self.known.setdefault((name, space), [])
        config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": space}}
        made = empty_checkpoint()
        if known:
            config, before = known[-1] if self.chance.random() < 0.7 else self.chance.choice(known)
            made = copy.deepcopy(before)
            # Time travel: an older checkpoint is asked for by its id first, else another writer went ahead.
            self.saver.get_tuple(config)
        made["id"] = str(uuid6())
        values, changed = made["channel_values"], {}
        for channel in self.chance.sample(["messages", "n", "blob", "gone"], self.chance.randint(0, 3)):
            version = f"{len(self.known)}.{self.chance.randint(0, 10**9)}"
            if channel == "messages":
                values["messages"] = [*values.get("messages", []), f"m{self.chance.randint(0, 99)}"]
            elif channel == "blob":
                values["blob"] = bytes(self.chance.randbytes(self.chance.choice([0, 3, 2000])))
            elif channel == "gone" and channel in values:
                del values["gone"]
            else:
                values[channel] = self.chance.choice([0, 1.5, None, "text", {"a": [1, {"b": 2}]}])
            made["channel_versions"][channel] = version
            changed[channel] = version
        step = {"source": "loop", "step": len(known), "writes": {}}
        kept = None
        for saver in self.each():
            kept = saver.put(config, copy.deepcopy(made), cast(Any, dict(step)), dict(changed))
        known.append((kept, made))

    def put_writes(self) -> None:
        """Puts writes of a task, some of them again."""
        known = self.known.get(self.thread())
        if not known:
            return
        config, _ = self.chance.choice(known[-2:])
        task = self.chance.choice(["t1", "t2"])
        channels = ["messages", "n", "__resume__", "__error__", "__interrupt__"]
        drawn = self.chance.sample(channels, self.chance.randint(1, 3))
        items = [(channel, self.chance.randint(0, 9)) for channel in drawn]
        for saver in self.each():
            saver.put_writes(config, items, task, "~path")

    def delete(self) -> None:
        """Deletes a thread."""
        name, _ = self.thread()
        for saver in self.each():
            saver.delete_thread(name)
        for key in [key for key in self.known if key[0] == name]:
            del self.known[key]

    def restart(self) -> None:
        """Closes the store, and opens it again."""
        self.saver.close()
        self.saver = DendrerSaver(self.place)

    def check(self) -> None:
        """Compares what the savers answer."""
        for (name, space), known in self.known.items():
            newest: Any = {"configurable": {"thread_id": name, "checkpoint_ns": space}}
            some = [config for config, _ in self.chance.sample(known, min(2, len(known)))]
            for config in [newest, *some]:
                assert plain(self.saver.get_tuple(config)) == plain(self.memory.get_tuple(config))
            for more in ({}, {"limit": 2}, {"filter": {"step": 1}}, {"before": some[0]} if some else {}):
                ours = [plain(one) for one in self.saver.list(newest, **cast(Any, more))]
                assert ours == [plain(one) for one in self.memory.list(newest, **cast(Any, more))], more


def plain(found: Any) -> Any:
    """What a checkpoint says, with its writes in one order."""
    if found is None:
        return None
    writes = sorted(found.pending_writes or [], key=repr)
    return (found.config["configurable"], found.checkpoint, dict(found.metadata), found.parent_config, writes)


@pytest.mark.parametrize("part", range(3))
def test_sequences_are_answered_as_in_memory(part: int) -> None:
    """After each sequence both savers give the same checkpoints, lists and writes, by id and without."""
    for seed in range(part, SEQUENCES, 3):
        chance = random.Random(seed)
        both = Both(f"s{seed}", chance)
        acts = [both.put] * 6 + [both.put_writes] * 3 + [both.restart] + [both.delete]
        for _ in range(chance.randint(3, 14)):
            chance.choice(acts)()
            if chance.random() < 0.3:
                both.check()
        both.check()
        both.restart()
        both.check()
        both.saver.close()
