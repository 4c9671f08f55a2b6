"""Every value of Python is recorded as the page says, or is a mark with its place; and nothing else happens."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import logging
import pathlib
import random
import re
import struct
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import dendrer
import pytest
from helpers import command, document, is_clean, python, same, ticks, transitions

try:
    import pydantic
except ImportError:
    pydantic = None  # type: ignore[assignment]

UTC = datetime.timezone.utc
MIB = 1 << 20

# -- values that have a form ----------------------------------------------------------------------------------------


@dataclass
class Point:
    """A dataclass."""

    x: Any
    y: Any = None


@dataclass(frozen=True)
class Frozen:
    """A frozen dataclass."""

    n: int
    inner: Point


@dataclass(frozen=True, slots=True)
class Slotted:
    """A dataclass without a dict."""

    n: int
    _own: str = "kept"


@dataclass
class Empty:
    """A dataclass without fields."""


@dataclass
class Derived(Point):
    """A dataclass that has fields of another one."""

    z: list[int] = field(default_factory=list)


@dataclass
class WithClassVar:
    """`dataclasses.fields` of it has one field alone."""

    n: int
    shared: typing.ClassVar[Any] = {1, 2}


@dataclass
class WithInitVar:
    """`dataclasses.fields` of it has one field alone."""

    n: int
    given: dataclasses.InitVar[int]


class Text(str):
    """Text of a class of its own."""

    def __str__(self) -> str:
        raise RuntimeError("not to be asked")

    __repr__ = __str__


class TextWithEncode(str):
    """Text whose own method fails."""

    def encode(self, *_: Any, **__: Any) -> bytes:
        """Fails."""
        raise RuntimeError("not to be asked")


class TextThatLies(str):
    """Text whose own method says something else."""

    def encode(self, *_: Any, **__: Any) -> bytes:
        """Says something else."""
        return b"l\0i\0e\0"


class Whole(int):
    """A whole number of a class of its own."""

    def __str__(self) -> str:
        raise RuntimeError("not to be asked")

    __repr__ = __str__
    __index__ = __int__ = __str__  # type: ignore[assignment]


class WholeWithBits(int):
    """A whole number whose own method fails."""

    def bit_length(self) -> int:
        """Fails."""
        raise RuntimeError("not to be asked")


class Real(float):
    """A number of a class of its own."""

    def __float__(self) -> float:
        raise RuntimeError("not to be asked")


class Colour(str, enum.Enum):
    """Names that are text."""

    RED = "red"


class Level(enum.IntEnum):
    """Names that are numbers."""

    HIGH = 3


class Named(typing.NamedTuple):
    """A tuple with names."""

    a: int
    b: str


class HostileDict(dict[str, Any]):
    """An object whose own methods fail."""

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not to be asked")

    def __len__(self) -> int:
        raise RuntimeError("not to be asked")

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("not to be asked")

    items = keys = values = get = __len__  # type: ignore[assignment]


class HostileList(list[Any]):
    """A list whose own methods fail."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("not to be asked")

    def __len__(self) -> int:
        raise RuntimeError("not to be asked")

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("not to be asked")


@dataclass
class Clears:
    """Reading it changes what is being read around it."""

    around: list[Any]
    value: Any = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "around":
            around = object.__getattribute__(self, "around")
            around.clear()
            return 0
        return object.__getattribute__(self, name)


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    made: list[Any] = []
    for _ in range(depth - 1):
        made = [made]
    return made


def clears() -> list[Any]:
    """A list that is emptied while it is read."""
    made: list[Any] = []
    made.extend([Clears(made), 2, 3])
    return made


@dataclass
class Form:
    """What a value becomes: as answers show it, and as it is read."""

    value: Callable[[], Any]
    stored: Any
    back: Any = ...

    def __post_init__(self) -> None:
        if self.back is ...:
            self.back = self.stored


def plain(value: Any) -> Form:
    """A value that is stored as itself."""
    return Form(lambda: value, value)


BIG = {str(number.bit_length()): number for number in (2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64, 10**400, 10**4000, 10**4299)}

