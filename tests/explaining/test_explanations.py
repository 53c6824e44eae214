"""The verb `explain`: lists in, lists out, what is done when memory is short, and its record."""

import inspect
from copy import deepcopy
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch
from subjects import ASKED, TEXTS, few, subject, takes
from tiny import TASKS, subject_parts
from tiny_tokenizers import SENTENCE_SPECIALS

import attlas
from attlas import Target
from attlas.catalogue import BEST_METHODS
from attlas.errors import AttlasError, ModelError, ShortageError, UnsupportedModelError, UsageError
from attlas.explaining import explanations
from attlas.explaining.method_call import first_that_runs
from attlas.methods import METHODS, Method, Scored
from attlas.models.encoding.text_inputs import texts_of
from attlas.registry import Registry

TASK = "sequence classification"
MANY = ["the cat sat", "a film", "the dog sat", "the film was not good", "a mat", "the mat sat"]


def explain(text, method="raw_attention", **asked):
    return attlas.explain(subject(TASK), text, method, **asked)


def test_attribute_is_explain():
    assert attlas.attribute is attlas.explain


def test_one_text_gives_one_explanation():
    assert isinstance(explain("a cat"), attlas.Explanation)
    assert isinstance(explain(("a cat", "a mat")), attlas.Explanation)
    assert isinstance(explain([7, 8, 9]), attlas.Explanation)


def test_a_list_gives_a_list_in_the_same_order():
    found = explain(MANY)
    assert [each.tokens.sources["text"] for each in found] == MANY
    for text, each in zip(MANY, found, strict=True):
        np.testing.assert_allclose(each.scores, explain(text).scores, rtol=1e-5, atol=1e-6)


def test_an_example_brings_its_true_label(tmp_path):
    examples = [attlas.Example("a cat", "POSITIVE"), attlas.Example("a mat")]
    known, unknown = explain(examples)
    assert (known.true_label, unknown.true_label) == ("POSITIVE", None)
    assert known.scores.tolist() == explain("a cat").scores.tolist()
    assert attlas.Explanation.load(known.save(tmp_path / "kept")).true_label == "POSITIVE"
    assert known.payload()["true_label"] == "POSITIVE"


@pytest.mark.parametrize("method", ["integrated_gradients", "kernel_shap", "decompx"])
def test_methods_that_add_up_give_their_base_value(method):
    given = {"integrated_gradients": {"steps": 200}, "kernel_shap": {"samples": 8}}
    found = explain("a cat", method, **given.get(method, {}))
    total = found.payload()["sum"]
    assert total["base"] + found.scores.sum() == pytest.approx(found.target.value, abs=2e-3)
    assert total["scores"] == pytest.approx(found.scores.sum(), abs=1e-5)
    assert (total["base"] == 0) is (method == "decompx")
    assert explain("a cat", "gradient").payload()["sum"] is None


@pytest.mark.parametrize("variant", ["attn", "cp"])
def test_what_no_token_holds_is_told(variant):
    found = explain("a cat", "attn_lrp", variant=variant)
    total = found.payload()["sum"]
    assert "base" not in total and "biases" in total["rest_of"]
    assert total["scores"] == pytest.approx(found.scores.sum(), abs=1e-5)


def test_the_headline_tells_equal_words_apart():
    tagger = subject("token classification")
    heads = [attlas.explain(tagger, "a cat on a mat", position=("a", each)) for each in (1, 2)]
    assert [each.headline.split(" at ")[1] for each in heads] == ["“a” (1st)?", "“a” (2nd)?"]
    assert attlas.explain(tagger, "a cat", position="cat").headline.endswith("at “cat”?")


def test_words_that_the_tokenizer_does_not_know_are_no_targets():
    recall = attlas.load("recall")
    for asked in ({"target": "elephant"}, {"target": "koi", "contrast": "elephant"}):
        with pytest.raises(UsageError, match="does not know 'elephant': it reads <unk>"):
            attlas.explain(recall, "b bee k koi r ram k", **asked)


def test_lists_of_one_and_of_none():
    (found,) = explain(["a cat"])
    assert found.tokens.sources["text"] == "a cat"
    assert explain([]) == []


