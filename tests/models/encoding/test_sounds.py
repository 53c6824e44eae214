"""Sounds: frames are tokens with seconds, for classifiers, letters and models that write."""

import numpy as np
import pytest
import tiny
import torch
import transformers
from subjects import few, on_eager

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods import METHODS
from attlas.models.encoding.request import Request

RATE = 16000
MOMENTS = np.arange(RATE // 2) / RATE
TONE = np.sin(2 * np.pi * 440 * MOMENTS * (1 + MOMENTS))
FRAMES = 24  # of half a second: (8000 - 10) // 5 + 1 = 1599, then (1599 - 64) // 64 + 1


@pytest.fixture(scope="module")
def classifier():
    return attlas.Subject(*tiny.wave_subject("Wav2Vec2", "ForSequenceClassification"))


@pytest.fixture(scope="module")
def whisper():
    return attlas.Subject(*tiny.whisper_subject())


def seconds(tokens):
    return [float(text.split(" s")[0]) for text in tokens if not text.startswith("[")]


def test_frames_have_rising_seconds(classifier):
    found = attlas.explain(classifier, (TONE, RATE), "gradient")
    assert found.tokens.grids == {"sound": (1, FRAMES)} and len(found.scores) == FRAMES
    starts = seconds(found.tokens)
    assert starts == sorted(starts) and starts[0] == 0 and starts[-1] < 0.5
    assert starts[12] == pytest.approx(0.25, abs=0.006)


def test_the_loudest_line_of_the_spectrogram_is_the_tone(classifier):
    tone = np.sin(2 * np.pi * 2000 * MOMENTS)
    found = attlas.explain(classifier, (tone, RATE), "raw_attention").pictures["sound"]
    darkest = found[:, 20, 0].argmin()
    assert (200 - darkest) * RATE / 400 == 2000  # 400 samples a column, the highest pitch on top


@pytest.mark.parametrize("family", ["Hubert", "WavLM", "SEW"])
def test_other_families_of_samples(family):
    more = {"squeeze_factor": 1} if family == "SEW" else {}
    subject = attlas.Subject(*tiny.wave_subject(family, "ForSequenceClassification", **more))
    found = attlas.explain(subject, (TONE, RATE), "gradient")
    assert len(found.scores) == FRAMES and found.scores.all()


def test_the_maps_are_the_models_own(classifier):
    plain = on_eager(tiny.wave_subject("Wav2Vec2", "ForSequenceClassification")[0])
    given = classifier.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    with torch.no_grad():
        expected = plain(given["input_values"], output_attentions=True).attentions
    maps = classifier.attention((TONE, RATE))
    for found, weights in zip(maps.weights, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(found), weights[0], atol=1e-5, rtol=1e-4)


def test_the_gradient_is_that_on_what_enters_the_first_block(classifier):
    plain = on_eager(tiny.wave_subject("Wav2Vec2", "ForSequenceClassification")[0])
    given = classifier.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    entered = []

    def keep(_module, args):
        entered.append(args[0].detach().requires_grad_())
        return (entered[0], *args[1:])

    plain.wav2vec2.encoder.layers[0].register_forward_pre_hook(keep)
    plain(given["input_values"]).logits.max().backward()
    found = attlas.explain(classifier, (TONE, RATE), "gradient")
    expected = entered[0].grad[0].norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)


def test_a_frame_is_left_out_as_silence(classifier):
    given = classifier.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    whole = given["input_values"]
    quiet = whole.clone()
    start, stop = (int(np.ceil(frame * whole.shape[1] / FRAMES)) for frame in (6, 7))
    quiet[:, start:stop] = 0
    with torch.no_grad():
        before, after = (classifier.model(each).logits[0].softmax(-1) for each in (whole, quiet))
    found = attlas.explain(classifier, (TONE, RATE), "leave_one_out")
    best = before.argmax()
    assert found.scores[6] == pytest.approx(float(before[best] - after[best]), abs=1e-4)


def test_patches_of_a_spectrogram_lie_in_bands():
    subject = attlas.Subject(*tiny.patches_of_sound_subject())
    found = attlas.explain(subject, (TONE, RATE), "raw_attention")
    assert found.tokens.grids == {"sound": (4, 8)}
    assert found.tokens.special[:3] == (True, True, False) and len(found.tokens) == 34
    assert found.tokens[2] == "0.00 s, band 0" and found.tokens[-1] == "0.56 s, band 3"
    given = subject.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    heard = given["input_values"][0].T  # `[pitch, moment]`, the lowest pitch first, as in a patch
    ink = 255 - found.pictures["sound"][:, :, 0].astype(float)
    assert np.corrcoef(ink.ravel(), heard.numpy().ravel())[0, 1] > 0.999


def test_a_letter_is_explained_at_its_frame():
    subject = attlas.Subject(*tiny.letters_subject())
    given = subject.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    with torch.no_grad():
        sure = subject.model(given["input_values"]).logits[0].softmax(-1)
    sure[:, subject.config.pad_token_id] = 0
    found = attlas.explain(subject, (TONE, RATE), "gradient")
    assert found.target.position == int(sure.max(-1).values.argmax())
    other = attlas.explain(subject, (TONE, RATE), "leave_one_out", target=7, position=3)
    assert other.target.position == 3
    assert other.target.value == pytest.approx(float(sure[3, 7]), abs=1e-5)


