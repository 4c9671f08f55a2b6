"""What is read is what the command prints, from a store and from a bundle, whatever things are called."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dendrer
import pytest
from helpers import command, document, is_clean, same


def trip(name: str = "a", store: str | os.PathLike[str] = ".", last: int = 6, **options: Any) -> None:
    """Records a short run: prices by two agents, an action and its result, a plan."""
    with dendrer.run(name, store=store, goal="g", state={"n": 0}, on_error="raise", sync=100, **options) as run:
        for n in range(1, last + 1):
            run.observe(f"price {n}", {"n": n, "hotel.price": n * 100}, agent="ann" if n % 2 else "bob", confidence=0.5)
        decided = run.propose(action={"tool": "book", "params": {"n": 1}}, depends_on=["hotel.price"])
        run.result(decided, {"booking": 17}, set={"booked": True})
        run.plan("go")


HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has the run `a`, of nine transitions; no test changes it."""
    made = tmp_path_factory.mktemp("shared")
    (made / "home").mkdir()
    (made / "work").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        for name in HOMES:
            patched.setenv(name, str(made / "home"))
        dendrer.init(made / "work")
        trip(store=made / "work")
    return made


@pytest.fixture
def store(shared: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dendrer.Store:
    """That store, from its own folder."""
    for name in HOMES:
        monkeypatch.setenv(name, str(shared / "home"))
    monkeypatch.chdir(shared / "work")
    return dendrer.open()


@pytest.fixture
def fresh() -> dendrer.Store:
    """Such a store of one's own."""
    made = dendrer.init()
    trip()
    return made


# -- transitions ----------------------------------------------------------------------------------------------------


def test_a_run_is_indexed_as_a_list_is_from_one(store: dendrer.Store) -> None:
    """`r[n]` is the transition at tick n, -1 the last one, and there is nothing at 0 or behind the end."""
    r = store["a"]
    assert len(r) == r.tip == 9
    assert [t.tick for t in r] == [r[n].tick for n in range(1, 10)] == list(range(1, 10))
    assert [r[n].tick for n in range(-9, 0)] == list(range(1, 10))
    assert r["tip"] == r[-1] == r["9"] and r["tip"].tick == 9
    for place in (0, 10, -10, 10**30, -(10**30)):
        with pytest.raises(IndexError):
            r[place]
    wrong: Any
    for wrong in (1.5, None, b"1", (1, 2)):
        with pytest.raises((TypeError, dendrer.DendrerError)):
            r[wrong]
    for name in ("nothing", "--help", "99", "3 --json", ""):
        with pytest.raises(dendrer.DendrerError):
            r[name]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (slice(None), range(1, 10)),
        (slice(2, 4), range(2, 4)),
        (slice(1, None), range(1, 10)),
        (slice(None, 3), range(1, 3)),
        (slice(0, 3), range(1, 3)),
        (slice(-2, None), range(8, 10)),
        (slice(None, -1), range(1, 9)),
        (slice(-4, -2), range(6, 8)),
        (slice(7, 99), range(7, 10)),
        (slice(99, None), range(0)),
        (slice(5, 5), range(0)),
        (slice(6, 2), range(0)),
        (slice(-99, 3), range(1, 3)),
        (slice(None, -99), range(0)),
        (slice(2, 4, 1), range(2, 4)),
    ],
    ids=repr,
)
def test_a_slice_is_from_one_tick_up_to_another(store: dendrer.Store, part: slice, expected: range) -> None:
    """The end is not one of them, negative places count from the end, and what is outside is left out."""
    assert [t.tick for t in store["a"][part]] == list(expected)


def test_a_slice_with_a_step_is_refused(store: dendrer.Store) -> None:
    """Every second transition is not a question of a history."""
    with pytest.raises(dendrer.UsageError):
        store["a"][::2]


def test_an_empty_run_has_no_transitions() -> None:
    """A run that only began has a state and nothing to index."""
    made = dendrer.init()
    dendrer.run("empty", state={"n": 1}).close()
    r = made["empty"]
    assert (len(r), list(r), r[:], r.state_at(path="n")) == (0, [], [], 1)
    for place in (0, 1, -1):
        with pytest.raises(IndexError):
            r[place]
    with pytest.raises((IndexError, dendrer.NotFound)):
        r["tip"]
    with pytest.raises(dendrer.NotFound):
        r.state_at(window="before")


def test_a_transition_has_its_parts(store: dendrer.Store) -> None:
    """Tick, type, agent, time, id, and the members of its kind; `None` where it has none."""
    r = store["a"]
    shown = document("show", "a@1")
    first = r[1]
    assert (first.tick, first.type, first.agent) == (1, "observation.add", "ann")
    assert (first.ts, first.id) == (shown["ts"], shown["id"])
    assert first.intent == {"description": "price 1", "confidence": 0.5} and first.confidence == 0.5
    assert (first.action, first.result, first.policy) == (None, None, None)
    assert first.changes == (dendrer.Change("/n", 0, 1), dendrer.Change("/hotel", None, {"price": 100})) or [c.path for c in first.changes] == ["/n", "/hotel/price"]
    assert r[7].action == {"tool": "book", "params": {"n": 1}}
    assert r[8].result == {"status": "ok", "output": {"booking": 17}}
    assert r[9].confidence is None and r[9].changes == ()
    assert r[3].state["n"] == 3