def test_many_texts_of_other_forms():
    pair, words, ids = explain([("a cat", "a mat"), ["a", "cat"], [7, 8, 9]])
    assert set(pair.segments) == {"text_a", "text_b"}
    assert words.tokens.sources["text"] == "a cat"
    assert len(ids.tokens) == 3


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("a", True),
        (("a", "b"), True),
        ([1, 2], True),
        (["a"], False),
        ([["a", "b"]], False),
        ([[1, 2]], False),
        ([], False),
        ([("a", "b")], False),
        ([{"role": "user", "content": "a"}], True),
        ({"messages": [{"role": "user", "content": "a"}]}, True),
        ([[{"role": "user", "content": "a"}]], False),
        (pd.Series(["a", "b"], index=[7, 9]), False),
        (np.array(["a", "b"]), False),
        (np.array([1, 2]), True),
        (np.zeros((4, 4), dtype=np.uint8), True),
    ],
)
def test_what_one_text_is(text, one):
    assert texts_of(text)[1] is one


def test_the_default_method_and_target():
    found = attlas.explain(subject(TASK), "a cat")
    assert found.method == BEST_METHODS[0]
    assert found.target.name == found.prediction[0]["label"]


def test_only_a_subject_is_explained():
    model, tokenizer = subject_parts(TASK)
    unchecked = inspect.unwrap(attlas.explain)  # as users call it, without the test run's checks
    with pytest.raises(UsageError, match=r"explain takes a Subject .* not BertForSequence"):
        unchecked(model, "a cat")
    assert attlas.explain(attlas.Subject(model, tokenizer), "a cat").scores.size


@pytest.mark.parametrize(
    ("text", "asked", "message"),
    [
        ("a cat", {"method": "raw_atention"}, "did you mean 'raw_attention'"),
        ("a cat", {"layers": 1}, "unknown option of raw_attention 'layers': .* allowed: layer, fu"),
        ([], {"layers": 1}, "unknown option of raw_attention 'layers'"),
        ("a cat", {"layer": "top"}, "layer of raw_attention is int or None, not 'top'"),
        ("", {}, "the text is empty"),
        (["a cat", " "], {}, "the text is empty"),
        (None, {}, "a text is a string, a pair .* not NoneType"),
        (("a", "b", "c"), {}, "a text is a string, a pair .* not a tuple of 3"),
    ],
)
def test_wrong_input_is_one_clear_line(text, asked, message, monkeypatch):
    unchecked = inspect.unwrap(attlas.explain)
    monkeypatch.setattr(Registry, "__getitem__", inspect.unwrap(Registry.__getitem__))
    with pytest.raises(UsageError, match=message) as caught:
        unchecked(subject(TASK), text, **{"method": "raw_attention", **asked})
    assert "\n" not in str(caught.value)


def test_no_subject_is_one_clear_line():
    for verb in (attlas.explain, attlas.explain_generation):
        with pytest.raises(UsageError, match=r"takes a Subject \(attlas\.load\), not NoneType"):
            inspect.unwrap(verb)(None, "a cat")


# Memory


@pytest.fixture
def hungry(monkeypatch):
    """A method that takes more memory than there is for more than `most` texts at once."""
    asked = []

    def register(most, problem):
        def raw_attention(question):
            """Score as raw attention does."""
            asked.append(len(question))
            if len(question) > most:
                raise problem
            return METHODS["raw_attention"].score(question, {})

        found = METHODS["raw_attention"]
        hungry_one = Method("hungry", raw_attention, "W", False, found.of, "", "It eats.")
        monkeypatch.setitem(METHODS._parts, "hungry", hungry_one)
        return asked

    return register


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(
    "problem",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_batch_that_does_not_fit_is_split(hungry, most, problem):
    asked = hungry(most, problem)
    texts = ["the cat sat", "the mat sat", "a rat sat on", "the bat sat", "the hat sat"]
    found = explain(texts, "hungry")
    expected = explain(texts)
    assert max(asked) == 4
    told = f"Memory ran out at 4 texts at once; the work went on with {min(most, 2)}."
    for one, other in zip(found, expected, strict=True):
        assert one.notes == (*other.notes, told)
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-6)


