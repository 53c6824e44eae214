"""Where results live that come from a GPU."""

import gc

import torch

from attlas.models.asking.memory import Homes


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
