"""Models that read a text and a picture: CLIP's two towers, and LXMERT's streams that cross."""

import json

import numpy as np
import pytest
import tiny
import torch
from subjects import on_eager, picture

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.reading import find_readout, read_attention
from attlas.models.encoding.images import Objects
from attlas.models.encoding.request import Request

TEXT, OTHER = "a cat sat", "my dog was kind"
BOXES = 6


def objects(seed=0, count=BOXES, width=10):
    generator = np.random.default_rng(seed)
    return Objects(generator.normal(size=(count, width)), generator.random((count, 4)))


@pytest.fixture(scope="module")
def clip():
    return attlas.Subject(*tiny.clip_subject())


@pytest.fixture(scope="module")
def lxmert():
    return attlas.Subject(*tiny.lxmert_subject())


def given_to_clip(processor, text, seed=0):
    return dict(processor(text=text, images=picture(seed), return_tensors="pt"))


def given_to_lxmert(tokenizer, text, seen):
    arrays = {"visual_feats": seen.features, "visual_pos": seen.boxes}
    more = {name: torch.tensor(array)[None].float() for name, array in arrays.items()}
    return {**tokenizer(text, return_tensors="pt"), **more}


def fused(attention, gradient):
    return (attention * gradient)[0].detach().clamp(min=0).mean(0)


def follow(layers):
    own = torch.eye(layers[0].shape[-1])
    for layer in layers:
        own = own + layer @ own
    return own


def check(found, expected):
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=1e-5, rtol=1e-3)


def test_the_streams_of_clip(clip):
    (question,) = clip.ask([(picture(0), TEXT)], Request())
    inputs, tokens = question.inputs, question.inputs.tokens[0]
    assert [site.kind for site in clip.sites] == ["vision"] * 3 + ["encoder"] * 2
    assert inputs.source.positions + inputs.picture.positions == tuple(range(len(tokens)))
    assert set(tokens.segments[: inputs.source.stop]) == {"text"}
    assert set(tokens.segments[inputs.picture.start :]) == {"image"}
    assert tokens.grids == {"image": (4, 4)} and len(inputs.picture.positions) == 17
    assert tokens[inputs.picture.start] == "[CLS]" and tokens.special[inputs.picture.start]
    assert tokens.sources["text"] == TEXT


def test_the_target_is_the_similarity_of_the_pair(clip):
    model, processor = tiny.clip_subject()
    texts = [TEXT, "a dog sat", OTHER]
    found = attlas.explain(
        clip, [(picture(i), text) for i, text in enumerate(texts)], "generic_relevance"
    )
    for seed, (text, each) in enumerate(zip(texts, found, strict=True)):
        with torch.no_grad():
            expected = model(**given_to_clip(processor, text, seed)).logits_per_image
        assert each.target.value == pytest.approx(float(expected), rel=1e-5)
        assert (each.target.name, each.target.quantity) == ("similarity", "value")
    predicted = clip.predict([(picture(0), TEXT)])
    assert predicted.probability[0] == pytest.approx(found[0].target.value, rel=1e-5)


def test_a_batch_of_pairs_gives_what_each_gives_alone(clip, lxmert):
    for subject, pairs in (
        (clip, [(picture(0), TEXT), (picture(1), "a dog sat"), (picture(2), OTHER)]),
        (
            lxmert,
            [(TEXT, objects(0)), (TEXT, objects(1)), (OTHER, objects(2)), (TEXT, objects(3, 4))],
        ),
    ):
        together = attlas.explain(subject, pairs, "generic_relevance")
        for pair, found in zip(pairs, together, strict=True):
            alone = attlas.explain(subject, pair, "generic_relevance")
            assert found.tokens == alone.tokens
            np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-4, atol=1e-6)


def test_either_order(clip, lxmert):
    for subject, pair in ((clip, (picture(0), TEXT)), (lxmert, (TEXT, objects()))):
        first, second = (attlas.explain(subject, each) for each in (pair, pair[::-1]))
        assert np.array_equal(first.scores, second.scores)


def test_each_tower_of_clip_by_itself(clip):
    model, processor = tiny.clip_subject()
    output = on_eager(model)(**given_to_clip(processor, TEXT), output_attentions=True)
    towers = [output.text_model_output.attentions, output.vision_model_output.attentions]
    score = output.logits_per_image[0, 0]
    rows = []
    for maps, row in zip(towers, (-1, 0), strict=True):  # the end of the text, and [CLS]
        gradients = torch.autograd.grad(score, maps, retain_graph=True)
        own = follow([fused(a, g) for a, g in zip(maps, gradients, strict=True)])
        rows.append((own - torch.eye(len(own)))[row])
    found = attlas.explain(clip, (picture(0), TEXT), "generic_relevance")
    check(found.scores, torch.cat(rows))
    count = len(rows[0])
    assert not found.maps["all"][0, :count, count:].any()
    assert not found.maps["all"][0, count:, :count].any()


