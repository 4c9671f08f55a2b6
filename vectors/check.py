#!/usr/bin/env python3
"""Checks every vector beside it with docs/verify.py, and with what verify.py has no need of: the door's error codes
aside, salted state roots, codes of deltas, cutting, counters, rounding and the inside of tagged values, each written from
docs/format.md. Prints one line for each file; exit code 0 if all hold."""
import json, pathlib, re, struct, sys

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "docs"))
import verify  # noqa: E402
from verify import b64, canon, check, number, parse, sha, unb64  # noqa: E402

LOST = "surrogatepass"


def value(text):
    return parse(text.encode())


# Tagged values: verify.py knows their names, this knows their insides.


def broken(text):
    units = unb64(text).decode("utf-8", LOST).encode("utf-16-be", LOST)
    again = units.decode("utf-16-be", LOST)
    assert b64(again.encode("utf-8", LOST)) == text and re.search("[\ud800-\udfff]", again)
    return units


def tagged(tag, inside):
    if tag == "$float":
        return inside in ("NaN", "Infinity", "-Infinity")
    if tag == "$bytes":
        return unb64(inside) is not None
    if tag == "$wtf8":
        return broken(inside) is not None
    if tag == "$vault":
        digest = re.fullmatch("sha256:[0-9a-f]{64}", inside["commitment"])
        count = inside["bytes"]
        return len(inside) == 2 and type(count) is int and 0 <= count < 2**53 and digest is not None
    if tag in ("$gap", "$redacted"):
        return isinstance(inside["reason" if tag == "$gap" else "kind"], str)
    assert all(isinstance(pair, list) and len(pair) == 2 for pair in inside)
    plain = [name for name, _ in inside if isinstance(name, str)]
    assert not any(re.match(r"\$(?!\$)", name) for name in plain) and len(plain) < len(inside)
    assert all(isinstance(name, str) or list(name) == ["$wtf8"] for name, _ in inside)
    names = [n.encode("utf-16-be") if isinstance(n, str) else broken(n["$wtf8"]) for n, _ in inside]
    return names == sorted(set(names))


def is_canonical(text):
    def walk(v):
        if isinstance(v, dict):
            tags = [name for name in v if re.match(r"\$(?!\$)", name)]
            return all(tagged(name, v[name]) for name in tags) and all(map(walk, v.values()))
        return all(map(walk, v)) if isinstance(v, list) else True

    try:
        return walk(value(text))
    except Exception:
        return False


# State roots.


