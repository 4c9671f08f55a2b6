"""Prints random chains of carl-core 0.2.0, each as one line of JSON: the text of the file, and what carl-core answers about it."""
import json, random, sys
from datetime import datetime, timedelta, timezone
from carl_core.interaction import ActionType, InteractionChain, Step
r = random.Random(20)
texts = ["", "plain", "é\u2028\x85\u007f", "\ud83d\ude00", "\U0001f600", "\ud800 alone", "q\"\\\n\r\t\b\f\x00", "sk-ant-" + "a" * 30, "$tag",
    "eyJhbGciOiJIUzI1NiJ9." + "x" * 24 + ".sig", "0x" + "aB" * 20, "hf_" + "q" * 22, "see sk-" + "z" * 21 + " end"]
numbers = [0, -0.0, 1, 1.0, -7, 2**53 + 1, 10**30, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 1.5e-7, 1e22, 1e300, 5e-324, 0.1, 3.14159,
    float("nan"), float("inf"), float("-inf"), 100.0, 99999999999999990.0]
names = ["a", "b", "api_key", "monkey", "tokens_used", "Z", "é", "\U0001f600", "\uffff", "nested", ""]
def value(depth=0):
    k = r.randrange(8 if depth < 3 else 4)
    if k == 0: return r.choice([None, True, False])
    if k == 1: return r.choice(numbers)
    if k in (2, 3): return r.choice(texts)
    if k in (4, 5): return [value(depth + 1) for _ in range(r.randrange(4))]
    return {r.choice(names): value(depth + 1) for _ in range(r.randrange(5))}
def maybe(f): return f() if r.random() < 0.5 else None
actions = list(ActionType)
for n in range(10000):
    chain = InteractionChain(chain_id="%012x" % r.getrandbits(48), context={"k": value(2)})
    chain.started_at = datetime(2026, 4, 20, tzinfo=timezone.utc) + timedelta(microseconds=r.randrange(10**12))
    if r.random() < 0.3:
        chain.register_coherence_probe(lambda **k: {"phi": 0.5, "kuramoto_r": 0.25})
    for _ in range(r.randrange(6)):
        step = chain.record(r.choice(actions), r.choice(texts[:4]), input=value(), output=value(), success=r.random() < 0.8,
            duration_ms=maybe(lambda: r.random() * 1000), parent_id=maybe(lambda: "%012x" % r.getrandbits(48)),
            session_id=maybe(lambda: "s"), trace_id=maybe(lambda: "t"), phi=maybe(r.random), kuramoto_r=maybe(r.random),
            channel_coherence=maybe(lambda: {"c": r.random()}))
        step.started_at = chain.started_at + timedelta(seconds=r.randrange(2), microseconds=r.choice([0, 1, 250000]))
        if r.random() < 0.2: step.eml_tree = {"op": "eml", "children": [value(2)]}
    print(json.dumps({"text": chain.to_jsonl(), "rate": chain.success_rate(), "n": len(chain),
        "calls": len(chain.by_action(ActionType.TOOL_CALL)), "trajectory": chain.coherence_trajectory()}))
