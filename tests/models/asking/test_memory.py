"""Where results live that come from a GPU, and when they are brought."""

import gc
import pickle

import pytest
import torch

from attlas.models.asking.memory import Allowance, Homes, in_fitting_batches, late_arrays
from attlas.models.tap.recording import PASSES, Passes
from attlas.results import Maps, Site
from attlas.tokens import Tokens


def test_results_stay_where_they_are_until_that_is_much():
    homes, given = Homes(40), [torch.arange(5.0) + place for place in range(3)]
    first, second, third = (homes.of(each) for each in given)
    assert first.data_ptr() == given[0].data_ptr()
    assert second.data_ptr() == given[1].data_ptr()
    assert third.data_ptr() != given[2].data_ptr()  # 40 bytes are taken
    assert torch.equal(third, given[2])


def test_a_result_that_is_gone_makes_room_and_a_part_of_it_keeps_it():
    homes, given = Homes(20), torch.arange(5.0)
    part = homes.of(given)[2:].numpy()
    gc.collect()
    other = torch.arange(5.0)
    assert homes.of(other).data_ptr() != other.data_ptr()
    assert part.tolist() == [2, 3, 4]
    del part
    gc.collect()
    assert homes.of(other).data_ptr() == other.data_ptr()


def test_arrays_wait_until_somebody_looks_and_then_make_room():
    room, given = Allowance(100), [torch.arange(6.0).reshape(1, 2, 3), torch.ones(2, 2, 1)]
    late = late_arrays(given, room)
    assert late.shapes == ((1, 2, 3), (2, 2, 1))
    assert not room.has_room(70)  # 40 bytes are taken
    assert not late.is_here
    assert late[0].tolist() == given[0].tolist()
    assert [each.shape for each in late] == [(1, 2, 3), (2, 2, 1)]
    assert late.is_here
    assert room.has_room(100)


def test_arrays_that_nobody_looked_at_make_room_when_they_are_gone():
    room = Allowance(100)
    late = late_arrays([torch.ones(1, 5, 5)], room)
    assert not room.has_room(1)
    del late
    gc.collect()
    assert room.has_room(100)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_maps_of_late_arrays_are_maps(precision):
    given = torch.tensor([[[1.0, 0.0], [0.25, 0.75]]], dtype=precision)
    late = late_arrays([given], Allowance(100))
    places = ((0, 1),)
    maps = Maps(
        (Site("encoder", 0, 1),),
        late,
        Tokens(("a", "b"), (None, None), (False, False), ("text", "text")),
        places,
        places,
    )
    assert repr(maps) == "Maps(1 sites: encoder.0 (1, 2, 2))"
    assert not late.is_here
    assert maps["encoder.0"].tolist() == given.tolist()
    again = pickle.loads(pickle.dumps(maps))
    assert isinstance(again.weights, tuple)
    assert again[0].dtype == "float32"
    assert again[0].tolist() == given.tolist()


def test_a_process_gets_the_arrays_even_if_nobody_looked():
    late = late_arrays([torch.eye(2)[None]], Allowance(100))
    (again,) = pickle.loads(pickle.dumps(late))
    assert again.tolist() == [[[1, 0], [0, 1]]]


def test_recordings_make_room_where_memory_is_short():
    def work(rows):
        if len(rows) > 1:
            PASSES[model] = Passes()
            raise torch.OutOfMemoryError("CUDA out of memory")
        assert model not in PASSES
        return rows[0]

    model = torch.nn.Linear(1, 1)
    assert list(in_fitting_batches([3, 4], work, "one does not fit")) == [3, 4]
