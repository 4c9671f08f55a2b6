#!/usr/bin/env python3
"""Verifies a dendrer bundle (.dnd), written from docs/format.md alone.
Exit code: 0 intact, 2 usage, 4 tampered, 6 unverifiable (a value or a beginning is not here)."""
import argparse, base64, decimal, functools, hashlib, json, re
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TAGS = ["$float", "$bytes", "$wtf8", "$object", "$gap", "$redacted", "$vault"]
KINDS = ["run", "transition", "refusal", "register", "erase", "key", "end", "map"]
HEADER = "author fields head kind links pack prev run store tick ts type v"

def need(holds, why):
    if not holds: raise ValueError(why)
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def std(raw): return base64.b64encode(raw).decode()
def b64(raw): return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

def unb64(text, size=None, write=b64):  # writing it again settles alphabet, padding, trailing bits
    raw = base64.b64decode(text.translate({45: "+", 95: "/"}) + "=" * (-len(text) % 4))
    need(write(raw) == text and size in (None, len(raw)), "not base64 of the right kind and length")
    return raw

def number(x):  # ECMAScript Number::toString (RFC 8785 3.2.2.3)
    text = format(decimal.Decimal(repr(x)), "f") if 1e-6 <= abs(x) < 1e21 else repr(x)
    return re.sub("e([+-])0*", r"e\1", text.removesuffix(".0"))