FORMS: dict[str, Form] = {
    "None": plain(None),
    "True": plain(True),
    "False": plain(False),
    "zero": plain(0),
    "negative": plain(-17),
    **{f"int of {bits} bits": plain(number) for bits, number in BIG.items()},
    **{f"negative int of {bits} bits": plain(-number) for bits, number in BIG.items()},
    "4300 digits": plain(10**4300 - 1),
    "float": plain(0.1),
    "integral float": Form(lambda: 1.0, 1),
    "negative zero": Form(lambda: -0.0, 0),
    "largest float": plain(sys.float_info.max),
    "smallest float": plain(5e-324),
    "2.0**53": Form(lambda: 2.0**53, 2**53),
    "1e22": Form(lambda: 1e22, 10**22),
    "text": plain("Zürich, 东京, 😀, e\u0301"),
    "empty text": plain(""),
    "controls": plain("\x00\x01\x1f\x7f\x85\u2028\u2029\ufeff\uffff"),
    "dict": plain({"b": 1, "a": {"c": [None, True]}}),
    "empty dict": plain({}),
    "list": plain([1, "a", [], {}]),
    "tuple": Form(lambda: (1, (2, ())), [1, [2, []]]),
    "namedtuple": Form(lambda: Named(1, "b"), [1, "b"]),
    "dataclass": Form(lambda: Point(1), {"x": 1, "y": None}),
    "nested dataclass": Form(lambda: Point([Point(1, 2)], {"k": Point(3)}), {"x": [{"x": 1, "y": 2}], "y": {"k": {"x": 3, "y": None}}}),
    "frozen dataclass": Form(lambda: Frozen(1, Point((2,))), {"n": 1, "inner": {"x": [2], "y": None}}),
    "dataclass with slots": Form(lambda: Slotted(1), {"n": 1, "_own": "kept"}),
    "empty dataclass": Form(Empty, {}),
    "derived dataclass": Form(lambda: Derived(1, 2, [3]), {"x": 1, "y": 2, "z": [3]}),
    "dataclass with a ClassVar": Form(lambda: WithClassVar(1), {"n": 1}),
    "dataclass with an InitVar": Form(lambda: WithInitVar(1, 2), {"n": 1}),
    "datetime in UTC": Form(lambda: datetime.datetime(2026, 11, 2, 3, 4, 5, tzinfo=UTC), "2026-11-02T03:04:05Z"),
    "datetime with microseconds": Form(
        lambda: datetime.datetime(2026, 11, 2, 3, 4, 5, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))),
        "2026-11-02T03:04:05.000006-05:30",
    ),
    "NaN": Form(lambda: float("nan"), {"$float": "NaN"}, float("nan")),
    "infinity": Form(lambda: float("inf"), {"$float": "Infinity"}, float("inf")),
    "negative infinity": Form(lambda: float("-inf"), {"$float": "-Infinity"}, float("-inf")),
    "bytes": Form(lambda: b"\x00\x01\x02", {"$bytes": "AAEC"}, b"\x00\x01\x02"),
    "no bytes": Form(lambda: b"", {"$bytes": ""}, b""),
    "bytearray": Form(lambda: bytearray(b"\xff"), {"$bytes": "_w"}, b"\xff"),
    "memoryview": Form(lambda: memoryview(b"abcdef")[::2], {"$bytes": "YWNl"}, b"ace"),
    "lone surrogate": Form(lambda: "\ud800", {"$wtf8": "7aCA"}, "\ud800"),
    "lone surrogate in text": Form(lambda: "a\udfff😀", {"$wtf8": "Ye2_v_CfmIA"}, "a\udfff😀"),
    "tagged forms in a list": Form(lambda: [b"a", {"n": float("inf")}], [{"$bytes": "YQ"}, {"n": {"$float": "Infinity"}}], [b"a", {"n": float("inf")}]),
    # Keys.
    "key with $": Form(lambda: {"$a": 1, "$": 2, "$$b": 3}, {"$a": 1, "$": 2, "$$b": 3}),
    "own $float": Form(lambda: {"$float": "NaN"}, {"$$float": "NaN"}, {"$float": "NaN"}),
    "own $bytes": Form(lambda: {"$bytes": "AAEC"}, {"$$bytes": "AAEC"}, {"$bytes": "AAEC"}),
    "own $gap": Form(lambda: {"$gap": {"reason": "r"}}, {"$$gap": {"reason": "r"}}, {"$gap": {"reason": "r"}}),
    "own $$float": Form(lambda: {"$$float": "NaN"}, {"$$$float": "NaN"}, {"$$float": "NaN"}),
    "empty key": plain({"": {"": 1}}),
    "keys of paths": plain({"a/b": 1, "a~b": 2, "a.b": 3, "a[0]": 4, " ": 5, "\n": 6, "~1": 7, "-1": 8}),
    "text class as key": Form(lambda: {Text("k"): 1, Colour.RED: 2}, {"k": 1, "red": 2}),
    "long key": plain({"k" * 10_000: 1}),
    # Classes of their own.
    "bool in a list": plain([True, 1, False, 0]),
    "int class": Form(lambda: Whole(5), 5),
    "large int class": Form(lambda: Whole(10**30), 10**30),
    "large int class with bit_length": Form(lambda: WholeWithBits(10**30), 10**30),
    "float class": Form(lambda: Real(0.5), 0.5),
    "text class": Form(lambda: Text("hi"), "hi"),
    "text class with encode": Form(lambda: TextWithEncode("a\ud800"), {"$wtf8": "Ye2ggA"}, "a\ud800"),
    "text class that lies": Form(lambda: TextThatLies("a\ud800"), {"$wtf8": "Ye2ggA"}, "a\ud800"),
    "text enum": Form(lambda: Colour.RED, "red"),
    "int enum": Form(lambda: Level.HIGH, 3),
    "OrderedDict": Form(lambda: collections.OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
    "defaultdict": Form(lambda: collections.defaultdict(list, a=[1]), {"a": [1]}),
    "hostile dict": Form(lambda: HostileDict(a=1), {"a": 1}),
    "hostile list": Form(lambda: HostileList([1, 2]), [1, 2]),
    "list emptied while read": Form(clears, [{"around": 0, "value": 1}, 2, 3]),
    "one object twice": Form(lambda: [SHARED, SHARED], [{"n": [1]}, {"n": [1]}]),
    "depth 120": Form(lambda: nested(120), nested(120)),
}

