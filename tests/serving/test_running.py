"""A real server: many users, hostile ones, a kill in the middle of a job, and its own description.

`ATTLAS_LOAD_SECONDS` says for how long twenty users ask; 12 by default.
"""

import json
import os
import random
import signal
import socket
import string
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest
from serving.running import serving

SECONDS = float(os.environ.get("ATTLAS_LOAD_SECONDS", "12"))
USERS = 20
HOSTILE = 10_000
ASKED = {"model": "sentiment", "input": {"text": "not a great film, but I could not look away"}}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    keep = tmp_path_factory.mktemp("kept")
    limits = ["--most-bytes", "100000", "--job-queue", "2", "--job-seconds", "3", "--seconds", "30"]
    with serving(keep, "sentiment", "recall", "shortcut_token", *limits) as running:
        yield running


def edit_of(user):
    """A different edit for each user."""
    actions = [{"action": "zero"}, {"action": "uniform"}, {"action": "shuffle", "seed": user}]
    return [{**actions[user % 3], "layer": user % 5, "heads": [user % 8, (user + 3) % 8]}]


def test_twenty_users_at_once_see_their_own_edits(server):
    expected = []
    for user in range(USERS):
        status, found = server.ask("POST", "/api/intervene", {**ASKED, "edits": edit_of(user)})
        assert status == 200
        expected.append(found["after"]["score"])
    assert len({round(each, 7) for each in expected}) == USERS, "edits that look alike test nothing"

    def use(user, end):
        wrong = asked = 0
        while monotonic() < end:
            status, found = server.ask("POST", "/api/intervene", {**ASKED, "edits": edit_of(user)})
            asked += 1
            wrong += status != 200 or abs(found["after"]["score"] - expected[user]) > 1e-7
        return asked, wrong

    def all_use(seconds):
        with ThreadPoolExecutor(USERS) as pool:
            done = list(pool.map(use, range(USERS), [monotonic() + seconds] * USERS))
        return sum(asked for asked, _ in done), sum(wrong for _, wrong in done)

    first = all_use(SECONDS / 3)
    memory = server.memory()
    second = all_use(SECONDS * 2 / 3)
    assert first[1] == second[1] == 0, "answers were lost or mixed"
    assert min(first[0], second[0]) >= USERS
    assert server.memory() - memory < 20, f"{memory:.0f} MB became {server.memory():.0f}"


def hostile_bytes(draw):
    """One request of a kind that no browser sends."""
    path = draw.choice(["/api/explain", "/api/intervene", "/api/jobs", "/", "/health", "/page/x"])
    method = draw.choice(["POST"] * 9 + ["GET", "PUT", "DELETE", "OPTIONS", "X" * 50])
    kinds = {
        "deep": lambda: b"[" * draw.randrange(1, 20_000),
        "nested": lambda: b'{"input":' * draw.randrange(1, 5000),
        "noise": lambda: draw.randbytes(draw.randrange(2000)),
        "wide": lambda: b'{"model":"' + b"a" * draw.randrange(99_000) + b'"}',
        "number": lambda: b'{"model":' + b"9" * draw.randrange(1, 10_000) + b"}",
        "encoding": lambda: json.dumps(ASKED).encode(draw.choice(["utf-16", "utf-32", "utf-7"])),
        "name": lambda: json.dumps({**ASKED, "model": draw.choice(NAMES)}).encode(),
        "edits": lambda: json.dumps({**ASKED, "edits": [{"action": "zero"}] * 300}).encode(),
        "values": lambda: json.dumps({**ASKED, "target": draw.choice(VALUES)}).encode(),
    }
    body = kinds[draw.choice(sorted(kinds))]()
    length = draw.choice([len(body)] * 9 + [0, "x", -1, 10**12])
    headers = [
        f"Host: {draw.choice(['127.0.0.1'] * 9 + ['evil.test', 'x' * 500, ''])}",
        f"Content-Type: {draw.choice(['application/json'] * 9 + ['text/html', ''])}",
        f"Content-Length: {length}",
        f"Cookie: {''.join(draw.choices(string.printable[:90], k=draw.randrange(50)))}",
        "Connection: close",
    ]
    headers += draw.choice([[]] * 9 + [["Origin: http://evil.test"], ["Origin: null"]])
    draw.shuffle(headers)
    kept = headers[: draw.choice([9, 9, 9, 9, draw.randrange(1, 6)])]
    return (
        f"{method} {path} HTTP/1.1\r\n".encode() + "\r\n".join(kept).encode() + b"\r\n\r\n" + body
    )


