"""Pictures within a text: LLaVA and its kin, whose patches are tokens of their text."""

import numpy as np
import pytest
import tiny
import torch
from PIL import Image
from subjects import few, on_eager, picture

import attlas
from attlas.errors import TextTooLongError, UnsupportedModelError, UsageError
from attlas.methods import METHODS
from attlas.models.tap.edits import Edit
from attlas.models.tap.opening import tap
from attlas.removing.operators import blank_patches

TEXT = "the film was not good"
PATCHES = 16
VOCABULARY = len(tiny.tokenizer("wordpiece"))


@pytest.fixture(scope="module")
def llava():
    return attlas.Subject(*tiny.llava_subject())


@pytest.fixture(scope="module")
def plain():
    return on_eager(tiny.llava_subject()[0])


def given(llava, text=f"<image>{TEXT}", *seeds):
    shown = [picture(seed) for seed in seeds or (0,)]
    return dict(llava.processor(text=[text], images=[shown], return_tensors="pt"))


def merged(plain, arguments):
    """Words and patches as vectors, put together by hand."""
    with torch.no_grad():
        vectors = plain.get_input_embeddings()(arguments["input_ids"]).clone()
        seen = plain.model.get_image_features(arguments["pixel_values"]).pooler_output
    vectors[arguments["input_ids"] == plain.config.image_token_id] = torch.cat(list(seen))
    return vectors


def test_patches_are_tokens_of_the_text(llava):
    found = attlas.explain(llava, (picture(0), TEXT), "raw_attention")
    assert found.tokens.segments[:PATCHES] == ("image",) * PATCHES
    assert found.tokens.texts[:5] == ("0,0", "0,1", "0,2", "0,3", "1,0")
    assert found.tokens.sources["text"] == TEXT and found.tokens.grids == {"image": (4, 4)}
    assert found.pictures["image"].shape == (32, 32, 3)


def test_each_of_several_pictures_has_its_own_patches(llava):
    text = "a <image> sat and <image> was"
    found = attlas.explain(llava, (picture(0), picture(1), text), "raw_attention")
    ids = given(llava, text, 0, 1)["input_ids"][0]
    at = (ids == llava.image_token).nonzero().flatten().tolist()
    where = [i for i, name in enumerate(found.tokens.segments) if name != "text"]
    assert where == at
    assert [found.tokens.segments[i] for i in at] == ["image 1"] * 16 + ["image 2"] * 16
    assert list(found.pictures) == ["image 1", "image 2"]
    assert (found.pictures["image 1"] != found.pictures["image 2"]).any()


def test_the_maps_are_those_of_the_language_model(llava, plain):
    maps = llava.attention((picture(0), TEXT))
    with torch.no_grad():
        expected = plain(**given(llava), output_attentions=True).attentions
    assert [site.name for site in maps.sites] == ["decoder.0", "decoder.1"]
    for found, weights in zip(maps.weights, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(found), weights[0], atol=1e-5, rtol=1e-4)


def test_the_gradient_is_that_on_the_vectors_of_words_and_patches(llava, plain):
    vectors = merged(plain, given(llava)).requires_grad_()
    logits = plain(inputs_embeds=vectors).logits[0, -1]
    logits.max().backward()
    found = attlas.explain(llava, (picture(0), TEXT), "gradient")
    expected = vectors.grad[0].norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)


def test_a_patch_is_left_out_as_a_grey_one(llava, plain):
    whole = given(llava)
    with torch.no_grad():
        before = plain(**whole).logits[0, -1].softmax(-1)
        grey = whole["pixel_values"].clone()
        grey[:, :, 8:16, 16:24] = 0  # the patch in row 1, column 2
        after = plain(**{**whole, "pixel_values": grey}).logits[0, -1].softmax(-1)
    found = attlas.explain(llava, (picture(0), TEXT), "leave_one_out")
    best = before.argmax()
    assert found.scores[4 + 2] == pytest.approx(float(before[best] - after[best]), abs=1e-5)


def alone(weights, _):
    """Every patch attends to itself; a summary of all, which no token is made of, stays."""
    itself = torch.eye(weights.shape[-1])
    return itself.expand_as(weights).clone() if weights.shape[-2] > 1 else weights


