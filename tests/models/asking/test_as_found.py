"""How far a model moves by itself: kernels whose distance is known, because the test makes them."""

import sys

import pytest
import torch
from tiny import subject_parts
from torch.nn import functional

import attlas
from attlas.cli import main
from attlas.errors import UnknownNameError, UnsupportedModelError
from attlas.models.asking.as_found import MOST_KERNELS, moves_as_far

FOUND = torch.tensor([[1.0, -2.0, 0.5]])
BY_KERNEL = 2.0**-10  # exact in float32, so that the limit is exact too


def is_plain():
    """Whether sdpa may use its plain kernel alone."""
    return not torch.backends.cuda.flash_sdp_enabled()


def two_kernels():
    """The plain kernel moves the largest output, 2, by this share of it."""
    moved = torch.tensor([[0.0, 2 * BY_KERNEL, 0.0]])
    return FOUND + moved if is_plain() else FOUND.clone()


def test_another_kernel_that_moves_it_as_far_is_an_excuse():
    assert moves_as_far(two_kernels, FOUND, BY_KERNEL)
    assert moves_as_far(two_kernels, FOUND, MOST_KERNELS * BY_KERNEL)
    assert not moves_as_far(two_kernels, FOUND, 1.01 * MOST_KERNELS * BY_KERNEL)
    assert not is_plain()  # the choice of kernels is the user's again


def test_a_model_that_repeats_itself_on_every_kernel_has_no_excuse():
    assert not moves_as_far(FOUND.clone, FOUND, 1e-6)


def test_a_model_that_does_not_repeat_itself_tells_nothing():
    outputs = iter([FOUND + 1e-3])
    assert moves_as_far(lambda: next(outputs), FOUND, 0.5)


@pytest.fixture
def sdpa(monkeypatch):
    """Attention of sdpa whose output is larger by given shares: on fused kernels, on the plain."""
    own = functional.scaled_dot_product_attention
    shares = {}

    def attend(*given, **named):
        return own(*given, **named) * (1 + shares["plain" if is_plain() else "fused"])

    monkeypatch.setattr(functional, "scaled_dot_product_attention", attend)
    return shares


def test_a_model_is_opened_if_its_own_kernels_are_as_far_apart(sdpa):
    sdpa.update(fused=0.05, plain=0.0)
    model, tokenizer = subject_parts("sequence classification")
    assert attlas.Subject(model, tokenizer).sites


def test_a_model_is_refused_if_its_kernels_agree_and_spelling_out_does_not(sdpa):
    sdpa.update(fused=0.05, plain=0.05)
    model, tokenizer = subject_parts("sequence classification")
    with pytest.raises(UnsupportedModelError, match="rounding explains"):
        _ = attlas.Subject(model, tokenizer).sites


@pytest.fixture
def explain(monkeypatch, capsys):
    """The status of `attlas explain`, and what it says of a mistake."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["attlas", "explain", "a warm film", *words])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        return stopped.value.code or 0, capsys.readouterr().err

    return run


def test_the_refusal_names_the_way_out_and_it_leads_out(sdpa, tmp_path, explain):
    sdpa.update(fused=0.05, plain=0.05)
    for part in subject_parts("sequence classification"):
        part.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError) as refused:
        _ = attlas.load(tmp_path).sites
    assert 'with attn_implementation="eager" in attlas.load' in str(refused.value)
    assert attlas.load(tmp_path, attn_implementation="eager").sites
    asked = ("--method", "raw_attention", "--model", str(tmp_path))
    status, said = explain(*asked)
    assert status == 1 and "--attn-implementation eager" in said
    assert explain(*asked, "--attn-implementation", "eager")[0] == 0
    model, tokenizer = subject_parts("sequence classification")
    model.set_attn_implementation("eager")
    assert attlas.Subject(model, tokenizer).sites


def test_a_kind_of_attention_that_cannot_be_opened_is_refused_before_loading(explain):
    with pytest.raises(UnknownNameError, match="did you mean 'eager'"):
        attlas.load("nowhere", attn_implementation="eagre")
    status, said = explain("--attn-implementation", "flash_attention_2")
    assert status == 2 and "sdpa, eager" in said
