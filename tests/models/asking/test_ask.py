"""From texts to questions: what a text may be, which share a batch, what a decoder has written."""

import json

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, few, logits, plain, small, subject, takes
from tiny import (
    BART_SHAPE,
    BERT_SHAPE,
    GPT2_SHAPE,
    LABELS,
    T5_SHAPE,
    TASKS,
    labels,
    subject_parts,
    text_subject,
    tokenizer,
)

import attlas
from attlas import Target
from attlas.errors import ModelError, TextTooLongError, UsageError
from attlas.models.asking.question import Asked, Question
from attlas.models.asking.reading import attention_gradients
from attlas.models.asking.scores import target_scores
from attlas.models.encoding import continuations
from attlas.models.encoding.request import Request

SEQUENCE = "sequence to sequence"


# Forms of a text


def ids_of(question):
    return question.inputs.arguments["input_ids"][0].tolist()


def test_a_string():
    question = ask("sequence classification", "the film was good")
    assert ids_of(question) == tokenizer("wordpiece")("the film was good")["input_ids"]
    assert set(question.inputs.tokens[0].segments) == {"text"}


def test_a_pair():
    question = ask("sequence classification", ("the film", "was good"))
    expected = tokenizer("wordpiece")("the film", "was good")
    given = question.inputs.arguments
    assert ids_of(question) == expected["input_ids"]
    assert given["token_type_ids"][0].tolist() == expected["token_type_ids"]
    assert set(question.inputs.tokens[0].segments) == {"text_a", "text_b"}
    swapped = ask("sequence classification", ("was good", "the film"))
    assert swapped.known_scores[0]["logit"] != question.known_scores[0]["logit"]


def test_words():
    question = ask("sequence classification", ["the", "film's", "good"])
    assert ids_of(question) == tokenizer("wordpiece")("the film's good")["input_ids"]
    words = attlas.explain(question.subject, [["the", "film's", "good"]], "raw_attention")[0]
    units = words.aggregate("words")
    assert units[~units.special].word.tolist() == ["the", "film's", "good"]


def test_token_ids():
    ids = tokenizer("wordpiece")("the film was good")["input_ids"]
    by_ids = attlas.explain(subject("sequence classification"), ids, "raw_attention")
    by_text = attlas.explain(
        subject("sequence classification"), "the film was good", "raw_attention"
    )
    np.testing.assert_allclose(by_ids.scores, by_text.scores, rtol=1e-5, atol=1e-6)
    assert by_ids.tokens.texts == by_text.tokens.texts


def test_a_picture_as_an_array():
    image = TEXTS["image classification"][0]
    first, second = (
        attlas.explain(subject("image classification"), each, "raw_attention")
        for each in (image, np.asarray(image))
    )
    assert np.array_equal(first.scores, second.scores)
    assert first.tokens.grids == {"image": (4, 4)}
    assert first.tokens.special == (True, *(False,) * 16)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "image classification"])
def test_a_picture_for_a_model_that_reads_text(task):
    with pytest.raises(UsageError, match="reads text, not pictures"):
        ask(task, TEXTS["image classification"][0])


@pytest.mark.parametrize("given", ["a cat", ("a", "b"), 7, None])
def test_no_picture_for_a_model_that_reads_them(given):
    with pytest.raises(UsageError, match="this model reads pictures: give a PIL image"):
        attlas.explain(subject("image classification"), given)


@pytest.mark.parametrize("given", [None, 3.5, ("a", "b", "c"), {"text": "a"}, ("a", 3)])
def test_what_is_no_text(given):
    with pytest.raises(UsageError, match="a text is a string, a pair"):
        attlas.explain(subject("causal lm"), given)


@pytest.mark.parametrize("given", ["", "  \n", ("a", "")])
def test_an_empty_text(given):
    with pytest.raises(UsageError, match="is empty"):
        attlas.explain(subject("sequence classification"), given)


def test_an_answer_needs_a_question_and_a_context():
    with pytest.raises(UsageError, match=r"give a pair \(question, context\)"):
        ask("question answering", "who wrote it")