def test_letters_without_a_frame_of_their_own_are_refused_by_name():
    more = {"vocab_size": 32, "squeeze_factor": 2, "pad_token_id": 1}
    model, extractor = tiny.wave_subject("SEW", "ForCTC", **more)
    processor = transformers.Wav2Vec2Processor(extractor, tiny.tokenizer("bpe"))
    with pytest.raises(UnsupportedModelError, match="SEWForCTC hears 24 letters in 12 frames"):
        attlas.explain(attlas.Subject(model, processor), (TONE, RATE), "gradient")


def test_a_spectrogram_of_moments_by_pitch_is_turned():
    sizes = {"input_feat_per_channel": 8, "num_conv_layers": 1, "conv_kernel_sizes": [3]}
    sizes |= {"conv_channels": 16, "max_source_positions": 64, "max_target_positions": 64}
    shape = {**tiny.BART_SHAPE, **tiny.SPECIAL_IDS, **sizes, "vocab_size": 64}
    model = tiny.build("Speech2Text", "ForConditionalGeneration", shape)
    extractor = transformers.Wav2Vec2FeatureExtractor()
    processor = transformers.Wav2Vec2Processor(extractor, tiny.tokenizer("bpe"))
    heard = {"input_features": torch.linspace(0, 1, 40 * 8).reshape(1, 40, 8)}
    inputs = attlas.Subject(model, processor).encode(heard, Request(prefix=""))
    assert inputs.pictures[0]["sound"].shape == (8, 40, 3)
    assert seconds(inputs.tokens[0][:20])[-1] == pytest.approx(0.4 * 19 / 20, abs=0.006)


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_scores_frames_and_what_was_written_or_refuses_by_name(whisper, method):
    try:
        found = attlas.explain(whisper, (TONE, RATE), method, prefix="a", maps=False, **few(method))
    except UnsupportedModelError as error:
        assert "WhisperForConditionalGeneration" in str(error)
        return
    assert len(found.scores) == len(found.tokens) and np.isfinite(found.scores).all()
    assert found.scores[:50].any() and found.tokens.segments[:50] == ("sound",) * 50


def test_every_written_token_is_explained(whisper, tmp_path):
    found = attlas.explain_generation(whisper, (TONE, RATE), "gradient", max_new_tokens=3)
    given = whisper.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    ids = torch.tensor([[whisper.config.decoder_start_token_id]])
    with torch.no_grad():
        for _ in range(3):
            logits = whisper.model(given["input_features"], decoder_input_ids=ids).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    written = whisper.tokenizer.convert_ids_to_tokens(ids[0, 1:].tolist())
    assert [found.tokens[place] for place in found.outputs] == written
    assert "sound = ...  # samples, sampling rate" in found.code()
    assert attlas.Generation.load(found.save(tmp_path / "heard")).pictures["sound"].shape[0] == 16


def test_what_is_encoded_already_is_explained_as_it_is(classifier):
    given = classifier.feature_extractor(TONE, sampling_rate=RATE, return_tensors="pt")
    one = attlas.explain(classifier, dict(given), "gradient")
    np.testing.assert_array_equal(
        one.scores, attlas.explain(classifier, (TONE, RATE), "gradient").scores
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a text", "give a pair"),
        ((TONE, 8000), "has 8000 samples a second, and this model reads 16000"),
        ((TONE[:0], RATE), "at least one sample"),
        ((TONE * np.nan, RATE), "finite"),
        ((TONE[:100], RATE), "a sound of 100 samples is too short"),
        ((np.stack([TONE, TONE]), RATE), r"not \(an array of shape \(2, "),
        ((TONE, "16k"), r"not \(an array of shape \(.*,\), str\)"),
        ({"input_ids": torch.ones(1, 2)}, "needs input_values"),
    ],
)
def test_what_is_no_sound(classifier, given, message):
    with pytest.raises(UsageError, match=message):
        attlas.explain(classifier, given, "gradient")


def test_samples_may_be_a_tensor(classifier):
    one = attlas.explain(classifier, (torch.from_numpy(TONE), RATE), "gradient")
    same = attlas.explain(classifier, (TONE, RATE), "gradient")
    assert np.array_equal(one.scores, same.scores)


@pytest.mark.slow
def test_a_model_that_hears_is_checked():
    result = attlas.check(attlas.Subject(*tiny.letters_subject()))
    assert result.passed and not any(result.methods.values())


def test_frames_cannot_be_deleted(classifier):
    with pytest.raises(UsageError, match="use removal='mask'"):
        attlas.explain(classifier, (TONE, RATE), "leave_one_out", removal="delete")


def test_a_tokenizer_hears_nothing():
    model, _ = tiny.wave_subject("Wav2Vec2", "ForSequenceClassification")
    subject = attlas.Subject(model, tiny.tokenizer("wordpiece"))
    with pytest.raises(UsageError, match=r"needs a feature extractor, or .* not \w+$"):
        attlas.explain(subject, (TONE, RATE), "gradient")
