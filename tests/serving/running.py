"""A server in a process of its own, as an operator starts it."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from time import monotonic, sleep

PATIENCE = 180  # seconds until a server must be there, on a busy machine


class Server:
    """Asks a server that runs; `process` can be told to stop or killed."""

    def __init__(self, process, port):
        self.process, self.port = process, port

    def ask(self, method, path, body=None, timeout=120):
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", content, method=method
        )
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def get(self, path):
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def until(self, number, *states, seconds=PATIENCE):
        end = monotonic() + seconds
        while (found := self.get(f"/api/jobs/{number}"))["state"] not in states:
            assert monotonic() < end, found
            sleep(0.1)
        return found

    def memory(self):
        """The memory in use, in megabytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


@contextmanager
def serving(keep, *arguments):
    """A server on a free port; it is killed at the end if it still runs."""
    command = [sys.executable, "-m", "attlas", "serve", "--port", "0", "--keep", str(keep)]
    with open(keep / "log.jsonl", "ab") as log:
        process = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ
        )
    try:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        server = Server(process, int(found[1]))
        end = monotonic() + PATIENCE
        while monotonic() < end:
            try:
                server.get("/health")
                break
            except OSError:
                sleep(0.1)
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