def test_a_text_that_does_not_fit_is_one_clear_error(hungry):
    hungry(0, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(
        AttlasError, match="out of memory: hungry of one text of 5 tokens does not fit on cpu"
    ):
        explain(["a cat", "a mat"], "hungry")


def test_a_model_that_does_not_fit_is_asked_for_fewer(monkeypatch):
    model, tokenizer = subject_parts(TASK)
    whole, sizes, most = model.forward, [], 2

    def forward(*given, **arguments):
        sizes.append(len(arguments["input_ids"]))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(*given, **arguments)

    asked = attlas.Subject(model, tokenizer)
    assert asked.sites and asked.stream_axes == (0, 1) and "input_ids" in asked.parameters
    monkeypatch.setattr(model, "forward", forward)
    texts = ["the cat sat", "the mat sat", "the rat sat", "the bat sat", "the hat sat"]
    found = attlas.explain(asked, texts, "raw_attention")
    assert sizes[0] == 5
    assert [each.tokens.sources["text"] for each in found] == texts
    most = 0
    with pytest.raises(
        AttlasError, match=r"out of memory: raw_attention of one text of 7 tokens does not fit"
    ):
        attlas.explain(asked, texts, "raw_attention")


def test_what_fits_for_no_text_of_a_batch_may_fit_for_each_alone(monkeypatch):
    model, tokenizer = subject_parts(TASK)
    whole, sizes, most = model.forward, [], 2  # an input and one variant of it

    def forward(*given, **arguments):
        sizes.append(len(arguments["input_ids"]))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(*given, **arguments)

    asked = attlas.Subject(model, tokenizer)
    texts = ["the cat sat", "the mat sat", "the rat sat"]
    expected = attlas.explain(asked, texts, "attattr", steps=3)
    monkeypatch.setattr(model, "forward", forward)
    found = attlas.explain(asked, texts, "attattr", steps=3)
    assert max(sizes) > most
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-6)
    most = 1
    with pytest.raises(ShortageError, match="out of memory: attattr of one text of 7 tokens"):
        attlas.explain(asked, texts, "attattr", steps=3)


def test_another_failure_is_not_hidden(hungry):
    asked = hungry(0, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        explain(["the cat sat", "the mat sat"], "hungry")
    assert asked == [2]


def test_scores_that_are_not_finite(monkeypatch):
    def broken(question):
        """Score nothing."""
        return Scored(torch.full((len(question), len(question.inputs.tokens[0])), torch.nan))

    monkeypatch.setitem(
        METHODS._parts, "broken", Method("broken", broken, "W", False, None, "", "No.")
    )
    with pytest.raises(ModelError, match="broken gave scores that are not finite"):
        explain("a cat", "broken")


# Maps


@pytest.mark.parametrize("method", METHODS.names())
def test_maps_that_are_too_large_are_left_out_and_the_result_says_so(method, monkeypatch):
    monkeypatch.setattr(explanations, "MOST_MAP_BYTES", 7)
    found = explain("a cat", method)
    told = [note for note in found.notes if "maps" in note]
    assert found.maps is None
    assert len(told) == (METHODS[method].maps is not None)
    assert all("left out" in note and "maps=True" in note for note in told)
    assert not [n for n in explain("a cat", method, maps=False).notes if "maps" in n]
    if METHODS[method].maps is None:
        with pytest.raises(UsageError, match=f"{method} makes no maps"):
            explain("a cat", method, maps=True)
    else:
        asked = explain("a cat", method, maps=True)
        assert asked.maps is not None
        assert not [note for note in asked.notes if "maps" in note]
        assert (asked.maps.shows == "attention") is (method == "raw_attention")
        assert asked.maps.shows != method  # in words


@pytest.mark.parametrize("method", METHODS.names())
def test_a_contrast_is_for_methods_that_look_at_the_target(method):
    if METHODS[method].of is None:
        with pytest.raises(UsageError, match=f"{method} does not depend on the target"):
            explain("a cat", method, target="positive", contrast=0)
    else:
        assert explain("a cat", method, target="positive", contrast=0).target.contrast


def test_how_large_maps_may_be_is_for_all_texts_together(monkeypatch):
    texts = ["the cat sat", "a mat"]
    size = sum(weights.nbytes for found in explain(texts) for _, weights in found.maps)
    monkeypatch.setattr(explanations, "MOST_MAP_BYTES", size + 1)
    assert all(found.maps is not None for found in explain(texts))
    monkeypatch.setattr(explanations, "MOST_MAP_BYTES", size)
    assert all(found.maps is None for found in explain(texts))
    assert all(found.maps is not None for found in explain(texts, "attention_rollout"))
    assert explain(texts[0]).maps is not None


def test_a_batch_that_holds_maps_is_split(monkeypatch):
    from attlas.models.asking import open_model as room

    texts = ["the cat sat", "the mat sat", "the rat sat", "the bat sat", "the hat sat"]
    expected = explain(texts)
    asked, method = [], METHODS["raw_attention"]
    size = sum(weights.nbytes for _, weights in expected[0].maps)

    def spy(question, **options):
        asked.append(len(question))
        return method.score_tokens(question, **options)

    named = Method("spy", spy, "W", False, None, "", "As raw attention.", "sites")
    monkeypatch.setitem(METHODS._parts, "spy", named)
    monkeypatch.setattr(room, "MAP_BYTES", 2 * size)
    monkeypatch.setattr(room, "COPIES", 1)
    found = explain(texts, "spy")
    assert max(asked) == 2 and sum(asked) == 5
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-6)


