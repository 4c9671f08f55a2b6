"""What an answer prints: the text of the verb, one line that reports what was found, and answers that are not known."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import dendrer
import pytest
from helpers import command


def record(name: str, last: int = 6, odd: Any = None) -> None:
    """Records a run that spends, with a request and its result."""
    with dendrer.run(name, store="shop", agent="ann", goal="at most 25", state={"n": 0, "total_chf": 0}) as run:
        for n in range(1, last):
            run.observe(f"item {n} of the list, with a text that is wider than a narrow terminal shows", {"n": n, "total_chf": n * 5})
        asked = run.propose(action={"tool": "pay", "params": {"n": last}}, depends_on="total_chf")
        run.result(asked, {"paid": True, "odd": odd}, set={"total_chf": last * 5, "paid": True})


@pytest.fixture
def store() -> dendrer.Store:
    """A store with two runs that differ."""
    record("a")
    record("b", last=5)
    return dendrer.open("shop")


def cases(store: dendrer.Store) -> list[tuple[Any, list[str]]]:
    """Answers, and the commands that ask the same."""
    r = store["a"]
    to = f"--to={r.tip}"
    return [
        (store.runs(), ["runs"]),
        (store.runs(where="ticks > 6", sort="name"), ["runs", "--where=ticks > 6", "--sort=name"]),
        (r.bisect(holds="state.total_chf <= 20", lift=True), ["bisect", "a", to, "--lift", "--holds=state.total_chf <= 20"]),
        (r.bisect("kernel.policy_compliant"), ["bisect", "a", to, "--predicate=kernel.policy_compliant"]),
        (r.diff("b"), ["diff", f"a@{r.tip}", "b@6", "--align=tick"]),
        (r.diff(store["b"], type=["outcome", "semantic"], ignore=["action.params"]), ["diff", f"a@{r.tip}", "b@6", "--type=outcome,semantic", "--ignore=action.params", "--align=tick"]),
        (r.backtrack("total_chf"), ["backtrack", "a", "total_chf", "--limit=0", to]),
        (r.backtrack("total_chf")[1], ["backtrack", "a", "total_chf", "--limit=1", "--to=5"]),
        (r.why(7, "total_chf", depth=2), ["why", "a@7", "total_chf", "--depth=2"]),
        (r.verify(), ["verify", "a"]),
        (r[6], ["show", "a@6"]),
        (r[-2:], ["log", "a", "--from=6", "--to=7", "--limit=0"]),
    ]


def shown(words: list[str], width: int) -> list[str]:
    """The lines that the command prints: those of the answer, then notes and what to type next, in any order."""
    ran = command(*words, "--store=shop", f"--width={width}", "--progress=never", "--color=never")
    assert ran.returncode in (0, 1, 6), ran.stderr
    return sorted((ran.stdout + ran.stderr).splitlines())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_text_of_an_answer_is_that_of_the_command(store: dendrer.Store, width: int) -> None:
    """Line by line, at every width; `str` is the text at 80 columns."""
    for answer, words in cases(store):
        text = answer.text(width)
        assert sorted(text.splitlines()) == shown(words, width), words
        assert width != 80 or str(answer) == text


def test_where_the_program_finds_the_store_it_is_not_named(store: dendrer.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the directory of the store, commands to type next have no `--store`; elsewhere they have it."""
    found = store["a"].bisect(holds="state.total_chf <= 20", lift=True)
    assert "--store shop" in str(found)
    monkeypatch.chdir("shop")
    assert "--store" not in str(found)
    monkeypatch.setenv("DENDRER_STORE", "elsewhere")
    assert "elsewhere" not in str(found)


def test_the_text_is_of_the_ticks_of_the_answer(store: dendrer.Store) -> None:
    """A run that goes on changes no text, also of the run that is compared. Lists say how much there is now."""
    asked = [answer for answer, words in cases(store) if words[0] not in ("runs", "verify", "log")]
    before = [str(answer) for answer in asked]
    for name in ("a", "b"):
        with dendrer.run(name, store="shop", resume=True) as run:
            run.observe("later", {"n": 99, "total_chf": 99, "late": True})
    assert [str(answer) for answer in asked] == before