def canon(v, depth=0):
    if isinstance(v, (bool, str)) or v is None: return json.dumps(v, ensure_ascii=False)
    if isinstance(v, float): return number(v)
    if isinstance(v, (int, decimal.Decimal)): return str(v)
    need(depth < 136, "nested too deep")
    if isinstance(v, list): return "[" + ",".join(canon(x, depth + 1) for x in v) + "]"
    tags = [name for name in v if re.match(r"\$(?!\$)", name)]
    need(not tags or len(v) == 1 and tags[0] in TAGS, "not a tagged value")
    names = sorted(v, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(canon(n) + ":" + canon(v[n], depth + 1) for n in names) + "}"

def parse(raw):  # integers keep their digits, whatever their size
    value = json.loads(raw, parse_int=lambda n: int(n) if len(n) < 20 else decimal.Decimal(n))
    need(canon(value).encode() == raw, "not canonical JSON")
    return value

def members(value, names):
    need(isinstance(value, dict) and set(value) == set(names.split()), f"not an object of {names}")
    return [value[name] for name in names.split()]

def check_note(note, key, origin, size, root):  # C2SP signed-note and tlog-checkpoint
    text, signatures = note.rsplit("\n\n", 1)
    need(text == f"{origin}\n{size}\n{std(root)}", "the log is not the one that was signed")
    name, ident, raw = key.split("+", 2)
    raw = unb64(raw, 33, std)
    need(raw[0] == 1 and ident == sha(name.encode(), b"\n", raw)[:4].hex(), "not a verifier key")
    lines = re.findall("\u2014 ([^\\s+\\0-\x1f]+) (\\S+)\n", signatures)
    need("".join(f"\u2014 {n} {s}\n" for n, s in lines) == signatures, "not signature lines")
    signed = {(n, unb64(s, None, std)[:4].hex()): unb64(s, None, std)[4:] for n, s in lines}
    need(all(signed.values()) and len(signed) == len(lines) <= 100, "a key signs once")
    Ed25519PublicKey.from_public_bytes(raw[1:]).verify(signed[name, ident], text.encode() + b"\n")

def check_record(entry, record, blobs, store, missing):
    header, values, chunked = record["header"], record["values"], record.get("chunked", {})
    fields, kept = header["fields"], "seed" if "seed" in record else "salts"
    members(record, "header values " + kept + (" chunked" if chunked else ""))
    ident = "sha256:" + sha(b"dendrer/record/v1\n", canon(header).encode()).hex()
    own = {"hash": ident, **{name: header[name] for name in ("kind", "run", "tick")}}
    need(canon(entry) == canon(own), f"the header gives {ident}, the log has {entry['hash']}")
    need(members(header, HEADER)[-1] == 1 and header["store"] == store, "another version or store")
    salts = record[kept]
    if kept == "seed":
        seed = b"dendrer/salt/v1\n" + unb64(salts, 16)
        pairs = b"".join(sha(seed, i.to_bytes(4, "big")) for i in range(len(fields)))
        salts = {name: b64(pairs[16 * i:16 * i + 16]) for i, name in enumerate(fields)}
    need(values.keys() | chunked.keys() == salts.keys() and salts.keys() <= fields.keys()
         and not values.keys() & chunked.keys(), "a value without a commitment or a salt")
    for name, salt in salts.items():
        large = name in chunked
        value = parse(b"".join(blobs[i] for i in chunked[name])) if large else values[name]
        need((len(canon(value).encode()) > 1024) == large, f"{name} stands in the wrong place")
        array = f'["{b64(unb64(salt, 16))}",{canon(name)},{canon(value)}]'.encode()
        need(fields[name] == b64(sha(b64(array).encode())), f"{name} of {ident} was changed")
    missing += [f"{name} of {entry['run']}, {ident[:19]}" for name in fields if name not in salts]

def check_chain(entry, prev, head, ts, runs, ticks, missing):
    ident, kind, run, tick = (entry[name] for name in ("hash", "kind", "run", "tick"))
    need(kind in KINDS and (not run or (run in runs) != (kind == "run")), f"{run} begins elsewhere")
    need(kind != "map" or (run, tick, prev, head) == (None,) * 4, "a map belongs to no run")
    ticks[ident] = tick, ts
    if kind == "run":
        need((tick == 0) == (prev is None) and ticks.get(prev, (0, ts))[1] <= ts, f"{run} begins")
        runs[run] = [ident, ticks.get(prev or ident, (None, ts))[0], ts]
        missing += [f"the beginning of {run}, up to {prev}"] * (runs[run][1] is None)
    elif kind == "transition":
        need(runs[run][1] in (None, tick - 1), f"{run}: tick {tick} stands after {runs[run][1]}")
        need(runs[run][0] == prev and runs[run][2] <= ts, f"{run}: tick {tick} follows another")
        runs[run] = [ident, tick, ts]
    elif kind in ("refusal", "end"):
        need(runs[run][0] == head and (kind, runs[run][1]) != ("end", "its end"), f"{run}: {kind}")
        runs[run][1] = "its end" if kind == "end" else runs[run][1]

def member(name, digest):  # a leaf of an object (docs/format.md, "State root")
    key = sha(name.encode())
    return key.hex(), sha(b"dendrer/state/member/v1\n", key, digest)

def node(bitmap, children):
    return sha(b"dendrer/state/object-node/v1\n", bitmap.to_bytes(2, "big"), *children)

def trie(leaves, level=0):
    if len(leaves) == 1: return leaves[0][1]
    groups = [[leaf for leaf in leaves if int(leaf[0][level], 16) == n] for n in range(16)]
    bitmap = sum(1 << n for n, group in enumerate(groups) if group)
    return node(bitmap, (trie(group, level + 1) for group in groups if group))

def check_map(line, entries, records, places):  # a line for each run that the map counts
    ident, paths = members(line, "map paths")
    at = [(entry["hash"], entry["kind"]) for entry in entries].index((ident, "map"))
    values = records[at]["values"]
    if "/size" not in values or "/root" not in values: return  # withheld, and named as that
    size, root = values["/size"], values["/root"]
    need(size == places[at] + 1, "the map is that of another size")
    for run, path in paths.items():
        leaf, nodes = members(path, "leaf nodes")
        members(leaf, "begin ends erasures head refusals transitions")
        scalars = [(n, b"dendrer/state/scalar/v1\n" + canon(v).encode()) for n, v in leaf.items()]
        key, digest = member(run, trie([member(n, sha(text)) for n, text in scalars]))
        for level in reversed(range(len(nodes))):
            bitmap, hashes = members(nodes[level], "bitmap hashes")
            bits = [n for n in range(16) if bitmap >> n & 1]
            need(len(bits) == len(hashes) and hashes.count(None) == 1 and bitmap < 65536
                 and bits[hashes.index(None)] == int(key[level], 16), f"no path to {run}")
            digest = node(bitmap, [digest if text is None else unb64(text, 32) for text in hashes])
        need("sha256:" + digest.hex() == root, f"the path of {run} does not lead to the map")
        own = [entry["kind"] for entry in entries[:at] if entry["run"] == run]
        names = {"transition": "transitions", "refusal": "refusals", "end": "ends"}
        names["erase"] = "erasures"
        here = {kind: own.count(kind) for kind in names}
        need(all(here[kind] <= leaf[names[kind]] for kind in here), f"the map counts less of {run}")
        all_ = sum(leaf[name] for name in names.values())
        yield f"{run}: {sum(here.values())} of {all_} records, by the map of {size}"

def check(data, key=None, tip=None):  # returns the exit code and the lines to print
    lines = map(parse, data.removesuffix(b"\n").split(b"\n"))
    head = next(lines)
    need(type(head["bundle"]) in (int, decimal.Decimal) and data[-1:] == b"\n", "cut short or none")
    if head["bundle"] != 1 or head.get("draft") != 2: return 6, ["UNVERIFIABLE: other format"]
    own, count, names, size, store = members(head, "bundle draft key records runs size store")[2:]
    peaks, entries, places, at, item = {}, [], [], 0, {}
    while at < size:
        before, item, end = item, next(lines), at + 1
        if "omitted" in item:
            hashes, width = members(item, "hashes omitted")
            need("omitted" not in before and width > 0 and width is not True, "nothing is omitted")
            digests, end = [unb64(text, 32) for text in hashes], at + width
        else:
            members(item, "hash kind run tick")
            entries.append(item)
            places.append(at)
            digests = [sha(b"\0", canon(item).encode())]
        for digest in digests:  # RFC 6962 2.1: two subtrees of one size are one of the next size
            level = min((at & -at or 2**64).bit_length(), (end - at).bit_length()) - 1
            at += 1 << level
            while level in peaks:
                level, digest = level + 1, sha(b"\1", peaks.pop(level), digest)
            peaks[level] = digest
        need(at == end, "the subtrees are not those of what is omitted")
    need(canon([at, len(entries), type(names)()]) == canon([size, count, []]), "not as announced")
    records = [next(lines) for _ in entries]
    used = [i for record in records for list_ in record.get("chunked", {}).values() for i in list_]
    blobs = [unb64(*members(next(lines), "blob")) for _ in set(used)]
    need(canon(list(dict.fromkeys(used))) == canon(list(range(len(blobs)))) and all(blobs)
         and len({*blobs, *names}) == len(blobs + names), "blobs or names out of order or repeated")
    runs, ticks, missing = {}, {}, []
    for entry, record in zip(entries, records):
        check_record(entry, record, blobs, store, missing)
        check_chain(entry, *map(record["header"].get, ("prev", "head", "ts")), runs, ticks, missing)
    root = functools.reduce(lambda r, l: sha(b"\1", l, r), [*peaks.values()][::-1] or [sha()])
    last, whole = next(lines), []
    if "map" in last: last, whole = next(lines), [*check_map(last, entries, records, places)]
    check_note(*members(last, "checkpoint"), own, f"dendrer/{store}", size, root)
    need(next(lines, None) is None, "something follows the checkpoint")
    missing += [f"a signature by {key}: the key is {own}"] * (key not in (None, own))
    need(tip in (None, *(runs[name][0] for name in names)), "no run has the tip that was given")
    report = [f"{name} tip {runs[name][0]}" for name in names]
    report += whole + [f"not checked: {item}" for item in missing]
    report += [f"{'UNVERIFIABLE' if missing else 'INTACT'}: {count} of {size} records of the log"]
    return 6 if missing else 0, report + ["the tip agrees" if tip else "UNWITNESSED"]

if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("bundle", type=argparse.FileType("rb"))
    cli.add_argument("--key"), cli.add_argument("--tip")
    args = cli.parse_args()
    try: code, report = check(args.bundle.read(), args.key, args.tip)
    except Exception as error:  # whatever a damaged file leads to, it is not intact
        code, report = 4, [f"TAMPERED: {str(error) or type(error).__name__}"]
    print(*(re.sub("[^ -~]", "?", line) for line in report), sep="\n")
    cli.exit(code)
