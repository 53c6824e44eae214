"""Models that write about pictures which are no patches of their text: Mllama and others."""

import numpy as np
import pytest
import tiny
import tiny_pictures
import torch
from PIL import Image
from subjects import few, on_eager, picture

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods import METHODS
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.request import Request

TEXT = "the film was not good"
KEYS = 34  # two tiles, each a summary and 4 × 4 patches


@pytest.fixture(scope="module")
def mllama():
    return attlas.Subject(*tiny_pictures.mllama())


@pytest.fixture(scope="module")
def plain():
    return on_eager(tiny_pictures.mllama()[0])


def given(subject, seed=0, mark="<|image|>"):
    text = f"{mark}{TEXT}"
    return dict(subject.processor(text=[text], images=[[picture(seed)]], return_tensors="pt"))


def seen_by(model, arguments):
    """What the cross-attention of Mllama reads, by the parts of the model."""
    names = ("pixel_values", "aspect_ratio_ids", "aspect_ratio_mask")
    with torch.no_grad():
        seen = model.model.vision_model(**{name: arguments[name] for name in names})
        states = model.model.multi_modal_projector(seen.last_hidden_state)
    return states.reshape(-1, states.shape[-2], states.shape[-1])


def logits_of(model, arguments, vectors, states):
    beside = {name: arguments[name] for name in ("attention_mask", "cross_attention_mask")}
    return model(inputs_embeds=vectors, cross_attention_states=states, **beside).logits[0, -1]


def test_the_parts_of_a_picture_come_before_the_text(mllama):
    found = attlas.explain(mllama, (picture(0), TEXT), "raw_attention")
    assert found.tokens.segments[:KEYS] == ("image 1",) * 17 + ("image 2",) * 17
    assert found.tokens.texts[:3] == ("[CLS]", "0,0", "0,1") and found.tokens.special[0]
    assert found.tokens.grids == {"image 1": (4, 4), "image 2": (4, 4)}
    assert found.tokens.sources["text"] == TEXT
    assert {name: shown.shape for name, shown in found.pictures.items()} == dict.fromkeys(
        ("image 1", "image 2"), (32, 32, 3)
    )


def test_what_fills_up_the_tiles_is_no_part_of_the_picture(mllama):
    found = attlas.explain(mllama, (Image.new("RGB", (32, 32), "red"), TEXT), "gradient")
    assert found.tokens.segments[:KEYS] == ("image",) * 17 + ("filling",) * 17
    assert all(found.tokens.special[17:KEYS]) and list(found.pictures) == ["image"]
    assert found.notes == ()


def test_the_maps_are_those_of_the_language_model(mllama, plain):
    maps = mllama.attention((picture(0), TEXT))
    with torch.no_grad():
        expected = plain(**given(mllama), output_attentions=True).attentions
    assert [site.name for site in maps.sites] == ["decoder.0", "cross.0", "decoder.1"]
    for found, weights in zip(maps.weights, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(found), weights[0], atol=1e-5, rtol=1e-4)


def test_the_gradient_is_that_on_what_words_and_cross_attention_bring_in(mllama, plain):
    arguments = given(mllama)
    vectors = plain.get_input_embeddings()(arguments["input_ids"]).detach().requires_grad_()
    states = seen_by(plain, arguments).requires_grad_()
    logits_of(plain, arguments, vectors, states).max().backward()
    found = attlas.explain(mllama, (picture(0), TEXT), "gradient")
    expected = torch.cat([states.grad.flatten(0, 1), vectors.grad[0]]).norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)


def test_a_patch_is_left_out_as_a_grey_one(mllama, plain):
    whole = given(mllama)
    grey = whole["pixel_values"].clone()
    grey[:, :, 1, :, 8:16, 16:24] = 0  # the patch in row 1, column 2 of the second tile
    with torch.no_grad():
        before = plain(**whole).logits[0, -1].softmax(-1)
        after = plain(**{**whole, "pixel_values": grey}).logits[0, -1].softmax(-1)
    found = attlas.explain(mllama, (picture(0), TEXT), "leave_one_out")
    best = before.argmax()
    place = 17 + 1 + 4 + 2
    assert found.scores[place] == pytest.approx(float(before[best] - after[best]), abs=1e-5)


