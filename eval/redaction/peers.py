"""Runs programs that look for secrets over a corpus of labelled texts, and prints a table.

Usage: peers.py DIR, where DIR has NNNNN.txt and labels.jsonl as the tests `redact` and `redact_tools` write them. A text counts as
found if a program reports anything in it, so where the finding is does not matter: in favour of the programs. A label may have what
dendrer found, for a row on the same measure. A program that is not installed has a row that begins with SKIPPED.
"""

import importlib.util
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


def skipped():
    """Returns why a program cannot run, by its name."""
    why = {}
    if not shutil.which("gitleaks"):
        why["gitleaks"] = "not installed"
    if importlib.util.find_spec("detect_secrets") is None:
        why["detect-secrets"] = "not installed"
    if not shutil.which("npx"):
        why["secretlint"] = "no npx"
    elif not (ROOT.parent / "node_modules" / "secretlint").is_dir():
        why["secretlint"] = "not installed"
    return why


def row(name, labels, classes, found, seconds):
    def share(chosen):
        return sum(one["file"] in found for one in chosen) / max(len(chosen), 1)

    secret = [one for one in labels if one["class"]]
    other = [one for one in labels if not one["class"]]
    right, wrong = (sum(one["file"] in found for one in chosen) for chosen in (secret, other))
    shares = [share([one for one in secret if one["class"] == each]) for each in classes]
    shares += [share(secret), right / max(right + wrong, 1), share(other)]
    print(name.ljust(16), *(f"{one:.3f}".ljust(10) for one in shares), seconds)


def main():
    labels = [json.loads(line) for line in (ROOT / "labels.jsonl").read_text().splitlines()]
    classes = list(dict.fromkeys(one["class"] for one in labels if one["class"]))
    print("program".ljust(16), *(name.ljust(10) for name in classes), "recall    ", "precision ", "damaged   ", "seconds")
    if "dendrer" in labels[0]:
        row("dendrer", labels, classes, {one["file"] for one in labels if one["dendrer"]}, "-")
    without = skipped()
    for name, run in [("gitleaks", gitleaks), ("detect-secrets", detect_secrets), ("secretlint", secretlint)]:
        if name in without:
            print(name.ljust(16), f"SKIPPED: {without[name]}")
            continue
        began = time.perf_counter()
        found = run()
        row(name, labels, classes, found, f"{time.perf_counter() - began:.1f}")


main()
