"""What every peer is measured with: its input, its clock, and what it left on disk.

usage of each of the others: with_PEER.py WHAT FILE DIR

WHAT is `steps`: FILE holds one step a line, {"action": {"params": REQUEST, ...}, "result": RESPONSE, ...}, made before the
clock starts. Or `turns` (`turns-delta`): FILE holds one message a line, and each step asks with every message so far. DIR is empty.
"""
import json, os, sys, time


def arguments():
    what, file, directory = sys.argv[1:]
    with open(file) as lines:
        made = [json.loads(line) for line in lines]
    if what == "steps":
        made = [(step["action"]["params"], step["result"]) for step in made]
    return what, made, directory


class Clock:
    """Wall time and CPU time, of all threads, since it was made."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def since(self, steps, name=""):
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {f"{name}wall_us": wall / steps * 1e6, f"{name}cpu_us": cpu / steps * 1e6}


def on_disk(directory):
    """Bytes in files, and bytes that the file system took for them."""
    status = [os.lstat(os.path.join(at, name)) for at, _, names in os.walk(directory) for name in names]
    return {"bytes": sum(s.st_size for s in status), "allocated": sum(s.st_blocks * 512 for s in status)}


def report(steps, **figures):
    print(json.dumps({"steps": steps, **figures}))