def test_rolled_out_attention_reads_the_picture_once(mllama, plain):
    """Three layers by hand: half of each stays; the second takes the picture in."""
    with torch.no_grad():
        maps = [
            each[0].mean(0) for each in plain(**given(mllama), output_attentions=True).attentions
        ]
    words = maps[0].shape[0]
    eye = torch.eye(words)
    below = 0.5 * (maps[0] + eye)
    above = 0.5 * (maps[2] + eye)
    expected = torch.cat([above @ (0.5 * maps[1]), above @ (0.5 * below)], dim=1)[-1]
    found = attlas.explain(mllama, (picture(0), TEXT), "attention_rollout")
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_scores_words_and_patches_or_refuses_by_name(mllama, method):
    try:
        found = attlas.explain(mllama, (picture(0), TEXT), method, maps=False, **few(method))
    except UnsupportedModelError as error:
        assert type(mllama.model).__name__ in str(error)
        return
    assert len(found.scores) == len(found.tokens) and np.isfinite(found.scores).all()
    assert found.scores[:KEYS].any() and found.scores[KEYS:].any()


def test_every_written_token_is_explained_as_if_it_were_asked_for_alone(mllama):
    found = attlas.explain_generation(mllama, (picture(0), TEXT), "gradient", max_new_tokens=3)
    ids = given(mllama)
    with torch.no_grad():
        written = mllama.model.generate(**ids, max_new_tokens=3, do_sample=False)[0]
    assert [mllama.tokenizer.convert_ids_to_tokens(int(each)) for each in written[-3:]] == [
        found.tokens[place] for place in found.outputs
    ]
    mask = ids["cross_attention_mask"]
    longer = {**ids, "input_ids": written[None, :-1]}
    longer["attention_mask"] = torch.ones_like(longer["input_ids"])
    longer["cross_attention_mask"] = torch.cat([mask, mask[:, -1:].expand(-1, 2, -1, -1)], dim=1)
    alone = attlas.explain(mllama, longer, "gradient", target=int(written[-1]))
    width = len(alone.scores)
    np.testing.assert_allclose(found.row(2).scores[:width], alone.scores, atol=1e-5, rtol=1e-3)


def test_the_model_is_as_it_was(mllama):
    arguments = given(mllama)
    with torch.no_grad():
        before = mllama.model(**arguments).logits
        attlas.explain_generation(mllama, (picture(0), TEXT), max_new_tokens=2)
        assert torch.equal(mllama.model(**arguments).logits, before)


def test_with_a_tokenizer_alone_a_text_alone_is_read(mllama):
    alone = attlas.Subject(mllama.model, mllama.tokenizer)
    assert set(attlas.explain(alone, TEXT, "gradient").tokens.segments) == {"text"}
    with pytest.raises(UsageError, match="reads pictures with a text"):
        attlas.explain(mllama, TEXT, "gradient")


def test_a_layer_that_only_reads_the_picture_has_no_map_of_the_words(mllama):
    with pytest.raises(UnsupportedModelError, match=r"only read the picture \(cross.0\)"):
        attlas.explain(mllama, (picture(0), TEXT), "value_zeroing")
    found = attlas.explain(mllama, (picture(0), TEXT), "value_zeroing", layer=-1)
    assert found.scores[KEYS:].sum() == pytest.approx(1, abs=1e-5)


def scores_of(build, method="gradient", **options):
    subject = attlas.Subject(*build())
    return subject, attlas.explain(subject, (picture(0), TEXT), method, **options)


