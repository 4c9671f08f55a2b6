"""Recording: runs that this process writes."""

from __future__ import annotations

import atexit
import contextvars
import functools
import json
import os
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar, cast

from dendrer import _errors, _fork, _made, _native
from dendrer._errors import AuthorshipError, DendrerError, KeyReused, Stale, StoreError, UsageError, ValueNotRecordable

Document = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])

_current: contextvars.ContextVar[Recording | None] = contextvars.ContextVar("dendrer_run", default=None)
_agent: contextvars.ContextVar[str | None] = contextvars.ContextVar("dendrer_agent", default=None)

_live: weakref.WeakSet[Recording] = weakref.WeakSet()


Told = tuple[str, "int | None", "str | None", "Document | None", "Document | None"]


class Reply:
    """What became of a step: a tuple of ``what``, ``tick``, ``id``, ``reason`` and ``document``.

    Steps that share a sync are judged together. A step that waits is judged when its reply is asked for anything.

    >>> bool(Reply("committed", 1, "sha256:..", None)), bool(Reply("refused", None, None, None))
    (True, False)
    """

    __slots__ = ("_told", "_later")
    __match_args__ = ("what", "tick", "id", "reason", "document")

    _told: Told | None
    _later: _native.NativeLater | None

    def __init__(
        self,
        what: str,
        tick: int | None,
        id: str | None,
        reason: Document | None,
        document: Document | None = None,
    ) -> None:
        self._told = (what, tick, id, reason, document)
        self._later = None

    def _all(self) -> Told:
        """The members. A reply that waits has the step judged first; they are final once the step is written out."""
        if self._told is not None:
            return self._told
        later = self._later
        found = None if later is None else later.told()
        members = _members_of(None if found is None else found[0])
        if found is None or found[1]:
            self._told, self._later = members, None
        return members

    @property
    def what(self) -> str:
        """``committed``, ``repeated``, ``refused`` or ``gap``; ``stale`` and ``key_used`` are raised."""
        return self._all()[0]

    @property
    def tick(self) -> int | None:
        """The tick of the transition."""
        return self._all()[1]

    @property
    def id(self) -> str | None:
        """The id of the record, for links."""
        return self._all()[2]

    @property
    def reason(self) -> Document | None:
        """Why it is not on record as it was meant: ``code``, ``message``, and where there is one ``path``."""
        return self._all()[3]

    @property
    def document(self) -> Document | None:
        """The reply as ``dendrer commit`` prints it, where it says more."""
        return self._all()[4]

    def __bool__(self) -> bool:
        return self.what in ("committed", "repeated")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self.__match_args__)

    def __getitem__(self, at: Any) -> Any:
        return cast("tuple[Any, ...]", self._all())[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Reply):
            return self._all() == other._all()
        return self._all() == other

    def __hash__(self) -> int:
        return hash(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return Reply, self._all()

    def __repr__(self) -> str:
        members = zip(self.__match_args__, self._all(), strict=True)
        return f"Reply({', '.join(f'{name}={value!r}' for name, value in members)})"

    def to_dict(self) -> Document:
        """The reply as ``dendrer commit`` prints it."""
        if self.document is not None:
            return dict(self.document)
        found: Document = {"what": self.what, "tick": self.tick, "id": self.id}
        return found if self.reason is None else {**found, "reason": self.reason}


def _members_of(told: _native.NativeReply | None) -> Told:
    """The members of a reply to a step that was judged later."""
    if told is None:
        return "gap", None, None, {"code": "E0106", "message": "the recording ended before the step was judged"}, None
    document: Document | None = None if told.document is None else json.loads(told.document)
    reason: Document | None = (document or {}).get("reason")
    if told.what in ("committed", "repeated"):
        return told.what, told.tick, told.id, None, document
    return ("refused", None, told.id, reason, document) if told.what == "refused" else ("gap", None, None, reason, document)


class Decision(NamedTuple):
    """What the kernel says of an action that was proposed. A denial is a fact on record, and no exception."""

    allowed: bool
    """Whether the action may be done."""
    reason: Document | None
    """Why not."""
    tick: int | None
    """The tick of the request."""
    reply: Reply
    """The reply to the request."""
    action: Mapping[str, Any]
    """What was proposed."""

    def __repr__(self) -> str:
        return f"Decision(allowed={self.allowed}, reason={self.reason!r}, tick={self.tick})"

    def __bool__(self) -> bool:
        return self.allowed


class Recording:
    """A run that is recorded. Made by `run`; usable from every thread.

    >>> import dendrer
    >>> store = dendrer.init("docs-recording")
    >>> with dendrer.run("a", store="docs-recording") as run:
    ...     run.observe("hello").tick
    1
    """

    def __init__(
        self, args: list[str], state: Any, sync: int, on_error: str, place: str, resume: bool | None = True
    ) -> None:
        self._state = state
        self._sync = sync
        self._on_error = on_error
        self._place = place
        self._lost = 0
        self._first_loss: tuple[str, str] | None = None
        self._warned = False
        self._closed = False
        self._is_copy = False
        self._opener = threading.current_thread()
        self._lock = threading.Lock()
        self._tokens: list[contextvars.Token[Recording | None]] = []
        self._native: _native.NativeRecording | None = _native.NativeRecording(args, state, sync, resume)
        self._name = self._native.name
        # Opened again, it goes on with its own run.
        self._args = [*args[:2], f"--run={self._name}", *args[3:]]
        self._enforces = self._native.stage() >= 2
        _at_end_of_worker()
        _live.add(self)
        _fork.watch(self)

    # A recording goes to another process as the run that it records.
    def __reduce__(self) -> tuple[Any, ...]:
        if self._native is not None and not self._closed:
            # What was recorded before comes before what the other process records.
            self._native.flush()
        return _again, (self._args, self._state, self._on_error, self._place)

    def __enter__(self) -> Recording:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._tokens:
                _current.reset(self._tokens.pop())
        except ValueError:
            # Left in another context than it was entered in, as generators do; that one keeps its own.
            pass
        finally:
            if error is not None:
                self._ended_by(error)
            self.close()

    def _ended_by(self, error: BaseException) -> None:
        """Puts on record that an exception ends the run. It is the caller's, and nothing here hides it."""
        # A copy, such as that of a forked child, ends without the run.
        if self._closed or self._is_copy or _is_planned(error):
            return
        words = _words(error)
        try:
            self._opened().note_end(words["type"], words["message"])
        except DendrerError as fault:
            self._warn(f"an exception ended {self.name}, and the run does not say so: {fault}")

    def __del__(self) -> None:
        # Dropped without an end: what was taken is on record all the same.
        if getattr(self, "_native", None) is not None and not self._closed:
            try:
                self.close()
            except Exception as error:
                self._warn(f"{self.name} could not be closed: {error}")

    def __repr__(self) -> str:
        return f"<Recording {self.name!r}>"

    @property
    def name(self) -> str:
        """The name of the run: the one that was asked for, or where a run has that one ``NAME+2``."""
        return self._name

    @property
    def tip(self) -> int:
        """The last tick, as this process knows it."""
        return self._opened().head()

    def fork_held(self) -> _native.NativeRecording | None:
        """What is open, for a fork of the process."""
        return self._native

    def fork_forget(self) -> None:
        """In the child of a fork: the store is opened again when it is needed."""
        self._native = None
        self._become_copy()
        # What is missing is told by the parent.
        self._lost, self._first_loss = 0, None
        self._lock = threading.Lock()

    def _become_copy(self) -> None:
        """Marks that another recording began the run. Its process may be ended at any time, so that no step waits for others."""
        self._is_copy = True
        self._sync = 1

    def _opened(self) -> _native.NativeRecording:
        native = self._native
        if native is not None:
            return native
        if self._closed:
            raise UsageError("the recording is closed; open the run again")
        with self._lock:
            # Behind a fork the store is opened again.
            if self._native is None:
                self._native = _native.NativeRecording(self._args, self._state, self._sync, True)
                _at_end_of_worker()
            return self._native

    def _is_enforced(self) -> bool:
        """Whether the contract of the run is enforced. A run that cannot be asked is taken for one."""
        try:
            return self._opened().stage() >= 2
        except DendrerError:
            return self._enforces

    # -- steps ---------------------------------------------------------------------------------------------------

    def commit(self, line: Mapping[str, Any]) -> Reply:
        """Records a line as ``dendrer commit`` takes it. Its author is an agent, or the runtime of an ``action.result``."""
        return self._take(line, False)

    def _take(self, line: Mapping[str, Any], is_user: bool) -> Reply:
        """Records a line, in the words of the user if ``is_user``."""
        try:
            given = line if isinstance(line, dict) else dict(line)
        except (TypeError, ValueError):
            return self._misused(f"a line is a mapping, and not of type {type(line).__name__}")
        agent = _agent.get()
        if agent is not None and "agent" not in given and "agent_id" not in given:
            given = {**given, "agent": agent}
        raises = self._on_error == "raise"
        try:
            native = self._opened()
            if "links" in given:
                self._write_out_others()
            if self._lost:
                self._mark(native)
            try:
                taken = native.take(given, not raises, is_user)
            except DendrerError as error:
                # Steps before this one were lost. This one was not taken yet.
                if raises or not self._count_lost(error):
                    raise
                self._mark(native)
                taken = native.take(given, not raises, is_user)
        except (Stale, KeyReused, AuthorshipError):
            raise
        except DendrerError as error:
            if raises:
                raise
            return self._lose(error)
        except Exception as error:
            # Not of the recorder: a value's own method was interrupted, or memory ran out.
            if raises:
                raise
            return self._lose(DendrerError(f"error[E0801]: {type(error).__name__}", {"code": "E0801", "message": type(error).__name__}))
        if isinstance(taken, _native.NativeLater):
            reply = Reply.__new__(Reply)
            reply._told, reply._later = None, taken
            return reply
        if taken.what == "committed" and taken.document is None and not taken.gaps:
            return Reply("committed", taken.tick, taken.id, None)
        return self._told(taken)

    def _told(self, taken: _native.NativeReply) -> Reply:
        document: Document | None = json.loads(taken.document) if taken.document is not None else None
        reason: Document | None = (document or {}).get("reason")
        if taken.what in ("committed", "repeated"):
            if not taken.gaps:
                return Reply(taken.what, taken.tick, taken.id, None, document)
            path, word, what = taken.gaps[0]
            fault = _errors.not_recordable(path, word, what)
            self._warn(str(fault))
            reason = {"code": fault.code, "message": fault.data["message"], "path": path}
            return Reply("gap", taken.tick, taken.id, reason, document)
        error = _errors.of_reply(document or {"what": taken.what})
        if isinstance(error, (Stale, KeyReused, AuthorshipError)) or self._on_error == "raise":
            raise error
        if taken.what == "refused":
            return Reply("refused", None, taken.id, reason, document)
        return self._lose(error)

    def _misused(self, text: str) -> Reply:
        """A call that cannot be meant: an error, or a gap where the program is not to notice."""
        error = UsageError(text)
        if self._on_error == "raise":
            raise error
        return self._lose(error)

    def _lose(self, error: DendrerError) -> Reply:
        # Steps that waited to be written out together are lost with it.
        where: Document = error.data.get("where") or {}
        message = self._add_lost(error, 1 + int(where.get("lines", 0)))
        reason = {"code": error.code, "message": message}
        if isinstance(error, ValueNotRecordable):
            reason["path"] = error.path
        if self._is_copy and not isinstance(error, StoreError):
            # Its process may be ended before the next step.
            with suppress(DendrerError):
                self._mark(self._opened())
        self._warn(f"a step of {self.name} could not be recorded, and the run has a gap: {error}")
        return Reply("gap", None, None, reason)

    def _count_lost(self, error: DendrerError) -> bool:
        """Counts the steps before this call that an error says are lost. False if it is an error of the call itself."""
        where: Document = error.data.get("where") or {}
        if "before" not in where:
            return False
        self._add_lost(error, int(where.get("lines", 0)))
        self._warn(f"steps of {self.name} could not be recorded, and the run has a gap: {error}")
        return True

    def _add_lost(self, error: DendrerError, lines: int) -> str:
        """Counts steps that are lost until the record has a gap for them. Returns the sentence of the error."""
        message = _errors.without_surrogates(str(error.data.get("message", error)))
        with self._lock:
            self._lost += lines
            if self._first_loss is None:
                self._first_loss = (error.code, message)
        return message

    def _write_out_others(self) -> None:
        """Writes out the steps of other open runs: a record is linked once it is in the log."""
        for other in list(_live):
            native = other._native
            if other is not self and native is not None:
                # Steps that are lost then are told by their own run.
                native.write_out()

    def _mark(self, native: _native.NativeRecording) -> None:
        with self._lock:
            lost, first = self._lost, self._first_loss
            if lost == 0 or first is None:
                return
            native.note_gap(lost, *first)
            self._lost, self._first_loss = 0, None

    def _warn(self, text: str) -> None:
        if not self._warned:
            # Imported where it is needed: a program that records well pays nothing for it.
            import logging

            self._warned = True
            logging.getLogger("dendrer").warning("%s (said once for this run)", text)

    def _step(
        self,
        text: str,
        type_name: str,
        intent: dict[str, Any],
        set: Mapping[str, Any],
        delta: Sequence[Mapping[str, Any]] | None,
        agent: str | None,
        confidence: float | None,
        notes: Any,
        base: int | None,
        key: str | None,
        author: object = "agent",
    ) -> Reply:
        if not isinstance(author, str) or author not in ("agent", "user"):
            raise _errors.not_an_author(author)
        if "description" in intent:
            return self._misused("the first argument is the description of the step")
        members = _members(intent)
        if isinstance(members, str):
            return self._misused(members)
        intent["description"] = text
        line: dict[str, Any] = {"type": type_name, "intent": intent, **members}
        if set or delta is not None:
            lost = self._change(line, set, delta)
            if lost is not None:
                return lost
        if agent is not None:
            line["agent"] = agent
        if confidence is not None:
            line["confidence"] = confidence
        if notes is not None:
            line["uncertainty_notes"] = notes
        if base is not None:
            line["base"] = base
        if key is not None:
            line["key"] = key
        return self._take(line, author == "user")

    def _change(
        self, line: dict[str, Any], set: Mapping[str, Any], delta: Sequence[Mapping[str, Any]] | None
    ) -> Reply | None:
        """Puts the change of state into a line; a gap if it cannot be written down."""
        try:
            line["delta"] = _delta(set, delta)
            return None
        except (AttributeError, TypeError):
            return self._misused("set is a mapping of places to values, and delta a list of changes")
        except DendrerError as error:
            if self._on_error == "raise":
                raise
            return self._lose(error)

    def observe(
        self,
        text: str,
        set: Mapping[str, Any] = {},
        *,
        delta: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        confidence: float | None = None,
        notes: Any = None,
        base: int | None = None,
        key: str | None = None,
        author: Literal["agent", "user"] = "agent",
        **intent: Any,
    ) -> Reply:
        """What the agent saw or was told, and what it changes: ``set`` maps places of the state to values."""
        return self._step(text, "observation.add", intent, set, delta, agent, confidence, notes, base, key, author)

    def user(
        self,
        text: str,
        set: Mapping[str, Any] = {},
        *,
        delta: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        base: int | None = None,
        key: str | None = None,
        **intent: Any,
    ) -> Reply:
        """What the user said, in their own words: an observation whose author is the user."""
        return self._step(text, "observation.add", intent, set, delta, agent, None, None, base, key, "user")

    def plan(
        self,
        text: str,
        set: Mapping[str, Any] = {},
        *,
        delta: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        confidence: float | None = None,
        notes: Any = None,
        base: int | None = None,
        key: str | None = None,
        author: Literal["agent", "user"] = "agent",
        **intent: Any,
    ) -> Reply:
        """A plan, a thought, a decision."""
        return self._step(text, "plan.update", intent, set, delta, agent, confidence, notes, base, key, author)

    def remember(
        self,
        text: str,
        set: Mapping[str, Any] = {},
        *,
        delta: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        confidence: float | None = None,
        notes: Any = None,
        base: int | None = None,
        key: str | None = None,
        author: Literal["agent", "user"] = "agent",
        **intent: Any,
    ) -> Reply:
        """What is kept for later."""
        return self._step(text, "memory.write", intent, set, delta, agent, confidence, notes, base, key, author)

    def complete(
        self,
        text: str,
        set: Mapping[str, Any] = {},
        *,
        delta: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        confidence: float | None = None,
        notes: Any = None,
        base: int | None = None,
        key: str | None = None,
        **intent: Any,
    ) -> Reply:
        """The end, in the view of the agent."""
        return self._step(text, "goal.complete", intent, set, delta, agent, confidence, notes, base, key)

    def flag(self, kind: str, text: str, *, agent: str | None = None, **intent: Any) -> Reply:
        """What the agent finds odd."""
        return self._step(text, "anomaly.flag", {**intent, "kind": kind}, {}, None, agent, None, None, None, None)

    def propose(
        self,
        type: str = "action.request",
        *,
        action: Mapping[str, Any],
        depends_on: str | Reply | Decision | Iterable[str | int | Reply | Decision] = (),
        effect: Literal["read", "idempotent_write", "effectful"] | None = None,
        text: str | None = None,
        agent: str | None = None,
        confidence: float | None = None,
        base: int | None = None,
        key: str | None = None,
        **intent: Any,
    ) -> Decision:
        """Asks to do something. ``depends_on`` names places of the state, or replies: they are linked as evidence."""
        try:
            asked = dict(action)
        except (TypeError, ValueError):
            reply = self._misused("an action is a mapping, such as {'tool': name, 'params': {}}")
            return Decision(not self._is_enforced(), reply.reason, None, reply, {})
        line: dict[str, Any] = {"type": type, "action": asked}
        members = _members(intent)
        if isinstance(members, str):
            reply = self._misused(members)
            return Decision(not self._is_enforced(), reply.reason, None, reply, asked)
        places, links = self._rests_on(depends_on)
        links.extend(_linked(members))
        line.update(members)
        if places:
            intent["depends_on"] = places
        if text is not None:
            intent["description"] = text
        given: dict[str, Any] = {"intent": intent or None, "links": links or None, "effect": effect, "agent": agent}
        given.update({"confidence": confidence, "base": base, "key": key})
        line.update((name, value) for name, value in given.items() if value is not None)
        reply = self.commit(line)
        denied = _denial(reply)
        # A step that could not be written was not judged. A recorder that fails stops no program that is only observed; where the
        # contract of the run is enforced, what was not judged is not allowed.
        is_judged = reply.tick is not None or reply.what == "refused"
        allowed = denied is None and reply.what != "refused" and (is_judged or not self._is_enforced())
        return Decision(allowed, denied or reply.reason, reply.tick, reply, line["action"])

    def _rests_on(self, given: str | Reply | Decision | Iterable[str | int | Reply | Decision]) -> tuple[list[str], list[Document]]:
        places: list[str] = []
        ids: list[str] = []
        for item in _each(given):
            reply = item.reply if isinstance(item, Decision) else item
            if isinstance(reply, Reply):
                ids.extend([reply.id] if reply.id is not None and reply.tick is not None else [])
            elif isinstance(reply, str) and reply.startswith("sha256:"):
                ids.append(reply)
            else:
                place = str(reply)
                places.append(place)
                try:
                    wrote = self._opened().last_write(place)
                except (DendrerError, UnicodeEncodeError) as error:
                    if self._on_error == "raise":
                        raise
                    self._warn(f"what {place!r} rests on is not known: {error}")
                    continue
                ids.extend([wrote] if wrote is not None else [])
        return places, [{"rel": "evidence", "hash": one} for one in dict.fromkeys(ids)]

    def result(
        self,
        decision: Decision | Reply,
        output: Any = None,
        *,
        status: str = "ok",
        set: Mapping[str, Any] = {},
        delta: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        key: str | None = None,
        **result: Any,
    ) -> Reply:
        """The answer to an action, said by the runtime: linked to its request."""
        members = _members(result)
        if isinstance(members, str):
            return self._misused(members)
        line: dict[str, Any] = {"type": "action.result", "result": {**result, "status": status, "output": output}, **members}
        reply = decision.reply if isinstance(decision, Decision) else decision
        if not isinstance(cast(object, reply), Reply):
            return self._misused("a result is that of a decision, or of the reply to a request")
        if isinstance(decision, Decision):
            action = {name: decision.action[name] for name in ("tool", "call_id") if name in decision.action}
            if action:
                line["action"] = action
        if reply.id is not None and reply.tick is not None:
            line["links"] = [{"rel": "caused_by", "hash": reply.id}, *_linked(members)]
        if set or delta is not None:
            lost = self._change(line, set, delta)
            if lost is not None:
                return lost
        if agent is not None:
            line["agent"] = agent
        if key is not None:
            line["key"] = key
        return self.commit(line)

    def as_it_is(self, value: Any) -> Any:
        """A value to be recorded later, as it is now."""
        try:
            return _native.as_it_is(value, self._on_error != "raise")
        except DendrerError:
            if self._on_error == "raise":
                raise
            return None

    def step(self, action: str, name: str, **members: Any) -> Reply:
        """A step of a witness chain, such as ``run.step("llm_reply", "m", output="hi")``."""
        own: dict[str, Any] = {
            member: members.pop(member) for member in ("agent", "key", "base", "delta", "links") if member in members
        }
        return self.commit({"step": {**members, "action": action, "name": name}, **own})

    def flush(self) -> int:
        """Makes everything durable, and returns the newest tick."""
        native = self._opened()
        try:
            return native.flush()
        except DendrerError as error:
            self._count_lost(error)
            raise

    def close(self) -> None:
        """Makes everything durable, signs the log and closes the store. Once more it does nothing."""
        native, was_closed, self._closed = self._native, self._closed, True
        if not was_closed:
            _note_ended(self)
        if native is None:
            return
        try:
            native.flush()
        except DendrerError as error:
            self._count_lost(error)
        try:
            if self._lost:
                self._mark(native)
        except DendrerError as error:
            self._warn(f"{self._lost} steps of {self.name} are missing, and the run does not say so: {error}")
        try:
            native.close()
        except DendrerError as error:
            if self._on_error == "raise":
                raise
            self._warn(f"{self.name} could not be closed: {error}")


#: Keywords that are members of a line (``dendrer schema intent``).
_OF_LINE = frozenset((
    "goal", "goal_id", "agent_id", "uncertainty_notes", "action", "metrics", "links", "effect", "fork_type", "evidence", "commitments",
    "edges", "closes", "adopts", "user", "reads",
))  # fmt: skip

#: Keywords that are members of a line, and that no method takes, each with what to do instead.
_NOT_TAKEN = {
    "type": "the type follows from the method; run.commit takes a line of any type",
    "transition_type": "the type follows from the method; run.commit takes a line of any type",
    "intent": "keywords are put together by the method; run.commit takes an intent as it is",
    "author": "the author is an agent; observe, plan and remember take author=\"user\"",
    "policy": "a policy is decided by the runtime: run.commit with a line of type policy.decision",
    "result": "a result is recorded by run.result",
    "anomalies": "what the agent finds odd is recorded by run.flag",
    "confidence": "the method has no confidence; run.commit takes one",
    "step": "a step of a witness chain is recorded by run.step",
    "set": "the method changes no state",
    "delta": "the method changes no state",
    "base": "the method has no base; run.commit takes one",
    "key": "the method has no key; run.commit takes one",
}


def _members(given: dict[str, Any]) -> dict[str, Any] | str:
    """Takes out of keywords what is a member of a line. A sentence, if a keyword is a member that no method takes."""
    for name, why in _NOT_TAKEN.items():
        # A step of a chain is an object; any other value is what a program counts.
        if name in given and (name != "step" or isinstance(given[name], dict)):
            return f"the keyword {name} names a member of a line: {why}"
    return {name: given.pop(name) for name in _OF_LINE.intersection(given)}


def _linked(members: dict[str, Any]) -> list[Any]:
    """Takes the links out of members, to be added to others."""
    links = members.pop("links", None)
    return list(cast("list[Any]", links)) if isinstance(links, (list, tuple)) else [] if links is None else [links]


def _each(given: Any) -> Iterable[Any]:
    """What something rests on: one thing by itself, or several."""
    if isinstance(given, (str, int, Reply, Decision)):
        return (given,)
    several: Iterable[Any] = given if hasattr(given, "__iter__") else ()
    return several


def _denial(reply: Reply) -> Document | None:
    """Why an action is denied, if a policy or a contract denies it."""
    document = reply.document or {}
    for noted in document.get("noted") or ():
        policy: Document = noted.get("policy") or {}
        if policy.get("decision") in ("deny", "escalate"):
            return policy
    if document.get("violations"):
        return {"code": "E0429", "message": "it violates the contract of the run", "violations": document["violations"]}
    return None


def _delta(set: Mapping[str, Any], delta: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    made: list[Mapping[str, Any]] = [{"set": _pointer(place), "value": value} for place, value in set.items()]
    if delta is not None:
        made.extend(delta)
    return made


def _pointer(place: Any) -> str:
    if not isinstance(place, str):
        raise _errors.not_recordable("/set", "key_not_text", f"a place of type {type(place).__name__}")
    return _known_pointer(place)


@functools.lru_cache(maxsize=4096)
def _known_pointer(place: str) -> str:
    try:
        return _native.pointer(place)
    except UnicodeEncodeError:
        raise _errors.not_recordable("/set", "key_not_text", "a place with a lone surrogate") from None


def run(
    name: str,
    *,
    store: str | os.PathLike[str] = ".",
    goal: str | None = None,
    pack: str | os.PathLike[str] | None = None,
    stage: int | None = None,
    state: Any = None,
    author: Literal["agent", "runtime", "user"] = "agent",
    redact: Literal["default", "carl/1", "none"] | None = None,
    on_error: Literal["warn", "raise"] = "warn",
    sync: int = 1,
    agent: str | None = None,
    contract: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    resume: bool | Literal["auto"] = False,
) -> Recording:
    """Begins a run, and records it. Where a run has the name already, this one is ``NAME+2``, and a warning says so.

    ``resume=True`` goes on with the run of this name (`NotFound` if there is none), ``resume="auto"`` goes on with it or begins it.
    A missing store is made, and a warning says so. ``sync`` is how many steps share a sync. ``on_error`` is ``"warn"`` or ``"raise"``.

    >>> import dendrer
    >>> store = dendrer.init("docs-run-2")
    >>> with dendrer.run("a", store="docs-run-2", goal="say hello") as run:
    ...     run.observe("hello")
    Reply(what='committed', tick=1, id='sha256:...', reason=None, document=None)
    """
    if on_error not in ("warn", "raise"):
        raise UsageError(f"on_error is warn or raise, and not {on_error}")
    for known, number in (("stage", stage), ("sync", sync)):
        if number is None and known == "stage":
            continue
        if not isinstance(cast(object, number), int) or isinstance(number, bool):
            raise UsageError(f"{known} is a whole number, and not of type {type(number).__name__}")
    if sync < 1:
        raise UsageError("a sync is of one step at least")
    for known, text in (("name", name), ("goal", goal), ("agent", agent)):
        if text is not None and not _is_unicode(text):
            raise UsageError(f"{known} is text without lone surrogates")
    if resume not in (True, False, "auto"):
        raise UsageError(f'resume is True, False or "auto", and not {resume!r}')
    pack = pack if pack is not None else contract
    own_key = None if key is None else os.path.abspath(os.fsdecode(key))
    found = _made.opened_or_made(lambda: _native.NativeStore(os.fspath(store)), store, own_key)
    place = os.path.abspath(found.dir or str(store))
    args = ["dendrer", "commit", f"--run={name}", f"--store={place}"]
    for flag, value in (("goal", goal), ("stage", stage), ("redact", redact), ("agent", agent)):
        if value is not None:
            args.append(f"--{flag}={value}")
    for flag, path in (("pack", pack), ("key", key)):
        if path is not None:
            args.append(f"--{flag}={os.path.abspath(os.fspath(path))}")
    if author != "agent":
        args.append(f"--as={author}")
    recording = Recording(args, state, sync, on_error, place, None if resume == "auto" else resume)
    if recording.name != name:
        _made.warn(f"a run {name} exists: this one is {recording.name}; resume=True continues {name}")
    return recording


def _is_unicode(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _again(args: list[str], state: Any, on_error: str, place: str) -> Recording:
    recording = Recording(args, state, 1, on_error, place)
    recording._become_copy()
    return recording


def current() -> Recording | None:
    """The run of this context: that of the ``with`` around it.

    >>> import dendrer
    >>> dendrer.current() is None
    True
    """
    return _current.get()


# -- functions that record themselves -------------------------------------------------------------------------------


def _bound(function: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """What makes parameters by name of the arguments of a call."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return lambda args, kwargs: {"args": list(args), **kwargs}

    # The first parameter of a method is the object that it is of.
    first = next(iter(signature.parameters), None)
    holder = getattr(function, "__qualname__", "").rpartition(".")[0]
    own = first if first in ("self", "cls") and holder and not holder.endswith("<locals>") else None

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            # The call itself says what is wrong.
            return {"args": list(args), **kwargs}
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if name != own}

    return bind


def tool(
    effect: Literal["read", "idempotent_write", "effectful"] = "read", name: str | None = None
) -> Callable[[F], F]:
    """Records each call of a function as a request and its result.

    >>> import dendrer
    >>> @dendrer.tool(effect="read")
    ... def double(n: int) -> int:
    ...     return 2 * n
    >>> double(4)                       # outside of a run nothing is recorded
    8
    """

    def decorate(function: F) -> F:
        known = name if name is not None else _name_of(function)
        bind = _bound(function)

        def ask(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Decision:
            return recording.propose(action={"tool": known, "params": bind(args, kwargs)}, effect=effect)

        def failed(recording: Recording, decision: Decision, error: BaseException) -> None:
            recording.result(decision, None, status="error", error=_words(error))

        return cast(F, _around(function, ask, lambda recording, decision, output: recording.result(decision, output), failed))

    return decorate


def step(type: str = "plan.update") -> Callable[[F], F]:
    """Records a call of a function as one transition, with its parameters and what it returned.

    >>> import dendrer
    >>> @dendrer.step("plan.update")
    ... def decide(price: float) -> str:
    ...     return "stay"
    >>> decide(3.0)
    'stay'
    """

    def decorate(function: F) -> F:
        bind = _bound(function)

        def ask(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            # As they are now: the function may change them.
            return recording.as_it_is(bind(args, kwargs))

        def made(recording: Recording, params: Any, output: Any) -> None:
            intent = {"description": _name_of(function), "params": params, "output": output}
            recording.commit({"type": type, "intent": intent})

        def failed(recording: Recording, params: Any, error: BaseException) -> None:
            intent = {"description": _name_of(function), "params": params, "error": _words(error)}
            recording.commit({"type": type, "intent": intent})

        return cast(F, _around(function, ask, made, failed))

    return decorate


def agent(name: str) -> Callable[[F], F]:
    """Names the agent of everything that is recorded while a function runs.

    >>> import dendrer
    >>> @dendrer.agent("researcher")
    ... def research() -> str:
    ...     return "found"
    >>> research()
    'found'
    """

    def decorate(function: F) -> F:
        import inspect

        @contextmanager
        def named() -> Generator[None]:
            token = _agent.set(name)
            try:
                yield
            finally:
                _agent.reset(token)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: Any, **kwargs: Any) -> Any:
                with named():
                    return await function(*args, **kwargs)

            return cast(F, later)

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def each(*args: Any, **kwargs: Any) -> Any:
                body = function(*args, **kwargs)
                go_on = functools.partial(body.send, None)
                while True:
                    # Between its steps others run, under their own name.
                    try:
                        with named():
                            made = go_on()
                    except StopIteration as end:
                        return end.value
                    try:
                        go_on = functools.partial(body.send, (yield made))
                    except GeneratorExit:
                        with named():
                            body.close()
                        raise
                    except BaseException as error:
                        go_on = functools.partial(body.throw, error)

            return cast(F, each)

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def each_later(*args: Any, **kwargs: Any) -> Any:
                body = function(*args, **kwargs)
                go_on = functools.partial(body.asend, None)
                while True:
                    try:
                        with named():
                            made = await go_on()
                    except StopAsyncIteration:
                        return
                    try:
                        go_on = functools.partial(body.asend, (yield made))
                    except GeneratorExit:
                        with named():
                            await body.aclose()
                        raise
                    except BaseException as error:
                        go_on = functools.partial(body.athrow, error)

            return cast(F, each_later)

        @functools.wraps(function)
        def now(*args: Any, **kwargs: Any) -> Any:
            with named():
                return function(*args, **kwargs)

        return cast(F, now)

    return decorate


def _name_of(function: Callable[..., Any]) -> str:
    """The name of a function, of what a partial calls, or of the class of a callable object."""
    if isinstance(function, functools.partial):
        return _name_of(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def _words(error: BaseException) -> dict[str, Any]:
    """An exception as it is recorded: its class, and its text if it can be had."""
    name, text = _errors.words(error)
    return {"type": name, "message": text}


def _is_planned(error: BaseException) -> bool:
    """Whether an exception is no failure: the end of a generator, or an exit with code 0."""
    if isinstance(error, SystemExit):
        return error.code is None or (isinstance(error.code, int) and error.code == 0)
    return isinstance(error, GeneratorExit)


#: For each thread the run (store and name) that ended while the thread was there. Its name is empty if several ended.
_ended: weakref.WeakKeyDictionary[threading.Thread, tuple[str, str]] = weakref.WeakKeyDictionary()


def _note_ended(recording: Recording) -> None:
    """Notes for every thread that a run ended: calls of it may be left in the queue of the thread."""
    ended = (recording._place, recording.name)
    for thread in threading.enumerate():
        if _ended.setdefault(thread, ended) != ended:
            _ended[thread] = ("", "")


def _run_before(recording: Recording) -> str | None:
    """The run of which this thread may have calls left, in words. The thread that opened the recording has none."""
    thread = threading.current_thread()
    ended = None if thread is recording._opener else _ended.get(thread)
    if ended is None or ended == (recording._place, recording.name):
        return None
    return f"the run {ended[1]}" if ended[1] else "another run"


def _run_of_call(function: Callable[..., Any]) -> Recording | None:
    """The run in which a call is recorded: that of the context, else the only one that is open in the process.

    Threads of a pool, executors and tasks of another loop have contexts of their own, without a run. If several runs are open, or
    another run ended while the thread was there, it is not known whose call it is: nothing is recorded, and each open run has a gap.
    """
    recording = _current.get()
    if recording is not None:
        return recording
    open_ones = [one for one in list(_live) if not one._closed]
    why = f"{len(open_ones)} runs are open"
    if len(open_ones) == 1:
        before = _run_before(open_ones[0])
        if before is None:
            return open_ones[0]
        why = f"the call may be left over from {before}, which ended while this thread was there"
    for one in open_ones:
        one._lose(UsageError(f"{_name_of(function)} was called where no run is current, and {why}"))
    return None


def _around(
    function: Callable[..., Any],
    before: Callable[[Recording, tuple[Any, ...], dict[str, Any]], Any],
    after: Callable[[Recording, Any, Any], Any],
    failed: Callable[[Recording, Any, BaseException], Any],
) -> Callable[..., Any]:
    """Calls a function between what is recorded before and after it."""
    import inspect

    for one in (function, getattr(type(function), "__call__", None)):
        if inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one):
            raise UsageError(f"{_name_of(function)} yields: record what it does with run.propose and run.result")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            recording = _run_of_call(function)
            if recording is None:
                return await function(*args, **kwargs)
            from dendrer.aio import in_thread

            asked = await in_thread(recording, before, recording, args, kwargs)
            return await _awaited(recording, asked, function(*args, **kwargs), after, failed)

        return later

    @functools.wraps(function)
    def now(*args: Any, **kwargs: Any) -> Any:
        recording = _run_of_call(function)
        if recording is None:
            return function(*args, **kwargs)
        asked = before(recording, args, kwargs)
        try:
            output = function(*args, **kwargs)
        except BaseException as error:
            failed(recording, asked, error)
            raise
        if inspect.isawaitable(output):
            return _awaited(recording, asked, output, after, failed)
        after(recording, asked, output)
        return output

    return now


async def _awaited(
    recording: Recording,
    asked: Any,
    output: Awaitable[Any],
    after: Callable[[Recording, Any, Any], Any],
    failed: Callable[[Recording, Any, BaseException], Any],
) -> Any:
    """Waits for what a function promised, and records what came of it."""
    from dendrer.aio import in_thread

    try:
        made = await output
    except BaseException as error:
        await in_thread(recording, failed, recording, asked, error)
        raise
    await in_thread(recording, after, recording, asked, made)
    return made


def _at_end_of_worker() -> None:
    """Has recordings closed at the end of a process of ``multiprocessing``, which leaves without the functions of ``atexit``."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or os.getpid() == _worker.pid:
        return
    from multiprocessing import util

    _worker.pid = os.getpid()
    if process.parent_process() is not None:
        _worker.watch()
    # A worker drops what was registered before it begins: by its parent, or while its arguments and modules were loaded.
    util.register_after_fork(_worker, _Worker.watch)


class _Worker:
    """The process whose end is watched."""

    pid: int | None = None

    def watch(self) -> None:
        """Has recordings closed at the end of this process."""
        from multiprocessing import util

        util.Finalize(None, _at_exit, exitpriority=0)


_worker = _Worker()


@atexit.register
def _at_exit() -> None:
    for recording in list(_live):
        if recording._native is not None and not recording._closed:
            recording.close()
