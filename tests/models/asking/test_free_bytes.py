"""What a GPU can still give, with the figures of torch replaced by known ones."""

import pytest
import torch

from attlas.models.asking import memory

GPU = torch.device("cuda")


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        pytest.param(1.0, 60 + 30 - 20, id="what is free, and what torch holds without using it"),
        pytest.param(0.5, 50 - 20, id="a process that may take half of the card"),
    ],
)
def test_a_share_of_the_card_is_the_limit_of_a_process(monkeypatch, share, expected):
    monkeypatch.setattr(memory, "_FREE", {})
    held = {"reserved_bytes": 30, "allocated_bytes": 20}
    known = {name: {"all": {"current": count}} for name, count in held.items()}
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", lambda device: known)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (60, 100))
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda device: share)
    assert memory.free_bytes(GPU) == expected
