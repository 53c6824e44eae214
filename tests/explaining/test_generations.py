"""explain_generation: every row is what `explain` gives for that token behind what came before."""

import numpy as np
import pytest
import torch
from subjects import LONG, REFUSES, few, in_short, plain, small, subject
from tiny import BART_SHAPE, LLAMA_SHAPE

import attlas
from attlas.errors import UsageError
from attlas.methods import METHODS
from attlas.models.tap.tap import Tap

WRITERS = {
    "Gpt2": lambda: subject("causal lm"),
    "Llama": lambda: small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE),
    "Bart": lambda: small("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE),
    "T5": lambda: subject("sequence to sequence"),
}


def written_ids(found, asked):
    texts = [found.tokens[place] for place in found.outputs]
    return asked.tokenizer.convert_tokens_to_ids(texts)


# Those that draw do so for all rows at once, and not as they would for one alone.
DRAWN = {"lime", "kernel_shap", "random_scores"}


# Those that refuse one model of the tasks refuse it for being an encoder–decoder.
WRITTEN = [
    (writer, name)
    for writer in WRITERS
    for name in METHODS.names()
    if name not in DRAWN and (writer in ("Gpt2", "Llama") or name not in REFUSES)
]


@pytest.mark.parametrize(("writer", "method"), in_short(WRITTEN, apart=("Gpt2", "T5")))
def test_a_row_is_the_explanation_of_that_token(writer, method):
    asked = WRITERS[writer]()
    found = attlas.explain_generation(asked, LONG, method, max_new_tokens=4, **few(method))
    ids = written_ids(found, asked)
    prompt = [token for token in found.tokens[: found.outputs[0]]]
    compared = 0
    for row, place in enumerate(found.outputs[1:3], start=1):
        target = attlas.Target("it", ((-1, ids[row]),))
        if asked.has_decoder:
            before = asked.tokenizer.decode(ids[:row])
            alone = attlas.explain(asked, LONG, method, target, prefix=before, **few(method))
            if list(alone.tokens) != list(found.tokens[:place]):
                continue  # what was written does not tokenize back to itself
        else:
            given = asked.tokenizer.convert_tokens_to_ids(prompt) + ids[:row]
            alone = attlas.explain(asked, given, method, target, **few(method))
        scale = max(np.abs(alone.scores).max(), 1e-3)
        np.testing.assert_allclose(found.scores[row, :place], alone.scores, atol=1e-4 * scale)
        assert found.targets[row].value == pytest.approx(alone.target.value, rel=1e-4, abs=1e-5)
        compared += 1
    assert compared


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_is_what_the_model_generates(writer):
    asked = WRITERS[writer]()
    found = attlas.explain_generation(asked, LONG, "raw_attention", max_new_tokens=5)
    given = asked.tokenizer(LONG, return_tensors="pt")
    names = {"input_ids", "attention_mask"}
    given = {name: value for name, value in given.items() if name in names}
    torch.manual_seed(0)
    ids = asked.model.generate(**given, do_sample=False, num_beams=1, max_new_tokens=5)[0].tolist()
    ends = {asked.tokenizer.eos_token_id, asked.tokenizer.pad_token_id}
    while ids[-1] in ends:
        ids.pop()
    assert ids[-len(found) :] == written_ids(found, asked)
    assert [target.name for target in found.targets] == [
        asked.tokenizer.decode([number]) for number in written_ids(found, asked)
    ]


def test_a_text_for_which_there_is_no_room_says_where_it_stopped():
    asked = attlas.load("recall")
    found = attlas.explain_generation(asked, "b bee k koi", "raw_attention", max_new_tokens=500)
    assert f"stopped after {len(found)} of 500 tokens: the model takes 64 in all" in found.notes
    short = attlas.explain_generation(asked, "b bee k koi", "raw_attention", max_new_tokens=3)
    assert not any("stopped" in note for note in short.notes)


@pytest.mark.parametrize("method", [each.name for each in METHODS if each.many_targets])
def test_nothing_later_matters(method):
    found = attlas.explain_generation(subject("causal lm"), LONG, method, max_new_tokens=4)
    for row, place in enumerate(found.outputs):
        assert not found.scores[row, place:].any()
        assert found.scores[row, :place].any()


def passes(monkeypatch, method, **options):
    """How often the model ran with a tap open."""
    rows = []
    begin = Tap.begin

    def count(tap):
        rows.extend([1] * (tap._depth == 0))
        begin(tap)

    monkeypatch.setattr(Tap, "begin", count)
    attlas.explain_generation(subject("causal lm"), LONG, method, max_new_tokens=6, **options)
    return len(rows)


@pytest.mark.parametrize(
    "method", ["raw_attention", "attention_rollout", "gradient_attention", "generic_relevance"]
)
def test_one_forward_serves_every_token(method, monkeypatch):
    subject("causal lm").sites  # noqa: B018  (finding them takes passes of its own)
    assert passes(monkeypatch, method) == 1


def test_an_output_may_be_given():
    asked = subject("causal lm")
    found = attlas.explain_generation(asked, "a cat", "raw_attention", output=" sat on")
    assert found.text.strip() == "sat on"
    assert "the user gave" in " ".join(found.notes)
    ids = asked.tokenizer("a cat sat on", return_tensors="pt")["input_ids"]
    table = plain("causal lm")(ids).logits[0].log_softmax(-1).exp()
    count = len(found)
    expected = [float(table[-count - 1 + i, ids[0, -count + i]].detach()) for i in range(count)]
    assert [target.value for target in found.targets] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", [None, "leave_one_out"])