def test_too_long_a_text():
    with pytest.raises(TextTooLongError, match=r"tokens and the model takes 64"):
        ask("sequence classification", "a " * 80)
    cut = ask("sequence classification", "a " * 80, truncate=True)
    assert len(cut.inputs.tokens[0]) == 64
    assert "cut from 82 to 64 tokens" in cut.inputs.notes[0][0]


def test_a_prompt_that_was_cut_is_still_asked_for_its_target():
    question = ask("causal lm", "a " * 80, truncate=True, target=" the")
    assert question.targets[0].picks == ((-1, tokenizer("bpe")(" the")["input_ids"][0]),)
    with pytest.raises(UsageError, match="prompt and target have 66 tokens together"):
        ask("causal lm", "a " * 80, truncate=True, target=" the not the")


# Batches


def test_texts_of_equal_length_share_a_batch():
    texts = ["the cat", "the the cat", "the mat", "a", "the the mat"]
    questions = subject("causal lm").ask(texts, Request())
    assert sorted(question.order for question in questions) == [(0, 2), (1, 4), (3,)]
    for question in questions:
        for row, index in enumerate(question.order):
            assert question.inputs.texts[row] == texts[index]
            expected = tokenizer("bpe")(texts[index])["input_ids"]
            assert question.inputs.arguments["input_ids"][row].tolist() == expected


def test_the_longer_the_texts_the_fewer_share_a_batch(monkeypatch):
    asked = subject("causal lm")
    few = {3: 4, 10: 2}
    monkeypatch.setattr(
        type(asked), "rows_at_once", lambda _, inputs, wanted: few[len(inputs.tokens[0])]
    )
    questions = asked.ask([[7] * 3] * 5 + [[8] * 10] * 5, Request())
    assert sorted(len(question) for question in questions) == [1, 1, 2, 2, 4]
    assert sorted(index for question in questions for index in question.order) == list(range(10))


def test_no_texts():
    assert subject("causal lm").ask([], Request()) == []


def test_rows_of_a_question():
    (question,) = subject("causal lm").ask(["the cat", "the mat"], Request())
    picked = question.rows([1, 0, 1])
    assert (len(picked), picked.order) == (3, (1, 0, 1))
    torch.testing.assert_close(
        target_scores(picked, "logit"), target_scores(question, "logit")[[1, 0, 1]]
    )
    assert [found["logit"] for found in picked.known_scores] == pytest.approx(
        target_scores(picked, "logit").tolist(), abs=1e-5
    )


def test_a_question_put_together_by_hand():
    question = ask("causal lm")
    own = Question(question.subject, question.inputs, (Asked(target=question.targets[0]),), (0,))
    assert own.targets == question.targets and own.known_scores == ()
    assert len(own.rows([0, 0])) == 2


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_those_of_the_plain_model(task):
    for text in TEXTS[task][:2]:
        question = ask(task, text)
        table = logits(task, arguments(task, text, **ASKED.get(task, {})))
        table = table if table.dim() == 2 else table[None]
        picks = question.targets[0].picks
        expected = float(sum(table[place, choice] for place, choice in picks))
        assert float(target_scores(question, "logit")) == pytest.approx(expected, abs=1e-5)
        assert question.known_scores[0]["logit"] == pytest.approx(expected, abs=1e-5)
        edited = target_scores(question, "logit", attlas.edits.uniform())
        assert abs(float(edited) - expected) > 1e-3


def test_gradients_where_nothing_depends_on_a_site_are_zero():
    """The target is read before the last decoder position, so its row moves nothing."""
    found = attention_gradients(ask(SEQUENCE, target=Target("first", ((-3, 7),))), "logit")
    cross = [gradient for call, gradient in found if call.site.kind == "cross"]
    assert cross[-1][0, :, -3].any() and not cross[-1][0, :, -2:].any()
    base = small("Bart", "ForCausalLM", "word_level", **BART_SHAPE).ask(["The cat"], Request())[0]
    assert all(gradient.any() for _, gradient in attention_gradients(base, "logit"))