SHARED: dict[str, Any] = {"n": [1]}

# -- values that have none ------------------------------------------------------------------------------------------


class Plain:
    """Some class."""


class Hostile:
    """Everything that it is asked fails."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    __str__ = __repr__

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __len__(self) -> int:
        raise RuntimeError("len")


class HostileClass:
    """It does not say of which class it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("class")


class Liar:
    """It says that it is a time."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return datetime.datetime


class Meta(type):
    """A class of classes whose attributes fail."""

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class HostileMeta(metaclass=Meta):
    """Its class fails."""


class Endless:
    """Each of its attributes asks for another one."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self, name + "_")


class Numpy:
    """As numpy has them: like a number, a list and a buffer, and none of them."""

    dtype = "float64"
    shape = (2,)

    def __array__(self) -> Any:
        raise RuntimeError("array")

    def __float__(self) -> float:
        return 1.0

    def __index__(self) -> int:
        return 1

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> float:
        return 1.0

    def tolist(self) -> list[float]:
        """A list of it."""
        return [1.0, 1.0]

    def item(self) -> float:
        """A number of it."""
        return 1.0


@dataclass
class Broken:
    """A dataclass of which one field cannot be read."""

    good: int
    bad: int = 2

    def __getattribute__(self, name: str) -> Any:
        if name == "bad":
            raise ValueError("no")
        return object.__getattribute__(self, name)


@dataclass
class BrokenProperty:
    """A dataclass of which one field is a property that raises."""

    good: int

    bad: int = 0

    def __getattribute__(self, name: str) -> Any:
        """Raises for one of the fields."""
        if name == "bad":
            raise ValueError("no")
        return super().__getattribute__(name)


def missing() -> Point:
    """A dataclass of which one field is missing."""
    made = Point(1)
    del made.x
    return made


def cycle_of_lists() -> list[Any]:
    """A list that holds itself."""
    made: list[Any] = [1]
    made.append(made)
    return made


def cycle_of_dicts() -> dict[str, Any]:
    """An object that holds itself, in a list."""
    made: dict[str, Any] = {}
    made["a"] = [made]
    return made


def cycle_of_dataclasses() -> Point:
    """A dataclass that holds itself, in a tuple."""
    made = Point(1)
    made.y = (made,)
    return made


def released() -> memoryview:
    """Memory that is gone."""
    made = memoryview(b"abc")
    made.release()
    return made


async def later() -> None:
    """A coroutine function."""


def coroutine() -> Any:
    """A coroutine that is closed, so that nothing warns."""
    made = later()
    made.close()
    return made


@dataclass
class Gap:
    """Where a value has no form, below the value, and the word for it where a page has one."""

    value: Callable[[], Any]
    path: str = ""
    word: str | None = None


NO_FORM = "value_not_recordable"

