#!/usr/bin/env python3
"""Compares the JSON answers of two builds of the program, over the same store.

usage: scripts/compare-answers.py OLD NEW

The old build makes the demo store. Every command of the README and of docs/ that asks about one of its runs, and every
reading verb over each run, is then asked of both builds with --json. A command that writes is asked of a copy of the store
for each build, and ids, hashes and times are masked. A member that only the new answer has is listed, and is no
difference; every other difference is printed, and ends with exit code 1.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Verbs that read, with RUN for the run, TIP for its last tick, OTHER for another run of the store.
READS = """
log RUN
log RUN --refusals --limit 3
log RUN --anomalies
log RUN --type action.request --reverse
log RUN --grep a --limit 2
log RUN --agent nobody
show RUN@1
show RUN@TIP --provenance
show RUN@TIP --state after
show RUN@1 --raw-json
show RUN@99999
state RUN
state RUN@1 --window before
state RUN@TIP --base RUN@1
state RUN --path state.nothing
runs
runs --all --sort name
runs --where "ticks > 20"
runs --where "nothing > 20"
runs --tree
verify RUN
verify RUN --replay
verify RUN --from 1
verify RUN --tip sha256:00
verify RUN --branches
replay RUN
replay RUN@1
diff RUN OTHER
diff RUN OTHER --align semantic --limit 5
diff RUN OTHER --type outcome --exit-code
diff RUN OTHER --path state --ignore agent_id
diff RUN OTHER --coherence
diff RUN OTHER --predicate kernel.policy_compliant
bisect RUN --holds "state.counters.tool_errors == 0"
bisect RUN --predicate kernel.policy_compliant
bisect RUN --predicate kernel.anomaly_free --contributors
bisect RUN --holds "state.nothing < 1"
bisect RUN --divergence OTHER
bisect RUN --regression progress
bisect RUN --policy-flip action.request
backtrack RUN counters
why RUN counters
predicate list RUN
predicate test kernel.anomaly_free RUN
predicate test "state.counters.tool_errors > 0" RUN
commitments RUN
commitments RUN@1
commitments diff RUN --from 1
compare RUN OTHER
heatmap RUN
steps RUN
coherence RUN
conflicts list RUN
contract show RUN
contract check RUN
contract suggest RUN
assert RUN --holds "true"
graph show RUN
secrets scan RUN
label
note RUN
fsck
doctor
gc -n
erase RUN@1 intent.description --reason r -n
fork RUN@1 --reason r -n
rebase RUN --onto OTHER@1 --plan
merge --as both --from RUN --from OTHER --plan
cherrypick RUN@2 --onto OTHER -n
reduce RUN --as again -n
"""

WRITES = """
fork RUN@1 --as made --reason "a token sk-abcdefghijklmnopqrstuvwxyz012345"
rebase RUN --onto OTHER@1 --as made
cherrypick RUN@2 --onto OTHER --reason r
merge --as made --from RUN --from OTHER
label seen RUN@1
note RUN@1 "a note"
erase RUN@1 intent.description --reason r
bisect RUN --predicate kernel.policy_compliant --record
diff RUN OTHER --record
"""


def ask(program, argv, home, cwd):
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC"}
    done = subprocess.run(
        [program, *argv, "--json"], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
    )
    text = done.stdout.decode(errors="replace")
    try:
        answer = json.loads(text)
    except ValueError:
        answer = text
    return done.returncode, answer


def masked(value):
    """Ids, hashes, times, measured figures, and paths of a directory made for one build."""
    if isinstance(value, dict):
        return {name: masked(member) for name, member in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    if not isinstance(value, str):
        return value
    value = re.sub(r"\b[0-9a-f]{12,64}\b", "HASH", value)
    value = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", value)
    value = re.sub(r"[\d.,]+ (ms|megabytes)", r"N \1", value)
    return re.sub(r"/tmp/\S+/(old|new)\b", "DIR", value)


def differences(old, new, place, added):
    """Yields the places where two answers differ. A member that the new one has besides goes to `added`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old:
            if name not in new:
                yield f"{place}.{name}: missing, was {json.dumps(old[name])[:80]}"
            else:
                yield from differences(old[name], new[name], f"{place}.{name}", added)
        added.update(re.sub(r"\[\d+\]", "[]", f"{place}.{name}") for name in new if name not in old)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{place}[{at}]", added)
    elif old != new:
        yield f"{place}: {json.dumps(old)[:100]} -> {json.dumps(new)[:100]}"


def of_pages(runs):
    """Commands of the pages that name a run of the store."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for line in re.findall(r"^(?:\$ |    )(?:dendrer) (.*[^\\])$", page.read_text(), re.M):
            line = re.split(r" [|>;&]|   +|  #", line)[0]
            try:
                argv = shlex.split(line)
            except ValueError:
                continue
            names = {re.split(r"[@:#]", word)[0] for word in argv}
            if names & runs and not {"--exec", "-o", "--output"} & set(argv):
                yield argv


def main():
    old, new = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    compared = failed = 0
    added = set()
    with tempfile.TemporaryDirectory() as name:
        base = pathlib.Path(name)
        home, store = base / "home", base / "demo"
        home.mkdir()
        ask(old, ["demo", str(store), "--no-tour"], home, base)
        listed = ask(old, ["runs", "--all"], home, store)[1]["items"]
        tips = {item["name"]: item["ticks"] for item in listed}
        runs = sorted(tips)

        def rows(text):
            for at, run in enumerate(runs):
                other = runs[(at + 1) % len(runs)]
                for line in text.strip().splitlines():
                    line = line.replace("OTHER", other).replace("TIP", str(tips[run])).replace("RUN", run)
                    yield shlex.split(line)

        reads = list(of_pages(set(runs)))
        for argv in rows(READS):
            if argv not in reads:
                reads.append(argv)
        is_write = {"fork", "rebase", "cherrypick", "merge", "label", "note", "erase", "commit", "reduce", "import"}
        writes = [argv for argv in reads if argv[0] in is_write and not {"-n", "--plan", "--dry-run"} & set(argv)]
        reads = [argv for argv in reads if argv not in writes]
        writes += list(rows(WRITES))
        for argv in reads + writes:
            answers = []
            for which, program in (("old", old), ("new", new)):
                if argv in writes:
                    copy = base / which
                    shutil.rmtree(copy, ignore_errors=True)
                    shutil.copytree(base / "home", copy / "home", symlinks=True)
                    shutil.copytree(store, copy / "demo", symlinks=True)
                    code, answer = ask(program, argv, copy / "home", copy / "demo")
                else:
                    code, answer = ask(program, argv, home, store)
                mask = argv in writes or argv[0] == "doctor" or "-n" in argv
                answers.append((code, masked(answer) if mask else answer))
            compared += 1
            found = list(differences(answers[0][1], answers[1][1], "", added))
            if answers[0][0] != answers[1][0]:
                found.insert(0, f"exit code {answers[0][0]} -> {answers[1][0]}")
            if found:
                failed += 1
                print("$ dendrer " + shlex.join(argv))
                for line in found[:6]:
                    print("   " + line)
    for place in sorted(added):
        print("added: " + place)
    print(f"{compared} commands compared, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
