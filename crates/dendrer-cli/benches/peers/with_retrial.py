"""retrial: a decorated loop whose model call is recorded as one step. SQLite in WAL mode, a commit a step, not synced."""
import os

from measured import Clock, arguments, on_disk, report
from retrial import Store, record, trajectory

what, made, directory = arguments()
store = Store(os.path.join(directory, "sessions.db"))
recorded = {}
answer = {}


def model(messages):
    return answer["next"]


@record(session_name="bench", store=store)
def agent(messages, call_model=model, execute_tools=lambda response: []):
    clock = Clock()
    for item in made:
        if what == "steps":
            request, answer["next"] = item
            call_model([request])
        else:
            messages.append(item)
            answer["next"] = {"status": "ok"}
            call_model(messages)
    recorded.update(clock.since(len(made)))


agent([])
store.close()
store = Store(os.path.join(directory, "sessions.db"))
clock = Clock()
steps = trajectory(store, agent.last_session_id)
read = clock.since(len(made), "read_")
assert len(steps) == len(made), len(steps)
if what == "steps":
    assert (steps[-1]["input"]["messages"], steps[-1]["output"]) == ([made[-1][0]], made[-1][1])
store.close()
report(len(made), **recorded, **read, **on_disk(directory))