GAPS: dict[str, Gap] = {
    "set": Gap(lambda: {1, 2}, word=NO_FORM),
    "frozenset": Gap(lambda: frozenset(), word=NO_FORM),
    "set in a list": Gap(lambda: [1, {2}], "/1", NO_FORM),
    "set below a key to escape": Gap(lambda: {"a/b~c": {1}}, "/a~1b~0c", NO_FORM),
    "set in a dataclass": Gap(lambda: Point(1, {1}), "/y", NO_FORM),
    "complex": Gap(lambda: 1j, word=NO_FORM),
    "Decimal": Gap(lambda: decimal.Decimal("1.5"), word=NO_FORM),
    "Fraction": Gap(lambda: fractions.Fraction(1, 2), word=NO_FORM),
    "date": Gap(lambda: datetime.date(2026, 1, 1), word=NO_FORM),
    "time": Gap(lambda: datetime.time(1), word=NO_FORM),
    "timedelta": Gap(lambda: datetime.timedelta(1), word=NO_FORM),
    "Path": Gap(lambda: pathlib.PurePosixPath("a"), word=NO_FORM),
    "UUID": Gap(lambda: uuid.UUID(int=1), word=NO_FORM),
    "Enum": Gap(lambda: enum.Enum("E", "A").A, word=NO_FORM),  # type: ignore[attr-defined]
    "range": Gap(lambda: range(3), word=NO_FORM),
    "deque": Gap(lambda: collections.deque([1]), word=NO_FORM),
    "mappingproxy": Gap(lambda: types.MappingProxyType({"a": 1}), word=NO_FORM),
    "dict view": Gap(lambda: {"a": 1}.items(), word=NO_FORM),
    "generator": Gap(lambda: (n for n in range(3)), word=NO_FORM),
    "iterator": Gap(lambda: iter([1]), word=NO_FORM),
    "coroutine": Gap(coroutine, word=NO_FORM),
    "class": Gap(lambda: int, word=NO_FORM),
    "dataclass itself": Gap(lambda: Point, word=NO_FORM),
    "function": Gap(lambda: nested, word=NO_FORM),
    "module": Gap(lambda: sys, word=NO_FORM),
    "exception": Gap(lambda: ValueError("x"), word=NO_FORM),
    "Ellipsis": Gap(lambda: ..., word=NO_FORM),
    "pattern": Gap(lambda: re.compile("a"), word=NO_FORM),
    "object": Gap(Plain, word=NO_FORM),
    "hostile object": Gap(Hostile, word=NO_FORM),
    "hostile class": Gap(HostileClass, word=NO_FORM),
    "class that lies": Gap(Liar, word=NO_FORM),
    "hostile metaclass": Gap(HostileMeta, word=NO_FORM),
    "endless attributes": Gap(Endless, word=NO_FORM),
    "like numpy": Gap(Numpy, word=NO_FORM),
    "field that raises": Gap(lambda: Broken(1), "/bad"),
    "property that raises": Gap(lambda: BrokenProperty(1), "/bad"),
    "field that is missing": Gap(missing, "/x"),
    "datetime whose zone fails": Gap(lambda: datetime.datetime(2026, 1, 1, tzinfo=BrokenZone())),
    "released memoryview": Gap(released),
    "list cycle": Gap(cycle_of_lists, "/1"),
    "dict cycle": Gap(cycle_of_dicts, "/a/0"),
    "dataclass cycle": Gap(cycle_of_dataclasses, "/y/0"),
    "tuple key": Gap(lambda: [{(1,): 2}], "/0"),
    "bytes key": Gap(lambda: {b"a": 2}),
    "hostile key": Gap(lambda: {HostileKey(): 1}),
    "lone surrogate in a key": Gap(lambda: {"a": {"\ud800": 1}}, "/a"),
    "4301 digits": Gap(lambda: 10**4300, word="value_too_large"),
    "5000 digits": Gap(lambda: [10**5000], "/0", "value_too_large"),
    "three million digits": Gap(lambda: 1 << 10_000_000, word="value_too_large"),
    "65 MiB of text": Gap(lambda: {"a": "x" * (65 * MIB)}, "/a", "value_too_large"),
    "65 MiB of bytes": Gap(lambda: b"x" * (65 * MIB), word="value_too_large"),
}


