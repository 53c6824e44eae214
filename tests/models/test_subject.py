"""Subject: what it reads is what transformers gives on eager attention; edits reach predictions."""

import numpy as np
import pytest
import torch
from subjects import TEXTS, plain, subject
from tiny import BERT_SHAPE, text_subject, wave_subject

import attlas
from attlas.errors import UnsupportedModelError, UsageError

TEXT = "the film was not good"


def test_attention_is_what_eager_gives_with_its_tokens():
    task = "sequence classification"
    maps = subject(task).attention(TEXT)
    encoded = subject(task).tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        expected = plain(task)(**encoded, output_attentions=True).attentions
    assert [site.name for site in maps.sites] == ["encoder.0", "encoder.1"]
    for weights, truth in zip(maps.weights, expected, strict=True):
        assert np.array_equal(weights, truth[0].numpy())
    assert list(maps.key_tokens("encoder.0")) == encoded.tokens(0)


def test_attention_of_an_encoder_decoder_knows_which_tokens_look_at_which():
    maps = subject("sequence to sequence").attention(TEXT)
    cross, own = maps["cross.1"], maps["decoder.1"]
    assert cross.shape[1:] == (len(maps.query_tokens("cross.1")), len(maps.key_tokens("cross.1")))
    assert maps.key_tokens("cross.1") == maps.query_tokens("encoder.0")
    assert maps.key_tokens("decoder.1") == maps.query_tokens("cross.1")
    assert np.allclose(np.triu(own[0], 1), 0)


def test_an_edit_reaches_the_prediction_and_ends_with_its_block():
    one = subject("sequence classification")
    before = one.predict(TEXT)["probability"].item()
    with one.tap(attlas.edits.uniform()):
        within = one.predict(TEXT)["probability"].item()
    assert within != pytest.approx(before, abs=1e-4)
    assert one.predict(TEXT)["probability"].item() == before


def test_a_head_switched_off_gives_nothing():
    """Switching off all heads of a layer equals a zero value projection in that layer."""
    one = subject("sequence classification")
    with one.tap(attlas.edits.scale(0).at(layer=-1)):
        edited = one.predict(TEXT)["probability"].item()
    model = plain("sequence classification")
    value = model.bert.encoder.layer[-1].attention.self.value
    saved = {name: each.clone() for name, each in value.state_dict().items()}
    with torch.no_grad():
        for parameter in value.parameters():
            parameter.zero_()
        logits = model(**one.tokenizer(TEXT, return_tensors="pt")).logits
    value.load_state_dict(saved)
    assert edited == pytest.approx(logits.softmax(-1).max().item(), abs=1e-6)


def test_predictions_come_in_the_callers_order():
    one = subject("sequence classification")
    texts = TEXTS["sequence classification"] * 2
    together = one.predict(texts)
    alone = [one.predict(text)["probability"].item() for text in texts]
    assert together["text"].tolist() == texts
    assert np.allclose(together["probability"], alone, atol=1e-5)


def test_the_longest_text_leaves_room_for_padding_positions():
    """RoBERTa's first positions are taken by padding: 64 embeddings hold fewer tokens."""
    import tiny

    roberta = tiny.FAMILIES["roberta"]().model
    tokenizer = tiny.tokenizer("bpe")
    size = roberta.roberta.embeddings.position_embeddings.num_embeddings
    padding = roberta.config.pad_token_id
    one = attlas.Subject(roberta, tokenizer)
    assert one.max_tokens == min(size - padding - 1, tokenizer.model_max_length)


def test_an_edit_of_a_layer_that_is_not_there_is_refused():
    one = subject("sequence classification")
    refused = pytest.raises(UsageError, match="unknown layer 9: this model has layers 0 to 1")
    with refused, one.tap(attlas.edits.uniform().at(layer=9)):
        pass


@pytest.mark.parametrize("family", ["GPT2", "Llama"])
def test_a_classifier_without_a_padding_token_takes_a_batch(family):
    import tiny

    tokenizer = tiny.tokenizer("bpe")
    size = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
    settings = {**size, "vocab_size": len(tokenizer), "num_labels": 2, "pad_token_id": None}
    model = tiny.build(family, "ForSequenceClassification", settings)
    assert model.config.pad_token_id is None
    one = attlas.Subject(model, tokenizer)
    texts = ["the film was good", "the film was kind", "a cat"]
    together = attlas.explain(one, texts, "leave_one_out")
    assert model.config.pad_token_id is None
    for text, found in zip(texts, together, strict=True):
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt")).logits
        assert found.target.value == pytest.approx(logits.softmax(-1).max().item(), abs=1e-5)


def test_multiple_choice_is_refused_by_name():
    model, tokenizer = text_subject("Bert", "ForMultipleChoice", "wordpiece", **BERT_SHAPE)
    with pytest.raises(UnsupportedModelError, match=r"BertForMultipleChoice .* multiple choice is"):
        attlas.Subject(model, tokenizer)
    assert attlas.Subject(model.bert, tokenizer).attention("The cat").tokens


def test_a_head_that_is_not_explained_is_told_by_its_task():
    heard = attlas.Subject(*wave_subject("Wav2Vec2", "ForAudioFrameClassification"))
    with pytest.raises(UsageError, match="is for audio frame classification, which is not expl"):
        attlas.explain(heard, (np.zeros(4000, np.float32), 16000), "raw_attention")


def test_a_processor_that_cuts_patches_itself_is_refused_by_name():
    def patches(**_):
        return {"pixel_values": torch.zeros(1, 16, 192)}

    cut = attlas.Subject(plain("image classification"), patches)
    with pytest.raises(UnsupportedModelError, match="cuts the picture into 16 patches itself"):
        attlas.explain(cut, np.zeros((32, 32, 3), np.uint8), "raw_attention")


def test_attention_takes_a_prefix_where_something_writes_behind_it():
    short, long = (
        subject("sequence to sequence").attention("a cat sat", prefix=each)
        for each in ("the", "the cat sat")
    )
    assert long["decoder.0"].shape[-1] > short["decoder.0"].shape[-1]
    with pytest.raises(UsageError, match="a prefix is for an encoder–decoder"):
        subject("sequence classification").attention("a cat", prefix="the")
    with pytest.raises(UsageError, match="a prefix is a text, not 3"):
        subject("sequence to sequence").attention("a cat", prefix=3)