def nibble(digest, level):
    return digest[level // 2] >> (0 if level % 2 else 4) & 15


def trie(leaves, level):
    if len(leaves) == 1:
        return leaves[0][1]
    bitmap, children = 0, []
    for n in range(16):
        group = [leaf for leaf in leaves if nibble(leaf[0], level) == n]
        if group:
            bitmap |= 1 << n
            children.append(trie(group, level + 1))
    return sha(b"dendrer/state/object-node/v1\n", bitmap.to_bytes(2, "big"), *children)


def root(v, salts={}):
    if isinstance(v, list):
        level = [[root(item) for item in v[at:at + 16]] for at in range(0, len(v), 16)] or [[]]
        while True:
            level = [sha(b"dendrer/state/array-node/v1\n", *node) for node in level]
            if len(level) == 1:
                return sha(b"dendrer/state/array/v1\n", len(v).to_bytes(8, "big"), level[0])
            level = [level[at:at + 16] for at in range(0, len(level), 16)]
    if isinstance(v, dict):
        if not v:
            return sha(b"dendrer/state/empty-object/v1\n")
        leaves = []
        for name, member in v.items():
            key = sha(name.encode())
            tag = b"dendrer/state/salted-member/v1\n" if name in salts else b"dendrer/state/member/v1\n"
            leaves.append((key, sha(tag, bytes.fromhex(salts.get(name, "")), key, root(member))))
        return trie(sorted(leaves), 0)
    return sha(b"dendrer/state/scalar/v1\n", canon(v).encode())


# Deltas.


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and (isinstance(v, float) or abs(v) < 2**53)


class Refused(Exception):
    pass


def refuse(holds, code):
    if not holds:
        raise Refused(code)


def steps(pointer):
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def apply(state, delta):
    refuse(isinstance(delta, list), "E0209")
    ops = []
    for op in delta:
        refuse(isinstance(op, dict), "E0209")
        actions = [name for name in ("set", "remove", "append", "add") if name in op]
        refuse(len(actions) == 1 and set(op) == {actions[0]} | ({"value"} - ({"value"} if actions[0] == "remove" else set())), "E0209")
        path = op[actions[0]]
        refuse(isinstance(path, str) and re.fullmatch("(/([^~/]|~[01])*)+", path, re.S), "E0209")
        ops.append((actions[0], steps(path), op.get("value")))
    for action, path, new in ops:
        state = changed(action, state, path, new)
    return state


MISSING = object()


def changed(action, before, path, new):
    if path:
        if before is MISSING:
            refuse(action in ("set", "append"), "E0404")
            before = {}
        refuse(isinstance(before, (dict, list)), "E0404")
        step, after = path[0], before.copy()
        if isinstance(before, list):
            refuse(re.fullmatch("0|[1-9][0-9]*", step) and int(step) < len(before), "E0404")
            step = int(step)
        if action == "remove" and len(path) == 1:
            refuse(isinstance(before, list) or step in before, "E0404")
            del after[step]
            return after
        old = before[step] if isinstance(before, list) else before.get(step, MISSING)
        after[step] = changed(action, old, path[1:], new)
        return after
    if action == "set":
        return new
    if action == "append":
        refuse(before is MISSING or isinstance(before, list), "E0404")
        return ([] if before is MISSING else before) + [new]
    refuse(before is not MISSING and is_number(before) and is_number(new), "E0404")
    total = float(before) + float(new)
    refuse(abs(total) != float("inf"), "E0404")
    return int(total) if total == int(total) else total


# Content and its fields.


def fields(content):
    cut = {}
    for name, v in content.items():
        plain = isinstance(v, dict) and 1 <= len(v) <= 64 and all(
            re.fullmatch(r"[!#-\[\]-~]{1,64}", n) and not re.match(r"\$(?!\$)", n) for n in v)
        below = v if plain and name in ("action", "intent", "result", "state") else {None: v}
        for member, inner in below.items():
            parts = [name] if member is None else [name, member]
            cut["".join("/" + p.replace("~", "~0").replace("/", "~1") for p in parts)] = inner
    return dict(sorted(cut.items(), key=lambda pair: pair[0].encode("utf-16-be")))


def salts_of(seed, count):
    made = b"".join(sha(b"dendrer/salt/v1\n", seed, i.to_bytes(4, "big")) for i in range((count + 1) // 2))
    return [made[16 * i:16 * i + 16] for i in range(count)]


def digest_of(salt, pointer, text):
    disclosure = b64(f'["{b64(salt)}",{canon(pointer)},{text}]'.encode())
    return disclosure, b64(sha(disclosure.encode()))


# One function for each file.


def check_json(case):
    if "canonical" in case:
        assert is_canonical(case["canonical"])
    elif case["error"] != "E0204":  # how deep a document may be is less than how deep a line of a bundle may be
        raw = case["door"].encode() if "door" in case else bytes.fromhex(case["door_hex"])
        try:
            parse(raw)
        except Exception:
            return
        raise AssertionError("what the door refuses is not canonical")


def check_canonical(case):
    assert is_canonical(case["text"]) == case["canonical"]


def check_numbers(case):
    if "bits" in case:
        double = struct.unpack(">d", bytes.fromhex(case["bits"]))[0]
        assert number(double + 0.0) == case["text"]
        assert double == 0 or float(case["text"]) == double
    else:
        assert canon(round(float(case["value"]), case["decimals"]) + 0.0) == case["rounded"]


def check_state_roots(case):
    assert "sha256:" + root(value(case["value"]), case.get("salts", {})).hex() == case["digest"]
    assert "salts" in case or verify.root(value(case["value"])) == root(value(case["value"]))


def check_salts(case):
    assert [b64(s) for s in salts_of(unb64(case["seed"]), len(case["salts"]))] == case["salts"]


def check_disclosures(case):
    found = digest_of(unb64(case["salt"]), case["pointer"], case["value"])
    assert found == (case["disclosure"], case["digest"])


def check_records(case):
    header, cut = value(case["header"]), fields(value(case["content"]))
    assert list(header["fields"]) == list(cut)
    for salt, (pointer, v) in zip(salts_of(unb64(case["seed"]), len(cut)), cut.items()):
        assert header["fields"][pointer] == digest_of(salt, pointer, canon(v))[1]
    assert case["id"] == "sha256:" + sha(b"dendrer/record/v1\n", case["header"].encode()).hex()
    entry = {"hash": case["id"], **{name: header[name] for name in ("kind", "run", "tick")}}
    assert case["entry"] == canon(entry) and case["leaf"] == sha(b"\0", case["entry"].encode()).hex()


def tree(leaves):  # RFC 6962 2.1, as it is defined there
    if len(leaves) < 2:
        return leaves[0] if leaves else sha()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha(b"\1", tree(leaves[:split]), tree(leaves[split:]))


def check_logs(case):
    if "root" in case:
        assert case["root"] == tree([sha(b"\0", b"entry %d" % n) for n in range(case["entries"])]).hex()
        return
    at, end, levels = case["begin"], case["end"], []
    while at < end:
        level = max(n for n in range(64) if at % (1 << n) == 0 and at + (1 << n) <= end)
        levels.append(level)
        at += 1 << level
    assert levels == case["levels"]


def check_deltas(case):
    try:
        found = "after", canon(apply(value(case["state"]), value(case["delta"])))
    except Refused as error:
        found = "error", str(error)
    assert case.get(found[0]) == found[1], found
    try:
        theirs = canon(verify.applied(value(case["delta"]), value(case["state"])))
    except Exception:
        theirs = None
    # How deep a state may get is a limit, and verify.py has none.
    assert theirs == case.get("after") or case.get("error") == "E0204", theirs


def add_counters(after, case):
    content, kind = value(case["content"]), case["type"]
    after["transitions"] += 1
    if isinstance(content.get("agent_id"), str):
        after["by_agent"][content["agent_id"]] = after["by_agent"].get(content["agent_id"], 0) + 1
    if kind == "action.request" and "action" in content:
        calls = content["action"].get("calls")
        asked = [content["action"]] if calls is None else calls
        after["tool_calls"] += len(asked)
        if asked and isinstance(asked[-1].get("tool"), str):
            after["last_tool"] = asked[-1]["tool"]
    if kind == "action.result":
        status = content.get("result", {}).get("status")
        after["tool_errors"] += isinstance(status, str) and status != "ok"
    if kind == "policy.decision":
        after["denied_count"] += content.get("policy", {}).get("decision") == "deny"
    for name in ("tokens_used", "cost_usd"):
        metric = content.get("metrics", {}).get(name, 0)
        after[name] += metric if is_number(metric) else 0
    for anomaly in content.get("anomalies", []):
        kind = anomaly.get("kind") if isinstance(anomaly, dict) else anomaly
        kind = kind if isinstance(kind, str) else "unnamed"
        after["anomalies"][kind] = after["anomalies"].get(kind, 0) + 1
    return after


COUNTERS = {"anomalies": {}, "by_agent": {}, "cost_usd": 0, "denied_count": 0, "last_tool": None, "tokens_used": 0,
            "tool_calls": 0, "tool_errors": 0, "transitions": 0, "version": "counters/1"}


def check_counters(case):
    assert canon(add_counters(COUNTERS, case)) == case["counters_after"]


def check_bundles(case):
    for options in ({}, {"key": case["key"]}, {"tip": case["tip"]}):
        try:
            code = check(case["text"].encode(), **options)[0]
        except Exception:
            code = 4
        assert code == case["exit"]


failed = 0
for path in sorted(here.glob("*.json")):
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    judge = globals()["check_" + path.stem.replace("-", "_")]
    for at, case in enumerate(cases):
        try:
            judge(case)
        except Exception as error:
            failed += 1
            print(f"{path.name}: case {at} does not hold: {error!r} {json.dumps(case)[:300]}")
    print(f"{path.name}: {len(cases)} cases")
sys.exit(failed > 0)