def test_whether_maps_were_asked_for_is_recorded():
    assert explain("a cat", maps=False).origin.asked == {"text": "a cat", "maps": False}
    assert again(explain("a cat", maps=False), subject(TASK)).maps is None


# The record


ASKED_FOR = {
    TASK: [{"target": "positive", "contrast": 0}, {"target": np.int64(1)}, {}],
    "token classification": [{"position": 2, "target": "O"}],
    "question answering": [{"target": "film"}],
    "masked lm": [{"target": 7, "contrast": 9}],
    "causal lm": [{"target": " the dog"}, {"target": Target("two", ((-2, 5), (-1, 6)))}],
    "sequence to sequence": [{**ASKED["sequence to sequence"], "target": " the"}],
}


def again(found, of):
    """The same explanation, from nothing but its record."""
    given = dict(found.origin.asked)
    text = given.pop("text")
    result = attlas.explain(of, text, found.method, **given, **found.origin.options)
    return result[0] if isinstance(result, list) else result


LOGITS_ALONE = {"decompx"}  # take no string of several tokens, whose quantity is a probability


@pytest.mark.parametrize(
    ("task", "method"), [(t, m) for t in ASKED_FOR for m in METHODS.names() if takes(m, t)]
)
def test_can_be_computed_again_from_its_record(task, method):
    for asked in ASKED_FOR[task]:
        if METHODS[method].of is None:
            asked = {name: value for name, value in asked.items() if name != "contrast"}
        if method in LOGITS_ALONE and asked.get("target") == " the dog":
            continue
        found = attlas.explain(subject(task), TEXTS[task][0], method, **asked, **few(method))
        twice = again(found, subject(task))
        assert np.array_equal(found.scores, twice.scores)
        assert found.target == twice.target
        assert found.origin == twice.origin


@pytest.mark.parametrize("text", [("a cat", "a mat"), ["a", "cat"], [7, 8, 9], "a " * 99])
def test_every_form_of_text_can_be_given_again(text):
    found = explain([text], truncate=True)[0]
    assert np.array_equal(found.scores, again(found, subject(TASK)).scores)


def test_a_chat_can_be_computed_again(monkeypatch):
    model, words = subject_parts("causal lm")
    start = SENTENCE_SPECIALS["bos_token"]
    monkeypatch.setattr(words, "chat_template", start + "{{ messages[0].content }}:")
    asked = attlas.Subject(model, words)
    found = attlas.explain(asked, "the cat", "raw_attention", chat=True)
    assert found.tokens[0] == start
    assert np.array_equal(found.scores, again(found, asked).scores)


def test_options_are_recorded_with_their_defaults():
    found = explain("a cat", "raw_attention", layer=0)
    assert found.origin.options == {"layer": 0, "fusion": "mean"}


