"""LangGraph with its SQLite saver: one node that runs once a step, its state checkpointed each time. SQLite in WAL mode;
whether a commit is synced is what the SQLite of this Python does, and is part of the report. `turns-delta` keeps the messages
in its delta channel (beta) in place of a list."""
import operator, os, sqlite3
from typing import Annotated, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from measured import Clock, arguments, on_disk, report

what, made, directory = arguments()


class Step(TypedDict):
    n: int
    request: dict
    response: dict


class Turn(TypedDict):
    n: int
    messages: Annotated[list, operator.add]


class TurnInDeltas(TypedDict):
    n: int
    messages: Annotated[list, DeltaChannel(lambda messages, writes: messages + [m for write in writes for m in write])]


STATES = {"steps": Step, "turns": Turn, "turns-delta": TurnInDeltas}


def step(state):
    request, response = made[state["n"]]
    return {"n": state["n"] + 1, "request": request, "response": response}


def turn(state):
    return {"n": state["n"] + 1, "messages": [made[state["n"]]]}


def graph(saver):
    builder = StateGraph(STATES[what])
    builder.add_node("call", step if what == "steps" else turn)
    builder.add_edge(START, "call")
    builder.add_conditional_edges("call", lambda state: "call" if state["n"] < len(made) else END)
    return builder.compile(checkpointer=saver)


config = {"configurable": {"thread_id": "bench"}, "recursion_limit": len(made) + 10}
path = os.path.join(directory, "checkpoints.sqlite")
with SqliteSaver.from_conn_string(path) as saver:
    saver.setup()
    compiled = graph(saver)
    clock = Clock()
    compiled.invoke({"n": 0}, config)
    recorded = clock.since(len(made))
    synchronous = saver.conn.execute("PRAGMA synchronous").fetchone()[0]
with SqliteSaver.from_conn_string(path) as saver:
    clock = Clock()
    states = list(graph(saver).get_state_history(config))
    read = clock.since(len(made), "read_")
    assert len(states) >= len(made), len(states)
    assert states[0].values["n"] == len(made)
report(len(made), synchronous=synchronous, sqlite=sqlite3.sqlite_version, **recorded, **read, **on_disk(directory))