def merged_alone(model, arguments):
    """The vectors that enter the language model if every patch attends to itself alone."""
    entered = []
    own = Edit("own", alone)
    handle = model.get_decoder().register_forward_pre_hook(
        lambda *call: entered.append(call[2]["inputs_embeds"]), with_kwargs=True
    )
    with torch.no_grad(), tap(model, [own.at(kind=kind) for kind in ("vision", "encoder")]):
        model(**arguments)
    handle.remove()
    return entered[-1][0]


def text_with_marks(mark, count):
    return torch.tensor([[5, *[mark] * count, 6, 7]])


def llava_case():
    model = tiny.llava_subject()[0]
    return model, {"pixel_values": torch.randn(1, 3, 32, 32)}, (4, 4)


def qwen_case():
    text = {**tiny.LLAMA_SHAPE, "vocab_size": VOCABULARY, "hidden_size": 32}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 4}
    settings = {"text_config": {**text, "rope_parameters": rope}, "vision_config": vision}
    model = tiny.build("Qwen2VL", "ForConditionalGeneration", {**settings, "image_token_id": 50})
    seen = {"pixel_values": torch.randn(24, 3 * 2 * 4 * 4)}
    seen |= {"image_grid_thw": torch.tensor([[1, 4, 6]])}
    return model, {**seen, "mm_token_type_ids": torch.tensor([[0, *[1] * 6, 0, 0]])}, (2, 3)


def idefics_case():
    text = {**tiny.LLAMA_SHAPE, "vocab_size": VOCABULARY, "model_type": "llama", "pad_token_id": 1}
    vision = {**tiny.TOWER, **tiny.IMAGE}
    settings = {"text_config": text, "vision_config": vision, "image_token_id": 50}
    model = tiny.build("Idefics3", "ForConditionalGeneration", {**settings, "scale_factor": 2})
    return model, {"pixel_values": torch.randn(1, 1, 3, 32, 32)}, (2, 2)


def gemma_case():
    text = {**tiny.LLAMA_SHAPE, "vocab_size": VOCABULARY, "head_dim": 8}
    vision = {**tiny.TOWER, **tiny.IMAGE}
    settings = {"text_config": text, "vision_config": vision, "mm_tokens_per_image": 4}
    model = tiny.build("Gemma3", "ForConditionalGeneration", {**settings, "image_token_id": 50})
    return model, {"pixel_values": torch.randn(1, 3, 32, 32)}, (2, 2)


@pytest.mark.parametrize("case", [llava_case, qwen_case, idefics_case, gemma_case])
def test_a_patch_is_where_its_pixels_are(case):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, seen, grid = case()
    count = grid[0] * grid[1]
    inputs = {**seen, "input_ids": text_with_marks(model.config.image_token_id, count)}
    subject = attlas.Subject(model, tiny.tokenizer("wordpiece"))
    arguments = dict(subject.encode(inputs).arguments)
    assert subject.encode(inputs).tokens[0].grids == {"image": grid}
    before = merged_alone(model, arguments)
    for patch in range(count):
        hidden = torch.arange(count)[None] == patch
        changed = {**arguments, "pixel_values": blank_patches(subject, arguments, hidden)}
        moved = (merged_alone(model, changed) - before).abs().amax(dim=-1) > 1e-5
        assert moved.nonzero().flatten().tolist() == [1 + patch]


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_scores_words_and_patches_or_refuses_by_name(llava, method):
    try:
        found = attlas.explain(llava, (picture(0), TEXT), method, maps=False, **few(method))
    except UnsupportedModelError as error:
        assert llava.name in str(error)
        return
    assert len(found.scores) == len(found.tokens) and np.isfinite(found.scores).all()
    assert found.scores[:PATCHES].any()
    base = found.details.get("base")
    if isinstance(base, float) and method != "integrated_gradients":  # six steps are too few
        assert base + found.scores.sum() == pytest.approx(found.target.value, abs=1e-3)


def test_every_written_token_is_explained_as_if_it_were_asked_for_alone(llava, tmp_path):
    seen = (picture(0), picture(1), TEXT)
    found = attlas.explain_generation(llava, seen, "gradient", max_new_tokens=3)
    ids = given(llava, f"<image><image>{TEXT}", 0, 1)
    with torch.no_grad():
        written = llava.model.generate(**ids, max_new_tokens=3, do_sample=False)[0]
    assert [llava.tokenizer.convert_ids_to_tokens(int(each)) for each in written[-3:]] == [
        found.tokens[place] for place in found.outputs
    ]
    longer = {**ids, "input_ids": written[None, :-1]}
    longer["attention_mask"] = torch.ones_like(longer["input_ids"])
    alone = attlas.explain(llava, longer, "gradient", target=int(written[-1]))
    np.testing.assert_allclose(found.row(2).scores, alone.scores, atol=1e-5, rtol=1e-3)
    again = attlas.Generation.load(found.save(tmp_path / "written"))
    assert list(again.pictures) == ["image 1", "image 2"]
    assert "(image_1, image_2, 'the film was not good')" in again.code()