NAMES = ["../../etc/passwd", "gpt2", "/work", "sentiment\x00", "__import__('os')", "a" * 150, "💥"]
VALUES = ["\u0000", "😀" * 100, -1, 10**30, 0.5, [], {}, True, "a" * 499]


def send(port, content):
    """The status of the answer; nothing if the connection was closed without one."""
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.settimeout(20)
            connection.sendall(content)
            return int(connection.recv(64).split(b" ")[1])
    except (OSError, IndexError, ValueError):
        return None


def test_hostile_requests_leave_it_serving(server):
    draw = random.Random(0)
    slow = [socket.create_connection(("127.0.0.1", server.port), 20) for _ in range(50)]
    for each in slow:  # begun, and never ended
        each.sendall(b"POST /api/explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
    body = json.dumps(ASKED).encode()
    head = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    for _ in range(50):  # asked, and gone before the answer
        with socket.create_connection(("127.0.0.1", server.port), 20) as gone:
            gone.sendall(f"POST /api/explain HTTP/1.1\r\n{head}\r\n\r\n".encode() + body)
    contents = [hostile_bytes(draw) for _ in range(HOSTILE)]
    with ThreadPoolExecutor(16) as pool:
        seen = Counter(pool.map(lambda content: send(server.port, content), contents))
    print(dict(seen))
    for each in slow:
        each.close()
    assert not [status for status in seen if status is not None and status >= 500], seen
    assert not seen[None], f"{seen[None]} requests got no answer"
    status, found = server.ask("POST", "/api/explain", ASKED)
    assert status == 200 and found["explanation"]["prediction"][0]["label"] == "POSITIVE"


def test_every_line_of_the_log_is_json(tmp_path):
    with serving(tmp_path, "sentiment") as server:
        for path in ("explain", "intervene"):
            assert server.ask("POST", f"/api/{path}", ASKED)[0] == 200
            sleep(2.5)  # a sign that work goes on would come every second
        lines = (tmp_path / "log.jsonl").read_text("utf-8").partition('{"time"')
    found = [json.loads(line) for line in "".join(lines[1:]).splitlines()]
    asked = [each["path"] for each in found if each["event"] == "request"]
    assert asked[-2:] == ["/api/explain", "/api/intervene"]


# schemathesis draws by `random` inside a strategy of its own
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
def test_the_description_holds(server):
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    held = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    address = f"http://127.0.0.1:{server.port}"
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    assert len(operations) == 15
    for operation in operations:

        @settings(
            max_examples=30, deadline=None, database=None, derandomize=True,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(operation.as_strategy())
        def holds(case):
            case.call_and_validate(checks=held)

        holds()


def test_a_killed_server_loses_nothing_that_was_finished(tmp_path):
    """Killed in the middle of an audit, then told to stop in the middle; the third run ends it."""
    models = ("shortcut_token", "sentiment")
    search = {"job": "same_output", "model": "shortcut_token", "input": {"text": "the cobalt wall"}}
    with serving(tmp_path, *models) as server:
        finished = server.ask("POST", "/api/jobs", search)[1]["id"]
        before = server.until(finished, "done", "failed")
        assert before["state"] == "done", before
        audit = {"job": "audit", "model": "shortcut_token", "count": 16}
        number = server.ask("POST", "/api/jobs", audit)[1]["id"]
        folder = tmp_path / "audits" / number
        tables = _tables(folder, server, number)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    sleep(1)  # its processes end by themselves
    with serving(tmp_path, *models) as server:
        assert server.get(f"/api/jobs/{finished}") == before
        server.until(number, "running")
        sleep(1)
        assert all(file.stat().st_mtime_ns == changed for file, changed in tables.items())
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) in (0, -signal.SIGTERM)
    with serving(tmp_path, *models) as server:
        found = server.until(number, "done", "failed", "cancelled", seconds=300)
        assert found["state"] == "done", found
        assert found["result"]["report"] == f"/reports/{number}"
        assert [each["id"] for each in server.get("/api/jobs")["jobs"]] == [number, finished]


def _tables(folder, server, number):
    """The tables of the first items that are done, and when they were written."""
    end = monotonic() + 180
    while monotonic() < end:
        state = server.get(f"/api/jobs/{number}")
        assert state["state"] in ("queued", "running"), state
        done = sorted(folder.rglob("*.parquet"))
        if len(done) >= 2:
            return {file: file.stat().st_mtime_ns for file in done}
        sleep(0.05)
    raise AssertionError(f"nothing was done in {folder}: {list(folder.rglob('*'))}")
