"""What a fork of this process does to what is open: the parent writes on, and the child opens the store again."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Held(Protocol):
    """What the compiled module has open."""

    def hold(self) -> None: ...
    def release(self) -> None: ...
    def abandon(self) -> None: ...


class Forkable(Protocol):
    """What has something open."""

    def fork_held(self) -> Held | None:
        """What is open, if anything is."""
        ...

    def fork_forget(self) -> None:
        """In the child: forgets what is open."""
        ...


_live: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Held] = []


def watch(one: Forkable) -> None:
    """Keeps threads from writing while the process forks, and the child from using what the parent has open."""
    _live.add(one)


def _before() -> None:
    for one in list(_live):
        held = one.fork_held()
        # Copies of one saver share what is open.
        if held is not None and not any(held is other for other in _held):
            held.hold()
            _held.append(held)


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    while _held:
        _held.pop().abandon()
    for one in list(_live):
        one.fork_forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
