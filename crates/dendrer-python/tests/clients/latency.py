"""How much longer a call takes through the recorder: the same call with and without it in turn, in one run.

    dendrer record -- python latency.py CALLS

`OPENAI_BASE_URL` is the recorder, and `STUB_URL` the stub. The stub sends 20 pieces over 50 ms. Prints a line of JSON: the medians in
milliseconds, and the ratio.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import sys
import time
from urllib.parse import urlsplit


class Way:
    """A connection that is kept open, as the libraries of models keep it."""

    def __init__(self, url: str) -> None:
        """Connects to an address."""
        parts = urlsplit(url)
        self.path = parts.path + "/chat/completions"
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seconds: list[float] = []

    def call(self, number: int) -> bytes:
        """Asks once, and reads to the end."""
        words = f"{number}: tell me as much as makes twenty pieces (pieces)"
        body = {"model": "stub", "stream": True, "messages": [{"role": "user", "content": words}]}
        begun = time.perf_counter()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-of-the-stub"}
        self.connection.request("POST", self.path, json.dumps(body), headers)
        answer = self.connection.getresponse().read()
        self.seconds.append(time.perf_counter() - begun)
        return answer

    @property
    def median(self) -> float:
        """The median of its calls, in milliseconds."""
        return statistics.median(self.seconds) * 1000


def main() -> None:
    """Asks in turn."""
    ways = [Way(os.environ["STUB_URL"]), Way(os.environ["OPENAI_BASE_URL"])]
    for number in range(int(sys.argv[1])):
        # Which of both is first changes with each call.
        first, second = ways if number % 2 else reversed(ways)
        assert first.call(number) == second.call(number)
    alone, recorded = (way.median for way in ways)
    found = {"alone_ms": round(alone, 2), "recorded_ms": round(recorded, 2), "ratio": round(recorded / alone, 4)}
    print(json.dumps(found | {"calls": len(ways[0].seconds)}))


main()