class HostileKey:
    """A key that can be one, and says nothing."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class BrokenZone(datetime.tzinfo):
    """A zone that fails."""

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta | None:
        raise RuntimeError("zone")

    dst = utcoffset

    def tzname(self, _: datetime.datetime | None) -> str:
        raise RuntimeError("zone")


if pydantic is not None:

    class Model(pydantic.BaseModel):
        """A model."""

        n: int
        more: Any = None

    class Timed(pydantic.BaseModel):
        """A model with what JSON does not have."""

        at: datetime.datetime
        path: pathlib.PurePosixPath
        tags: set[int]
        inner: Model

    class Tagged(Model):
        """A model of a subclass."""

        tag: str

    class Around(pydantic.BaseModel):
        """A model around one of a subclass."""

        inner: Model

    class Root(pydantic.RootModel[list[int]]):
        """A model that is a list."""

    class BrokenModel(pydantic.BaseModel):
        """A model that cannot be dumped."""

        n: int

        def model_dump(self, **_: Any) -> dict[str, Any]:
            """Raises."""
            raise RuntimeError("no")

    class OwnModel(pydantic.BaseModel):
        """A model that is dumped as itself."""

        n: int

        def model_dump(self, **_: Any) -> Any:
            """Itself."""
            return self

    class SetModel(pydantic.BaseModel):
        """A model that is dumped as what has no form."""

        n: int

        def model_dump(self, **_: Any) -> Any:
            """A set."""
            return {"a": {1}}

    class FreshModel(pydantic.BaseModel):
        """A model that is dumped as another one of its kind, for ever."""

        n: int

        def model_dump(self, **_: Any) -> Any:
            """Another one."""
            return [FreshModel(n=1)]

    def cycle_of_models() -> Any:
        """A model that holds itself, in a list."""
        made = Model(n=1)
        made.more = [made]
        return made

    def dataclass_of_models() -> Any:
        """A dataclass of a model of pydantic, and the other way round."""
        return Point(Model(n=1, more=Point(2)), [Model(n=3)])

    FORMS |= {
        "model": Form(lambda: Model(n=1, more=[Model(n=2)]), {"n": 1, "more": [{"n": 2, "more": None}]}),
        "model of JSON": Form(
            lambda: Timed(at=datetime.datetime(2026, 1, 2, tzinfo=UTC), path=pathlib.PurePosixPath("a/b"), tags={1}, inner=Model(n=2)),
            {"at": "2026-01-02T00:00:00Z", "path": "a/b", "tags": [1], "inner": {"n": 2, "more": None}},
        ),
        "root model": Form(lambda: Root([1, 2]), [1, 2]),
        "models and dataclasses": Form(dataclass_of_models, {"x": {"n": 1, "more": {"x": 2, "y": None}}, "y": [{"n": 3, "more": None}]}),
        "model with an infinite number": Form(
            lambda: Model(n=1, more=[float("-inf")]), {"n": 1, "more": [{"$float": "-Infinity"}]}, {"n": 1, "more": [float("-inf")]}
        ),
        "model of a subclass": Form(lambda: Model(n=1, more=Tagged(n=2, tag="x")), {"n": 1, "more": {"n": 2, "more": None, "tag": "x"}}),
        "model of a typed model": Form(lambda: Around(inner=Tagged(n=2, tag="x")), {"inner": {"n": 2, "more": None, "tag": "x"}}),
        "model with keys of one text": Form(lambda: Model(n=1, more={1: "a", 2.5: "b"}), {"n": 1, "more": {"1": "a", "2.5": "b"}}),
        "model with own $": Form(lambda: Model(n=1, more={"$x": 1}), {"n": 1, "more": {"$x": 1}}),
    }
    GAPS |= {
        "model that raises": Gap(lambda: [BrokenModel(n=1)], "/0"),
        "model dumped as itself": Gap(lambda: OwnModel(n=1)),
        "model dumped as a set": Gap(lambda: SetModel(n=1), "/a"),
        "model of an object": Gap(lambda: Model(n=1, more=Plain())),
        "model of bytes": Gap(lambda: Model(n=1, more=b"\xff")),
        "model cycle": Gap(cycle_of_models),
        "model class": Gap(lambda: Model),
    }

# -- all of them, recorded once -------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """What the package answered, and what the command shows."""

    replies: dict[str, dendrer.Reply | BaseException]
    raised: dict[str, dendrer.Reply | BaseException]
    intents: dict[str, Any]
    state: dict[str, Any]
    run: dendrer.Run
    on_record: list[dict[str, Any]]
    on_record_raise: list[dict[str, Any]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Records every value in the state and in the intent of a step, once with each `on_error`."""
    home = tmp_path_factory.mktemp("home")
    store = tmp_path_factory.mktemp("values")
    with pytest.MonkeyPatch.context() as patched:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            patched.setenv(name, str(home))
        patched.setattr(logging.getLogger("dendrer"), "disabled", True)
        opened = dendrer.init(store)
        answers: list[dict[str, dendrer.Reply | BaseException]] = [{}, {}]
        values: dict[str, Callable[[], Any]] = {name: form.value for name, form in FORMS.items()}
        values |= {name: gap.value for name, gap in GAPS.items()}
        places = {name: f"/v{index}" for index, name in enumerate(values)}
        with dendrer.run("warn", store=store, sync=100) as warn, dendrer.run("raise", store=store, sync=100, on_error="raise") as strict:
            for run, told in zip((warn, strict), answers, strict=True):
                for name, make in values.items():
                    try:
                        told[name] = run.observe(name, {places[name]: make()}, v=make())
                    except BaseException as error:
                        told[name] = error
        on_record = transitions("warn", store)
        state = document("state", "warn", f"--store={store}")["value"]
        found = Recorded(
            answers[0],
            answers[1],
            {item["content"]["intent"]["description"]: item["content"]["intent"] for item in on_record if "intent" in item["content"]},
            {name: state[place[1:]] for name, place in places.items() if place[1:] in state},
            opened["warn"],
            on_record,
            transitions("raise", store),
        )
        is_clean(store, by_command=True)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_a_value_of_the_table_is_stored_in_its_form(recorded: Recorded, name: str) -> None:
    """The command shows the form that the page promises, in the intent and in the state."""
    reply = recorded.replies[name]
    assert isinstance(reply, dendrer.Reply) and reply.what == "committed" and reply, reply
    assert same(recorded.intents[name]["v"], FORMS[name].stored)
    assert same(recorded.state[name], FORMS[name].stored)


@pytest.mark.parametrize("name", FORMS)
def test_a_value_reads_back_as_what_it_was(recorded: Recorded, name: str) -> None:
    """`t.intent`, `t.state` and `state_at` have what was put."""
    reply = recorded.replies[name]
    assert isinstance(reply, dendrer.Reply) and reply.tick is not None, reply
    there = recorded.run[reply.tick]
    assert there.intent is not None
    assert same(there.intent["v"], FORMS[name].back)
    place = f"v{list(FORMS).index(name)}"
    assert same(recorded.run.state_at(reply.tick, path=place), FORMS[name].back)
    assert same(there.state[place], FORMS[name].back)