def test_an_answer_is_one_line(store: dendrer.Store) -> None:
    """`repr` reports what was found, of lists too."""
    r = store["a"]
    assert repr(store.runs()) == "[<RunSummary b, 6 ticks>, <RunSummary a, 7 ticks>]"
    assert repr(r.bisect(holds="state.total_chf <= 20", lift=True)) == "<Bisect onset 5 exact, a>"
    assert repr(r.bisect(holds="state.total_chf <= 99")) == "<Bisect no violation, a>"
    assert repr(r.bisect(holds="false")) == "<Bisect onset 0 exact, a>"
    assert repr(r.bisect(holds="state.nosuch <= 9", on_uncertain="return")) == "<Bisect uncertain, a>"
    assert repr(r.diff("b")) == "<Diff 2 of 7 pairs differ, and the end, a, b>"
    assert repr(r.diff("a")) == "<Diff no difference, a, a>"
    assert repr(r.backtrack("n")[:1]) == "[<Write tick 5 observation.add by ann, a>]"
    assert repr(r.why(7, "total_chf")) == "<Why total_chf since tick 7, a>"
    assert repr(r.verify()) == "<Verification INTACT, a>"
    assert repr(r[6:]) == "[<Transition 6 action.request by ann, a>, <Transition 7 action.result by ann, a>]"


def test_nothing_of_the_record_acts_in_a_line() -> None:
    """Names of agents are escaped in `repr` as they are in the text."""
    with dendrer.run("a", store="shop") as run:
        run.observe("x", {"/k\x1b[31m": 1}, agent="\x1b]0;pwned\x07\u202e")
    r = dendrer.open("shop")["a"]
    for answer in (r[1], r.backtrack("/k\x1b[31m")[0], r.why(1, "/k\x1b[31m")):
        for text in (repr(answer), str(answer)):
            assert not set(text) & {"\x1b", "\x07", "\u202e"}, text


def test_an_answer_goes_to_another_process(store: dendrer.Store) -> None:
    """Pickled, an answer has its document, and its text where the store can be read."""
    for answer, words in cases(store):
        if words[0] in ("show", "log"):
            continue
        again = pickle.loads(pickle.dumps(answer))
        assert again == answer and repr(again) == repr(answer) and str(again) == str(answer)
    found = store["a"].verify()
    os.rename("shop", "moved")
    with pytest.raises(dendrer.NotFound):
        str(found)
    assert repr(found) == "<Verification INTACT, a>" and found.to_dict()["verdict"] == "INTACT"


def test_a_bundle_has_texts_too(store: dendrer.Store) -> None:
    """Its runs are named by the file."""
    store["a"].export("a.dnd")
    bundle = dendrer.open("a.dnd")
    r = bundle["a"]
    for answer in (r.bisect(holds="state.total_chf <= 20", lift=True), r.backtrack("n"), r.why(7, "n"), r.verify(), r[6], r[2:4], bundle.runs()):
        assert str(answer) and max(map(len, answer.text(60).splitlines())) < 300


def test_a_text_writes_nothing(store: dendrer.Store) -> None:
    """What `record=True` wrote into the casebook is written once."""
    found = store["a"].bisect(holds="state.total_chf <= 20", lift=True, record=True)
    size = sum(file.stat().st_size for file in Path("shop/.dendrer/segments").iterdir())
    for _ in range(3):
        str(found)
    assert sum(file.stat().st_size for file in Path("shop/.dendrer/segments").iterdir()) == size


def test_a_width_is_a_number_of_columns(store: dendrer.Store) -> None:
    """Anything else is refused."""
    widths: tuple[Any, ...] = (0, -1, "80", 80.0, True, None)
    for width in widths:
        with pytest.raises(dendrer.UsageError):
            store["a"].verify().text(width)


# -- answers that are not known -------------------------------------------------------------------------------------


def test_a_place_that_is_misspelt_is_no_answer(store: dendrer.Store) -> None:
    """`Uncertain` has the answer, why, and what may have been meant; `on_uncertain="return"` returns the answer."""
    r = store["a"]
    with pytest.raises(dendrer.Uncertain) as caught:
        r.bisect(holds="state.totl <= 3")
    error = caught.value
    assert (error.code, error.reasons) == ("E0509", ["state.totl is missing"])
    assert "did you mean state.total_chf?" in str(error)
    assert isinstance(error, dendrer.PredicateRejected)
    found = r.bisect(holds="state.totl <= 3", on_uncertain="return")
    assert error.answer == found and found.onset is None and found.outcome == "uncertain"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.reasons, again.answer) == (str(error), error.reasons, error.answer)
    assert "E0509" in str(found)
    odd: Any = "ignore"
    with pytest.raises(dendrer.UsageError):
        r.bisect(holds="state.n < 3", on_uncertain=odd)


