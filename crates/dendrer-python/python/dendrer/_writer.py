"""The writer of the dendrer paper, section 6."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from dendrer import _errors, _recording
from dendrer._errors import TickMismatch, UsageError

_TOGETHER = {"payload", "confidence", "tool", "output", "transition_type", "tick"}


class TraceWriter:
    """Writes events with the keys of the paper (6). The kernel assigns the ticks. Other options are those of `dendrer.run`.

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
        options.setdefault("on_error", "raise")
        self._run = _recording.run(run_id, store=store, **options)

    @property
    def name(self) -> str:
        """The name of the run: ``run_id``, or where a run has that one ``RUN_ID+2``."""
        return self._run.name

    def next_tick(self) -> int:
        """The tick that the next event gets."""
        return self._run.tip + 1

    def emit(self, event: Mapping[str, Any]) -> int:
        """Records an event, and returns its tick. Raises `TickMismatch` if it claims another one, and `Refused`."""
        if "transition_type" not in event:
            raise UsageError("an event has a transition_type")
        line: dict[str, Any] = {name: value for name, value in event.items() if name not in _TOGETHER}
        line["type"] = event["transition_type"]
        given: Any = line.pop("intent", None) or {}
        if not isinstance(given, Mapping):
            raise UsageError(f"an intent is a mapping, and not of type {type(given).__name__}")
        intent: dict[str, Any] = dict(cast("Mapping[str, Any]", given))
        if event.get("payload") is not None:
            intent["payload"] = event["payload"]
        if event.get("confidence") is not None:
            line["confidence"] = event["confidence"]
        if intent:
            line["intent"] = intent
        if event.get("tool") is not None:
            line["action"] = {**(line.get("action") or {}), "tool": event["tool"]}
        if event.get("output") is not None:
            line["result"] = {"status": "ok", **(line.get("result") or {}), "output": event["output"]}
        claimed = event.get("tick")
        if claimed is not None:
            if isinstance(claimed, bool) or not isinstance(claimed, int):
                raise UsageError("a tick is a whole number")
            if claimed != self.next_tick():
                raise TickMismatch(f"the event claims tick {claimed}, and the next one is {self.next_tick()}")
            line["base"] = claimed - 1
        try:
            reply = self._run.commit(line)
        except _errors.Stale as error:
            raise TickMismatch(f"the event claims tick {claimed}, and another process wrote it", error.data) from error
        if reply.tick is None:
            raise _errors.of_reply(reply.to_dict())
        return reply.tick

    def flush(self) -> int:
        """Makes everything durable, and returns the newest tick."""
        return self._run.flush()

    def close(self) -> None:
        """Makes everything durable and closes the store."""
        self._run.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