def test_long_runs_are_read_in_order() -> None:
    """More transitions than are read at once."""
    made = dendrer.init()
    with dendrer.run("a", sync=1000) as run:
        for n in range(600):
            run.observe("x", n=n)
    r = made["a"]
    assert [(t.tick, (t.intent or {})["n"]) for t in r] == [(n + 1, n) for n in range(600)]
    assert [t.tick for t in r[255:260]] == list(range(255, 260))


# -- the state ------------------------------------------------------------------------------------------------------


def test_the_state_is_that_of_the_command(store: dendrer.Store) -> None:
    """Whole or at a place, after and before, at every tick."""
    r = store["a"]
    for tick in (0, 1, 5, 9):
        assert r.state_at(tick) == document("state", f"a@{tick}")["value"]
    assert r.state_at() == r.state_at(9) == r.state_at(-1)
    assert r.state_at(4, path="hotel.price") == r.state_at(4, path="/hotel/price") == 400
    assert r.state_at(4, path="hotel.price", window="before") == 300 == document("state", "a@4", "--path=hotel.price", "--window=before")["value"]
    assert r.state_at(4, window="before") == r.state_at(3)
    assert r.state_at(path="hotel") == {"price": 600}
    assert r.state_at(0, path="n") == 0


def test_a_place_where_nothing_stands_is_not_found(fresh: dendrer.Store) -> None:
    """A missing place, a tick that is none, a window that is none; `null` at a place is there."""
    r = fresh["a"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"path": "nothing"}, "E0104"),
        ({"path": "hotel.none"}, "E0104"),
        ({"path": "hotel[0]"}, "E0104"),
        ({"path": "n.x"}, "E0104"),
        ({"tick": 1, "path": "booked"}, "E0104"),
        ({"tick": 10}, "E0102"),
        ({"tick": -11}, "E0102"),
        ({"tick": 0, "window": "before"}, "E0102"),
    ]
    for options, code in cases:
        with pytest.raises(dendrer.NotFound) as caught:
            r.state_at(**options)
        assert caught.value.code == code
    with pytest.raises(dendrer.UsageError):
        r.state_at(1, window="during")
    with pytest.raises(dendrer.DendrerError):
        r.state_at(path="a[")
    with dendrer.run("null") as run:
        run.observe("x", {"v": None})
    assert fresh["null"].state_at(path="v") is None


def test_a_state_can_be_changed_without_changing_the_record(store: dendrer.Store) -> None:
    """What is read is the caller's own."""
    r = store["a"]
    state = r.state_at(3)
    state["n"] = "changed"
    r[3].state["hotel"]["price"] = "changed"
    (r[3].intent or {})["description"] = "changed"
    assert r.state_at(3, path="n") == 3 and r[3].state["hotel"]["price"] == 300
    assert (r[3].intent or {})["description"] == "price 3"


# -- the log --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, range(1, 10)),
        ({"type": "plan.update"}, [9]),
        ({"type": ("action.request", "action.result")}, [7, 8]),
        ({"agent": "bob"}, [2, 4, 6]),
        ({"agent": ("ann", "bob")}, range(1, 7)),
        ({"path": "booked"}, [8]),
        ({"path": "hotel.price", "agent": "ann"}, [1, 3, 5]),
        ({"from_": 3, "to": 5}, [3, 4, 5]),
        ({"from_": 3, "to": 5, "agent": "ann"}, [3, 5]),
        ({"to": 2}, [1, 2]),
        ({"from_": 8}, [8, 9]),
        ({"from_": 0, "to": 1}, [1]),
        ({"from_": 4, "to": 4}, [4]),
    ],
    ids=repr,
)
def test_the_log_is_filtered_as_by_the_command(store: dendrer.Store, filters: dict[str, Any], expected: Any) -> None:
    """Types, agents, a place, and ticks; all of them hold at once."""
    assert [t.tick for t in store["a"].log(**filters)] == list(expected)


@pytest.mark.parametrize("ticks", [{"to": 99}, {"from_": 99}, {"from_": 5, "to": 3}, {"from_": -2}, {"to": -1}], ids=repr)
def test_ticks_outside_of_the_run_are_one_thing_with_and_without_a_filter(store: dendrer.Store, ticks: dict[str, Any]) -> None:
    """Whether a filter is given does not decide whether a tick is an error, or what it means."""

    def told(**filters: Any) -> Any:
        try:
            return [t.tick for t in store["a"].log(**ticks, **filters)]
        except dendrer.DendrerError as error:
            return error.code

    everything = ("observation.add", "action.request", "action.result", "plan.update")
    assert told() == told(type=everything)


def test_a_filter_that_is_none_is_an_error(store: dendrer.Store) -> None:
    """A type that there is not, a place that is none."""
    with pytest.raises(dendrer.NotFound):
        list(store["a"].log(type="no.such"))
    with pytest.raises(dendrer.DendrerError):
        list(store["a"].log(path="a["))


