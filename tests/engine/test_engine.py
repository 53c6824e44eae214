"""The choice of an engine, and how a cluster is shared: mistakes are one line, told early."""

import socket
from importlib.util import find_spec

import pytest

import attlas
from attlas.engine import Engine, engine, engine_of
from attlas.engine.cluster import WorkerShare, divided
from attlas.errors import UnknownNameError, UsageError

needs_ray = pytest.mark.skipif(not find_spec("ray"), reason="pip install 'attlas[ray]'")


def test_an_unknown_engine_is_told_with_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown engine 'rai': did you mean 'ray'"):
        engine_of("rai")
    with pytest.raises(UsageError, match="an engine is one of local, ray or an"):
        engine_of(8)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workers": 0}, "workers are at least 1, not 0"),
        ({"address": "head:6379"}, "the address head:6379 is for the engine ray"),
    ],
)
def test_what_does_not_go_together_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        Engine(**given)


def test_without_ray_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'attlas\[ray\]'"):
        engine_of("ray")
    assert engine_of("local").is_local and engine_of("local").is_alone
    assert not Engine("local", workers=2).is_alone


@needs_ray
def test_a_cluster_that_does_not_answer_is_told_at_once():
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"no Ray cluster answers at {address}"):
            Engine("ray", address).check()


@needs_ray
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ray://head:10001", "start it there"),
        ("head", "host:port or auto, not 'head'"),
        ("head:port", "host:port or auto"),
    ],
)
def test_an_address_of_another_kind_is_refused(address, said):
    with pytest.raises(UsageError, match=said):
        Engine("ray", address).check()


def test_a_wrong_engine_is_told_before_data_are_read(tmp_path):
    subject = attlas.load("shortcut_token")
    for verb, given in (
        (attlas.explain_to, (subject, "no such data", tmp_path / "a.parquet")),
        (attlas.head_importance, (subject, "no such data")),
        (attlas.audit, (subject, "no such data")),
        (attlas.study, ("poster",)),
    ):
        with pytest.raises(UnknownNameError, match="unknown engine 'rai'"):
            verb(*given, engine="rai")


@pytest.mark.parametrize(
    ("nodes", "device", "workers", "share"),
    [
        ([{"CPU": 8}], "cpu", None, (8, 1, 0)),
        ([{"CPU": 8}], "cpu", 2, (2, 4, 0)),
        ([{"CPU": 5}, {"CPU": 5}], "cpu", 3, (3, 2, 0)),  # three do not fit with three cores each
        ([{"CPU": 2}], "cpu", 5, (5, 1, 0)),  # the cluster may grow
        ([{"CPU": 16, "GPU": 1}], "cuda", 2, (2, 1, 0.5)),
        ([{"CPU": 8, "GPU": 2}, {"CPU": 8, "GPU": 2}, {"CPU": 4}], "cuda", None, (4, 1, 1)),
        ([{"CPU": 8, "GPU": 2}], "cuda", 3, (3, 1, 0.5)),
        ([{"CPU": 1, "GPU": 2}], "cuda", None, (2, 0, 1)),
    ],
)
def test_workers_share_cores_and_gpus(nodes, device, workers, share):
    assert divided(nodes, device, workers) == WorkerShare(*share)


def test_a_model_on_a_gpu_needs_a_node_with_one():
    with pytest.raises(UsageError, match="no node of the Ray cluster has one"):
        divided([{"CPU": 4}], "cuda", None)