# Encoder–decoders


@pytest.fixture
def few_tokens(monkeypatch):
    monkeypatch.setattr(continuations, "MOST_NEW_TOKENS", 5)


@torch.no_grad()
def greedy(text, count):
    """What the model writes, one forward at a time, without a cache."""
    given, end = arguments(SEQUENCE, text, ""), tokenizer("unigram").eos_token_id
    written = given["decoder_input_ids"]
    for _ in range(count):
        row = plain(SEQUENCE)(**{**given, "decoder_input_ids": written}).logits[0, -1]
        written = torch.cat([written, row.argmax()[None, None]], dim=1)
        if int(written[0, -1]) == end:
            break
    return written[0].tolist()


def decoder_ids(question):
    return question.inputs.arguments["decoder_input_ids"][0].tolist()


def test_nothing_given_explains_the_models_own_output(few_tokens):
    for text in TEXTS[SEQUENCE][:2]:
        written = greedy(text, 5)
        question = ask(SEQUENCE, text, prefix=None)
        chain = [choice for _, choice in question.targets[0].picks]
        assert decoder_ids(question) == written[:-1]
        assert chain == written[1:]
        assert question.targets[0].chained
        assert "explains the model's own greedy output" in question.inputs.notes[0][0]
        assert question.inputs.tokens[0].segments.count("prefix") == len(written) - 1


def test_a_target_inside_the_models_own_output(few_tokens):
    written = greedy(TEXTS[SEQUENCE][0], 5)
    question = ask(SEQUENCE, prefix=None, target=written[1])
    assert decoder_ids(question) == written[:1]
    assert question.targets[0].picks == ((-1, written[1]),)
    assert "the prefix is the model's own output" in question.inputs.notes[0][0]


def test_a_target_the_model_would_not_write(few_tokens):
    written = greedy(TEXTS[SEQUENCE][0], 5)
    absent = next(number for number in range(6, 90) if number not in written)
    question = ask(SEQUENCE, prefix=None, target=absent)
    assert decoder_ids(question) == written[:1]
    assert question.inputs.notes[0] == (
        "the prefix is empty: the model's own output lacks the target",
    )


def test_a_target_of_ones_own_gets_the_models_own_prefix(few_tokens):
    written = greedy(TEXTS[SEQUENCE][0], 5)
    question = ask(SEQUENCE, prefix=None, target=Target("mine", ((-2, 7),)))
    assert decoder_ids(question) == written[:-1]
    assert question.inputs.chains == ((),)
    assert "the prefix is the model's own output" in question.inputs.notes[0][0]


def test_a_prefix_is_what_the_decoder_reads():
    ids = tokenizer("unigram")(text_target="Das Haus", add_special_tokens=False)["input_ids"]
    start = plain(SEQUENCE).config.decoder_start_token_id
    question = ask(SEQUENCE, prefix="Das Haus")
    assert decoder_ids(question) == [start, *ids]
    assert question.inputs.notes[0] == ()
    assert decoder_ids(ask(SEQUENCE, prefix="")) == [start]
    behind = ask(SEQUENCE, prefix="Das Haus", target="ist klein")
    chain = tokenizer("unigram")(text_target="ist klein", add_special_tokens=False)["input_ids"]
    assert decoder_ids(behind) == [start, *ids, *chain[:-1]]


def test_too_long_a_prefix():
    with pytest.raises(UsageError, match=r"prefix and target have \d+ tokens together"):
        ask(SEQUENCE, prefix="Das Haus ist klein " * 20)


