"""opentine: a v3 repository and its recorder, one event a step. Objects, ref and reflog are files, each synced; a run takes at
most 3,000 events. `fsck` reads and checks every object."""
from measured import Clock, arguments, on_disk, report
from opentine import Recorder, Repo, TraceEvent

what, made, directory = arguments()
repo = Repo.init(directory)
recorder = Recorder.start(repo, ref="heads/main", capture=False)
transcript = []
clock = Clock()
for n, item in enumerate(made):
    if what == "steps":
        request, response = item
    else:
        transcript.append(item)
        request, response = {"messages": transcript}, {"status": "ok"}
    recorder.append(
        TraceEvent(
            kind="model", timestamp=n, trace_id="bench", span_id=f"model-{n}", model="stub",
            inputs=request, outputs=response,
        )
    )
recorded = clock.since(len(made))
run = recorder.finalize()
repo = Repo.open(directory)
clock = Clock()
loaded = repo.load_run(run)
read = clock.since(len(made), "read_")
assert len(loaded.steps) == len(made), len(loaded.steps)
clock = Clock()
result = repo.fsck()
verified = clock.since(len(made), "verify_")
assert result.ok, result.errors
report(len(made), **recorded, **read, **verified, **on_disk(directory))
