"""The floor: a recorder of JSON lines with a SHA-256 chain, standard library alone. Prints CPU and wall per step.

usage: floor.py FILE STEPS SYNC_EVERY   (0: never synced)
"""
import hashlib, json, os, random, sys, time

path, steps, sync_every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(1)
words = ["alpha", "route", "storm", "hotel", "price", "train", "plan", "check", "allow", "result"]

def make(n):
    text = " ".join(random.choice(words) for _ in range(170))
    step = {"n": n, "request": {"model": "stub", "prompt": text[:420]}, "response": {"text": text[420:840]}}
    size = len(json.dumps(step, sort_keys=True, separators=(",", ":")))
    step["response"]["text"] += "x" * (1024 - size)
    assert len(json.dumps(step, sort_keys=True, separators=(",", ":"))) == 1024
    return step

previous, wall, cpu = "", 0, 0
with open(path, "w") as file:
    for first in range(0, steps, 100):
        # Made right before they are recorded, a hundred at a time, and beside the clock.
        made = [make(n) for n in range(first, min(first + 100, steps))]
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        for n, step in enumerate(made, first + 1):
            line = json.dumps(step, sort_keys=True, separators=(",", ":"))
            previous = hashlib.sha256((previous + line).encode()).hexdigest()
            file.write('{"hash":"%s","step":%s}\n' % (previous, line))
            file.flush()
            if sync_every and n % sync_every == 0:
                os.fdatasync(file.fileno())
        wall, cpu = wall + time.perf_counter() - wall_before, cpu + time.process_time() - cpu_before
print(json.dumps({"cpu_us": cpu / steps * 1e6, "wall_us": wall / steps * 1e6}))
