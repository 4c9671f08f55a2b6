"""Makes the state that a run of a published data set begins with, for `dendrer reduce --state`.

    python prepare.py tau DIR > s0.json                    DIR holds one JSON file for each table of the database
    python prepare.py agentdojo RUN.json DIR > s0.json     DIR holds environment.yaml and injection_vectors.yaml of the suite

The second needs PyYAML.
"""

import json
import pathlib
import sys


def tau(directory):
    """The database: one member for each table."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(pathlib.Path(directory).glob("*.json"))}


def agentdojo(run, directory):
    """The environment, with the run's injections put in as raw text before it is parsed as YAML."""
    import yaml

    directory = pathlib.Path(directory)
    text = (directory / "environment.yaml").read_text("utf-8")
    vectors = yaml.safe_load((directory / "injection_vectors.yaml").read_text("utf-8"))
    given = json.loads(pathlib.Path(run).read_text("utf-8"))["injections"]
    for name, vector in vectors.items():
        text = text.replace("{" + name + "}", given.get(name, vector["default"]))
    return yaml.safe_load(text)


if __name__ == "__main__":
    makers = {"tau": tau, "agentdojo": agentdojo}
    if len(sys.argv) < 3 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    sys.stdout.reconfigure(encoding="utf-8")
    json.dump(makers[sys.argv[1]](*sys.argv[2:]), sys.stdout, ensure_ascii=False)