def test_says_with_what_it_was_made():
    found = explain("a cat")
    assert set(found.origin.versions) == {"attlas", "torch", "transformers"}
    assert found.origin.versions["torch"] == torch.__version__
    assert found.origin.task == TASK
    assert found.origin.model == subject(TASK).name
    assert found.origin.asked == {"text": "a cat"}


@pytest.mark.parametrize("task", TASKS)
def test_the_target_is_said(task):
    for method in METHODS:
        if not takes(method.name, task):
            continue
        found = attlas.explain(subject(task), TEXTS[task][1], method.name, **ASKED.get(task, {}))
        quantity = "value" if task == "regression" else method.of or "probability"
        assert found.target.quantity == quantity
        assert found.target.name == found.prediction[0]["label"]
        if quantity == "probability":
            assert found.target.value == pytest.approx(found.prediction[0]["probability"], abs=1e-6)


def test_without_a_name_the_best_method_that_runs_explains():
    found = attlas.explain(attlas.load(), "a good film")
    assert found.method == "attn_lrp"
    assert not found.notes


def test_without_a_name_maps_come_from_a_method_that_makes_some():
    found = attlas.explain(attlas.load(), "a good film", maps=True)
    assert found.method == "gradient_attention"
    assert found.maps


def test_where_the_best_method_does_not_run_the_next_one_says_why():
    def run(method, notes):
        if method.name == "attn_lrp":
            raise UnsupportedModelError("Odd: it divides by itself")
        return method.name, notes

    name, (note,) = first_that_runs(None, run, maps=None)
    assert name == "gradient_attention"
    assert "attn_lrp does not run on this model (Odd: it divides by itself)" in note


def test_a_result_says_why_a_better_method_did_not_run(monkeypatch):
    def refuse(question, rules):
        raise UnsupportedModelError("Odd: it divides by itself")

    part = import_module("attlas.methods.attn_lrp")
    monkeypatch.setattr(part, "token_relevance", refuse)
    found = attlas.explain(attlas.load(), "a good film")
    assert found.method == "gradient_attention"
    assert any("Odd: it divides by itself" in note for note in found.notes)


def test_a_method_that_was_named_is_never_replaced():
    def run(method, notes):
        raise UnsupportedModelError(method.name)

    with pytest.raises(UnsupportedModelError, match=r"^attn_lrp$"):
        first_that_runs("attn_lrp", run, maps=None)


@pytest.mark.parametrize("kind", [torch.tensor, np.array, np.int64])
def test_a_target_may_be_a_tensor_of_one_number(kind):
    found, plain = (explain("a cat", "gradient", target=each) for each in (kind(1), 1))
    assert found.scores.tolist() == plain.scores.tolist()
    assert found.origin.asked["target"] == 1
    with pytest.raises(UsageError, match="unknown class 7: this model has 0 to 2"):
        explain("a cat", "gradient", target=kind(7))


def test_tokens_that_the_model_has_no_vectors_for_are_named():
    model, tokenizer = subject_parts("causal lm")
    count = len(tokenizer)
    tokenizer = deepcopy(tokenizer)
    tokenizer.add_tokens(["zzzz"])
    asked = attlas.Subject(model, tokenizer)
    message = f"the token 'zzzz' has the id {count}, but GPT2LMHeadModel has vectors for 0 to"
    for text in ("a cat zzzz", [7, count]):
        with pytest.raises(UsageError, match=message):
            attlas.explain(asked, text, "gradient")
    with pytest.raises(UsageError, match=message):
        attlas.explain_generation(asked, "a cat", "gradient", output=" zzzz sat")
    with pytest.raises(UsageError, match=f"the target is choice {count}, but the model has 0 to"):
        attlas.explain(asked, "a cat", "gradient", target="zzzz")


def test_a_record_has_the_text_last_wherever_the_picture_stood():
    from attlas.explaining.method_call import plain_text

    picture = np.zeros((2, 2, 3), dtype=np.uint8)
    assert plain_text((picture, "a dog")) == plain_text(("a dog", picture)) == ("ndarray", "a dog")
    assert plain_text(("one", "two")) == ("one", "two")