# -- answers --------------------------------------------------------------------------------------------------------


def test_documents_are_those_of_the_command(fresh: dendrer.Store) -> None:
    """`to_dict` is what the verb prints under `--json`, for the same fresh and the same flags."""
    trip("b", last=4)
    place = f"--store={fresh.path}"
    r = fresh["a"]
    answers: list[tuple[Any, list[str]]] = [
        (r[3], ["show", "a@3"]),
        (r[8], ["show", "a@8"]),
        (r.bisect(holds="state.n < 4", lift=True), ["bisect", "a", "--holds=state.n < 4", "--lift"]),
        (r.bisect(holds="state.n < 99"), ["bisect", "a", "--holds=state.n < 99"]),
        (r.bisect("kernel.policy_compliant", contributors=True), ["bisect", "a", "--predicate=kernel.policy_compliant", "--contributors"]),
        (r.bisect(holds="state.n < 4", from_=2, to=5, no_chain=True), ["bisect", "a", "--holds=state.n < 4", "--from=2", "--to=5", "--no-chain"]),
        (r.diff("b"), ["diff", "a", "b"]),
        (r.diff(fresh["b"], ignore=["state.n", "agent_id"], align="content", limit=2), ["diff", "a", "b", "--ignore=state.n", "--ignore=agent_id", "--align=content", "--limit=2"]),
        (r.why(7, "hotel.price"), ["why", "a@7", "hotel.price"]),
        (r.why(-1, "n", depth=1, cross_agent=True), ["why", "a@9", "n", "--depth=1", "--cross-agent"]),
        (r.verify(), ["verify", "a"]),
        (r.verify(replay=True), ["verify", "a", "--replay"]),
    ]
    for answer, words in answers:
        assert answer.to_dict() == document(*words, place, exits=(0, 1, 5, 6)), words
    for write, shown in zip(r.backtrack("n", values=True), document("backtrack", "a", "n", "--values", place)["items"], strict=True):
        assert write.to_dict() == shown
        assert (write.tick, write.agent, write.type, write.id, write.ops) == tuple(shown[name] for name in ("tick", "agent", "type", "id", "ops"))
    for summary, shown in zip(fresh.runs(), document("runs", place)["items"], strict=True):
        assert summary.to_dict() == shown
        assert (summary.name, summary.ticks, summary.goal, summary.stage, summary.tip) == tuple(shown[name] for name in ("name", "ticks", "goal", "stage", "tip"))
    assert fresh.ask("heatmap", "a") == document("heatmap", "a", place)


def test_a_fork_is_that_of_the_command(fresh: dendrer.Store) -> None:
    """The documents of two forks are the same one, but for names, times and ids."""
    made = fresh["a"].fork(4, name="f", reason="another hotel", note="n")
    shown = document("fork", "a@4", "--as=g", "--reason=another hotel", "--note=n")
    found = made.fork_document
    assert found is not None and found.keys() == shown.keys()
    varies = {"run", "marker", "tip", "state_root"}
    assert {name: found[name] for name in found.keys() - varies} == {name: shown[name] for name in shown.keys() - varies}
    assert (made.name, made.parent, len(made)) == ("f", ("a", 4), 5)
    assert made[5].type == "run.fork" and [t.id for t in made[:5]] == [t.id for t in fresh["a"][:5]]
    assert fresh["a"].fork(-1).parent == ("a", 9)


def test_the_parts_of_answers(fresh: dendrer.Store) -> None:
    """Properties have what the document has."""
    trip("b", last=4)
    r = fresh["a"]
    found = r.bisect(holds="state.n < 4", lift=True)
    assert (found.onset, found.outcome) == (dendrer.Onset(4, "exact"), "onset")
    assert found.probes == found.to_dict()["items"]
    never = r.bisect(holds="state.n < 99")
    assert never.onset is None and never.outcome == never.to_dict()["outcome"]
    differs = r.diff("b")
    assert differs.differ == differs.to_dict()["differ"] and differs.items == differs.to_dict()["items"]
    (outcome,) = differs.only("outcome")
    assert {change["path"] for change in outcome["changes"]} == {"/state/hotel/price", "/state/n"}
    for kind in ("structural", "semantic", "confidence"):
        for item in differs.only(kind):
            assert kind in item["kinds"] and all(change["kind"] == kind for change in item["changes"])
    same = r.diff("a")
    assert (same.differ, same.items, same.only("outcome"), same.only("semantic")) == (0, [], [], [])
    why = r.why(7, "hotel.price")
    assert (why.root["tick"], why.value) == (6, 600)