def test_a_list_of_prompts_gives_a_list_of_what_each_gives_alone(method, tmp_path):
    asked, prompts = subject("causal lm"), ["a cat", "the film was"]
    found = attlas.explain_generation(asked, prompts, method, max_new_tokens=2)
    assert isinstance(found, list)
    assert [each.tokens.sources["text"] for each in found] == prompts
    for each, prompt in zip(found, prompts, strict=True):
        alone = attlas.explain_generation(asked, prompt, method, max_new_tokens=2)
        assert np.array_equal(each.scores, alone.scores)
        assert each.code() == alone.code()
        kept = attlas.Generation.load(each.save(tmp_path / "it.attlas"))
        assert kept.origin.asked["text"] == prompt
        assert kept.text == alone.text


def test_a_list_of_one_gives_a_list_and_none_gives_none():
    asked = subject("causal lm")
    (found,) = attlas.explain_generation(asked, ["a cat"], "raw_attention", max_new_tokens=2)
    assert found.tokens.sources["text"] == "a cat"
    assert attlas.explain_generation(asked, [], "raw_attention") == []


def test_words_and_token_ids_are_one_prompt():
    asked = subject("causal lm")
    (words,) = attlas.explain_generation(asked, [["a", "cat"]], "raw_attention", max_new_tokens=2)
    ids = attlas.explain_generation(
        asked, asked.tokenizer("a cat")["input_ids"], "raw_attention", max_new_tokens=2
    )
    assert words.text == ids.text
    assert "explain_generation(subject, [['a', 'cat']]" in words.code()
    assert words.code().splitlines()[-1].endswith("[0]")


def test_each_prompt_may_have_its_own_output():
    asked, prompts = subject("causal lm"), ["a cat", "a dog"]
    own = attlas.explain_generation(asked, prompts, "raw_attention", output=[" sat", " ran on"])
    assert [each.text.strip() for each in own] == ["sat", "ran on"]
    shared = attlas.explain_generation(asked, prompts, "raw_attention", output=" sat")
    assert [each.text.strip() for each in shared] == ["sat", "sat"]
    with pytest.raises(UsageError, match="2 prompts but 1 outputs"):
        attlas.explain_generation(asked, prompts, "raw_attention", output=[" sat"])
    with pytest.raises(UsageError, match="one prompt takes one output, a string, not"):
        attlas.explain_generation(asked, "a cat", "raw_attention", output=[" sat"])


def test_the_best_choices_are_those_of_each_place():
    found = attlas.explain_generation(subject("causal lm"), LONG, "raw_attention", max_new_tokens=3)
    for target, prediction in zip(found.targets, found.predictions, strict=True):
        assert prediction[0]["label"] == target.name
        assert prediction[0]["probability"] == pytest.approx(target.value, rel=1e-5)


def test_can_be_computed_again(tmp_path):
    asked = subject("causal lm")
    found = attlas.explain_generation(
        asked, LONG, "leave_one_out", max_new_tokens=3, removal="mask"
    )
    kept = attlas.Generation.load(found.save(tmp_path / "it.attlas"))
    given = dict(kept.origin.asked)
    twice = attlas.explain_generation(
        asked, given.pop("text"), kept.method, **given, **kept.origin.options
    )
    assert np.array_equal(found.scores, twice.scores)
    assert "attlas.explain_generation(subject, 'the film was not good'" in found.code()


def test_rows_say_how_their_scores_add_up(tmp_path):
    found = attlas.explain_generation(
        subject("causal lm"), LONG, "integrated_gradients", max_new_tokens=3
    )
    kept = attlas.Generation.load(found.save(tmp_path / "kept"))
    for shown in (found, kept):
        for row, total in enumerate(shown.payload()["sums"]):
            assert total == shown.row(row).payload()["sum"]
            missed = shown.targets[row].value - total["base"] - total["scores"]
            assert abs(missed) < 0.1 or shown.row_warnings[row]
        bases = [total["base"] for total in shown.payload()["sums"]]
        assert shown.mean().payload()["sum"]["base"] == pytest.approx(np.mean(bases))
    rows = attlas.explain_generation(subject("causal lm"), LONG, "attn_lrp", max_new_tokens=2)
    assert all("biases" in total["rest_of"] for total in rows.payload()["sums"])
    assert "biases" in rows.mean().payload()["sum"]["rest_of"]
    plain = attlas.explain_generation(subject("causal lm"), LONG, "gradient", max_new_tokens=2)
    assert plain.payload()["sums"] == [None, None]
    assert plain.mean().payload()["sum"] is None


def test_random_rows_differ():
    found = attlas.explain_generation(subject("causal lm"), LONG, "random_scores", max_new_tokens=3)
    assert not np.array_equal(found.scores[0, :5], found.scores[1, :5])


@pytest.mark.parametrize(
    ("task", "asked", "message"),
    [
        (
            "sequence classification",
            {},
            "needs a model that writes text; .* is for seq",
        ),
        ("causal lm", {"max_new_tokens": 0}, "max_new_tokens must be at least 1, not 0"),
        ("causal lm", {"output": ""}, "a target is a string or a token id, not ''"),
        ("causal lm", {"output": "x " * 400}, "prompt and output have"),
    ],
)
def test_what_cannot_be_asked(task, asked, message):
    with pytest.raises(UsageError, match=message):
        attlas.explain_generation(subject(task), "a cat", "raw_attention", **asked)
