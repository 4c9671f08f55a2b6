"""The writer of the dendrer paper, section 6."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, cast

from dendrer import _errors, _recording
from dendrer._errors import TickMismatch, UsageError

_TOGETHER = {"payload", "confidence", "tool", "output", "transition_type", "tick"}

#: How many ticks are kept that `next_tick` gave and no event claimed.
_GIVEN_MAX = 10_000


class TraceWriter:
    """Writes events with the keys of the paper (6). The kernel assigns the ticks. Other options are those of `dendrer.run`.

    Threads may be given one tick by `next_tick`: each of their events gets a tick of its own, in the order of the calls of `emit`.

    >>> trace = TraceWriter("docs-paper", "append-only", store="docs-paper")
    >>> trace.emit({"transition_type": "observation.add", "tick": trace.next_tick(), "payload": {"text": "hi"}})
    1
    >>> trace.close()
    """

    def __init__(
        self, run_id: str, storage: str = "append-only", *, store: str | os.PathLike[str] = ".", **options: Any
    ) -> None:
        if storage != "append-only":
            raise UsageError(f'the one storage is "append-only", and not {storage!r}')
        #: The ticks that `next_tick` gave and no event claimed yet.
        self._given: deque[int] = deque(maxlen=_GIVEN_MAX)
        self._run = _recording.run(run_id, store=store, **options)

    @property
    def name(self) -> str:
        """The name of the run: ``run_id``, or where a run has that one ``RUN_ID+2``."""
        return self._run.name

    def next_tick(self) -> int:
        """The tick that the next event gets."""
        tick = self._run.tip + 1
        self._given.append(tick)
        return tick

    def emit(self, event: Mapping[str, Any]) -> int:
        """Records an event, and returns its tick: 0 if it could not be written, which the run notes as a gap.

        Raises `Refused`, and `TickMismatch` if the event claims a tick that is not the next one and that `next_tick` did not give.
        """
        if not isinstance(cast(object, event), Mapping) or "transition_type" not in event:
            raise UsageError("an event is a mapping and has a transition_type")
        if self._run._closed:
            raise UsageError("the recording is closed; open the run again")
        line: dict[str, Any] = {name: value for name, value in event.items() if name not in _TOGETHER}
        line["type"] = event["transition_type"]
        intent = _mapping("intent", line.pop("intent", None))
        if event.get("payload") is not None:
            intent["payload"] = event["payload"]
        if event.get("confidence") is not None:
            line["confidence"] = event["confidence"]
        if intent:
            line["intent"] = intent
        if event.get("tool") is not None:
            line["action"] = {**_mapping("action", line.get("action")), "tool": event["tool"]}
        if event.get("output") is not None:
            line["result"] = {"status": "ok", **_mapping("result", line.get("result")), "output": event["output"]}
        claimed = event.get("tick")
        if claimed is not None:
            if isinstance(claimed, bool) or not isinstance(claimed, int):
                raise UsageError("a tick is a whole number")
            if not self._was_given(claimed):
                following = self._run.tip + 1
                if claimed != following:
                    raise TickMismatch(f"the event claims tick {claimed}, and the next one is {following}")
                line["base"] = claimed - 1
        try:
            reply = self._run.commit(line)
        except _errors.Stale as error:
            raise TickMismatch(f"the event claims tick {claimed}, and another process wrote it", error.data) from error
        if reply.what == "refused":
            raise _errors.of_reply(reply.to_dict())
        return reply.tick or 0

    def _was_given(self, tick: int) -> bool:
        """Whether `next_tick` gave a tick that no event claimed yet. It is claimed now."""
        try:
            self._given.remove(tick)
        except ValueError:
            return False
        return True

    def flush(self) -> int:
        """Makes everything durable, and returns the newest tick."""
        return self._run.flush()

    def close(self) -> None:
        """Makes everything durable and closes the store."""
        self._run.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._run._ended_by(error)
        self.close()


def _mapping(name: str, given: Any) -> dict[str, Any]:
    """A member of an event that is a mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"the {name} of an event is a mapping, and not of type {type(given).__name__}")
    return dict(cast("Mapping[str, Any]", given or {}))