def test_the_readout_of_each_tower(clip):
    (question,) = clip.ask([(picture(0), TEXT)], Request())
    readout = find_readout(question)[0]
    places = [question.inputs.source.stop - 1, question.inputs.picture.start]
    assert readout.nonzero().flatten().tolist() == places
    assert readout[places].tolist() == [1, 1]


@pytest.mark.parametrize("method", ["raw_attention", "gradient_attention"])
def test_the_rows_of_each_tower(clip, method):
    model, processor = tiny.clip_subject()
    output = on_eager(model)(**given_to_clip(processor, TEXT), output_attentions=True)
    last = [output.text_model_output.attentions[-1], output.vision_model_output.attentions[-1]]
    gradients = torch.autograd.grad(output.logits_per_image[0, 0], last)
    weighed = method == "gradient_attention"
    maps = [a * g if weighed else a for a, g in zip(last, gradients, strict=True)]
    expected = torch.cat([maps[0][0].mean(0)[-1], maps[1][0].mean(0)[0]]).detach()
    check(attlas.explain(clip, (picture(0), TEXT), method).scores, expected)


class Watched:
    """Every attention of LXMERT as it is computed, by the part of the model that computes it."""

    def __init__(self, model):
        self.maps = {}
        for name, module in model.named_modules():
            if type(module).__name__ == "LxmertAttention":
                # The dropout comes right behind the softmax, and does nothing in eval mode.
                module.dropout.register_forward_hook(self.keep(name))

    def keep(self, name):
        def hook(_module, _arguments, output):
            output.retain_grad()
            self.maps.setdefault(name.removeprefix("lxmert.encoder."), []).append(output)

        return hook

    def fused(self, name, call=0):
        weights = self.maps[name][call]
        gradient = torch.zeros_like(weights) if weights.grad is None else weights.grad
        return fused(weights, gradient)


def normalised(own):
    gained = own - torch.eye(len(own))
    return gained / gained.sum(1, keepdim=True) + torch.eye(len(own))


def test_lxmert_by_the_published_rules(lxmert):
    model, tokenizer = tiny.lxmert_subject()
    seen, watched = objects(), Watched(model)
    model(**given_to_lxmert(tokenizer, TEXT, seen)).question_answering_score[0, 3].backward()
    tt = follow([watched.fused(f"layer.{i}.attention.self") for i in range(3)])
    ii = follow([watched.fused(f"r_layers.{i}.attention.self") for i in range(2)])
    ti, it = torch.zeros(len(tt), len(ii)), torch.zeros(len(ii), len(tt))
    for block in range(2):
        at = f"x_layers.{block}"
        text, image = (watched.fused(f"{at}.visual_attention.att", call) for call in (0, 1))
        more_ti = normalised(tt).T @ text @ normalised(ii)
        more_tt = text @ it
        more_it = normalised(ii).T @ image @ normalised(tt)
        more_ii = image @ ti
        ti, tt, it, ii = ti + more_ti, tt + more_tt, it + more_it, ii + more_ii
        own = watched.fused(f"{at}.lang_self_att.self")
        ti, tt = ti + own @ ti, tt + own @ tt
        own = watched.fused(f"{at}.visn_self_att.self")
        it, ii = it + own @ it, ii + own @ ii
    expected = torch.cat([(tt - torch.eye(len(tt)))[0], ti[0]])
    found = attlas.explain(lxmert, (TEXT, seen), "generic_relevance", target=3)
    check(found.scores, expected)
    check(found.maps["all"][0], torch.cat([torch.cat([tt, ti], 1), torch.cat([it, ii], 1)]))


