"""Models in shells: taken out, or refused by name."""

import numpy as np
import pytest
import tiny
import torch
from peft import LoraConfig, PromptTuningConfig, TaskType, get_peft_model

import attlas
from attlas.errors import UnsupportedModelError

TEXT = "the film was not good"


@pytest.fixture
def parts():
    return tiny.subject_parts("sequence classification")


def test_an_adapted_model_is_opened_with_its_adapter(parts):
    model, tokenizer = parts
    plain = attlas.Subject(model, tokenizer).predict(TEXT)["probability"].item()
    shell = get_peft_model(model, LoraConfig(task_type=TaskType.SEQ_CLS, init_lora_weights=False))
    shell.eval()
    subject = attlas.Subject(shell, tokenizer)
    with torch.no_grad():
        expected = shell(**tokenizer(TEXT, return_tensors="pt")).logits.softmax(-1).max().item()
    assert subject.predict(TEXT)["probability"].item() == pytest.approx(expected, abs=1e-6)
    assert expected != pytest.approx(plain, abs=1e-4)
    assert attlas.check(subject).passed


MERGED = ["decompx", "lrp_relevance", "value_weighted_attention"]


@pytest.mark.parametrize("method", MERGED)
def test_an_adapter_counts_as_part_of_its_weight(method):
    """What PEFT merges into the weights for good is explained alike, and nothing stays merged."""
    torch.manual_seed(0)
    model, tokenizer = tiny.subject_parts("sequence classification")
    adapted = ["query", "value", "dense"]
    given = LoraConfig(task_type=TaskType.SEQ_CLS, init_lora_weights=False, target_modules=adapted)
    shell = get_peft_model(model, given).eval()
    before = {name: (each, each.clone()) for name, each in shell.named_parameters()}
    found = attlas.explain(attlas.Subject(shell, tokenizer), TEXT, method, 0)
    for name, each in shell.named_parameters():
        assert each is before[name][0] and torch.equal(each, before[name][1])
    assert not any(getattr(each, "merged", False) for each in shell.modules())
    merged = attlas.Subject(shell.merge_and_unload(), tokenizer)
    expected = attlas.explain(merged, TEXT, method, 0)
    np.testing.assert_allclose(
        found.scores, expected.scores, atol=1e-4 * np.abs(expected.scores).max()
    )


def test_an_adapter_that_adds_tokens_is_refused_by_name(parts):
    model, tokenizer = parts
    shell = get_peft_model(
        model, PromptTuningConfig(task_type=TaskType.SEQ_CLS, num_virtual_tokens=2)
    )
    with pytest.raises(UnsupportedModelError, match="PROMPT_TUNING adds tokens"):
        attlas.Subject(shell, tokenizer)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_compiled_model_is_taken_out_or_refused(parts):
    model, tokenizer = parts
    assert attlas.Subject(torch.compile(model), tokenizer).model is model
    model.compile()
    with pytest.raises(UnsupportedModelError, match="compiled in place"):
        attlas.Subject(model, tokenizer)


def test_what_is_no_model_is_refused(parts):
    with pytest.raises(UnsupportedModelError, match="not str"):
        attlas.Subject("bert", parts[1])


def test_a_subject_needs_a_tokenizer(parts):
    with pytest.raises(attlas.AttlasError, match="needs a tokenizer"):
        attlas.Subject(parts[0])


@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")
@pytest.mark.filterwarnings("ignore:.*quantize:UserWarning")
def test_a_quantised_model_is_refused_by_name(parts):
    model, tokenizer = parts
    small = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    with pytest.raises(UnsupportedModelError, match=r"quantised by torch\.ao"):
        attlas.Subject(small, tokenizer)
