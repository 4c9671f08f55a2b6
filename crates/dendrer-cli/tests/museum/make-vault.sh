#!/usr/bin/env bash
# Records a store with values in the vault for the museum: make-vault.sh DIR [files], with `dendrer` on the path. Its keys are kept
# beside it, in `keys`, so that each later build reads the values and goes on with the log (tests/it/museum.rs).
set -euo pipefail
dir=$(realpath -m "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work/home XDG_CONFIG_HOME=$work/home/config
python3 - <<'PYTHON'
import json, random, sqlite3
db = sqlite3.connect("c.sqlite")
db.executescript("""CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
    CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));""")
rng = random.Random(7)
for n, size in enumerate([100, 900, 12_000]):
    text = "".join(rng.choice("abcdefghij klmnop") for _ in range(size))
    values = {"room": n, "text": text}
    body = {"v": 4, "id": f"id-{n}", "channel_values": values, "channel_versions": {"room": n + 1, "text": n + 1}}
    parent = f"id-{n - 1}" if n else None
    row = ("desk", "", f"id-{n}", parent, "json", json.dumps(body).encode(), json.dumps({"step": n}).encode())
    db.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    write = ("desk", "", f"id-{n}", f"task-{n}", "", 0, "room", "json", str(n + 1).encode())
    db.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", write)
db.commit()
PYTHON
dendrer init
dendrer import c.sqlite
dendrer verify --all --replay
dendrer fsck
mkdir -p "$dir/keys"
cp -r .dendrer "$dir/store"
find "$work/home" \( -name '*.vault' -o -name '*.key' \) -exec cp {} "$dir/keys/" \;
rm -rf "$dir/store/"index* "$dir/store/"*lock "$dir/store/synced"
# As programs wrote it before the values were in the log.
[ "${2:-}" != files ] || "$here/to-files.py" "$dir/store"
dendrer runs --all --sort name -n 0 --json | python3 -c '
import json, sys
runs = json.load(sys.stdin)["items"]
json.dump([{"run": r["name"], "ticks": r["ticks"], "tip": r["tip"], "refusals": r["refusals"]} for r in runs], sys.stdout, indent=1)
print()' >"$dir/runs.json"
