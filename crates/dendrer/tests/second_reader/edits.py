"""Edits bundles so that every line stays canonical JSON, judges each with docs/verify.py, and hands them over.

Arguments: the directory of verify.py, a seed, a number, the 32 bytes of the log's key in hex, and files with bundles of that
log. For each edit a line `CODE LENGTH WHAT` goes to standard output, and then the edited bundle: what came of it in verify.py,
and how many bytes follow. Half of the edits are by a holder of the key: what was changed is sealed and signed again."""
import copy
import json
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import verify  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402

draw = random.Random(int(sys.argv[2]))
KEY = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(sys.argv[4]))
RUNS = ["r", "a b", "", "-a", "+a", "a/b", "a/b/c", "a/", "ä", "a\n", "x" * 128, "x" * 129, "r+2", "R.1_-", "a@1"]
TYPES = [
    "observation.add", "plan.update", "action.request", "action.result", "memory.write", "policy.decision", "anomaly.flag",
    "goal.complete", "kernel.anomaly", "predicate.violation", "run.fork", "policy.contract_extension", "of_a.pack", "Of.a",
    "a..b", "", "a" * 128, "a" * 129, "kernelxanomaly", "a\n",
]
HASH = "sha256:" + "0" * 64
HEADER = {
    "author": ["agent", "runtime", "user", "kernel", "institution", "robot", "", None],
    "kind": ["run", "transition", "refusal", "register", "erase", "key", "end", "maps", None],
    "run": [*RUNS, None, 1],
    "tick": [0, 1, 2, 3, 2**53 - 1, 2**53, -1, 1.5, True, "1", None],
    "prev": [HASH, "sha256:0", HASH.upper(), "", None],
    "head": [HASH, "0" * 64, None],
    "pack": [HASH, "x", None],
    "type": [*TYPES, None],
    "ts": ["1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2026-02-23T17:21:05Z",
           "2026-02-23 17:21:05.250Z", "2026-02-23T17:21:05.250", "２026-02-23T17:21:05.250Z", None],
    "v": [1, 2, True, "1", None],
    "store": ["0" * 32, "x", None],
    "links": [[], [{"hash": HASH, "rel": "evidence"}], [{"hash": HASH, "rel": "other"}], [{"hash": "x", "rel": "evidence"}],
              [{"hash": HASH}], {}, [{"hash": HASH, "more": 1, "rel": "evidence"}]],
}
SCALARS = [None, True, False, 0, 1, -1, 0.5, 2**53, 10**30, "", "x", "kernel", "institution", HASH, [], {}, [None], {"a": 1}]
DELTAS = [
    [], {}, "", [{}], [{"set": "/n", "value": 1}], [{"set": "/n"}], [{"remove": "/n"}], [{"remove": "/n", "value": 1}],
    [{"add": "/n", "value": 1}], [{"add": "/n", "value": "1"}], [{"add": "/risk", "value": 0.5}], [{"append": "/l", "value": 1}],
    [{"append": "/l", "value": 1}, {"set": "/l/0", "value": {"$$x": 2}}, {"append": "/l/0/y", "value": []}],
    [{"append": "/l", "value": 1}, {"set": "/l/1", "value": 2}], [{"append": "/l", "value": 1}, {"remove": "/l/00"}],
    [{"set": "/a/b/c", "value": {"x": [1, 2, {"y": None}]}}, {"remove": "/a/b/c/x/1"}, {"add": "/a/b/c/x/0", "value": -1}],
    [{"set": "", "value": {}}], [{"set": "n", "value": 1}], [{"set": "/a~2", "value": 1}], [{"set": "/$a", "value": 1}],
    [{"set": "/a~0b~1c", "value": 1}], [{"set": "/n", "value": 1, "add": "/n"}], [{"set": "/t", "value": {"$float": "NaN"}}],
    [{"set": "/t", "value": {"$float": "NaN"}}, {"set": "/t/x", "value": 1}],
    [{"set": "/n", "value": 2**53}, {"add": "/n", "value": 1}],
    [{"set": "/n", "value": 1e300}, {"add": "/n", "value": 1e300}],
    [{"set": "/n", "value": 1.7e308}, {"add": "/n", "value": 1.7e308}],
    [{"set": "/n", "value": -0.5}, {"add": "/n", "value": 0.5}], [{"set": "/l", "value": list(range(40))}, {"remove": "/l/7"}],
    [{"set": f"/k{n}", "value": n} for n in range(40)],
]