def test_the_model_is_as_it_was(llava):
    arguments = given(llava)
    with torch.no_grad():
        before = llava.model(**arguments).logits
        attlas.explain_generation(llava, (picture(0), TEXT), max_new_tokens=2)
        assert torch.equal(llava.model(**arguments).logits, before)


def test_a_text_alone_is_read_too(llava):
    assert set(attlas.explain(llava, TEXT, "gradient").tokens.segments) == {"text"}


def test_what_is_encoded_already_is_explained_as_it_is(llava):
    one = attlas.explain(llava, (picture(0), TEXT), "gradient")
    other = attlas.explain(llava, given(llava), "gradient")
    np.testing.assert_array_equal(one.scores, other.scores)
    assert "inputs = ...  # what the processor made" in other.code()


def test_parts_without_a_place_are_told():
    text = {**tiny.LLAMA_SHAPE, "vocab_size": VOCABULARY, "model_type": "llama", "pad_token_id": 1}
    vision = {**tiny.TOWER, **tiny.IMAGE}
    resampler = {"resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 4}
    resampler |= {"num_key_value_heads": 2, "resampler_head_dim": 8, "hidden_size": 32}
    settings = {"text_config": text, "vision_config": vision, "perceiver_config": resampler}
    model = tiny.build("Idefics2", "ForConditionalGeneration", {**settings, "image_token_id": 50})
    pixels = torch.ones(1, 1, 3, 32, 32)
    inputs = {"pixel_values": pixels, "input_ids": text_with_marks(50, 4)}
    subject = attlas.Subject(model, tiny.tokenizer("wordpiece"))
    found = attlas.explain(subject, inputs, "raw_attention")
    assert found.tokens.grids == {} and "no known place" in found.notes[0]
    with pytest.raises(UnsupportedModelError, match="patches cannot be masked in"):
        attlas.explain(subject, inputs, "leave_one_out")


def test_pictures_that_no_token_stands_for_are_refused_by_name(llava):
    inputs = {**given(llava), "input_ids": torch.tensor([[5, 6, 7]])}
    del inputs["attention_mask"]
    with pytest.raises(UnsupportedModelError, match="stand for pixel_values"):
        attlas.explain(llava, inputs, "gradient")


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        ((picture(0), picture(1)), "pictures and one text"),
        ((picture(0), "a", "b"), "pictures and one text"),
        (picture(0), "pictures and one text: give both, not"),
        (("cat.png", "What is this?"), "pictures and one text: give both, not str, str"),
        ((picture(0), "<image> and <image>"), "has 2 of <image>, .*, and 1 came with it"),
        ({"input_ids": torch.ones(2, 3, dtype=torch.long)}, r"a tensor \[1, token\]"),
    ],
)
def test_what_is_no_text_with_pictures(llava, seen, message):
    with pytest.raises(UsageError, match=message):
        attlas.explain(llava, seen, "gradient")


def test_without_a_processor_a_picture_cannot_be_read(llava):
    alone = attlas.Subject(llava.model, llava.tokenizer)
    with pytest.raises(UsageError, match="through its processor"):
        attlas.explain(alone, (picture(0), TEXT), "gradient")


def test_a_text_that_is_too_long_with_its_pictures_is_told(llava):
    with pytest.raises(TextTooLongError, match="text and pictures have"):
        attlas.explain(llava, (*[picture(0)] * 4, TEXT), "gradient")


def test_patches_cannot_be_deleted(llava):
    with pytest.raises(UsageError, match="use removal='mask'"):
        attlas.explain(llava, (picture(0), TEXT), "leave_one_out", removal="delete")


def test_a_model_of_texts_takes_no_picture():
    subject = attlas.Subject(*tiny.text_subject("Llama", "ForCausalLM", "bpe", **tiny.LLAMA_SHAPE))
    with pytest.raises(UsageError, match="takes a text alone"):
        attlas.explain(subject, (Image.new("RGB", (8, 8)), TEXT), "gradient")
