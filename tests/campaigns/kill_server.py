"""Runs audits in processes of their own, which are killed as asked: one line of JSON each.

Everything is imported once; each audit is forked off. A process is killed after some seconds, or
inside a write: when part of the file is written, or before or after the draft replaces the file.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
from audits import small_audit

from attlas.auditing import texts
from attlas.auditing.folder import Folder
from attlas.auditing.work import items

ASKED = {"measures": ["comprehensiveness", "sufficiency", "sensitivity"], "texts_for_slowest": 4}


class Logged:
    """Each item is logged when it begins, and by the name of its table when that is written."""

    def __init__(self, path):
        self.log = Path(path).open("a", buffering=1)  # noqa: SIM115
        self.batches = []
        self.explain, self.again = items.explain_batch, items.measure_method
        self.write = Folder.write
        items.explain_batch, items.measure_method = self.explain_batch, self.measure_method
        Folder.write = lambda folder, name, *others: self.written(folder, name, *others)

    def explain_batch(self, plan, numbers, drafts, tell):
        self.batches[:] = plan.batches
        print("begun values", numbers[0], file=self.log)
        return self.explain(plan, numbers, drafts, tell)

    def measure_method(self, plan, measure, method):
        print("begun robustness", measure.name, method, file=self.log)
        return self.again(plan, measure, method)

    def written(self, folder, name, *others):
        self.write(folder, name, *others)
        kind, _, rest = name.partition(" ")
        if kind == "values":
            rest = str(self.batches[int(rest)][0])
        print("ended", kind, rest, file=self.log)


class Writes:
    """Counts the moments of writing, three for each file, and dies at one of them."""

    def __init__(self, last):
        self.count, self.last = 0, last
        self.sync, self.replace = os.fsync, os.replace
        os.fsync, os.replace = self.cut, self.replaced

    def pass_moment(self):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def cut(self, number):
        if self.count + 1 == self.last:
            os.ftruncate(number, random.Random(self.last).randint(0, os.fstat(number).st_size))
        self.pass_moment()
        self.sync(number)

    def replaced(self, *given):
        self.pass_moment()
        self.replace(*given)
        self.pass_moment()


def audit(job, told):
    """What the process that may be killed does."""
    Logged(job["log"])
    writes = Writes(job["write"])
    status = 1
    try:
        small_audit(out=job["folder"], watch=lambda step: None, **ASKED)
        os.write(told, b"%d" % writes.count)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def run(job):
    """How an audit ended: its status, how many moments it had if it was not killed, its seconds."""
    reading, told = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if not child:
        audit(job, told)
    os.close(told)
    if job["wait"] is not None:
        time.sleep(job["wait"])
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    moments = os.read(reading, 100)
    os.close(reading)
    return [status, int(moments or 0), time.monotonic() - begun]


if __name__ == "__main__":
    torch.set_num_threads(1)
    texts.BATCH_SIZE["cpu"] = 1
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