@pytest.mark.parametrize("name", ["NaN", "bytes", "lone surrogate", "key with $", "integral float", "int of 65 bits"])
def test_a_change_has_what_was_put(recorded: Recorded, name: str) -> None:
    """`t.changes` has values as `state_at` has them."""
    reply = recorded.replies[name]
    assert isinstance(reply, dendrer.Reply) and reply.tick is not None, reply
    (change,) = recorded.run[reply.tick].changes
    assert same(change.after, FORMS[name].back), change


@pytest.mark.parametrize("name", FORMS)
def test_a_value_of_the_table_raises_nothing_with_raise(recorded: Recorded, name: str) -> None:
    """`on_error="raise"` takes the same values."""
    reply = recorded.raised[name]
    assert isinstance(reply, dendrer.Reply) and reply.what == "committed", reply


@pytest.mark.parametrize("name", GAPS)
def test_a_value_without_a_form_is_a_mark_with_its_path(recorded: Recorded, name: str) -> None:
    """The step is on record, with a mark in the place of the value and nothing else in it."""
    reply, case = recorded.replies[name], GAPS[name]
    assert isinstance(reply, dendrer.Reply), reply
    assert (reply.what, bool(reply)) == ("gap", False) and reply.tick is not None, reply
    assert reply.reason is not None
    assert (reply.reason["code"], reply.reason["path"]) == ("E0209", "/intent/v" + case.path)
    assert reply.reason["message"].endswith("cannot be recorded")
    found = marks(recorded.intents[name]["v"])
    assert [mark["path"] for mark in found] == ["/intent/v" + case.path]
    assert re.fullmatch("[a-z_]+", found[0]["reason"])
    assert case.word in (None, found[0]["reason"])
    assert [mark["path"] for mark in marks(recorded.state[name])] == ["/delta/0/value" + case.path]


@pytest.mark.parametrize("name", GAPS)
def test_a_value_without_a_form_raises_with_its_path(recorded: Recorded, name: str) -> None:
    """`on_error="raise"` raises `ValueNotRecordable`, and the step is not on record."""
    error = recorded.raised[name]
    assert isinstance(error, dendrer.ValueNotRecordable), error
    assert (error.code, error.path) == ("E0209", "/intent/v" + GAPS[name].path)
    assert "cannot be recorded" in str(error)
    assert name not in [item["content"]["intent"]["description"] for item in recorded.on_record_raise if "intent" in item["content"]]


def test_no_step_is_on_record_twice_or_in_part(recorded: Recorded) -> None:
    """As many transitions as answers, no other type, ticks without holes."""
    for told, on_record in ((recorded.replies, recorded.on_record), (recorded.raised, recorded.on_record_raise)):
        replies = [reply for reply in told.values() if isinstance(reply, dendrer.Reply)]
        assert [item["type"] for item in on_record if item["type"] != "observation.add"] == []
        assert [item["tick"] for item in on_record] == list(range(1, len(replies) + 1))
        assert [(item["tick"], item["id"]) for item in on_record] == [(reply.tick, reply.id) for reply in replies]


def marks(value: Any) -> list[dict[str, str]]:
    """Every mark in a value as it is stored."""
    if isinstance(value, dict):
        if set(value) == {"$gap"}:
            return [value["$gap"]]
        return [mark for member in value.values() for mark in marks(member)]
    return [mark for item in value for mark in marks(item)] if isinstance(value, list) else []


# -- one by one -----------------------------------------------------------------------------------------------------

RFC_3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"


@pytest.mark.parametrize(
    "moment",
    [
        datetime.datetime(2026, 1, 2, 3, 4, 5),
        datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(seconds=30))),
        datetime.datetime(1890, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(minutes=34, seconds=8))),
    ],
    ids=["naive", "offset of 30 seconds", "local mean time"],
)
def test_a_time_is_of_rfc_3339_or_a_mark(moment: datetime.datetime) -> None:
    """A time that RFC 3339 has no text for is not recorded as other text."""
    store = dendrer.init()
    with dendrer.run("a") as run:
        reply = run.observe("t", v=moment)
    stored = (store["a"][1].intent or {})["v"]
    if reply.what == "committed":
        assert re.fullmatch(RFC_3339, stored), stored
    else:
        assert stored == {"$gap": {"path": "/intent/v", "reason": "value_not_recordable"}}


@pytest.mark.parametrize("depth", [123, 124, 125])
@pytest.mark.parametrize("place", ["intent", "delta"])
def test_the_deepest_value_is_that_of_the_command(depth: int, place: str) -> None:
    """What `dendrer commit` takes, the package takes."""
    line: dict[str, Any] = {"type": "observation.add"}
    line |= {"intent": {"v": nested(depth)}} if place == "intent" else {"delta": [{"set": "/v", "value": nested(depth)}]}
    dendrer.init()
    taken = command("commit", "--run=a", input=json.dumps(line)).returncode == 0
    with dendrer.run("b") as run:
        assert bool(run.commit(line)) == taken