def test_a_forced_first_token():
    model, words = text_subject("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE)
    model.generation_config.forced_bos_token_id = 9
    bart = attlas.Subject(model, words)
    (question,) = bart.ask(["The cat"], Request(prefix=""))
    assert decoder_ids(question) == [model.config.decoder_start_token_id, 9]


def test_its_own_output_is_no_longer_than_its_positions():
    shape = {**BART_SHAPE, "max_position_embeddings": 8}
    bart = small("Bart", "ForConditionalGeneration", "word_level", **shape)
    bart.model.generation_config.eos_token_id = None
    bart.model.generation_config.forced_eos_token_id = None
    (question,) = bart.ask(["The cat"], Request())
    assert len(decoder_ids(question)) <= 8


# Chats


CHAT = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}bot:"


@pytest.fixture
def chatty(monkeypatch):
    model, words = subject_parts("causal lm")
    monkeypatch.setattr(words, "chat_template", CHAT)
    return attlas.Subject(model, words)


def test_a_chat(chatty):
    (question,) = chatty.ask(["the cat"], Request(chat=True))
    written = "<s>user: the cat</s>bot:"
    assert ids_of(question) == tokenizer("bpe")(written, add_special_tokens=False)["input_ids"]
    assert question.inputs.tokens[0].sources == {"1 user": "the cat"}
    found = attlas.explain(chatty, "the cat", "raw_attention", chat=True, target=" the not")
    assert found.origin.asked["text"] == "the cat", "the template is put on once"
    assert found.origin.asked["chat"] is True


def test_no_chat_by_default(chatty):
    (question,) = chatty.ask(["the cat"], Request())
    assert ids_of(question) == tokenizer("bpe")("the cat")["input_ids"]


def test_what_is_no_chat(chatty):
    with pytest.raises(UsageError, match="a chat message is a string, not tuple"):
        chatty.ask([("a", "b")], Request(chat=True))
    with pytest.raises(UsageError, match="this tokenizer has no chat template"):
        subject("sequence classification").ask(["a cat"], Request(chat=True))


# Models that predict nothing


BASES = {
    "Bert": ("wordpiece", BERT_SHAPE),
    "GPT2": ("bpe", GPT2_SHAPE),
    "T5": ("unigram", T5_SHAPE),
    "Bart": ("word_level", BART_SHAPE),
}


@pytest.mark.parametrize("family", BASES)
def test_a_model_without_a_head_can_be_read_but_not_explained(family):
    kind, shape = BASES[family]
    base = small(family, "Model", kind, **shape)
    assert base.task is None
    for site, weights in base.attention("The cat"):
        assert weights.shape[0] == site.heads
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    with pytest.raises(UsageError, match="has no head"):
        attlas.explain(base, "The cat", "raw_attention")


@pytest.mark.parametrize("task", ["sequence classification", "causal lm", SEQUENCE])
def test_damaged_weights_are_named(task):
    model, words = subject_parts(task)
    name, parameter = list(model.named_parameters())[3]
    with torch.no_grad():
        parameter.view(-1)[0] = float("nan")
    with pytest.raises(ModelError, match=f"damaged: {name}"):
        attlas.explain(attlas.Subject(model, words), "the cat", "raw_attention", prefix=None)


def test_a_classifier_with_a_decoder():
    settings = {**BART_SHAPE, **labels(*LABELS)}
    bart = small("Bart", "ForSequenceClassification", "word_level", **settings)
    for method in attlas.list_methods():
        if not takes(method, SEQUENCE):
            continue
        asked = {"target": "positive", **few(method)}
        found = attlas.explain(bart, ["The cat sat", "The dog"], method, **asked)
        assert [each.target.name for each in found] == ["POSITIVE"] * 2
        assert all(len(each.scores) == len(each.tokens) for each in found)


@pytest.mark.parametrize(
    "asked",
    [
        {"target": np.int64(1), "contrast": np.int8(0)},
        {"target": "positive", "contrast": "negative"},
        {"target": Target("mine", ((-1, 1),), contrast=((-1, 0),))},
    ],
)
def test_what_was_asked_is_json(asked):
    found = attlas.explain(
        subject("sequence classification"), "a cat", "gradient_attention", **asked
    )
    assert json.loads(json.dumps(dict(found.origin.asked))) == found.origin.asked
