"""Writes tutorial.ipynb: the tutorial of docs/tutorial.md from Python, with what each cell shows.

Run it in an empty folder: ``python make_notebook.py`` writes the notebook beside itself.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

CELLS: list[tuple[str, str]] = [
    (
        "markdown",
        "# From a transcript to the first onset\n\nA bike shop's repair desk works within the customer's limit of 80 francs. At which message did it go wrong? "
        "Everything here is computed from the record; no model is called.",
    ),
    (
        "code",
        '''import json
import dendrer


def call(id, name, **params):
    function = {"name": name, "arguments": json.dumps(params)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def told(id, answer):
    return {"role": "tool", "tool_call_id": id, "content": answer if isinstance(answer, str) else json.dumps(answer)}


chat = {
    "ticket": "T-88",
    "limit": 80,
    "messages": [
        {"role": "user", "content": "My brakes squeal. Please see to it, for at most 80 francs."},
        call("c1", "find_bike", owner="Ida Roth"),
        told("c1", {"bike": "B7", "brakes": "disc, 160 mm"}),
        call("c2", "order_part", bike="B7", part="brake pads"),
        told("c2", {"order": "P1", "price": 38.5}),
        call("c3", "order_part", bike="B7", part="rotor 140 mm"),
        told("c3", "Error: this part does not fit B7"),
        call("c4", "order_part", bike="B7", part="rotor 160 mm"),
        told("c4", {"order": "P2", "price": 54}),
        {"role": "assistant", "content": "I have ordered brake pads and a rotor, for 92.50 francs together."},
        {"role": "user", "content": "I said 80. The rotor is fine as it is."},
        call("c5", "cancel_part", order="P2"),
        told("c5", "cancelled"),
        {"role": "assistant", "content": "Done. See you on Friday!"},
    ],
}
with open("chat.json", "w") as file:
    json.dump(chat, file)

store = dendrer.init("shop")
store.ask("import", "chat.json", run="ida")["run"]''',
    ),
    ("markdown", "Every message is a transition, and its place in the list is its tick."),
    ("code", 'ida = store["ida"]\nlen(ida), ida[6].type, ida[6].action["params"]["part"]'),
    ("markdown", "Calls and failures are counted in every run, so the first failure needs no preparation."),
    ("code", 'ida.bisect(holds="state.counters.tool_errors == 0").onset'),
    ("markdown", "Whether the desk kept to the limit no counter knows. A *pack* says it: the state, and what each call changes in it."),
    (
        "code",
        '''pack = """
name: bikes.repair-desk
version: v1
define:
  tool: t.action.tool
  ok: t.result.status == 'ok'
  answer: parse_json(t.result.output)
tools:
  order_part: {failed: t.result.output.startsWith('Error:')}
  cancel_part: {failed: t.result.output.startsWith('Error:')}
state:
  limit: {words: what the customer will pay, init: meta.limit}
  cost: {words: what the parts on order cost, init: 0, decimals: 2}
  parts: {words: "every part on order, by its order", init: {}}
rules:
  - words: an ordered part costs what the answer says
    when_type: action.result
    when: tool == 'order_part' and ok
    steps:
      - {set: "parts[answer.order]", value: answer.price}
      - {add: cost, value: answer.price}
  - words: a cancelled part costs nothing
    when_type: action.result
    when: tool == 'cancel_part' and ok
    steps:
      - {add: cost, value: "-before.parts[t.action.params.order]"}
      - {remove: "parts[t.action.params.order]"}
predicates:
  within_limit:
    words: The parts on order cost at most what the customer will pay.
    holds: state.cost <= state.limit
"""
with open("desk.yaml", "w") as file:
    file.write(pack)

store.ask("pack check", "desk.yaml")["ok"]''',
    ),
    ("code", 'made = store.ask("reduce", "ida", pack="desk.yaml", as_="ida-desk")\nstore.names()'),
    ("markdown", "The run again, under the pack: the state is known at every tick, and the question has a name."),
    (
        "code",
        'desk = store["ida-desk"]\nfound = desk.bisect("within_limit", lift=True)\n'
        "found.onset, desk.state_at(found.onset.tick, path=\"cost\")",
    ),
    ("code", '[(write.tick, desk.state_at(write.tick, path="cost")) for write in desk.backtrack("cost")]'),
    ("markdown", "The record is one file that proves itself: anyone can check and ask it, with no model and no network."),
    ("code", 'file = desk.export("ida.dnd")\ndendrer.open(file)["ida-desk"].verify(replay=True).verdict'),
]


def shown(source: str, names: dict[str, Any]) -> str | None:
    """Runs a cell, and returns what a notebook would show of its last expression."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if last is not None:
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return None if value is None else repr(value)


def notebook() -> dict[str, Any]:
    """The notebook, with its outputs."""
    names: dict[str, Any] = {}
    cells: list[dict[str, Any]] = []
    count = 0
    for number, (kind, source) in enumerate(CELLS):
        cell: dict[str, Any] = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
        if kind == "code":
            count += 1
            text = shown(source, names)
            output = {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": {"text/plain": [text]}}
            cell.update({"execution_count": count, "outputs": [] if text is None else [output]})
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    place = Path(__file__).with_name("tutorial.ipynb")
    place.write_text(json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