@pytest.mark.parametrize("depth", [130, 200, 100_000])
@pytest.mark.parametrize("kind", ["list", "dict", "dataclass", "tuple"])
def test_what_is_too_deep_is_one_mark(depth: int, kind: str) -> None:
    """However deep a value is, it is a mark where it is too deep, or raises there; and no stack overflows."""
    wrap: dict[str, Callable[[Any], Any]] = {
        "list": lambda value: [value],
        "dict": lambda value: {"k": value},
        "dataclass": Point,
        "tuple": lambda value: (value,),
    }
    value: Any = 1
    for _ in range(depth):
        value = wrap[kind](value)
    try:
        store = dendrer.init()
        with dendrer.run("a") as run:
            reply = run.observe("deep", v=value)
        assert reply.what == "gap" and reply.tick == 1 and reply.reason is not None
        assert reply.reason["path"].startswith("/intent/v/")
        assert store["a"][1].intent is not None
        with dendrer.run("b", on_error="raise") as run, pytest.raises(dendrer.ValueNotRecordable) as caught:
            run.observe("deep", v=value)
        assert caught.value.path == reply.reason["path"]
    finally:
        # Not at once: that is deeper than the interpreter goes.
        while isinstance(value, (list, dict, tuple, Point)):
            value = value.x if isinstance(value, Point) else value["k"] if isinstance(value, dict) else value[0]


@pytest.mark.skipif(pydantic is None, reason="needs pydantic")
def test_a_model_that_has_no_end_is_a_mark() -> None:
    """A model that is dumped as a new model for ever ends at the depth that a record has."""
    dendrer.init()
    with dendrer.run("a") as run:
        reply = run.observe("endless", v=FreshModel(n=1))
    assert reply.what == "gap" and reply.tick == 1


