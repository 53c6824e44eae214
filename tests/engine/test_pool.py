"""A pool of workers on a Ray that ends them when a test says so."""

from types import SimpleNamespace

import known_models
import pytest
import torch

import attlas
from attlas.engine.cluster import WorkerShare
from attlas.engine.pool import WorkerPool
from attlas.engine.worker import SentModel, Work, packed
from attlas.errors import ModelError, UsageError


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Ray:
    """One process that acts as a cluster: calls run when they are waited for, in their order.

    `deadly` are pieces that end the worker that does them, so many times; `unheard` ones are done,
    and their worker ends before the next one.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, deadly=None, unheard=()):
        self.deadly, self.unheard = dict(deadly or {}), set(unheard)
        self.calls, self.found, self.done, self.killed = [], {}, [], []

    def remote(self, **resources):
        return lambda kind: SimpleNamespace(remote=lambda *given: self._hire(kind, given))

    def _hire(self, kind, given):
        worker = SimpleNamespace(own=kind(*given), is_alive=True)
        for name in ("open", "unpack", "do"):
            call = lambda *asked, name=name: self._call(worker, name, asked)  # noqa: E731
            setattr(worker, name, SimpleNamespace(remote=call))
        return worker

    def _call(self, worker, name, asked):
        ref = object()
        self.calls.append((ref, worker, name, asked))
        return ref

    def put(self, value):
        return value

    def wait(self, refs, timeout):
        ready = [ref for ref in refs if ref in self.found]
        if not ready and timeout:
            self._run(*next(call for call in self.calls if call[0] in refs))
            return self.wait(refs, 0)
        return ready, [ref for ref in refs if ref not in ready]

    def _run(self, ref, worker, name, asked):
        self.calls = [call for call in self.calls if call[0] is not ref]
        if name == "do" and self.deadly.get(asked[0], 0):
            self.deadly[asked[0]] -= 1
            worker.is_alive = False
        if not worker.is_alive:
            self.found[ref] = RayError("the actor died")
            return
        try:
            self.found[ref] = getattr(worker.own, name)(*asked)
        except ZeroDivisionError as problem:
            self.found[ref] = RayTaskError(str(problem))
        if name == "do":
            self.done.append(asked[0])
            worker.is_alive = asked[0] not in self.unheard

    def get(self, ref):
        found = self.found[ref]
        if isinstance(found, Exception):
            raise found
        return found

    def kill(self, worker):
        worker.is_alive = False
        self.killed.append(worker)


class Squares(Work):
    def begin(self, subject):
        return self.square

    def square(self, number):
        if number == 13:
            raise UsageError("13 has no luck")
        return number * number + 0 / (number + 1)


def results(ray, pieces, workers=2, ahead=2):
    pool = WorkerPool(ray, WorkerShare(workers, 1, 0), Squares(), None, ahead)
    found = list(pool.results([(str(each), each) for each in pieces]))
    assert len(dict(found)) == len(found)  # none is handed over twice
    return {int(name): value for name, value in found}


def test_every_piece_is_done_once():
    ray = Ray()
    assert results(ray, range(10)) == {each: each * each for each in range(10)}
    assert sorted(ray.done) == [*range(10)]


def test_there_are_no_more_workers_than_pieces():
    ray = Ray()
    pool = WorkerPool(ray, WorkerShare(8, 1, 0), Squares(), None)
    assert dict(pool.results([("2", 2)])) == {"2": 4}
    assert pool.state() == "1 worker"
    pool.end()
    assert len(ray.killed) == 1


def test_pieces_are_taken_as_they_are_needed():
    taken = []

    def pieces():
        for number in range(100):
            taken.append(number)
            yield str(number), number

    pool = WorkerPool(Ray(), WorkerShare(2, 1, 0), Squares(), None)
    next(pool.results(pieces()))
    assert len(taken) <= 4


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_what_a_lost_worker_left_is_done_by_another_and_nothing_else_is_done_again(ahead):
    ray = Ray(deadly={3: 2, 8: 1})
    assert results(ray, range(12), ahead=ahead) == {each: each * each for each in range(12)}
    assert sorted(ray.done) == [*range(12)]
    assert len(ray.killed) == 3


def test_what_a_worker_sent_before_it_was_lost_is_taken():
    ray = Ray(unheard={0, 5})
    assert results(ray, range(8), workers=1) == {each: each * each for each in range(8)}
    assert sorted(ray.done) == [*range(8)]


def test_a_piece_that_ends_three_workers_is_told_by_its_name():
    with pytest.raises(ModelError, match="3 ended 3 workers, the last with: RayError: the actor"):
        results(Ray(deadly={3: 9}), range(6))


def test_workers_that_end_as_they_begin_are_not_started_forever():
    class Ending(Ray):
        def _hire(self, kind, given):
            worker = super()._hire(kind, given)
            worker.is_alive = False
            return worker

    with pytest.raises(ModelError, match="3 workers ended as they began"):
        results(Ending(), range(6))


def test_an_error_of_ours_comes_back_as_it_was_raised():
    found = results(Ray(), [1, 13, 2])
    assert (found[1], found[2]) == (1, 4)
    assert isinstance(found[13], UsageError) and str(found[13]) == "13 has no luck"


def test_a_mistake_in_the_work_is_not_tried_again():
    ray = Ray()
    with pytest.raises(RayTaskError):
        results(ray, [-1])
    assert ray.done == [-1]


class Predicts(Work):
    def begin(self, subject):
        return lambda text: (subject.name, subject.predict(text)["probability"].item())


def predicted(subject, text):
    pool = WorkerPool(Ray(), WorkerShare(1, 1, 0), Predicts(), subject)
    return dict(pool.results([("one", text)]))["one"]


def test_a_model_is_opened_by_its_name():
    subject = attlas.load("shortcut_token")
    name, sure = predicted(subject, "zap is the word")
    assert name == "shortcut_token"
    assert sure == subject.predict("zap is the word")["probability"].item()


def test_a_model_that_was_changed_in_memory_travels_as_files():
    subject = attlas.load("shortcut_token")
    before = subject.predict("zap is the word")["probability"].item()
    subject.model.classifier.weight.data *= 0.5
    name, sure = predicted(subject, "zap is the word")
    assert name == "shortcut_token" and sure != before
    assert sure == subject.predict("zap is the word")["probability"].item()
    assert "model.safetensors" in packed(subject)


def test_a_model_that_is_another_one_also_from_its_files_is_told(monkeypatch):
    monkeypatch.setattr(SentModel, "open", lambda sent, place: None)
    with pytest.raises(UsageError, match="cannot open shortcut_token as it is here, neither by"):
        predicted(attlas.load("shortcut_token"), "zap is the word")


def test_another_attention_travels_with_the_model():
    subject = attlas.load("shortcut_token")
    subject.model.set_attn_implementation("eager")
    sent = SentModel.of(subject)
    opened = sent.open("shortcut_token")
    assert opened is not None and opened.model.config._attn_implementation == "eager"


def test_other_libraries_are_told():
    sent = SentModel.of(attlas.load("shortcut_token"))
    sent.identity["versions"]["torch"] = "1.0"
    with pytest.raises(UsageError, match=r"a worker has other libraries: .*torch is \"1.0\""):
        sent.open("shortcut_token")


@pytest.mark.parametrize(
    ("places", "said"),
    [({"bert": 0, "classifier": "cpu"}, "spread over 2 devices"), ({"": "disk"}, "on disk")],
)
def test_a_model_that_is_spread_or_on_disk_is_refused(places, said):
    subject = attlas.load("shortcut_token")
    subject.model.hf_device_map = places
    with pytest.raises(UsageError, match=f"is {said}"):
        SentModel.of(subject)


def test_a_model_that_cannot_be_saved_is_told():
    subject = known_models.bag_of_words()
    subject.model.save_pretrained = None
    with pytest.raises(UsageError, match="cannot be sent to workers"):
        packed(subject)


def test_workers_on_one_gpu_keep_to_their_shares_of_its_memory(monkeypatch):
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", taken.append)
    for gpus, shares in ((0.25, 2), (1, 0), (0, 0)):
        taken.clear()
        pool = WorkerPool(Ray(), WorkerShare(2, 1, gpus), Squares(), None)
        assert len(dict(pool.results((str(each), each) for each in range(4)))) == 4
        assert len(taken) == shares and all(0.2 < each < gpus for each in taken)