def salts(record):
    if "salts" in record:
        return record["salts"]
    seed, names = verify.unb64(record["seed"]), list(record["header"]["fields"])
    made = [verify.sha(b"dendrer/salt/v1\n", seed, (at // 2).to_bytes(4, "big")) for at in range(len(names))]
    return {name: verify.b64(made[at][at % 2 * 16:][:16]) for at, name in enumerate(names)}


class Bundle:
    def __init__(self, text):
        lines = [json.loads(line, parse_int=verify.integer) for line in text.splitlines()]
        self.head, self.log, at = lines.pop(0), [], 0
        while at < self.head["size"]:
            self.log.append(lines.pop(0))
            at += self.log[-1].get("omitted", 1)
        self.records = [lines.pop(0) for _ in range(self.head["records"])]
        self.tail, self.checkpoint = lines[:-1], lines[-1]

    def entries(self):
        return [item for item in self.log if "omitted" not in item]

    def write(self):
        lines = [self.head, *self.log, *self.records, *self.tail, self.checkpoint]
        return "".join(verify.canon(line) + "\n" for line in lines).encode()

    def open(self, at):
        return [name for name in self.records[at]["values"] if name in self.records[at]["header"]["fields"]]

    def value(self, at, name, value):
        if name in self.records[at]["values"] and len(verify.canon(value)) <= 1024:
            self.records[at]["values"][name] = value

    def follow(self):
        """Gives every transition the root that its delta makes."""
        runs, states = {}, {}
        for entry, record in zip(self.entries(), self.records):
            header, values, run = record["header"], record["values"], record["header"]["run"]
            try:
                if header["kind"] == "run" and header["prev"]:
                    runs[run] = states[header["prev"]]
                elif header["kind"] == "run":
                    runs[run] = verify.check_state(header, values, verify.MISSING)
                elif header["kind"] == "transition" and runs[run] is not verify.MISSING:
                    runs[run] = verify.applied(values["/delta"], runs[run])
                    if "/state_root" in values:
                        values["/state_root"] = "sha256:" + verify.root(runs[run]).hex()
            except Exception:
                runs[run] = verify.MISSING
            states[entry["hash"]] = runs.get(run, verify.MISSING)

    def seal(self):
        """Computes digests, ids, entries and what names them again."""
        ids = {}
        for entry, record in zip(self.entries(), self.records):
            header = record["header"]
            for name in ("prev", "head"):
                header[name] = ids.get(header.get(name), header.get(name))
            for name, value in record["values"].items():
                if name in header["fields"] and name in salts(record):
                    text = f'["{salts(record)[name]}",{verify.canon(name)},{verify.canon(value)}]'
                    header["fields"][name] = verify.b64(verify.sha(verify.b64(text.encode()).encode()))
            old, entry["hash"] = entry["hash"], "sha256:" + verify.sha(
                b"dendrer/record/v1\n", verify.canon(header).encode()).hex()
            ids[old] = entry["hash"]
            for name in ("kind", "run", "tick"):
                entry[name] = header.get(name)
        for line in self.tail:
            if "map" in line:
                line["map"] = ids.get(line["map"], line["map"])

    def sign(self):
        def top(begin, end, leaves):
            if (begin, end) in leaves:
                return leaves[begin, end]
            half = 1 << (end - begin - 1).bit_length() - 1
            return verify.sha(b"\1", top(begin, begin + half, leaves), top(begin + half, end, leaves))

        leaves, at = {}, 0
        for item in self.log:
            if "omitted" not in item:
                leaves[at, at + 1] = verify.sha(b"\0", verify.canon(item).encode())
                at += 1
                continue
            end = at + item["omitted"]
            for digest in item["hashes"]:
                width = 1 << min((at & -at or 2**64).bit_length(), (end - at).bit_length()) - 1
                leaves[at, at + width] = verify.unb64(digest)
                at += width
        self.head["size"], self.head["records"] = at, len(self.records)
        root = top(0, at, leaves) if at else verify.sha()
        origin = f"dendrer/{self.head['store']}"
        text = f"{origin}\n{at}\n{verify.std(root)}\n"
        ident = bytes.fromhex(self.head["key"].split("+")[1])
        signature = verify.std(ident + KEY.sign(text.encode()))
        self.checkpoint["checkpoint"] = f"{text}\n\u2014 {self.head['key'].split('+')[0]} {signature}\n"


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        yield from places(member, (*path, name))


def mutate(value):
    """Changes one place of a value."""
    value = copy.deepcopy(value)
    path = draw.choice(list(places(value))[1:] or [()])
    if not path:
        return draw.choice(SCALARS)
    *above, last = path
    at = value
    for step in above:
        at = at[step]
    what = draw.choice(["drop", "scalar", "letter", "double", "swap", "rename", "add", "list"])
    if what == "drop":
        del at[last]
    elif what == "letter" and isinstance(at[last], str) and at[last]:
        place = draw.randrange(len(at[last]))
        at[last] = at[last][:place] + draw.choice("0aA-_+=. /") + at[last][place + 1:]
    elif what == "letter" and type(at[last]) is int:
        at[last] += draw.choice([-1, 1])
    elif what == "double" and isinstance(at, list):
        at.insert(last, copy.deepcopy(at[last]))
    elif what == "swap" and isinstance(at, list):
        draw.shuffle(at)
    elif what == "swap":
        other = draw.choice(list(at))
        at[last], at[other] = at[other], at[last]
    elif what == "rename" and isinstance(at, dict):
        at[draw.choice(["x", last + "x", last[:-1], "seed", "salts", "$x"])] = at.pop(last)
    elif what == "add" and isinstance(at, dict):
        at[draw.choice(["x", "seed", "salts", "chunked", "map", "omitted", "/x"])] = draw.choice(SCALARS)
    elif what == "list":
        at[last] = draw.choice([[at[last]], {"x": at[last]}, {str(n): v for n, v in enumerate(at[last])}
                                if isinstance(at[last], list) else [], list(at[last]) if isinstance(at[last], dict) else {}])
    else:
        at[last] = draw.choice(SCALARS)
    return value


# Edits of lines, without a key.


def lines(bundle, other):
    parts = [bundle.head, *bundle.log, *bundle.records, *bundle.tail, bundle.checkpoint]
    theirs = [other.head, *other.log, *other.records, *other.tail, other.checkpoint]
    what = draw.choice(["drop", "double", "swap", "cut", "splice", "put", "mutate", "mutate", "mutate"])
    at = draw.randrange(len(parts))
    if what == "drop":
        del parts[at]
    elif what == "double":
        parts.insert(at, parts[at])
    elif what == "swap":
        to = draw.randrange(len(parts))
        parts[at], parts[to] = parts[to], parts[at]
    elif what == "cut":
        del parts[at:draw.choice([len(parts), len(parts) - 1])]
    elif what == "splice":
        parts = parts[:at] + theirs[draw.randrange(len(theirs)):]
    elif what == "put":
        parts.insert(at, draw.choice(theirs))
    else:
        parts[at] = mutate(parts[at])
    return f"lines: {what} {at}", "".join(verify.canon(part) + "\n" for part in parts).encode()


def label(bundle, _):
    names = bundle.head["runs"]
    bundle.head["runs"] = draw.choice([
        names[::-1], names[1:], names * 2, [], [*names, draw.choice(RUNS)], [draw.choice(RUNS)],
        names[0] if names else "", {}, None, dict.fromkeys(names, 1),
        sorted({entry["run"] for entry in bundle.entries() if entry["run"]}),
    ])
    return "label", bundle.write()


def paths(bundle, _):
    at = next((at for at, line in enumerate(bundle.tail) if "map" in line), None)
    if at is None:
        return label(bundle, _)
    if draw.random() < 0.2:
        bundle.tail.append(bundle.tail[at])
    bundle.tail[at] = mutate(bundle.tail[at])
    return "paths", bundle.write()


def number(bundle, _):
    name = draw.choice(["bundle", "draft", "records", "size"])
    bundle.head[name] = draw.choice([*SCALARS, 2, 10**20, 10**21, 10**22, -5, bundle.head[name] + 1, bundle.head[name] - 1])
    return f"number: {name}", bundle.write()


def spelling(bundle, _):
    record = draw.choice(bundle.records)
    what = draw.choice(["salts", "both", "empty", "split", "inline", "seed"])
    if what in ("salts", "both"):
        record["salts"] = dict(salts(record))
        if what == "salts":
            record.pop("seed", None)
    elif what == "empty":
        record["chunked"] = {}
    elif what == "seed" and "salts" in record:
        record["seed"] = draw.choice(list(record.pop("salts").values()) or ["A" * 22])
    elif "chunked" in record:
        name, pieces = draw.choice(list(record["chunked"].items()))
        if what == "split" and len(pieces) == 1:
            record["chunked"][name] = [pieces[0], pieces[0]]
        elif what == "split":
            blobs = [line for line in bundle.tail if "blob" in line]
            raw = b"".join(verify.unb64(blobs[piece]["blob"]) for piece in pieces)
            if [piece for other in bundle.records for p in other.get("chunked", {}).values() for piece in p] == pieces:
                end = draw.randrange(len(raw) + 1)
                bundle.tail = [{"blob": verify.b64(part)} for part in (raw[:end], raw[end:])]
                record["chunked"][name] = draw.choice([[0, 1], [1, 0], [0, True]])
        else:
            blobs = [line for line in bundle.tail if "blob" in line]
            text = b"".join(verify.unb64(blobs[piece]["blob"]) for piece in record["chunked"].pop(name))
            record["values"][name] = json.loads(text)
            if not record["chunked"]:
                del record["chunked"]
    return f"spelling: {what}", bundle.write()


# Edits of what is sealed. Whether they are sealed and signed again is another draw.


def head_of(bundle):
    record = draw.choice(bundle.records)
    name = draw.choice(list(HEADER))
    record["header"][name] = draw.choice(HEADER[name])
    return f"header: {name} {record['header'][name]!r:.40}"


def author(bundle):
    record = draw.choice([r for r in bundle.records if r["header"]["kind"] == "transition"] or bundle.records)
    record["header"]["author"] = draw.choice(HEADER["author"][:5])
    record["header"]["type"] = draw.choice([*TYPES[:13], record["header"]["type"]])
    at = bundle.records.index(record)
    if draw.random() < 0.3:
        bundle.value(at, "/agent_id", draw.choice(["kernel", "institution", "Kernel", 1, None]))
    return f"author: {record['header']['author']} {record['header']['type']}"


def shape(bundle):
    record = draw.choice(bundle.records)
    for name in draw.sample(["kind", "run", "tick", "prev", "head", "type"], draw.randrange(1, 4)):
        other = draw.choice(bundle.records)["header"]
        record["header"][name] = draw.choice([other[name], None])
    return "shape"


def value(bundle):
    at = draw.randrange(len(bundle.records))
    name = draw.choice(bundle.open(at) or [""])
    # What a map has besides is an edit of its own.
    if name and bundle.records[at]["header"]["kind"] != "map":
        bundle.value(at, name, mutate(bundle.records[at]["values"][name]))
    return f"value: {at} {name}"


def delta(bundle):
    with_delta = [at for at, record in enumerate(bundle.records) if "/delta" in record["values"]]
    if with_delta:
        at = draw.choice(with_delta)
        before = bundle.records[at]["values"]["/delta"]
        more = draw.choice(DELTAS)
        # What follows may need what was there.
        bundle.value(at, "/delta", copy.deepcopy([*before, *more] if isinstance(more, list) and draw.random() < 0.6 else more))
    return "delta"


def begin(bundle):
    begins = [at for at, record in enumerate(bundle.records) if record["header"]["kind"] == "run"]
    at = draw.choice(begins or [0])
    name = draw.choice([n for n in bundle.open(at) if n.startswith("/state")] or ["/state"])
    bundle.value(at, name, draw.choice([*SCALARS, {"n": 1, "l": []}, {"n": {"m": [1, [2]]}}]))
    return f"begin: {name}"


def withhold(bundle):
    record = draw.choice(bundle.records)
    record["salts"] = dict(salts(record))
    record.pop("seed", None)
    for name in draw.sample(list(record["values"]), min(len(record["values"]), draw.randrange(0, 3))):
        del record["values"][name]
        if draw.random() < 0.95:
            record["salts"].pop(name, None)
    return "withhold"


def field(bundle):
    record = draw.choice(bundle.records)
    fields, what = record["header"]["fields"], draw.choice(["drop", "add", "digest"])
    name = draw.choice(list(fields) or ["/x"])
    if what == "drop":
        fields.pop(name, None)
        record["values"].pop(name, None)
    elif what == "add":
        name = draw.choice(["/zz", "/zz/y", "zz", "", "/z~2", "/z~0", "/ z", "/zä"])
        fields[name] = "A" * 43
        record["values"][name] = 1
    else:
        fields[name] = draw.choice(["A" * 43, "A" * 42 + "B", "A" * 44, "", None, 1])
        if draw.random() < 0.5:
            record["values"].pop(name, None)
    record["header"]["fields"] = dict(sorted(fields.items(), key=lambda pair: pair[0].encode("utf-16-be")))
    return f"field: {what} {name}"


def order(bundle):
    what, entries = draw.choice(["drop", "double", "swap", "renumber"]), bundle.entries()
    if any("omitted" in item for item in bundle.log) or len(entries) < 3:
        return "order: none"
    at = draw.randrange(len(entries) - 1)
    if what in ("drop", "renumber"):
        gone = bundle.records.pop(at)["header"]
        hash_ = bundle.log.pop(at)["hash"]
        for record in bundle.records if what == "renumber" else ():
            header = record["header"]
            header["prev"] = gone["prev"] if header["prev"] == hash_ else header["prev"]
            header["head"] = gone["prev"] if header["head"] == hash_ else header["head"]
            if header["tick"] and gone["tick"] and header["run"] == gone["run"] and header["tick"] > gone["tick"]:
                header["tick"] -= 1
    elif what == "double":
        bundle.records.insert(at, copy.deepcopy(bundle.records[at]))
        bundle.log.insert(at, copy.deepcopy(bundle.log[at]))
    else:
        for part in (bundle.records, bundle.log):
            part[at], part[at + 1] = part[at + 1], part[at]
    return f"order: {what} {at}"


def log_key(bundle):
    keys = [at for at, record in enumerate(bundle.records) if "/purpose" in record["values"]]
    if keys:
        bundle.value(keys[0], draw.choice(["/purpose", "/verifier"]), draw.choice(["log", "x", bundle.head["key"]]))
    return "key"


def chart(bundle):
    """Makes a map count other records, with a path that leads to it."""
    line = next((line for line in bundle.tail if "map" in line), None)
    maps = [record for record in bundle.records if record["header"]["kind"] == "map"]
    if not maps or not line or not line["paths"]:
        return "map: none"
    record = maps[-1]
    if draw.random() < 0.4:
        name = draw.choice(["/root", "/size", "/erase", "/key", "/register"])
        bundle.value(bundle.records.index(record), name, mutate(record["values"].get(name)))
        return f"map: {name}"
    run, path = draw.choice(list(line["paths"].items()))
    name = draw.choice(list(path["leaf"]))
    path["leaf"][name] = draw.choice([HASH, path["leaf"]["begin"]]) if name in ("begin", "head") else draw.choice(
        [path["leaf"][name] + 1, path["leaf"][name] - 1, 0])
    if draw.random() < 0.7:
        line["paths"] = {run: path}
        digest = verify.node(b"member", verify.sha(run.encode()), verify.root(path["leaf"]))
        for step in reversed(path["nodes"]):
            hashes = (digest if text is None else verify.unb64(text) for text in step["hashes"])
            digest = verify.node(b"object-node", step["bitmap"].to_bytes(2, "big"), *hashes)
        bundle.value(bundle.records.index(record), "/root", "sha256:" + digest.hex())
    return f"map: {run} {name}"


SEALED = [
    head_of, head_of, author, author, shape, value, value, delta, delta, delta, begin, withhold, field, order, order, log_key,
    chart,
]


def edit(bundles):
    bundle, other = copy.deepcopy(draw.choice(bundles)), draw.choice(bundles)
    if draw.random() < 0.4:
        return draw.choice([lines, lines, lines, label, paths, number, spelling, spelling])(bundle, other)
    what = [draw.choice(SEALED)(bundle) for _ in range(draw.choice([1, 1, 1, 2]))]
    with_key = draw.random() < 0.8
    if draw.random() < 0.5:
        bundle.follow()
        what.append("roots")
    if draw.random() < 0.95:
        bundle.seal()
        what.append("sealed")
    if with_key:
        bundle.sign()
        what.append("signed")
    return ", ".join(what), bundle.write()


def main():
    bundles = []
    for name in sys.argv[5:]:
        with open(name, "rb") as file:
            bundles.append(Bundle(file.read()))
    left = int(sys.argv[3])
    most = 100 + 10 * left
    while left:
        try:
            what, text = edit(bundles)
        except Exception:  # what cannot be written is no bundle: another draw
            most -= 1
            if most == 0:
                raise
            continue
        try:
            code = verify.check(text)[0]
        except Exception:
            code = 4
        left -= 1
        what = "".join(c if " " <= c <= "~" else "?" for c in what)
        sys.stdout.buffer.write(f"{code} {len(text)} {what}\n".encode() + text)


main()
