"""Runs of graphs: effects are answered in this process, and each call of a function in a fresh one."""

from __future__ import annotations

import contextvars
import dis
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dendrer import _ask, _errors, _native

Document = dict[str, Any]

#: How a call ended that brought no value, or ``None``; its value, or the reason; and where it was raised.
Answer = tuple[str | None, Any, str | None]

_HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_host.py")


def run(
    where: list[str],
    graph: str | os.PathLike[str],
    pack: str | os.PathLike[str] | Mapping[str, Any],
    *,
    input: Mapping[str, Any],
    effects: Mapping[str, Callable[..., Any] | str],
    functions: Mapping[str, Callable[..., Any]],
    children: Iterable[str | os.PathLike[str]],
    set: Mapping[str, Any],
    ask_again: Iterable[str],
    flags: list[str],
) -> Document:
    """Runs a graph as ``dendrer graph run`` does, and returns its document."""
    answers = _Answers(effects, functions)
    with tempfile.TemporaryDirectory(prefix="dendrer-") as folder:

        def written(kind: str, text: str) -> str:
            path = os.path.join(folder, f"{len(os.listdir(folder))}-{kind}")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            return path

        def file(kind: str, value: Any) -> str:
            return written(kind, _ask.as_json(kind, value))

        def named(kind: str, given: str | os.PathLike[str]) -> str:
            is_text = isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{"))
            return written(kind, str(given)) if is_text else os.fspath(given)

        args = [f"--pack={file('pack', pack) if isinstance(pack, Mapping) else named('pack', pack)}"]
        args += [f"--child={named('child', child)}" for child in children]
        args += [f"--input={name}={file('input', value)}" for name, value in input.items()]
        args += [f"--set={path}={file('set', value)}" for path, value in set.items()]
        args += [f"--ask-again={path}" for path in ask_again]
        for call, way in effects.items():
            if isinstance(way, str):
                flag = "http" if way.startswith(("http://", "https://")) else "exec"
                args.append(f"--{flag}={call}={way}")
        words = ["dendrer", "graph", "run", *args, *flags, *where, "--json", "--quiet", "--progress=never", "--", named("graph", graph)]
        _, answer, problem = answers.during(words)
    if problem is not None:
        raise _errors.of(*problem)
    document: Document = json.loads(answer)
    if document["needs"]:
        needs = ", ".join(f"{need['path']} {need['call']}" for need in document["needs"])
        message = f"{needs} may have acted: ask_again=[PATH] asks it once more, set={{PATH: value}} gives the value that it had"
        raise _errors.Refused(f"error[E0940]: {message}", {"code": "E0940", "message": message, "needs": document["needs"]})
    return document


class _Answers:
    """Answers the effects and the functions of one run."""

    def __init__(self, effects: Mapping[str, Callable[..., Any] | str], functions: Mapping[str, Callable[..., Any]]) -> None:
        self._effects: dict[str, Callable[..., Any]] = {}
        for call, effect in effects.items():
            if inspect.iscoroutinefunction(effect):
                raise _errors.UsageError(f"effects[{call!r}] is a coroutine function: give one that calls asyncio.run of it")
            if not isinstance(effect, str):
                self._effects[call] = effect
        self._hosts = {name: _reference(name, function) for name, function in functions.items()}
        self._path = [os.path.abspath(place) for place in sys.path]
        self._context = contextvars.copy_context()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False

    def during(self, words: list[str]) -> tuple[int, bytes, tuple[str, str] | None]:
        """Runs the program beside this thread, so that an interrupt is heard."""
        made: list[tuple[int, bytes, tuple[str, str] | None]] = []
        # Not `join`, which takes a thread for ended once an interrupt came (Python 3.12 and before).
        done = threading.Event()

        def work() -> None:
            try:
                made.append(_native.graph_run(words, {*self._effects}, {*self._hosts}, self._answer))
            finally:
                done.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            while not done.wait(0.5):
                pass
        except BaseException:
            self._is_stopped = True
            for child in list(self._children):
                _kill(child)
            done.wait()
            raise
        if not made:
            raise _errors.DendrerError("the graph was not run")
        return made[0]

    def _answer(self, call: str, args: list[Any], again: bool, seconds: float | None) -> Answer:
        if self._is_stopped:
            return "no_start", "the program was interrupted", None
        if call in self._hosts:
            return self._function(call, args, again, seconds)
        if seconds is None:
            return self._effect(call, args)
        found: list[Answer] = []
        work = threading.Thread(target=lambda: found.append(self._effect(call, args)), daemon=True)
        work.start()
        work.join(seconds)
        return found[0] if found else ("timeout", f"it took longer than {seconds:g} s", None)

    def _effect(self, call: str, args: list[Any]) -> Answer:
        try:
            return None, self._context.copy().run(self._effects[call], *args), None
        except BaseException as error:
            # It is not known how far the effect came.
            ended = "timeout" if isinstance(error, TimeoutError) else "unread"
            return ended, ": ".join(_errors.words(error)), _errors.without_surrogates(traceback.format_exc())

    def _function(self, call: str, args: list[Any], again: bool, seconds: float | None) -> Answer:
        try:
            asked = json.dumps({**self._hosts[call], "args": args, "again": again, "path": self._path})
        except (TypeError, ValueError) as error:
            return "answered", f"an argument is no JSON: {error}", None
        # A file ends with what was written; a pipe ends with the last process that the function left.
        with (
            tempfile.TemporaryDirectory(prefix="dendrer-", ignore_cleanup_errors=True) as folder,
            tempfile.TemporaryFile() as line,
            tempfile.TemporaryFile() as answer,
        ):
            line.write(asked.encode())
            line.seek(0)
            child = subprocess.Popen([sys.executable, "-I", _HOST], stdin=line, stdout=answer, cwd=folder, start_new_session=True)
            self._children.add(child)
            try:
                if self._is_stopped:
                    _kill(child)
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                return "timeout", f"it took longer than {seconds:g} s, and was ended", None
            finally:
                _kill(child)
                self._children.discard(child)
            answer.seek(0)
            reply = answer.read()
        if not reply:
            return "killed", f"its process ended with {child.returncode} and no result", None
        found: Document = json.loads(reply)
        if "error" not in found:
            return None, found["value"], None
        return "answered", _errors.without_surrogates(found["error"]), _errors.without_surrogates(found["trace"])


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Ends a process that has not ended, with those that it began."""
    if child.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()


def _found(module: str, name: str) -> Any:
    """What a module has under a name."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _place(value: Any) -> tuple[str, str] | None:
    """The module and the name by which a fresh process has an object."""
    if isinstance(value, types.ModuleType):
        return value.__name__, ""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    is_there = isinstance(module, str) and isinstance(name, str) and _found(module, name) is value
    return (str(module), str(name)) if is_there and module != "__main__" else None


def _reference(name: str, function: Callable[..., Any]) -> Document:
    """How a fresh process makes a function: by its module, or by its source where that is a script or a notebook."""

    def refused(why: str) -> _errors.UsageError:
        return _errors.UsageError(
            f"functions[{name!r}] cannot be called in a fresh process: {why}; put it into a module as a function of its own, and import it"
        )

    if not callable(function) or inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise refused("it is no function that returns its result")
    place = _place(function)
    if place is not None:
        return {"module": place[0], "name": place[1]}
    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>" or function.__closure__:
        raise refused("it is a lambda, a method or a closure")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise refused("its source is not known") from None
    imports: dict[str, tuple[str, str]] = {}
    for used in sorted({*_globals(function.__code__)} & function.__globals__.keys()):
        value = function.__globals__[used]
        place = _place(value)
        if place is not None:
            imports[used] = place
        elif value is not function:
            raise refused(f"it uses {used}, which is not there")
    return {"source": source, "name": function.__name__, "imports": imports}


def _globals(code: types.CodeType) -> Iterator[str]:
    """The global names that code reads."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
        if isinstance(step.argval, types.CodeType):
            yield from _globals(step.argval)
