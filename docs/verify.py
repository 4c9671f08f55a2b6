#!/usr/bin/env python3
"""Verifies a dendrer bundle (.dnd), written from docs/format.md alone. Exit code: 0 intact, 2 usage
error, 4 tampered or malformed, 6 unverifiable (a part missing; another format; a key changed)."""
import argparse, base64, copy, decimal, functools, hashlib, itertools, json, re
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey as Key
DRAFT, MISSING = 3, object()  # the number of this form of the format, until the format is frozen
POINTER, TAG = "(/([^~/]|~[01])*)+", r"\$(float|bytes|wtf8|object|gap|redacted|vault)"
MAY, MAX = 'null|"sha256:[0-9a-f]{64}"', '(?=[^"]{1,128}")'  # names have at most 128 characters
NAME, WORD = f"{MAX}[A-Za-z0-9][A-Za-z0-9._+-]*", f"{MAX}[a-z][a-z0-9_]*"
LINK = f'{{"hash":({MAY[5:]}),"rel":"(caused_by|evidence|fork_of|merges|picked_from|predecessor)"}}'
HEADER = re.compile(  # without its fields; the letters are those of SHAPES
    rf'{{"author":"(agent|runtime|user|kernel|institution)","fields":{{}},"head":(?P<h>{MAY}),"ki'
    rf'nd":"[a-z]+","links":\[({LINK}(,{LINK}){{0,255}})?],"pack":({MAY}),"prev":(?P<p>{MAY}),"ru'
    rf'n":(?P<r>null|"{NAME}(/{NAME})?"),"store":"[0-9a-f]{{32}}","tick":(?P<t>null|\d+),"ts":"(19'
    rf'[7-9]|[2-9]\d\d)[\dT:.-]{{20}}Z","type":(?P<y>null|"{WORD}(\.{WORD})*"),"v":1}}', re.A)
SHAPES = "run (r0|rp)|transition rtpy|refusal rhy?|end rh|(register|erase|key) r?h?|map "
DUE = {"transition": {"/delta", "/state_root"}, "run": {"/state_root"}}  # fields
COUNTS = {"transition": "transitions", "refusal": "refusals", "end": "ends", "erase": "erasures"}
WRITERS = dict(pair.split("=") for pair in (  # by first letters; every other type is by aruk
    "kernel.anomaly=k observation.add=aru action.request=aru goal.complete=aru anomaly.flag=aru "
    "memory.write=aru action.result=r policy.decision=ru predicate.violation=k run.cherrypick=k "
    "diff.summary=k run.fork=k bisect.result=k causal.chain=k policy.contract_extension=i").split())
def need(holds, why="not the form of a bundle"):
    if not holds: raise ValueError(why)
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def node(kind, *parts): return sha(b"dendrer/state/%b/v1\n" % kind, *parts)
def std(raw): return base64.b64encode(raw).decode()
def b64(raw): return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
def unb64(text, size=None, write=b64):  # writing it again settles alphabet, padding, trailing bits
    raw = base64.b64decode(text.translate({45: "+", 95: "/"}) + "=" * (-len(text) % 4))
    return need(write(raw) == text and size in (None, len(raw)), "not base64 of this length") or raw
def count(n): return need(type(n) is int and 0 <= n < 2**53) or n
def is_tag(name): return re.match(r"\$(?!\$)", name) is not None
def number(x):  # ECMAScript Number::toString (RFC 8785 3.2.2.3)
    text = format(decimal.Decimal(repr(x)), "f") if 1e-6 <= abs(x) < 1e21 else repr(x)
    return re.sub("e([+-])0*", r"e\1", text.removesuffix(".0"))
def integer(n, big=decimal.Decimal):  # keeps its digits, whatever its size, unless it is a double
    return int(n) if len(n) < 20 else float(n) if big(n) == float(n) else big(n)