def test_idefics_reads_patches_across_before_its_first_layer():
    subject, found = scores_of(tiny_pictures.idefics)
    assert found.tokens.grids == {"image": (4, 4)}
    assert [site.name for site in subject.sites] == ["cross.0", "decoder.0", "cross.1", "decoder.1"]
    model = on_eager(tiny_pictures.idefics()[0])
    arguments = dict(subject.encode((picture(0), TEXT)).arguments)
    vectors = model.get_input_embeddings()(arguments.pop("input_ids")).detach().requires_grad_()
    with torch.no_grad():
        seen = model.model.vision_model(pixel_values=arguments.pop("pixel_values")[0])
    states = seen.last_hidden_state[:, None].detach().requires_grad_()
    output = model(inputs_embeds=vectors, image_encoder_embeddings=states, **arguments)
    output.logits[0, -1].max().backward()
    expected = torch.cat([states.grad[0, 0], vectors.grad[0]]).norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)
    rolled = attlas.explain(subject, (picture(0), TEXT), "attention_rollout")
    assert rolled.scores.sum() == pytest.approx(1, abs=1e-5)


def test_florence_reads_patches_and_words_in_its_encoder():
    subject, found = scores_of(tiny_pictures.florence, prefix="a cat", target="s")
    assert found.tokens.grids == {"image": (2, 2)} and found.tokens.special[0]
    assert {*found.tokens.segments} == {"image", "text", "prefix"}
    model = on_eager(tiny_pictures.florence()[0])
    request = Request(prefix="a cat", target="s")
    inputs = encode_input(subject, (picture(0), TEXT), request).arguments
    with torch.no_grad():
        vectors = model.get_input_embeddings()(inputs["input_ids"])
        seen = model.model.get_image_features(inputs["pixel_values"]).pooler_output
    vectors[inputs["input_ids"] == model.config.image_token_id] = seen.reshape(-1, 32)
    leaves = [vectors.detach().requires_grad_()]

    def leaf(_module, _args, output):
        leaves.append(output.detach().requires_grad_())
        return leaves[-1]

    model.model.language_model.decoder.embed_tokens.register_forward_hook(leaf)
    output = model(inputs_embeds=leaves[0], decoder_input_ids=inputs["decoder_input_ids"])
    number = subject.tokenizer.convert_tokens_to_ids("s")
    output.logits[0, -1, number].backward()
    expected = torch.cat([leaf.grad[0] for leaf in leaves]).norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)


def test_a_q_former_gives_parts_without_a_place():
    subject, found = scores_of(tiny_pictures.blip)
    assert found.tokens.texts[:4] == ("part 0", "part 1", "part 2", "part 3")
    assert found.tokens.grids == {} and "no known place" in found.notes[0]
    model = on_eager(tiny_pictures.blip()[0])
    inputs = subject.encode((picture(0), TEXT)).arguments
    with torch.no_grad():
        vectors = model.get_input_embeddings()(inputs["input_ids"])
        seen = model.get_image_features(inputs["pixel_values"]).pooler_output
    vectors[:, :4] = seen
    vectors.requires_grad_()
    model.language_model(inputs_embeds=vectors).logits[0, -1].max().backward()
    expected = vectors.grad[0].norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)
    written = attlas.explain_generation(subject, (picture(0), TEXT), "gradient", max_new_tokens=2)
    assert len(written.outputs) == 2


def test_a_mask_says_where_kosmos_has_a_picture():
    subject, found = scores_of(tiny_pictures.kosmos)
    inputs = subject.encode((picture(0), TEXT)).arguments
    at = inputs["image_embeds_position_mask"][0].bool()
    assert [name == "image" for name in found.tokens.segments] == at.tolist()
    model, entered = tiny_pictures.kosmos()[0], []  # whose eager attention is another function
    first = model.text_model.model.layers[0]

    def leaf(_, args, kwargs):
        entered.append(args[0].detach().requires_grad_())
        return (entered[0], *args[1:]), kwargs

    first.register_forward_pre_hook(leaf, with_kwargs=True)
    model(**inputs).logits[0, -1].max().backward()
    expected = entered[0].grad[0].norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-3)
    with pytest.raises(UnsupportedModelError, match="patches cannot be masked"):
        attlas.explain(subject, (picture(0), TEXT), "leave_one_out")
    written = attlas.explain_generation(subject, (picture(0), TEXT), "gradient", max_new_tokens=2)
    assert len(written.outputs) == 2