def test_answers_are_frozen_and_compare_by_what_they_say(fresh: dendrer.Store) -> None:
    """Asked twice, the answer is equal; nothing of it can be set, and what `to_dict` gave is the caller's own."""
    trip("b", last=4)
    r = fresh["a"]
    asks: list[Callable[[], Any]] = [
        lambda: r.bisect(holds="state.n < 4"),
        lambda: r.diff("b"),
        lambda: r.why(7, "n"),
        lambda: r.verify(),
        lambda: r.backtrack("n")[0],
        lambda: fresh.runs()[0],
        lambda: r[3],
        lambda: r[3].changes[0],
        lambda: dendrer.Onset(1, "exact"),
    ]
    for ask in asks:
        answer = ask()
        assert answer == ask() and not answer != ask()
        for name in ("document", "tick", "path"):
            with pytest.raises(AttributeError):
                setattr(answer, name, None)
        if hasattr(answer, "to_dict"):
            answer.to_dict().clear()
            assert answer == ask() and answer.to_dict() == ask().to_dict()
    assert r.bisect(holds="state.n < 4") != r.bisect(holds="state.n < 5")
    assert r[3] != r[4] and r == fresh["a"] and r != fresh["b"] and len({r, fresh["a"]}) == 1
    other: Any = 5
    assert r != other and r[3] != other


def test_several_expressions_have_several_answers(store: dendrer.Store) -> None:
    """One question at a time, so that no answer is taken for that of another."""
    several: Any = ["state.n < 4", "state.n < 6"]
    with pytest.raises(dendrer.UsageError):
        store["a"].bisect(holds=several)
    asked = store.ask("bisect", "a", holds=several)
    assert [item["onset"] for item in asked["items"]] == [4, 6]


def test_a_run_is_as_it_was_when_it_was_opened(fresh: dendrer.Store) -> None:
    """What is recorded later is not in it, in no answer."""
    trip("b", last=4)
    r = fresh["a"]
    asks: dict[str, Callable[[], Any]] = {
        "len": lambda: len(r),
        "iter": lambda: list(r),
        "slice": lambda: r[-2:],
        "tip": lambda: r["tip"],
        "state": lambda: r.state_at(),
        "log": lambda: [t.tick for t in r.log(agent=("ann", "bob"))],
        "path": lambda: [t.tick for t in r.log(path="n")],
        "bisect": lambda: r.bisect(holds="state.n < 50", lift=True).onset,
        "backtrack": lambda: r.backtrack("n")[0].tick,
        "diff": lambda: r.diff("b").only("outcome"),
    }
    before = {name: ask() for name, ask in asks.items()}
    with dendrer.run("a", resume=True) as run:
        run.observe("later", {"n": 99}, agent="ann")
    assert {name: ask() for name, ask in asks.items()} == before
    assert len(fresh["a"]) == 10


def test_threads_ask_at_once(fresh: dendrer.Store, capfd: pytest.CaptureFixture[str]) -> None:
    """Verbs that are asked in several threads do not disturb each other, and print nothing."""
    trip("b", last=4)
    r = fresh["a"]
    expected = (r.bisect(holds="state.n < 4"), r.diff("b"), r.backtrack("n"), r.state_at(), list(r), r.why(7, "n"))

    def ask(_: int) -> bool:
        return (r.bisect(holds="state.n < 4"), r.diff("b"), r.backtrack("n"), r.state_at(), list(r), r.why(7, "n")) == expected

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(24)))
    assert capfd.readouterr() == ("", "")


# -- verify ---------------------------------------------------------------------------------------------------------


def test_a_record_that_is_bad_is_an_answer(fresh: dendrer.Store) -> None:
    """A byte that was changed, a tip that is not the run's: `verify` raises nothing, and its verdict says so."""
    r = fresh["a"]
    assert r.verify(tip=r[-1].id).verdict == "VERIFIED"
    assert r.verify(tip=[r[-1].id]).lines["witness"]["word"] == "WITNESSED"
    assert r.verify().lines["whole"]["word"] == "COMPLETE"
    other = r.verify(tip="sha256:" + "0" * 64)
    # The run is open, so the log may be older than a tip that nothing here knows.
    assert other.verdict == "UNVERIFIABLE" and other.lines["compared"]["word"] == "NOT COMPARED"
    assert other.to_dict() == document("verify", "a", "--tip=sha256:" + "0" * 64, f"--store={fresh.path}", exits=(6,))
    r.export("good.dnd")
    text = Path("good.dnd").read_text(encoding="utf-8")
    assert "price 3" in text
    Path("bad.dnd").write_text(text.replace("price 3", "price 4"), encoding="utf-8")
    assert dendrer.open("good.dnd")["a"].verify().verdict == "INTACT"
    bad = fresh.ask("verify", "bad.dnd")
    assert bad["verdict"] == "TAMPERED"
    try:
        assert dendrer.open("bad.dnd")["a"].verify().verdict == "TAMPERED"
    except dendrer.IntegrityError:
        # It may also be refused when it is opened.
        pass


# -- bundles --------------------------------------------------------------------------------------------------------


