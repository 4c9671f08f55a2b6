#!/usr/bin/env python3
"""Turns a store of format 2 into one of format 1, as programs wrote it before values of the vault were in the log.

to-files.py STORE: each `S` frame becomes a file of `vault/`, with the same name and bytes (docs/format-disk.md, "Vault").
Only for stores of one segment in which nothing was erased.
"""
import pathlib
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frame(kind, payload):
    length = struct.pack("<I", len(payload))
    return length + struct.pack("<I", crc32c(length + kind + payload)) + kind + payload


def listed(positions):
    return b"".join(struct.pack("<Q", moved[position]) for (position,) in struct.iter_unpack("<Q", positions))


def values(payload):
    """The seed, then a slot for each value: its text, or the positions of its pieces."""
    out, at = payload[:16], 16
    while at < len(payload):
        (size,) = struct.unpack_from("<I", payload, at)
        end = at + 4 + (size & 0x7FFFFFFF)
        slot = payload[at + 4 : end]
        out += payload[at : at + 4] + (listed(slot) if size >> 31 else slot)
        at = end
    return out


store = pathlib.Path(sys.argv[1])
(path,) = (store / "segments").glob("*.seg")
log = path.read_bytes()
out, at, begin, moved = bytearray(log[:64]), 64, 64, {}
(store / "vault").mkdir(exist_ok=True)
while at < len(log):
    (size,) = struct.unpack_from("<I", log, at)
    kind, payload = log[at + 8 : at + 9], log[at + 9 : at + 9 + size]
    moved[at] = len(out)
    at += 9 + size
    if kind == b"S":
        (store / "vault" / payload[:32].hex()).write_bytes(payload[32:])
        continue
    if kind == b"E":
        payload = payload[:20] + struct.pack("<Q", len(out) - begin) + payload[28:]
    elif kind == b"V":
        payload = values(payload)
    elif kind == b"L":
        payload = listed(payload)
    else:
        assert kind in (b"C", b"R"), kind
    out += frame(kind, payload)
    if kind == b"E":
        begin = len(out)
path.write_bytes(out)
text = (store / "store.json").read_text()
text = text.replace('"format":2,', '"format":1,').replace('"reader":2,"writer":2', '"reader":1,"writer":1')
(store / "store.json").write_text(text)