TEMPLATE = (
    "{% for m in messages %}<s>{{ m.role }}: {% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content %}{% if p.type == 'image' %}MARK{% else %}{{ p.text }}"
    "{% endif %}{% endfor %}{% endif %}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)


def talk(seen):
    return [
        {"role": "system", "content": "user"},  # a content that is also markup
        {
            "role": "user",
            "content": [{"type": "image", "image": seen}, {"type": "text", "text": TEXT}],
        },
        {"role": "assistant", "content": "a cat"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "dog"}],
        },
    ]


@pytest.mark.parametrize(
    ("build", "mark"), [(tiny.llava_subject, "<image>"), (tiny_pictures.mllama, "<|image|>")]
)
def test_a_picture_may_stand_in_a_message(build, mark, tmp_path):
    model, processor = build()
    processor.chat_template = TEMPLATE.replace("MARK", mark)
    processor.tokenizer.model_max_length = 128
    subject = attlas.Subject(model, processor)
    picture(0).save(tmp_path / "seen.png")
    found = attlas.explain(subject, talk(str(tmp_path / "seen.png")), "gradient")
    text = (
        f"<s>system: user</s><s>user: {mark}{TEXT}</s><s>assistant: a cat</s><s>user: the dog</s>"
        "<s>assistant:"
    )
    ids = processor(
        text=[text], images=[[picture(0)]], add_special_tokens=False, return_tensors="pt"
    )
    alone = attlas.explain(subject, dict(ids), "gradient")
    np.testing.assert_array_equal(found.scores, alone.scores)
    said = dict(found.tokens.sources)
    assert said == {"1 system": "user", "2 user": TEXT, "3 assistant": "a cat", "4 user": "the dog"}
    rows = list(zip(found.tokens.segments, found.tokens.offsets, strict=True))
    for name, content in said.items():
        own = [offset for segment, offset in rows if segment == name and offset]
        assert (own[0][0], own[-1][1]) == (0, len(content))
    assert found.tokens.segments[-1] == "5 assistant" and found.tokens.special[-1]
    same = attlas.explain(subject, talk(picture(0)), "gradient")
    np.testing.assert_array_equal(found.scores, same.scores)
    assert "image_1 = ...  # a picture" in same.code() and "'image': image_1" in same.code()


def test_messages_with_pictures_are_for_models_that_see():
    words = attlas.Subject(*tiny.text_subject("Llama", "ForCausalLM", "bpe", **tiny.LLAMA_SHAPE))
    with pytest.raises(UsageError, match="takes a text alone"):
        attlas.explain(words, talk(picture(0)), "gradient")


def test_a_picture_that_is_not_there_is_told(mllama):
    processor = tiny_pictures.mllama()[1]
    processor.chat_template = TEMPLATE.replace("MARK", "<|image|>")
    subject = attlas.Subject(mllama.model, processor)
    with pytest.raises(UsageError, match=r"nowhere\.png cannot be read"):
        attlas.explain(subject, talk("nowhere.png"), "gradient")


def test_an_encoder_of_pictures_alone_is_refused_by_name():
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "d_kv": 8}
    text = {**small, "num_layers": 1, "num_heads": 4, "d_ff": 64, "vocab_size": 99}
    vision = {**small, "d_ff": 64, "patch_embed_hidden_size": 12, "seq_len": 16}
    settings = {"text_config": text, "vision_config": vision}
    model = tiny.build("Pix2Struct", "ForConditionalGeneration", settings)
    subject = attlas.Subject(model, tiny.tokenizer("bpe"))
    with pytest.raises(UnsupportedModelError, match="Pix2StructForConditionalGeneration cannot be"):
        attlas.explain(subject, TEXT, "gradient")
