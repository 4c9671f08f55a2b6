"""Runs programs that look for secrets over a corpus of labelled texts, and prints a table.

Usage: peers.py DIR, where DIR has NNNNN.txt and labels.jsonl as the test `redact` writes them. A text counts as found if a program
reports anything in it, so where the finding is does not matter: in favour of the programs.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(sys.argv[1])


def gitleaks():
    report = ROOT.parent / "gitleaks.json"
    command = ["gitleaks", "dir", str(ROOT), "--no-banner", "--exit-code", "0", "--report-format", "json", "--report-path", str(report)]
    subprocess.run(command, check=True, capture_output=True)
    return {pathlib.Path(one["File"]).name for one in json.loads(report.read_text())}


def detect_secrets():
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    found = SecretsCollection()
    with default_settings():
        for path in sorted(ROOT.glob("*.txt")):
            found.scan_file(str(path))
    return {pathlib.Path(name).name for name, _ in found}


def secretlint():
    rules = {"rules": [{"id": "@secretlint/secretlint-rule-preset-recommend"}]}
    (ROOT.parent / ".secretlintrc.json").write_text(json.dumps(rules))
    command = ["npx", "secretlint", "--format", "json", "--secretlintrc", ".secretlintrc.json", f"{ROOT.name}/*.txt"]
    ran = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True)
    return {pathlib.Path(one["filePath"]).name for one in json.loads(ran.stdout) if one["messages"]}


def main():
    labels = [json.loads(line) for line in (ROOT / "labels.jsonl").read_text().splitlines()]
    classes = ["Shape", "Named", "Prose", "Disguised"]
    print("program".ljust(16), *(name.ljust(10) for name in classes), "recall    ", "precision ", "damaged   ", "seconds")
    for name, run in [("gitleaks", gitleaks), ("detect-secrets", detect_secrets), ("secretlint", secretlint)]:
        if name == "secretlint" and not shutil.which("npx"):
            print(name, "SKIPPED: no npx")
            continue
        began = time.perf_counter()
        found = run()
        took = time.perf_counter() - began
        share = lambda chosen: sum(one["file"] in found for one in chosen) / max(len(chosen), 1)
        secret = [one for one in labels if one["class"]]
        other = [one for one in labels if not one["class"]]
        right, wrong = (sum(one["file"] in found for one in chosen) for chosen in (secret, other))
        shares = [share([one for one in secret if one["class"] == each]) for each in classes]
        shares += [share(secret), right / max(right + wrong, 1), share(other)]
        print(name.ljust(16), *(f"{one:.3f}".ljust(10) for one in shares), f"{took:.1f}")


main()
