"""How quickly `attlas serve` answers, alone and with twenty users at once.

    python benchmarks/serve.py [--rounds 40] [--users 20] [--seconds 10]

A server runs in a process of its own, on a free port, with the built-in sentiment model. The
goal for an intervention is a median of 200 ms on two cores. On a machine with other work, times
are longer than on one without.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

TEXT = "not a great film, but I could not look away"
ASKED: dict[str, Any] = {"model": "sentiment", "input": {"text": TEXT}}
GOAL = 200.0  # milliseconds
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "intervene": ("intervene", {"edits": [{"action": "uniform", "layer": 2}]}),
    "intervene, with maps": (
        "intervene",
        {"edits": [{"action": "zero", "keys": [3]}], "maps": True},
    ),
    "explain by attattr": ("explain", {"method": "attattr"}),
    "explain by attention_rollout": ("explain", {"method": "attention_rollout"}),
    "remove two sets of words": ("remove", {"sets": [[1], [2, 3]]}),
    "three removal curves": ("curves", {"method": "gradient"}),
}


def main() -> None:
    options = parsed()
    with tempfile.TemporaryDirectory() as keep:
        command = [sys.executable, "-m", "attlas", "serve", "sentiment", "--port", "0"]
        server = subprocess.Popen(
            [*command, "--keep", keep], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert server.stdout is not None
            found = re.search(r":(\d+)/", server.stdout.readline())
            assert found is not None, "the server did not start"
            measure(int(found[1]), options)
        finally:
            server.terminate()
            server.wait()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    return parser.parse_args()


def measure(port: int, options: argparse.Namespace) -> None:
    for name in REQUESTS:
        timed(port, name)  # loads the model, and opens it for the first time
    print(f"{'one user, milliseconds':<32} {'median':>8} {'95 %':>8}")
    medians = {}
    for name in REQUESTS:
        times = sorted(timed(port, name) for _ in range(options.rounds))
        medians[name] = statistics.median(times)
        print(f"{name:<32} {medians[name]:8.1f} {times[int(0.95 * (len(times) - 1))]:8.1f}")
    end = time.monotonic() + options.seconds

    def use(_: int) -> list[float]:
        times = []
        while time.monotonic() < end:
            times.append(timed(port, "intervene"))
        return times

    with ThreadPoolExecutor(options.users) as pool:
        every = sorted(each for times in pool.map(use, range(options.users)) for each in times)
    said = f"intervene, {options.users} users"
    print(f"{said:<32} {statistics.median(every):8.1f} {every[int(0.95 * (len(every) - 1))]:8.1f}")
    print(f"{len(every) / options.seconds:.0f} interventions a second")
    reached = "reached" if medians["intervene"] <= GOAL else "NOT reached"
    print(f"goal, a median of {GOAL:.0f} ms for an intervention: {reached}")


def timed(port: int, name: str) -> float:
    """The milliseconds of one request, with its connection."""
    path, more = REQUESTS[name]
    begun = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    body = json.dumps({**ASKED, **more})
    connection.request("POST", f"/api/{path}", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    connection.close()
    return 1000 * (time.perf_counter() - begun)


if __name__ == "__main__":
    main()