SHARED_OBJECTS = """
import dendrer, logging, resource, sys, time
from dataclasses import dataclass
from typing import Any

@dataclass
class Pair:
    left: Any
    right: Any

kind, on_error = sys.argv[1:]
value = 1
for _ in range(60):
    value = {"list": lambda: [value, value], "dict": lambda: {"a": value, "b": value}, "dataclass": lambda: Pair(value, value)}[kind]()
logging.disable(logging.CRITICAL)
with dendrer.run("a", on_error=on_error) as run:
    begun = time.monotonic()
    try:
        reply = run.observe("shared", v=value)
        print(reply.what, reply.reason["code"], reply.reason["path"][:9])
    except dendrer.ValueNotRecordable as error:
        print("raised", error.code, error.path[:9])
    print(time.monotonic() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize(("kind", "on_error"), [("list", "warn"), ("dict", "raise")])
def test_shared_objects_that_would_fill_the_memory_are_refused_soon(kind: str, on_error: str) -> None:
    """Sixty objects that hold each other twice are 2^60 values: a gap by size within seconds, and in bounded memory."""
    dendrer.init()
    ran = python(SHARED_OBJECTS, kind, on_error, timeout=3)
    assert ran.returncode == 0, ran.stderr
    told, took = ran.stdout.splitlines()
    assert told == ("gap E0209 /intent/v" if on_error == "warn" else "raised E0209 /intent/v")
    seconds, mib = took.split()
    assert float(seconds) < 2 and int(mib) < 1024, took


def test_each_value_of_a_line_has_a_limit_of_its_own() -> None:
    """A line takes 256 MiB and a value 64 MiB, as `dendrer commit` does: two values of 33 MiB are recorded."""
    dendrer.init()
    with dendrer.run("a") as run:
        reply = run.observe("two", v="x" * (33 * MIB), w="y" * (33 * MIB))
    assert reply.what == "committed", reply.reason


def test_what_stands_beside_a_mark_is_kept() -> None:
    """Each value without a form is a mark of its own; the others are on record, and the first is told."""
    store = dendrer.init()
    with dendrer.run("a") as run:
        reply = run.observe("some", {"good": 1, "bad": {1}}, v=[1, {2}, {"a": {3}, "b": 4}])
        after = run.observe("next")
    assert (reply.what, reply.tick, after.what, after.tick) == ("gap", 1, "committed", 2)
    assert reply.reason is not None and reply.reason["path"] == "/intent/v/1"
    (item, _) = transitions("a")
    no_form = "value_not_recordable"
    assert item["content"]["intent"]["v"] == [
        1,
        {"$gap": {"path": "/intent/v/1", "reason": no_form}},
        {"a": {"$gap": {"path": "/intent/v/2/a", "reason": no_form}}, "b": 4},
    ]
    assert store["a"].state_at(path="good") == 1


def test_twenty_thousand_marks_are_taken() -> None:
    """Many values without a form are many marks, soon."""
    store = dendrer.init()
    with dendrer.run("a") as run:
        reply = run.observe("many", v=[{1}] * 20_000)
    assert reply.what == "gap"
    assert len((store["a"][1].intent or {})["v"]) == 20_000


def test_values_have_their_form_in_every_method() -> None:
    """Parameters, outputs, notes, members of steps and the first state are read by the same rules."""
    store = dendrer.init()
    with dendrer.run("a", state={"n": float("inf"), "$own": b"x", "at": (1,)}) as run:
        decided = run.propose(action={"tool": "t", "params": {"p": Point(b"1")}})
        told = run.result(decided, float("-inf"), extra=(1, 2), set={"out": Point(1)})
        run.observe("notes", notes=Point(2))
        run.step("tool_call", "s", input={"b": b"2"}, output=[float("nan")])
        run.commit({"type": "plan.update", "intent": {"v": b"3"}})
        bad = run.propose(action={"tool": "t", "params": {"p": {1}}})
        bad_result = run.result(decided, {1})
        bad_step = run.step("tool_call", "s", input={"b": {1}})
    assert decided and told
    r = store["a"]
    assert r.state_at(0, path="n") == float("inf") and r.state_at(0, path="at") == [1]
    assert r.state_at(0)["$own"] == b"x"
    assert (r[1].action or {})["params"] == {"p": {"x": b"1", "y": None}}
    assert r[2].result == {"output": float("-inf"), "extra": [1, 2], "status": "ok"}
    assert r[2].state["out"] == {"x": 1, "y": None}
    assert (r[3].intent or {})["uncertainty_notes"] == {"x": 2, "y": None}
    assert same((r[4].result or {})["output"], [float("nan")])
    assert (r[5].intent or {})["v"] == b"3"
    assert [reply.what for reply in (bad.reply, bad_result, bad_step)] == ["gap"] * 3
    assert [reply.tick for reply in (bad.reply, bad_result, bad_step)] == [6, 7, 8]
    is_clean()


def test_a_first_state_without_a_form_raises_with_its_path() -> None:
    """A run does not begin with another state than was asked for."""
    dendrer.init()
    with pytest.raises(dendrer.ValueNotRecordable) as caught:
        dendrer.run("a", state={"a": [{1}]}, on_error="raise")
    assert caught.value.path == "/a/0"


def test_floats_and_ints_come_back_exactly() -> None:
    """Numbers of every size are the same number afterwards, and for the command too."""
    chance = random.Random(1)
    floats = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(500)]
    # JSON writes these without a fraction, and an integer of that size keeps the digits that are written.
    floats = [number for number in floats if not 2.0**53 <= abs(number) < 1e21]
    ints = [chance.randrange(-(10**digits), 10**digits) for digits in (1, 9, 16, 17, 20, 40, 400) for _ in range(50)]
    store = dendrer.init()
    with dendrer.run("a") as run:
        run.observe("numbers", {"floats": floats, "ints": ints})
    assert same(store["a"].state_at(path="floats"), floats)
    assert store["a"].state_at(path="ints") == ints
    assert document("state", "a", "--path=ints")["value"] == ints


def test_the_limit_of_the_host_on_digits_does_not_matter() -> None:
    """The limit is 4,300 digits, whatever `sys.set_int_max_str_digits` says."""
    dendrer.init()
    before = sys.get_int_max_str_digits()
    try:
        with dendrer.run("a") as run:
            sys.set_int_max_str_digits(640)
            small = run.observe("1,001 digits", {"n": 10**1000})
            sys.set_int_max_str_digits(0)
            large = run.observe("5,001 digits", v=10**5000)
        sys.set_int_max_str_digits(640)
        back = dendrer.open()["a"].state_at(1, path="n")
    finally:
        sys.set_int_max_str_digits(before)
    assert (small.what, large.what) == ("committed", "gap")
    assert back == 10**1000


MANY_DIGITS = """
import dendrer, sys, time, logging
logging.disable(logging.CRITICAL)
sys.set_int_max_str_digits(0)
with dendrer.run("a") as run:
    begun = time.monotonic()
    print(run.observe("digits", v=1 << 1_000_000).what)
    print(time.monotonic() - begun)
"""


def test_digits_that_nobody_needs_are_not_made() -> None:
    """A number of 300,000 digits is a mark at once, also where the host allows such text."""
    dendrer.init()
    ran = python(MANY_DIGITS, timeout=20)
    told, took = ran.stdout.split()
    assert told == "gap" and float(took) < 1, (told, took)


def test_a_gap_is_logged_once_for_a_run(caplog: pytest.LogCaptureFixture) -> None:
    """The first value without a form is logged with its place, later ones are not."""
    dendrer.init()
    with dendrer.run("a") as run:
        for _ in range(3):
            run.observe("x", v={1})
    assert [record.name for record in caplog.records] == ["dendrer"]
    assert "/intent/v" in caplog.text


def test_a_line_with_a_key_that_is_no_text_is_no_transition() -> None:
    """A line that is no line is not recorded, does not raise with `warn`, and raises with `raise`."""
    dendrer.init()
    line: Any = {"type": "observation.add", 5: 6}
    with dendrer.run("a") as run:
        reply = run.commit(line)
    assert not reply and reply.tick is None
    assert "observation.add" not in [item["type"] for item in transitions("a")]
    with dendrer.run("b", on_error="raise") as run, pytest.raises(dendrer.ValueNotRecordable) as caught:
        run.commit(line)
    assert caught.value.path == "" and ticks("b") == []
