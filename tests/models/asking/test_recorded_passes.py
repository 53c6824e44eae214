"""Recorded passes, with a recording that runs the work again in the place of a CUDA graph."""

import gc
from weakref import ref

import numpy as np
import pytest
import torch

import attlas
from attlas.errors import UnsupportedModelError
from attlas.models.asking import reading
from attlas.models.branching import branches
from attlas.models.tap import recording, two_ways
from attlas.models.tap.opening import is_tapped

METHODS = ("raw_attention", "attention_rollout", "gradient_attention", "generic_relevance")
TEXT, OTHER = "a warm and funny film", "a cold and boring mess"


class Again:
    """Stands in for a CUDA graph: it does the work again and writes where the first run wrote."""

    def __init__(self, work):
        self.work, self.made, self.replays = work, work(), 0

    def replay(self):
        self.replays += 1
        for place, new in zip(tensors_of(self.made), tensors_of(self.work()), strict=True):
            place.copy_(new)


def tensors_of(made):
    if isinstance(made, torch.Tensor):
        return [made]
    if isinstance(made, recording.InPieces):
        return made._pieces
    return [each for part in made for each in tensors_of(part)]


@pytest.fixture
def graphs(monkeypatch):
    """Record on the processor; the graphs that were recorded."""
    made = []

    def captured(_pool, work):
        made.append(Again(work))
        return made[-1], made[-1].made

    for module in (two_ways, recording):
        monkeypatch.setattr(module, "captured", captured)
        monkeypatch.setattr(module, "new_pool", lambda: "pool")
        monkeypatch.setattr(module, "fits", lambda passes, before: True)
    for module in (reading, branches):
        monkeypatch.setattr(module, "can_be_recorded", lambda own: not is_tapped(own.model))
    return made


@pytest.fixture
def subject():
    return attlas.load("sentiment")


@pytest.mark.parametrize("method", METHODS)
def test_a_replay_gives_what_the_pass_gives(method, subject, graphs, monkeypatch):
    calls = [(TEXT, None), (TEXT, "NEGATIVE"), (OTHER, None), (TEXT, "POSITIVE")]
    monkeypatch.setattr(two_ways, "SIGHTS", 1000)  # none is recorded
    expected = [attlas.explain(subject, text, method, target) for text, target in calls]
    assert graphs == []
    monkeypatch.setattr(two_ways, "SIGHTS", 1)
    found = [attlas.explain(subject, text, method, target) for text, target in calls]
    assert [each.replays for each in graphs] == [1 + len(calls)] * 2  # there and back
    for one, other in zip(found, expected, strict=True):
        assert one.target.name == other.target.name
        assert one.target.value == pytest.approx(other.target.value)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
        for own, known in zip(one.maps.weights, other.maps.weights, strict=True):
            np.testing.assert_allclose(own, known, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"steps": 2}, {"rule": "right", "steps": 3}])
def test_a_replay_of_branches_gives_what_the_pass_gives(options, subject, graphs, monkeypatch):
    texts = [TEXT, TEXT, TEXT, OTHER, TEXT]  # run, recorded, replayed
    monkeypatch.setattr(branches, "can_be_recorded", lambda own: False)
    expected = [attlas.explain(subject, text, "attattr", **options) for text in texts]
    assert graphs == []
    monkeypatch.setattr(branches, "can_be_recorded", lambda own: True)
    found = [attlas.explain(subject, text, "attattr", **options) for text in texts]
    assert any(each.replays > 1 for each in graphs)  # one is that of the proof
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
        assert one.notes == other.notes
        for own, known in zip(one.maps.weights, other.maps.weights, strict=True):
            np.testing.assert_allclose(own, known, atol=1e-6)


def test_what_is_copied_in_pieces_is_what_was_written():
    wide, long = torch.arange(6.0).view(2, 3), torch.arange(4)
    held = recording.InPieces([wide, None, long, wide, wide + 1])
    found = held.copies()
    wide += 10  # after the copy
    assert [None if each is None else each.tolist() for each in found] == [
        [[0, 1, 2], [3, 4, 5]],
        None,
        [0, 1, 2, 3],
        [[0, 1, 2], [3, 4, 5]],
        [[1, 2, 3], [4, 5, 6]],
    ]
    assert len(held._pieces) == 2  # a copy for each shape


def test_a_replay_does_not_write_over_what_was_handed_out(subject, graphs):
    first = [attlas.explain(subject, TEXT, "raw_attention") for _ in range(two_ways.SIGHTS)][-1]
    before = [each.copy() for each in first.maps.weights]
    attlas.explain(subject, OTHER, "raw_attention")
    assert graphs[0].replays == 3
    assert all(map(np.array_equal, first.maps.weights, before))


