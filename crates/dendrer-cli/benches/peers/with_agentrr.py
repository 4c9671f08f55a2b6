"""agentrr: a tool whose calls are recorded, one event each. JSON lines, opened, appended to and synced for each event;
AGENTRR_FSYNC=0 is its own switch for leaving the sync out. Reading the log checks the digest of each event."""
import os
from pathlib import Path

from agentrr_core.log.reader import LogReader
from agentrr_sdk.record import record
from agentrr_sdk.tools.registry import tool
from measured import Clock, arguments, on_disk, report

what, made, directory = arguments()
log = Path(directory, "run.jsonl")
recorded = {}
answer = {}


@tool
def model_call(request):
    return answer["next"]


def agent():
    transcript = []
    clock = Clock()
    for item in made:
        if what == "steps":
            request, answer["next"] = item
            model_call(request)
        else:
            transcript.append(item)
            answer["next"] = {"status": "ok"}
            model_call({"messages": transcript})
    recorded.update(clock.since(len(made)))


record("bench", agent, log_path=log)
clock = Clock()
events = LogReader(log).events
read = clock.since(len(made), "read_")
calls = [event for event in events if event.type.value == "tool_call"]
assert len(calls) == len(made), len(calls)
if what == "steps":
    assert calls[-1].response == {"value": made[-1][1]}
report(len(made), **recorded, **read, **on_disk(directory))