def canon(v, depth=0):
    if isinstance(v, (bool, str)) or v is None: return json.dumps(v, ensure_ascii=False)
    if not isinstance(v, (list, dict)): return number(v) if isinstance(v, float) else str(v)
    need(depth < 136, "nested too deep")
    if isinstance(v, list): return "[" + ",".join(canon(x, depth + 1) for x in v) + "]"
    need(not any(map(is_tag, v)) or len(v) == 1 and re.fullmatch(TAG, *v), "not a tagged value")
    names = sorted(v, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(canon(n) + ":" + canon(v[n], depth + 1) for n in names) + "}"
def parse(raw):
    value = json.loads(raw, parse_int=integer)
    return need(canon(value).encode() == raw and len(raw) < 2**27, "not canonical JSON") or value
def members(value, names):
    need(isinstance(value, dict) and set(value) == set(names.split()), f"not an object of {names}")
    return [value[name] for name in names.split()]
def trie(leaves, level=0):  # keys in hex with digests, sorted
    if len(leaves) == 1: return leaves[0][1]
    groups = [[*group] for _, group in itertools.groupby(leaves, lambda leaf: leaf[0][level])]
    bitmap = sum(1 << int(group[0][0][level], 16) for group in groups).to_bytes(2, "big")
    return node(b"object-node", bitmap, *(trie(group, level + 1) for group in groups))
def tree(nodes):
    nodes = [node(b"array-node", *nodes[at:at + 16]) for at in range(0, len(nodes) or 1, 16)]
    return nodes[0] if len(nodes) == 1 else tree(nodes)
def root(v):
    if isinstance(v, list): return node(b"array", len(v).to_bytes(8, "big"), tree([*map(root, v)]))
    if not isinstance(v, dict): return node(b"scalar", canon(v).encode())
    leaves = sorted((k.hex(), node(b"member", k, root(v[n]))) for n in v for k in [sha(n.encode())])
    return trie(leaves) if v else node(b"empty-object")
def added(*numbers):
    need(all(type(n) in (int, float) and not 2**53 <= abs(n) < 1e21 for n in numbers), "no numbers")
    return need(sum(numbers) * 0 == 0, "the sum is too large") or float(sum(numbers))
def applied(delta, state):
    top = {"": copy.deepcopy(state)}
    for op in need(isinstance(delta, list), "a delta is a list") or delta:
        (do,), new, v, at = set(op) - {"value"}, op.get("value"), top, ""
        need(do in ("set", "append", "add", "remove") and ("value" in op) == (do != "remove"))
        for step in need(re.fullmatch(POINTER, op[do]), "not a path") or op[do].split("/")[1:]:
            if do in ("set", "append") and isinstance(v, dict): v.setdefault(at, {})
            v, at = v[at], step.replace("~1", "/").replace("~0", "~")
            if isinstance(v, list): at = int(need(re.fullmatch("0|[1-9][0-9]*", at)) or at)
            else: need(isinstance(v, dict) and not is_tag(at) and [*map(is_tag, v)] != [True])
        if do == "append" and isinstance(v, dict): v.setdefault(at, [])
        if do == "remove": del v[at]
        else: v[at] = new if do == "set" else v[at] + [new] if do == "append" else added(v[at], new)
    return top[""]
def check_note(note, key, origin, size, root, is_changed):  # C2SP signed-note and tlog-checkpoint
    (text, signatures), (name, ident, raw) = note.rsplit("\n\n", 1), key.split("+", 2)
    need(text == f"{origin}\n{size}\n{std(root)}", "the log is not the one that was signed")
    need((raw := unb64(raw, 33, std))[0] == 1 and ident == sha(name.encode(), b"\n", raw)[:4].hex())
    lines = re.findall("\u2014 ([^\\s+\\0-\x1f]+) (\\S+)\n", signatures)
    need("".join(f"\u2014 {n} {s}\n" for n, s in lines) == signatures, "not signature lines")
    signed = {(n, unb64(s, None, std)[:4].hex()): unb64(s, None, std)[4:] for n, s in lines}
    need(all(signed.values()) and len(signed) == len(lines) <= 100, "a key signs once")
    is_changed or Key.from_public_bytes(raw[1:]).verify(signed[name, ident], text.encode() + b"\n")
def check_record(entry, record, blobs, store, missing):  # returns the values that are here
    header, values, chunked = record["header"], record["values"], record.get("chunked", {})
    fields, kept = header["fields"], "seed" if "seed" in record else "salts"
    salts, *_ = members(record, kept + " header values" + (" chunked" if chunked else ""))
    parts = HEADER.fullmatch(canon({**header, "fields": {}}))
    need(parts and header["store"] == store and len(fields) <= 1024, "not a header of this store")
    given = "".join("0" if parts[c] == "0" else c for c in "rtphy" if parts[c] != "null")
    need(re.fullmatch(SHAPES, f"{header['kind']} {given}"), f"not the members of {header['kind']}")
    for name in fields: need(unb64(fields[name], 32) and re.fullmatch(POINTER, name), "not a field")
    need(DUE.get(header["kind"], set()) <= {*fields}, f"a field of {header['kind']} is not there")
    ident = "sha256:" + sha(b"dendrer/record/v1\n", canon(header).encode()).hex()
    need(entry == {"hash": ident, **{n: header[n] for n in ("kind", "run", "tick")}}, "no entry")
    if kept == "seed":
        seed = b"dendrer/salt/v1\n" + unb64(salts, 16)
        pairs = b"".join(sha(seed, i.to_bytes(4, "big")) for i in range(len(fields)))
        salts = {name: b64(pairs[16 * i:16 * i + 16]) for i, name in enumerate(fields)}
    need(values.keys() | chunked.keys() == salts.keys() and not values.keys() & chunked.keys()
         and (kept == "seed" or salts.keys() < fields.keys()), "another value, salt or seed is due")
    values = {**values, **{n: parse(b"".join(blobs[i] for i in chunked[n])) for n in chunked}}
    for name, v in values.items():
        need((len(canon(v).encode()) > 1024) == (name in chunked), f"{name} in the wrong place")
        array = f'["{b64(unb64(salts[name], 16))}",{canon(name)},{canon(v)}]'.encode()
        need(fields[name] == b64(sha(b64(array).encode())), f"{name} of {ident} was changed")
    missing += [(ident, name, entry["run"]) for name in fields if name not in values]
    return values
def check_state(header, values, state):  # returns the state after a record of a chain
    if header["kind"] == "run":
        own = [name for name in header["fields"] if re.match("/state(/|$)", name)]
        made = applied([{"set": name, "value": values.get(name)} for name in need(own) or own], {})
        return made.get("state", {}) if values.keys() >= {*own} else MISSING
    by, agent = header["author"][0], values.get("/agent_id")
    need(by in WRITERS.get(header["type"], "aruk"), f"{header['type']} by {header['author']}")
    need(by in "ki" or agent not in ("kernel", "institution"), f"an agent named {agent}")
    if state is MISSING or "/delta" not in values: return MISSING
    state, made = applied(values["/delta"], state), values.get("/state_root", MISSING)
    if made is MISSING: return MISSING
    return need(made == "sha256:" + root(state).hex(), "its delta makes another state") or state
def check_chain(header, ident, values, runs, places, missing):
    kind, run, tick, prev, ts = map(header.get, ("kind", "run", "tick", "prev", "ts"))
    need(not run or (run in runs) != (kind == "run"), f"{run} begins elsewhere")
    last, at, before, state = runs.get(run) or places.get(prev) or (None, None, ts, MISSING)
    if kind == "run" and not prev: at, state = 0, check_state(header, values, MISSING)
    made = values.get("/state_root", MISSING)
    need(kind != "run" or MISSING in (state, made) or made == "sha256:" + root(state).hex(), "root")
    if kind == "transition":
        need(at in (None, count(tick) - 1) and last == prev, f"{run}: tick {tick} after {at}")
        at, state = tick, check_state(header, values, state)
    if kind in ("run", "transition"):
        need(before <= ts, f"{run}: time goes back at {tick}")
        missing += [f"the beginning of {run}, up to {prev}"] * (at is None)
        runs[run] = [ident, at, ts, state]
        if tick is not None: places[ident] = runs[run]
    elif kind in ("refusal", "end"):
        need(last == header["head"] and (kind, at) != ("end", "its end"), f"{run}: {kind}")
        runs[run] = [last, "its end" if kind == "end" else at, before, state]
def check_map(held, paths, size, counts, apart, is_all):
    due = {n: {"count": len(ids), "newest": [None, *ids][-1]} for n, ids in apart.items()}
    due |= {"/size": size, "/root": "sha256:" + root(counts).hex() if is_all else held["/root"]}
    need(held == due or not is_all and all(held[n] == due[n] or held[n]["count"] > due[n]["count"]
                                           for n in {**held, **due}), "a false map")
    for run, path in paths.items():
        leaf, nodes = members(path, "leaf nodes")
        digest = node(b"member", sha(run.encode()), root(leaf))
        for step in reversed(nodes + []):
            bitmap, hashes = members(step, "bitmap hashes")
            need(hashes.count(None) == 1, f"no path to {run}")
            hashes = (digest if text is None else unb64(text, 32) for text in hashes)
            digest = node(b"object-node", count(bitmap).to_bytes(2, "big"), *hashes)
        here = counts.get(run, leaf)
        need(held["/root"] == "sha256:" + digest.hex() and here["begin"] == leaf["begin"], run)
        need(all(here[n] <= leaf[n] for n in COUNTS.values()), f"the map counts less of {run}")
        need(here["transitions"] < leaf["transitions"] or here["head"] == leaf["head"], run)
def check(data, key=None, tip=None):  # returns the exit code and the lines to print
    lines = map(parse, data.split(b"\n")[:-1])
    need(re.fullmatch("-?[0-9]+", canon((head := next(lines))["bundle"])), "not a bundle")
    if head["bundle"] != 1 or head.get("draft") != DRAFT: return 6, ["UNVERIFIABLE: other format"]
    also, _, _, own, records, names, size, store = members(
        {"although": [""], **head}, "although bundle draft key records runs size store")
    peaks, entries, at, item = {}, {}, 0, {}
    while at < count(size):
        before, item, end = item, next(lines), at + 1
        digests = [sha(b"\0", canon(item).encode())]
        if "omitted" not in item: entries[at] = item
        else:
            hashes, width = members(item, "hashes omitted")
            need("omitted" not in before and count(width) and type(hashes) is list)
            digests, end = [unb64(text, 32) for text in hashes], at + width
        for digest in digests:  # RFC 6962 2.1: two subtrees of one size are one of the next size
            level = min((at & -at or 2**64).bit_length(), (end - at).bit_length()) - 1
            at += 1 << level
            while level in peaks: level, digest = level + 1, sha(b"\1", peaks.pop(level), digest)
            peaks[level] = digest
        need(at == end and type(also) is list and {*map(type, also)} == {str}, "other subtrees")
    need(canon([at, len(entries), []]) == canon([size, records, type(names)()]), "not as announced")
    records = [next(lines) for _ in entries]
    used = [count(i) for record in records for l in record.get("chunked", {}).values() for i in l]
    blobs = [unb64(*members(next(lines), "blob")) for _ in {*used}]
    need([*dict.fromkeys(used)] == [*range(len(blobs))] and all(blobs)
         and len({*blobs, *names}) == len(blobs + names), "blobs or names out of order or repeated")
    chart, paths = members(last, "map paths") if "map" in (last := next(lines)) else (MISSING, {})
    last = last if chart is MISSING else next(lines)
    need(chart in (MISSING, *(e["hash"] for e in entries.values() if e["kind"] == "map")), "no map")
    runs, missing, counts, changed, is_all = {}, [], {}, False, len(entries) == size
    apart = {"/erase": [], "/key": [], "/register": []}  # the records of no run
    places, erased, here = {}, set(), set()
    order = {entry["hash"]: at for at, entry in entries.items()}
    for (at, entry), record in zip(entries.items(), records):
        held = check_record(entry, record, blobs, store, missing)
        ident, kind, run, _ = entry.values()
        check_chain(record["header"], ident, held, runs, places, missing)
        links = {link["hash"] for link in record["header"]["links"]}
        need(all(order.get(link, -1) < at for link in links), f"{ident} links to a later record")
        here |= {(ident, name) for name in held}
        listed = held.get("/erased") if kind == "erase" else 0
        listed = [one for one in listed if type(one) is dict] if type(listed) is list else []
        erased |= {(str(one.get("record")), str(one.get("place"))) for one in listed}
        bound = held.get("/verifier") if (kind, held.get("/purpose")) == ("key", "log") else own
        need(bound == own or not isinstance(bound, str), "the log was begun under another key")
        if kind == "key" and held.get("/purpose") in ("rotate", "recover", "revoke"):
            changed, missing[:0] = True, [f"the change of keys at {at}"]
        if kind == "map" and held.keys() == record["header"]["fields"].keys():
            check_map(held, paths if chart == ident else {}, at + 1, counts, apart, is_all)
        apart.get("" if run else f"/{kind}", []).append(ident)
        if kind == "run": counts[run] = {"begin": ident, **dict.fromkeys(COUNTS.values(), 0)}
        if kind in ("run", "transition"): counts[run]["head"] = ident
        if run and kind in COUNTS: counts[run][COUNTS[kind]] += 1
    top = functools.reduce(lambda r, l: sha(b"\1", l, r), [*peaks.values()][::-1] or [sha()])
    check_note(*members(last, "checkpoint"), own, f"dendrer/{store}", size, top, changed)
    need(not here & erased, "a value is here although the log says that it was erased")
    words = lambda m: f"{m[1]} of {m[2]}, {m[0][:19]} ({['withheld', 'erased'][m[:2] in erased]})"
    missing = [one if isinstance(one, str) else words(one) for one in missing]
    need(next(lines, None) is None and data[-1:] == b"\n", "something follows the checkpoint")
    missing += [f"a signature by {key}: the key is {own}"] * (key not in (None, own))
    has, is_open = order.get(tip), any(runs[name][1] != "its end" for name in names)
    need(entries[has]["kind"] in "run transition" if has is not None else is_open or not tip, tip)
    missing += [f"the log ends before {tip}, or was rewritten"] * (tip is not None and has is None)
    report = [f"{n} tip {runs[n][0]}" for n in names] + [f"not checked: {what}" for what in missing]
    report += [f"{'UNVERIFIABLE' if missing else 'INTACT'}: {len(records)} of {size} records"]
    return 6 if missing else 0, [*report, "the tip agrees" if has is not None else "UNWITNESSED"]
if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("bundle", type=argparse.FileType("rb"))
    cli.add_argument("--key"), cli.add_argument("--tip")
    try: code, report = check((args := cli.parse_args()).bundle.read(), args.key, args.tip)
    except Exception as e: code, report = 4, [f"TAMPERED: {str(e) or type(e).__name__}"]
    cli.exit(print(*(re.sub("[^ -~]", "?", line) for line in report), sep="\n") or code)