def test_which_stream_attends_is_told_by_the_call(lxmert):
    """With as many objects as tokens, no shape tells a text from a picture."""
    model, tokenizer = tiny.lxmert_subject()
    seen = objects(count=len(tokenizer(TEXT)["input_ids"]))
    watched = Watched(model)
    model(**given_to_lxmert(tokenizer, TEXT, seen))
    maps = lxmert.attention((TEXT, seen))
    expected = {
        **{f"encoder.{i}": (f"layer.{i}.attention.self", 0) for i in range(3)},
        **{f"vision.{i}": (f"r_layers.{i}.attention.self", 0) for i in range(2)},
    }
    for i in range(2):
        expected[f"cross.{i}"] = (f"x_layers.{i}.visual_attention.att", 0)
        expected[f"cross_vision.{i}"] = (f"x_layers.{i}.visual_attention.att", 1)
        expected[f"encoder.{i + 3}"] = (f"x_layers.{i}.lang_self_att.self", 0)
        expected[f"vision.{i + 2}"] = (f"x_layers.{i}.visn_self_att.self", 0)
    assert {site.name for site in maps.sites} == set(expected)
    for name, (path, call) in expected.items():
        assert np.array_equal(maps[name], watched.maps[path][call][0].detach().numpy())
        text_reads = name.startswith(("encoder", "cross."))
        text_is_read = name.startswith(("encoder", "cross_vision"))
        words = tuple(tokenizer.convert_ids_to_tokens(tokenizer(TEXT)["input_ids"]))
        named = seen.tokens().texts
        assert maps.query_tokens(name) == (words if text_reads else named)
        assert maps.key_tokens(name) == (words if text_is_read else named)


def test_lxmert_is_read_from_its_text(lxmert):
    (question,) = lxmert.ask([(TEXT, objects())], Request())
    assert find_readout(question)[0].nonzero().flatten().tolist() == [0]
    for method in ("raw_attention", "gradient_attention"):
        found = attlas.explain(lxmert, (TEXT, objects()), method)
        count = found.segments.count("text")
        calls = {call.site.name: call for call in read_attention(question)}
        if method == "raw_attention":
            own, cross = (calls[name].weights[0].mean(0)[0] for name in ("encoder.4", "cross.1"))
            check(found.scores, torch.cat([own, cross]))
        assert found.scores[:count].any() and found.scores[count:].any()


def test_answers_are_numbered_where_the_configuration_has_no_names(lxmert):
    assert lxmert.labels == [f"answer {number}" for number in range(5)]
    found = attlas.explain(lxmert, (TEXT, objects()), "generic_relevance", target="answer 2")
    assert found.target.name == "answer 2"


@pytest.mark.parametrize("method", ["attention_rollout", "attattr"])
def test_what_needs_one_stack_is_refused(clip, lxmert, method):
    for subject, pair in ((clip, (picture(0), TEXT)), (lxmert, (TEXT, objects()))):
        with pytest.raises(UnsupportedModelError, match=r"separate stacks|stacks of their own"):
            attlas.explain(subject, pair, method)


@pytest.mark.parametrize(
    "given", [TEXT, picture(0), (TEXT, OTHER), (picture(0), picture(1)), (TEXT, objects()), 3]
)
def test_what_is_no_pair_is_an_error(clip, given):
    with pytest.raises(UsageError, match="reads a text and a picture: give a pair of the two, not"):
        attlas.explain(clip, given)


def test_what_are_no_objects_is_an_error(lxmert):
    with pytest.raises(UsageError, match=r"reads a text and Objects\(features, boxes\): give"):
        attlas.explain(lxmert, (TEXT, picture(0)))
    with pytest.raises(UsageError, match="needs 10 features for each object, not 7"):
        attlas.explain(lxmert, (TEXT, objects(width=7)))
    with pytest.raises(UsageError, match=r"not \[2, 3\] and \[1, 4\]"):
        Objects(np.ones((2, 3)), np.ones((1, 4)))


def test_a_tokenizer_alone_cannot_bring_a_picture():
    model, processor = tiny.clip_subject()
    with pytest.raises(UsageError, match="needs a processor with a tokenizer"):
        attlas.Subject(model, processor.tokenizer)


def test_a_result_is_saved_without_the_picture(clip, tmp_path):
    found = attlas.explain(clip, (picture(0), TEXT), "generic_relevance")
    assert found.origin.asked["text"] == ("Image", TEXT)
    json.dumps(found.payload())
    found.save(tmp_path / "found.safetensors")
    assert np.array_equal(
        attlas.Explanation.load(tmp_path / "found.safetensors").scores, found.scores
    )


def test_a_folder_with_a_processor_is_loaded(clip, tmp_path):
    model, processor = tiny.clip_subject()
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    loaded = attlas.load(tmp_path, device="cpu")
    expected = attlas.explain(clip, (picture(0), TEXT), "generic_relevance")
    found = attlas.explain(loaded, (picture(0), TEXT), "generic_relevance")
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5, atol=1e-6)


def test_the_model_is_left_as_it_was(lxmert):
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in lxmert.model.modules()]
    attlas.explain(lxmert, (TEXT, objects()), "generic_relevance")
    assert hooks == [
        len(m._forward_hooks) + len(m._forward_pre_hooks) for m in lxmert.model.modules()
    ]