def test_a_bundle_is_read_as_a_store_is(fresh: dendrer.Store) -> None:
    """Every question of a store is answered by a bundle, wherever it lies."""
    r = fresh["a"]
    written = r.export("a.dnd")
    assert written == Path("a.dnd") and r.export() == written.read_bytes()
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    shutil.move("a.dnd", elsewhere / "b.dnd")
    bundle = dendrer.open(elsewhere / "b.dnd")
    assert (bundle.names(), list(bundle), len(bundle), "a" in bundle, "b" in bundle) == (["a"], ["a"], 1, True, False)
    b = bundle["a"]
    assert list(b) == list(r) and b.state_at() == r.state_at() and b[3].intent == r[3].intent
    assert b[3].changes == r[3].changes
    assert [t.tick for t in b.log(agent="bob")] == [2, 4, 6]
    assert b.bisect(holds="state.n < 4").onset == r.bisect(holds="state.n < 4").onset
    assert [w.tick for w in b.backtrack("n")] == [w.tick for w in r.backtrack("n")]
    assert b.why(7, "n").root["tick"] == 6
    assert b.diff(b).differ == 0
    assert b.verify(replay=True).verdict == "INTACT"
    (summary,) = bundle.runs()
    assert (summary.name, summary.ticks) == ("a", 9)
    with pytest.raises(dendrer.DendrerError):
        b.fork(3)
    with pytest.raises(dendrer.DendrerError):
        dendrer.run("a", store=elsewhere / "b.dnd")


def test_the_runs_of_a_bundle_are_compared_with_each_other(fresh: dendrer.Store) -> None:
    """In a bundle of two runs a name means the run of the bundle, and not one of the directory."""
    trip("b", last=4)
    assert command("export", "a", "b", "-o", "two.dnd").returncode == 0
    right = fresh["a"].diff("b").differ
    Path("away").mkdir()
    os.chdir("away")
    dendrer.init()
    trip("b", last=6)
    bundle = dendrer.open("../two.dnd")
    assert bundle["a"].diff(bundle["b"]).differ == right
    assert bundle["a"].diff("b").differ == right


def test_what_is_no_store_and_no_bundle_is_said(folder: Path) -> None:
    """A missing path, a directory without a store, a file that is none, and a store that is there already."""
    (folder / "text").write_text("hello")
    (folder / "empty").touch()
    (folder / "dir").mkdir()
    for path in ("missing", "dir", folder / "dir", "missing/deeper"):
        with pytest.raises(dendrer.NotFound):
            dendrer.open(path)
    for path in ("text", "empty"):
        with pytest.raises(dendrer.DendrerError):
            dendrer.open(path)
    dendrer.init("dir")
    with pytest.raises(dendrer.UsageError):
        dendrer.init("dir")
    assert dendrer.open("dir/.dendrer").names() == dendrer.open(folder / "dir").names() == []


def test_a_store_is_found_from_below(fresh: dendrer.Store) -> None:
    """Without a path the store is that of the directory or of one above it, as for the command."""
    Path("deep/er").mkdir(parents=True)
    os.chdir("deep/er")
    assert dendrer.open().names() == ["a"]
    with dendrer.run("below") as run:
        run.observe("x")
    assert dendrer.open().names() == ["a", "below"]


def test_a_recording_stays_where_it_was_opened(fresh: dendrer.Store) -> None:
    """A change of directory does not move a store that is read or a run that is recorded."""
    r = fresh["a"]
    with dendrer.run("moved") as run:
        run.observe("one")
        Path("other").mkdir()
        os.chdir("other")
        run.observe("two")
        assert r[3].changes and r.verify().verdict == "INTACT"
    assert len(fresh["moved"]) == 2


# -- whatever things are called -------------------------------------------------------------------------------------

ODD_KEYS = ["-1", "--help", "--json", "-", "--", "a b", "c=d", "=", "new\nline", "tab\t", "quote\"'", "$HOME", "`id`", "ü", "a.b", "x[0]", "*"]


