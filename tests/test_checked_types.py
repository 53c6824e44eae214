"""Every call within Attlas is checked in tests: arguments, results, and the sizes of axes."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import jaxtyping
import pytest
import torch
from checked_types import checked
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from attlas.mathematics.divergences import total_variation

Row = Float[Tensor, " token"]


@checked
def shortened(first: Row, second: Row, by: int = 0) -> Row:
    """Both rows have one length, and so has the result if `by` is 0."""
    return (first + second)[by:]


@checked
def counted(number: int) -> Iterator[int]:
    yield from range(number)


@checked
@dataclass
class Pair:
    first: Row
    second: Row


def adding(more: int):
    @checked
    def add(number: int) -> int:
        return number + more if number < 100 else "many"

    return add


def counting_from(first: int):
    @checked
    def count(number: int) -> Iterator[int]:
        yield from range(first, first + number)

    return count


def summing():
    captured = torch.ones(3)

    @checked
    def total() -> float:
        return captured.sum().item()

    return total, weakref.ref(captured)


def test_a_call_as_it_is_written_passes():
    assert shortened(torch.ones(3), torch.ones(3)).tolist() == [2, 2, 2]
    assert list(counted(2)) == [0, 1]
    assert Pair(torch.ones(2), torch.ones(2)).first.tolist() == [1, 1]


@pytest.mark.parametrize(
    "given",
    [
        (torch.ones(3), [1.0, 1.0, 1.0]),
        (torch.ones(3), torch.ones(3, dtype=torch.int64)),
        (torch.ones(3), torch.ones(3, 1)),
        (torch.ones(3), torch.ones(4)),
        (torch.ones(3), torch.ones(3), 1.5),
    ],
    ids=["no tensor", "no float", "two axes", "another length", "no whole number"],
)
def test_an_argument_of_the_wrong_type_or_size_fails(given):
    with pytest.raises(TypeCheckError):
        shortened(*given)


def test_a_result_has_the_sizes_of_the_arguments():
    with pytest.raises(TypeCheckError):
        shortened(torch.ones(3), torch.ones(3), by=1)


def test_each_call_has_sizes_of_its_own():
    assert [len(shortened(torch.ones(size), torch.ones(size))) for size in (2, 5)] == [2, 5]


def test_the_fields_of_a_dataclass_are_checked_together():
    with pytest.raises(TypeCheckError):
        Pair(torch.ones(2), torch.ones(3))


def test_the_arguments_of_a_generator_are_checked_before_it_is_asked():
    with pytest.raises(TypeCheckError):
        counted("two")


def test_each_inner_function_is_called_as_itself_and_checked():
    made = [adding(more) for more in (1, 2, 3)]
    assert [add(1) for add in made] == [2, 3, 4]
    for add in made:
        with pytest.raises(TypeCheckError):
            add("one")
        with pytest.raises(TypeCheckError):
            add(100)


def test_the_check_of_an_inner_function_keeps_nothing_that_it_captured():
    total, captured = summing()
    assert total() == 3
    del total
    gc.collect()
    assert captured() is None


def test_an_inner_generator_is_checked_as_itself_and_before_it_is_asked():
    made = [counting_from(first) for first in (1, 5)]
    assert [list(count(2)) for count in made] == [[1, 2], [5, 6]]
    with pytest.raises(TypeCheckError):
        made[0]("two")


def test_what_says_nothing_of_its_types_is_left_as_it_is():
    def untold(number):
        return number

    assert checked(untold) is untold


def test_checks_can_be_left_out(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert adding(1)(1.5) == 2.5


def test_attlas_is_checked():
    with pytest.raises(TypeCheckError):
        total_variation(torch.ones(1, 2) / 2, torch.ones(1, 3) / 3)