def explained_often(subject, method="generic_relevance"):
    return [attlas.explain(subject, TEXT, method) for _ in range(two_ways.SIGHTS + 1)][-1]


def test_weights_that_change_in_place_are_followed(subject, graphs):
    before = explained_often(subject).scores
    with torch.no_grad():
        for parameter in subject.model.parameters():
            parameter.mul_(0.9)
    played = graphs[0].replays
    found = attlas.explain(subject, TEXT, "generic_relevance").scores
    assert graphs[0].replays == played + 1
    assert not np.allclose(found, before)
    own = attlas.explain(subject, [TEXT, TEXT], "generic_relevance")[0].scores
    np.testing.assert_allclose(found, own, atol=1e-6)


def test_weights_in_another_place_are_another_pass(subject, graphs):
    explained_often(subject)
    played = graphs[0].replays
    parameter = next(subject.model.parameters())
    parameter.data = parameter.data.clone()
    attlas.explain(subject, TEXT, "generic_relevance")
    assert (graphs[0].replays, len(graphs)) == (played, 2)


def test_hooks_are_called_so_nothing_is_recorded(subject, graphs):
    called, _ = [], subject.sites
    attlas.explain(subject, TEXT, "generic_relevance")
    subject.model.register_forward_hook(lambda *_: called.append(1))
    explained_often(subject)
    assert (len(called), graphs) == (two_ways.SIGHTS + 1, [])


def test_what_keeps_a_model_from_training_is_nobodys_hook(subject, graphs):
    subject.model.train()
    assert any(parameter.requires_grad for parameter in subject.model.parameters())
    explained_often(subject)
    assert len(graphs) == 2


def test_an_open_tap_is_met_so_nothing_is_recorded(subject, graphs):
    with subject.tap(attlas.edits.uniform()):
        explained_often(subject)
    assert graphs == []


def test_a_recording_that_gives_something_else_is_refused(subject, graphs, monkeypatch):
    monkeypatch.setattr(Again, "replay", lambda self: tensors_of(self.made)[0].mul_(2))
    expected = attlas.explain(subject, [TEXT, TEXT], "generic_relevance")[0].scores
    np.testing.assert_allclose(explained_often(subject).scores, expected, atol=1e-6)
    assert len(graphs) == 2


@pytest.mark.parametrize("problem", [RuntimeError, UnsupportedModelError])
def test_a_pass_that_cannot_be_recorded_is_run(problem, subject, graphs, monkeypatch):
    """A model that waits for the device fails in a recording alone, whatever is made of that."""

    def captured(_pool, work):
        raise problem("operation not permitted when stream is capturing")

    expected = attlas.explain(subject, [TEXT, TEXT], "raw_attention")[0].scores
    monkeypatch.setattr(two_ways, "captured", captured)
    np.testing.assert_allclose(
        explained_often(subject, "raw_attention").scores, expected, atol=1e-6
    )
    assert graphs == []


def test_a_recurrent_network_is_not_recorded(subject, monkeypatch):
    """The host hands it the lengths of the texts, which would break off a recording."""
    texts = [("a warm film", "good"), ("so dull", "bad"), ("very good", "good"), ("not it", "bad")]
    trained = attlas.train("bilstm", texts, dev=texts, epochs=1, vector_size=8, device="cpu")

    monkeypatch.setattr(type(subject), "device", torch.device("cuda"))
    assert reading.can_be_recorded(subject)
    assert not reading.can_be_recorded(trained.subject)


def test_lists_and_long_texts_are_not_recorded(subject, graphs, monkeypatch):
    for _ in range(two_ways.SIGHTS + 1):
        attlas.explain(subject, [TEXT, OTHER], "raw_attention")
    monkeypatch.setattr(reading, "MOST_RECORDED", 100)
    explained_often(subject, "raw_attention")
    assert graphs == []


def test_the_oldest_recordings_go(subject, graphs, monkeypatch):
    monkeypatch.setattr(two_ways, "KEPT", 2)
    texts = [" ".join(["good"] * count) for count in (2, 3, 4)]
    for text in texts:
        for _ in range(two_ways.SIGHTS):
            attlas.explain(subject, text, "raw_attention")
    ways = two_ways.PASSES[subject.model].ways.values()
    assert [each.recorded is not None for each in ways] == [False, True, True]


def test_a_model_with_recordings_can_be_let_go(graphs):
    own = attlas.load("sentiment")
    explained_often(own)
    model = ref(own.model)
    for each in graphs:
        each.work = None  # a CUDA graph does not hold it
    del own
    gc.collect()
    assert model() is None