def pointer(key: str) -> str:
    """The place of a name at the top of the state."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def failures(ask: Callable[[Any], None], cases: list[Any]) -> dict[str, str]:
    """Asks for each of the cases, and returns what was raised."""
    found = {}
    for case in cases:
        try:
            ask(case)
        except (Exception, pytest.fail.Exception) as error:
            found[repr(case)] = f"{type(error).__name__}: {error}".partition("\n")[0]
    return found


def test_a_place_may_be_called_anything() -> None:
    """Every question about a place takes any name, as a pointer and, where it is a word, as it is."""
    made = dendrer.init()
    with dendrer.run("a", on_error="raise", sync=100) as run:
        run.observe("one", {pointer(key): 1 for key in ODD_KEYS})
        run.observe("two", {pointer(key): 2 for key in ODD_KEYS})
        asked = {key: run.propose(action={"tool": "t"}, depends_on=[pointer(key)]) for key in ODD_KEYS}
    r = made["a"]

    def ask(key: str) -> None:
        for place in [pointer(key)] + ([key] if key in ("-1", "--help", "--json", "a b", "c=d", "=", "ü", "$HOME") else []):
            assert r.state_at(path=place) == 2
            assert [t.tick for t in r.log(path=place)] == [1, 2]
            assert r.why(2, place).root["tick"] == 2
            assert [w.tick for w in r.backtrack(place)] == [2, 1]
        assert dendrer.Change(pointer(key), 1, 2) in r[2].changes
        assert r.diff(r, ignore=["/state" + pointer(key)]).differ == 0
        tick = asked[key].tick
        assert tick is not None and [link["hash"] for link in r[tick].to_dict()["links"] if link["rel"] == "evidence"] == [r[2].id]

    assert failures(ask, ODD_KEYS) == {}


NO_NAMES = ["-x", "--help", "--json", "-", "--", "a b", "a\nb", "a=b", "", "a@2", "@", "a:ann", "../a", "a#b", "ü", "a" * 300]


def test_a_name_of_a_run_is_a_name_and_nothing_else(fresh: dendrer.Store) -> None:
    """What cannot be the name of a run is not found, is no flag, and cannot be recorded or forked to."""

    def refused(call: Callable[[], Any]) -> None:
        with pytest.raises(dendrer.DendrerError) as caught:
            call()
        text = str(caught.value)
        assert "Options:" not in text and "unexpected argument" not in text and "required arguments" not in text, "taken as a flag"

    def read(name: str) -> None:
        refused(lambda: fresh[name])

    def compare(name: str) -> None:
        # `diff` takes addresses.
        if name not in ("a@2", "@"):
            refused(lambda: fresh["a"].diff(name))

    def record(name: str) -> None:
        refused(lambda: dendrer.run(name))

    def fork(name: str) -> None:
        refused(lambda: fresh["a"].fork(1, name=name))

    found = {ask.__name__: failures(ask, NO_NAMES) for ask in (read, compare, record, fork)}
    assert found == {"read": {}, "compare": {}, "record": {}, "fork": {}}
    assert fresh.names() == ["a"] and not any(name in fresh for name in NO_NAMES)


@pytest.mark.parametrize("words", ["-1 < 0", "--lift", "a=b", "state.n == 1 ||\n state.n < 4", "  state.n < 4  ", "state['a b'] == 1", "'--help' == '--help'", "", "\x00"], ids=repr)
def test_an_expression_is_an_expression_and_nothing_else(store: dendrer.Store, words: str) -> None:
    """Whatever it says, an expression gives what the command gives for the same expression, and is no flag."""
    told: Any
    if "\x00" in words:
        with pytest.raises(dendrer.DendrerError):
            store["a"].bisect(holds=words)
        return
    ran = command("bisect", "a", f"--holds={words}", "--json", f"--store={store.path}")
    try:
        told = store["a"].bisect(holds=words).to_dict()
        assert ran.stdout and told == json.loads(ran.stdout)
    except dendrer.DendrerError as error:
        assert ran.returncode != 0 and str(error).strip() == command("bisect", "a", f"--holds={words}", f"--store={store.path}").stderr.strip()


def test_texts_are_texts_and_no_flags(fresh: dendrer.Store) -> None:
    """Goals, agents, reasons, notes and tools that look like flags are recorded as they are."""
    odd = "--as=user\n-x = $(id) \"'"
    with dendrer.run("g", goal=odd, agent="--goal=x", on_error="raise") as run:
        run.observe(odd, {"t": odd}, notes=odd)
        run.propose(action={"tool": odd, "call_id": odd})
    (summary,) = [s for s in fresh.runs() if s.name == "g"]
    assert summary.goal == odd
    g = fresh["g"]
    assert (g[1].agent, g.state_at(path="t")) == ("--goal=x", odd)
    assert [t.tick for t in g.log(agent="--goal=x")] == [1, 2]
    made = fresh["a"].fork(3, name="f", reason=odd, note="--as=other")
    assert made.fork_document is not None and made.fork_document["reason"] == odd and made.name == "f"
    assert [s.name for s in fresh.runs(where='name == "--help" || name == "a"')] == ["a"]
    assert len(fresh.runs(where="-1 < 0")) == 3


def test_an_agent_may_be_called_anything() -> None:
    """A filter by an agent finds that agent, and no other."""
    agents = ["-bob", "--help", "a b", "x=y", "new\nline", "x,y", "x", "ü", "*", "kernel,ann"]
    made = dendrer.init()
    with dendrer.run("a", on_error="raise", sync=100) as run:
        for agent in agents:
            run.observe("one", agent=agent)

    def ask(agent: str) -> None:
        assert [(t.tick, t.agent) for t in made["a"].log(agent=agent)] == [(agents.index(agent) + 1, agent)]

    assert failures(ask, agents) == {}
    assert [t.agent for t in made["a"].log(agent=("a b", "ü"))] == ["a b", "ü"]


@pytest.mark.parametrize("name", ["with space", "-odd", "--help", "a=b", "new\nline ü", "#1 at@2", "quote\"'"])
def test_a_store_and_a_bundle_may_lie_anywhere(name: str, folder: Path) -> None:
    """Whatever the directory is called."""
    made = dendrer.init(name)
    trip(store=name)
    r = made["a"]
    assert r.verify().verdict == "INTACT" and r[3].changes and r.diff("a").differ == 0
    assert r.fork(2, name="f").parent == ("a", 2)
    for bundle in (os.path.join(name, name + ".dnd"), name + ".dnd", str(folder / name / "x.dnd")):
        assert r.export(bundle) == Path(bundle) and Path(bundle).exists()
        b = dendrer.open(bundle)
        assert b["a"].bisect(holds="state.n < 4").onset == dendrer.Onset(4, "exact")
        assert b["a"].diff(b["a"]).differ == 0 and [s.name for s in b.runs()] == ["a"]
    assert dendrer.open(name).names() == dendrer.open(folder / name).names() == ["a", "f"]
    assert sorted(os.listdir(folder)) == sorted([name, name + ".dnd"])


# -- flags and forks ------------------------------------------------------------------------------------------------


def test_keywords_are_the_flags_of_the_verb(store: dendrer.Store) -> None:
    """With `_` for `-`; lists are given once each, `None` and `False` not at all, and an unknown one is an error."""
    r = store["a"]
    assert r.bisect(holds="state.n < 4", no_chain=True).to_dict() != r.bisect(holds="state.n < 4", no_chain=False).to_dict()
    assert r.bisect(holds="state.n < 4", window=None).onset == dendrer.Onset(4, "exact")
    assert len(r.backtrack("n", limit=2)) == 2 and [w.tick for w in r.backtrack("n", from_=2, to=4)] == [4, 3, 2]
    assert len(store.runs(limit=0, sort="name")) == 1
    for call in (lambda: r.bisect(holds="true", nosuch=1), lambda: r.backtrack("n", limit="many"), lambda: r.verify(nosuch=True)):
        with pytest.raises(dendrer.UsageError):
            call()


def test_a_fork_takes_mappings(fresh: dendrer.Store) -> None:
    """`set` puts values of every form at places of every name; `policy` is words, or what is enforced."""
    r = fresh["a"]
    made = r.fork(3, name="one", set={"n": 50, "hotel.price": 1.5, "new": {"a": [None, True, "text", "=\n"]}})
    state = made.state_at()
    assert (state["n"], state["hotel"]["price"], state["new"]) == (50, 1.5, {"a": [None, True, "text", "=\n"]})
    assert made.fork_document is not None and len(made.fork_document["changed"]) == 3
    words = r.fork(3, name="two", policy="be careful", tool_policy="ask first").fork_document
    assert words is not None and words["guidance"] == {"policy": "be careful", "tool_policy": "ask first"}
    with pytest.raises(dendrer.UsageError) as caught:
        r.fork(3, name="three", policy={"risk": 0.5})
    assert caught.value.code == "E0116"
    again = r.fork(2, name="four", replay_rest=True, set={"other": 1})
    assert [t.type for t in again] == ["observation.add"] * 2 + ["run.fork"] + [t.type for t in r[3:]]
    changed = r.fork(6, name="five", replay_rest=True, tool_output={8: {"output": {"booking": 18}, "delta": [{"set": "/booked", "value": False}]}})
    assert changed.state_at(path="booked") is False
    assert r.fork(6, name="six", replay_rest=True, dry_run=False).parent == ("a", 6)
    is_clean()


def test_a_fork_sets_a_place_of_any_name(fresh: dendrer.Store) -> None:
    """The names of a mapping are places, and no part of a flag."""

    def ask(key: str) -> None:
        assert fresh["a"].fork(3, set={pointer(key): 7}).state_at()[key] == 7

    assert failures(ask, ["-1", "--help", "a b", "new\nline", "a.b", "$x", "c=d", "="]) == {}


def test_a_fork_sets_values_by_the_rules_of_recording(fresh: dendrer.Store) -> None:
    """A value that has a form is set in its form; one that has none raises `ValueNotRecordable`."""

    def ask(value: Any) -> None:
        assert same(fresh["a"].fork(3, set={"v": value}).state_at(path="v"), list(value) if isinstance(value, tuple) else value)

    def refuse(value: Any) -> None:
        with pytest.raises(dendrer.ValueNotRecordable):
            fresh["a"].fork(3, set={"v": value})

    assert failures(ask, [(1, 2), "\ud800", {"$x": 1}]) | failures(refuse, [float("nan"), b"x", {1}, 1j]) == {}


# -- errors ---------------------------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[Callable[[dendrer.Store], Any], list[str], type[dendrer.DendrerError]]] = {
    "no run": (lambda s: s["zz"], ["log", "zz"], dendrer.NotFound),
    "no run to compare": (lambda s: s["a"].diff("zz"), ["diff", "a", "zz"], dendrer.NotFound),
    "no tick": (lambda s: s["a"]["99"], ["show", "a@99"], dendrer.NotFound),
    "no state": (lambda s: s["a"].state_at(99), ["state", "a@99"], dendrer.NotFound),
    "no place": (lambda s: s["a"].state_at(path="zz"), ["state", "a@tip", "--path=zz"], dendrer.NotFound),
    "no place to explain": (lambda s: s["a"].backtrack("zz"), ["backtrack", "a", "zz"], dendrer.NotFound),
    "not yet written": (lambda s: s["a"].why(3, "booked"), ["why", "a@3", "booked"], dendrer.NotFound),
    "no path": (lambda s: s["a"].state_at(path="a["), ["state", "a", "--path=a["], dendrer.NotFound),
    "no expression": (lambda s: s["a"].bisect(holds="1 +"), ["bisect", "a", "--holds=1 +"], dendrer.PredicateRejected),
    "no function": (lambda s: s["a"].bisect(holds="now() > 1"), ["bisect", "a", "--holds=now() > 1"], dendrer.PredicateRejected),
    "no predicate": (lambda s: s["a"].bisect("x.y"), ["bisect", "a", "--predicate=x.y"], dendrer.NotFound),
    "no type": (lambda s: list(s["a"].log(type="no.such")), ["log", "a", "--type=no.such"], dendrer.NotFound),
    "no agent": (lambda s: list(s["a"].log(agent="nobody")), ["log", "a", "--agent=nobody"], dendrer.NotFound),
    "fork of no tick": (lambda s: s["a"].fork(99), ["fork", "a@99"], dendrer.NotFound),
    "fork to a name that is taken": (lambda s: s["a"].fork(1, name="a"), ["fork", "a@1", "--as=a"], dendrer.UsageError),
    "no name": (lambda s: dendrer.run("a b"), ["commit", "--run=a b"], dendrer.UsageError),
    "another goal": (lambda s: dendrer.run("a", goal="other", resume=True), ["commit", "--run=a", "--goal=other"], dendrer.UsageError),
    "no tip": (lambda s: s["a"].verify(tip="sha256:00"), ["verify", "a", "--tip=sha256:00"], dendrer.UsageError),
    "no filter": (lambda s: s.runs(where="1 +"), ["runs", "--where=1 +"], dendrer.PredicateRejected),
    "no verb": (lambda s: s.ask("nosuch"), ["nosuch"], dendrer.UsageError),
    "a store already": (lambda s: dendrer.init(str(s.path.parent)), [], dendrer.UsageError),
    "no store": (lambda s: dendrer.open("/nowhere"), [], dendrer.NotFound),
}


#: Of these the document is compared, too.
WITH_DOCUMENT = {"no run", "no tick", "no place", "no expression", "no predicate", "another goal"}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_the_text_the_code_and_the_help_of_the_command(store: dendrer.Store, name: str) -> None:
    """`str` is what the command prints to stderr, `data` the document that it prints under `--json`."""
    ask, words, kind = ERRORS[name]
    with pytest.raises(dendrer.DendrerError) as caught:
        ask(store)
    error = caught.value
    assert type(error) is kind
    place = [f"--store={store.path}"]
    if name == "a store already":
        words, place = ["init", str(store.path.parent)], []
    if name == "no store":
        words, place = ["runs", "--store=/nowhere"], []
    shown = command(*words, *place)
    told = str(error).strip()
    if name == "no store":
        # In Python a store is made by a call.
        assert shown.stderr.splitlines()[0] == told.splitlines()[0] and told.splitlines()[-1] == 'help: dendrer.init("/nowhere")'
        return
    assert shown.returncode != 0 and told == shown.stderr.strip()
    if name not in WITH_DOCUMENT:
        assert f"error[{error.code}]: " in shown.stderr
        return
    found = json.loads(command(*words, *place, "--json").stdout)
    assert (error.code, error.data, error.help) == (found["code"], found, [item["argv"] for item in found["help"]])


def test_a_question_is_a_document_and_so_is_its_answer(store: dendrer.Store) -> None:
    """A question as a document gives the answer of the command; a member that does not fit is named with a suggestion."""
    asked = {"schema": "dendrer.bisect-question/1", "run": "a", "holds": ["state.n < 4"], "lift": True}
    ran = command("bisect", "a", "--holds=state.n < 4", "--lift", "--json", f"--store={store.path}")
    assert store.ask(asked) == json.loads(ran.stdout)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({**asked, "hold": "true"}, 'no member "hold"'),
        ({**asked, "lift": "yes"}, 'the member "lift" must be a boolean, and is a string'),
        ({"schema": asked["schema"], "holds": ["true"]}, 'needs the member "run"'),
        ({**asked, "predicate": "kernel.policy_compliant"}, "two questions"),
        ({**asked, "schema": "dendrer.bisekt-question/1"}, "is not the schema of a question"),
    ]
    for question, words in wrong:
        with pytest.raises(dendrer.UsageError, match=words) as caught:
            store.ask(question)
        assert caught.value.code == "E0106"
    with pytest.raises(dendrer.UsageError, match="no member"):
        store["a"].bisect(holds="true", nosuch=1)
    with pytest.raises(dendrer.UsageError):
        store.ask(asked, "a")  # type: ignore[call-overload]


def test_a_store_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the program goes to a directory in which another store has the same name."""
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        dendrer.init("s")
        with dendrer.run(place, store="s") as run:
            run.observe(place)
    monkeypatch.chdir(tmp_path / "one")
    store = dendrer.open("s")
    monkeypatch.chdir(tmp_path / "two")
    assert store.names() == ["one"] and len(store["one"]) == 1 and store["one"].bisect(holds="true").onset is None
    assert [run["run"] for run in store["one"].verify().to_dict()["items"]] == ["one"]
    monkeypatch.chdir(tmp_path)
    assert "one" in store


@pytest.mark.skipif(sys.platform == "win32", reason="paths are text there")
def test_a_path_that_is_no_text_is_refused() -> None:
    """It is no other store."""
    dendrer.init(".")
    os.makedirs(b"caf\xe9")
    place = os.fsdecode(b"caf\xe9")
    for use in (dendrer.open, lambda path: dendrer.run("a", store=path), dendrer.init):
        with pytest.raises(dendrer.DendrerError):
            use(place)
    assert dendrer.open(".").names() == []