def test_what_ends_with_six_is_uncertain(store: dendrer.Store) -> None:
    """Questions as documents, and verbs, too; a predicate that recovers has its own class below `Uncertain`."""
    r = store["a"]
    asked = {"schema": "dendrer.bisect-question/1", "run": "a", "holds": ["state.totl <= 3"]}
    with pytest.raises(dendrer.Uncertain) as caught:
        store.ask(asked)
    assert caught.value.answer == store.ask(asked, on_uncertain="return")
    with pytest.raises(dendrer.Uncertain) as by_verb:
        store.ask("bisect", "a", holds="state.totl <= 3")
    assert by_verb.value.answer == store.ask("bisect", "a", holds="state.totl <= 3", on_uncertain="return")
    assert by_verb.value.reasons == ["state.totl is missing"]
    with dendrer.run("c", store="shop", state={"n": 0}) as run:
        for n in (5, 0):
            run.observe("x", {"n": n})
    with pytest.raises(dendrer.NonMonotonePredicate) as recovers:
        store["c"].bisect(holds="state.n < 3")
    assert isinstance(recovers.value, dendrer.Uncertain) and recovers.value.answer.outcome == "recovers"
    assert r.bisect(holds="has(state.nosuch)").outcome == "initial"


def withheld(run: dendrer.Run, path: str, place: str) -> None:
    """A bundle without a value, and without all that may follow from it. What that is, is asked first, and nothing is written."""
    with pytest.raises(dendrer.DendrerError) as asked:
        run.export(path, withhold=(place,))
    assert asked.value.code == "E0467" and not Path(path).exists()
    found = [note.removeprefix("the places: ") for note in asked.value.data["notes"] if note.startswith("the places: ")]
    run.export(path, withhold=(place,), also=tuple(found[0].split(" ")))


def test_verify_raises_nothing(store: dendrer.Store) -> None:
    """A bundle whose log is not signed here, and a record that is damaged, are verdicts."""
    withheld(store["a"], "a.dnd", "/intent")
    for replay in (False, True):
        assert dendrer.open("a.dnd")["a"].verify(replay=replay).verdict
    segment = next(Path("shop/.dendrer/segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    assert dendrer.open("shop").ask("verify")["verdict"] in ("TAMPERED", "UNVERIFIABLE", "INCOMPLETE")


def test_a_name_is_no_expression(store: dendrer.Store) -> None:
    """An expression asks for `holds=` or `predicate=`; a name that is unknown is not found."""
    r = store["a"]
    for text in ("state.n < 3", "state.paid", "state", "n < 3", "!x", "true && false", "size(state)"):
        with pytest.raises(dendrer.UsageError) as caught:
            r.bisect(text)
        assert "holds=" in str(caught.value) and "predicate=" in str(caught.value)
    for text in ("nosuch", "kernel.nosuch", "acme.tax_v2"):
        with pytest.raises(dendrer.NotFound):
            r.bisect(text)
    assert r.bisect(predicate="state.n >= 3", lift=True).onset == r.bisect(holds="state.n < 3", lift=True).onset
    with pytest.raises(dendrer.UsageError):
        r.bisect("kernel.policy_compliant", predicate="kernel.policy_compliant")


def test_moved_and_first_seen_are_read_from_the_document() -> None:
    """They are empty where the document has none; members that are missing are `None`."""
    document = {
        "outcome": "onset", "onset": 50, "certainty": "exact", "run": "shop-py",
        "moved": [{"place": "/total_chf", "tick": 34, "before": 390.5, "after": 700.5, "change": 310}],
        "first_seen": [
            {"value": 310, "tick": 32, "path": "/result/output/price", "type": "action.result", "tool": "search_price", "within": {"$x": 1}, "others": 2},
            {"value": 0.12, "tick": None},
        ],
    }  # fmt: skip
    for answer in (dendrer.Bisect(document), dendrer.Why(document)):
        assert answer.moved == [dendrer.Moved("/total_chf", 34, 390.5, 700.5, 310)]
        assert answer.first_seen[0] == dendrer.FirstSeen(310, 32, "/result/output/price", "action.result", "search_price", {"$x": 1}, 2)
        assert answer.first_seen[1] == dendrer.FirstSeen(0.12, None)
    assert dendrer.Bisect({"run": "a"}).moved == [] and dendrer.Why({"run": "a", "first_seen": None}).first_seen == []
