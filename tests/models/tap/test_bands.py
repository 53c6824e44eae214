"""Block-sparse attention as one map, against dense attention with the family's own mask."""

from collections import Counter

import pytest
import tiny
import torch

import attlas
from attlas.errors import UnsupportedModelError
from attlas.models.tap import edits
from attlas.models.tap.opening import tap

TOKENS = 11  # not a whole number of windows or blocks
SIDE = 2  # of Longformer's windows
RADIUS = 3  # of LongT5's
BLOCK = 4  # of Pegasus-X
PAIR = {"d_model": 32, "decoder_start_token_id": 2}
STACKS = {f"{stack}_layers": 2 for stack in ("encoder", "decoder")}
HEADS = {f"{stack}_attention_heads": 4 for stack in ("encoder", "decoder")}
WIDTHS = {f"{stack}_ffn_dim": 64 for stack in ("encoder", "decoder")}
T5 = {**PAIR, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "num_decoder_layers": 2}
T5 |= {"relative_attention_num_buckets": 8}
WITH_OTHERS = ("longt5 transient-global", "pegasus_x")  # summaries of blocks, global vectors


def longformer(head="ForSequenceClassification", **settings):
    shape = {**tiny.TEXT, **tiny.BERT_SHAPE, "attention_window": 2 * SIDE, "sep_token_id": 2}
    return tiny.build("Longformer", head, {**shape, **settings})


def led():
    places = {f"max_{stack}_position_embeddings": 64 for stack in ("encoder", "decoder")}
    settings = {**tiny.TEXT, **PAIR, **STACKS, **HEADS, **WIDTHS, **places}
    return tiny.build("LED", "ForConditionalGeneration", {**settings, "attention_window": 2 * SIDE})


def longt5(kind, **settings):
    shape = {**tiny.TEXT, **T5, "local_radius": RADIUS, "global_block_size": 4}
    shape["encoder_attention_type"] = kind
    return tiny.build("LongT5", "ForConditionalGeneration", {**shape, **settings})


def pegasus_x():
    settings = {**tiny.TEXT, **PAIR, **STACKS, **HEADS, **WIDTHS, "max_position_embeddings": 64}
    settings |= {"block_size": BLOCK, "num_global_tokens": 3}
    return tiny.build("PegasusX", "ForConditionalGeneration", settings)


BIG_BIRD = {"attention_type": "block_sparse", "block_size": 1, "num_random_blocks": 1}


def big_bird(**settings):
    shape = {**tiny.TEXT, **tiny.BERT_SHAPE, **BIG_BIRD, **settings}
    return tiny.build("BigBird", "ForSequenceClassification", shape)


def bigbird_pegasus():
    settings = {**tiny.TEXT, **PAIR, **STACKS, **HEADS, **WIDTHS, "max_position_embeddings": 64}
    return tiny.build("BigBirdPegasus", "ForConditionalGeneration", {**settings, **BIG_BIRD})


PROPHETNET = {f"num_{each}": 2 for each in ("encoder_layers", "decoder_layers")}
PROPHETNET |= {f"num_{stack}_attention_heads": 4 for stack in ("encoder", "decoder")}
PROPHETNET |= {"hidden_size": 32, "num_buckets": 8, "relative_max_distance": 16, "ngram": 2}
REFORMER = {"attn_layers": ["local", "local"], "attention_head_size": 8, "hidden_size": 32}
REFORMER |= {
    "local_attn_chunk_length": BLOCK,
    "lsh_attn_chunk_length": BLOCK,
    "feed_forward_size": 64,
}
REFORMER |= {
    "axial_pos_embds": False,
    "max_position_embeddings": 64,
    "is_decoder": False,
    "feed_forward_size": 64,
}


def prophetnet():
    settings = {**tiny.TEXT, **WIDTHS, **PROPHETNET, "max_position_embeddings": 64}
    settings["decoder_start_token_id"] = 2
    return tiny.build("ProphetNet", "ForConditionalGeneration", settings)


def reformer(**settings):
    shape = {**tiny.TEXT, "num_attention_heads": 4, "num_hidden_layers": 2, **REFORMER}
    return tiny.build("Reformer", "ForSequenceClassification", {**shape, **settings})


MODELS = {
    "longformer": longformer,
    "led": led,
    "longt5 local": lambda: longt5("local"),
    "longt5 transient-global": lambda: longt5("transient-global"),
    "pegasus_x": pegasus_x,
    "big_bird": big_bird,
    "bigbird_pegasus": bigbird_pegasus,
}


@pytest.fixture(params=MODELS)
def case(request):
    model = MODELS[request.param]()
    return request.param, model, inputs_of(model)


def inputs_of(model):
    source = {name: each[:, :TOKENS] for name, each in tiny.text_inputs().items()}
    ids = tiny.token_ids(5, seed=2)
    return {**source, "decoder_input_ids": ids} if model.config.is_encoder_decoder else source


def run(model, inputs):
    with torch.no_grad():
        return model(**inputs).logits


def states_of(module, model, inputs):
    """The hidden states that a module gets."""
    found = []
    handle = module.register_forward_pre_hook(
        lambda _, args, given: found.append(args[0] if args else next(iter(given.values()))),
        with_kwargs=True,
    )
    run(model, inputs)
    handle.remove()
    return found[0]


def heads_of(projection, states):
    return projection(states).detach().unflatten(-1, (4, 8)).transpose(1, 2)


def near(side):
    places = torch.arange(TOKENS)
    return (places[:, None] - places).abs() <= side


def masked_softmax(scores, visible):
    return scores.masked_fill(~visible, -torch.inf).softmax(-1)


def expected_sliding(model, inputs, attention, global_tokens):
    """A window for every token; global tokens see all, by their own projections, and are seen."""
    states = states_of(attention, model, inputs)[:, :TOKENS]
    visible = near(SIDE)
    visible[:, global_tokens] = True
    query, key = heads_of(attention.query, states), heads_of(attention.key, states)
    maps = masked_softmax(query @ key.mT / 8**0.5, visible)
    query, key = heads_of(attention.query_global, states), heads_of(attention.key_global, states)
    maps[:, :, global_tokens] = (query @ key.mT / 8**0.5).softmax(-1)[:, :, global_tokens]
    return maps


def expected_neighbours(model, inputs, attention):
    """T5's attention, without scaling and with its bias, over the tokens within the radius."""
    states = states_of(attention, model, inputs)
    places = torch.arange(TOKENS)
    buckets = attention._relative_position_bucket(places - places[:, None], num_buckets=8)
    bias = attention.relative_attention_bias(buckets).detach().permute(2, 0, 1)
    scores = heads_of(attention.q, states) @ heads_of(attention.k, states).mT + bias
    return scores, near(RADIUS)


def expected_blocks(model, inputs, attention, shift):
    """Attention within the blocks alone; every other layer shifts them by half a block."""
    states = states_of(attention, model, inputs)[:, shift : shift + TOKENS]
    blocks = (torch.arange(TOKENS) + shift) // BLOCK
    scores = heads_of(attention.q_proj, states) @ heads_of(attention.k_proj, states).mT / 8**0.5
    return masked_softmax(scores, blocks[:, None] == blocks)


def expected_big_bird(model, inputs, attention):
    """Each token sees its neighbours, the first and the last, which see all.

    In evaluation every random block is the first, so that it is counted once more there.
    """
    states = states_of(attention, model, inputs)
    visible = near(1)
    visible[:, [0, -1]] = visible[[0, -1]] = True
    scores = heads_of(attention.query, states) @ heads_of(attention.key, states).mT / 8**0.5
    again = torch.zeros(TOKENS, TOKENS)
    again[1:-1, 0] = torch.tensor(2.0).log()
    return masked_softmax(scores + again, visible)


def test_a_short_text_leaves_big_bird_as_it_was():
    model = big_bird()
    short, long = {"input_ids": tiny.token_ids(5, 1)}, {"input_ids": tiny.token_ids(TOKENS, 2)}
    fresh = run(model, long)
    subject = attlas.Subject(model, tiny.tokenizer("wordpiece"))
    with subject.tap() as seen:
        run(model, short)
        assert len(seen.calls) == 2 and (seen.weights[0] > 0).all()
        assert torch.equal(run(model, long), fresh)
        assert not (seen.weights[0] > 0).all()
    assert torch.equal(run(model, long), fresh)
    assert model.bert.attention_type == "block_sparse"


def test_blocks_begin_half_a_block_earlier_in_every_other_layer():
    model = pegasus_x()
    inputs = inputs_of(model)
    with tap(model) as seen:
        run(model, inputs)
    attention = model.model.encoder.layers[1].self_attn
    expected = expected_blocks(model, inputs, attention, shift=BLOCK // 2)
    read = seen.weights[1] / seen.weights[1].sum(-1, keepdim=True)
    torch.testing.assert_close(read, expected, atol=2e-5, rtol=1e-4)


def test_maps_are_dense_attention_with_the_mask_of_the_family(case):
    name, model, inputs = case
    with tap(model) as seen:
        run(model, inputs)
    if name == "longformer":
        attention = model.longformer.encoder.layer[0].attention.self
        expected = expected_sliding(model, inputs, attention, [0])
    elif name == "led":
        attention = model.led.encoder.layers[0].self_attn.longformer_self_attn
        expected = expected_sliding(model, inputs, attention, [])
    elif name == "pegasus_x":
        attention = model.model.encoder.layers[0].self_attn
        expected = expected_blocks(model, inputs, attention, shift=0)
    elif name == "big_bird":
        attention = model.bert.encoder.layer[0].attention.self
        expected = expected_big_bird(model, inputs, attention)
    elif name == "bigbird_pegasus":
        attention = model.model.encoder.layers[0].self_attn.self
        expected = expected_big_bird(model, inputs, attention)
    else:
        attention = next(iter(model.encoder.block[0].layer[0].children()))
        scores, visible = expected_neighbours(model, inputs, attention)
        expected = masked_softmax(scores, visible)
    read = seen.weights[0]
    if name in WITH_OTHERS:  # the rest of a row goes to vectors that are no tokens
        shares = read.sum(-1, keepdim=True)
        assert shares.max() < 1 + 1e-6 and shares.min() < 0.5
        read = read / shares
    torch.testing.assert_close(read, expected, atol=2e-5, rtol=1e-4)
    assert torch.equal(seen.calls[0].visible.expand_as(read), expected > 0)


def test_global_tokens_of_each_row_of_a_batch_are_its_own():
    model = longformer("ForTokenClassification")
    ids = torch.cat([tiny.token_ids(TOKENS, seed) for seed in (1, 2)])
    chosen = torch.zeros_like(ids)
    chosen[0, 3] = chosen[1, 0] = chosen[1, 8] = 1
    inputs = {"input_ids": ids, "global_attention_mask": chosen}
    with tap(model) as seen:
        run(model, inputs)
    attention = model.longformer.encoder.layer[0].attention.self
    for row, places in enumerate(([3], [0, 8])):
        expected = expected_sliding(model, inputs, attention, places)[row]
        torch.testing.assert_close(seen.weights[0][row], expected, atol=2e-5, rtol=1e-4)


def test_the_output_is_that_of_the_model_to_the_bit(case):
    name, model, inputs = case
    before = run(model, inputs)
    with tap(model) as seen:
        assert torch.equal(run(model, inputs), before)
    pairs = {"encoder": 2, "decoder": 2, "cross": 2}
    assert Counter(site.kind for site in seen.sites) == (
        {"encoder": 2} if name in ("longformer", "big_bird") else pairs
    )
    with tap(model, [edits.apply(torch.clone)]):  # BigBird's first block occurs twice
        torch.testing.assert_close(
            run(model, inputs), before, rtol=0, atol=1e-5 if "bird" in name else 0
        )
    with tap(model, [edits.uniform().at(kind="encoder")]):
        assert (run(model, inputs) - before).abs().max() > 1e-3
    assert torch.equal(run(model, inputs), before)


def test_an_edit_is_used_and_an_inner_tap_sees_it(case):
    _, model, inputs = case
    off = edits.zero(4).at(kind="encoder", layer=0)
    with tap(model, [off]), tap(model) as seen:
        run(model, inputs)
    assert not seen.weights[0][..., 4].any() and seen.weights[1][..., 4].any()


def test_gradients_are_those_of_a_small_change(case):
    _, model, inputs = case
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    step = 1e-2

    def score(change):
        moved = edits.apply(lambda weights: weights + change).at(kind="encoder", layer=0)
        with tap(model, [moved]):
            return float(run(model, inputs).double().square().sum())

    with tap(model, gradients=True) as seen:
        total = model(**inputs).logits.square().sum()
        gradient = torch.autograd.grad(total, seen.weights[0])[0]
    change = torch.zeros_like(gradient)
    change[0, 1, 4, 5] = step
    slope = (score(change) - score(-change)) / (2 * step)
    assert float(gradient[0, 1, 4, 5]) == pytest.approx(slope, rel=0.02, abs=1e-4)


def test_weight_outside_the_windows_is_refused_by_name():
    model = longformer()
    even = edits.replace(torch.full((1, 1, TOKENS, TOKENS), 1 / TOKENS))
    says = "LongformerSelfAttention attends within windows"
    with pytest.raises(UnsupportedModelError, match=says), tap(model, [even]):
        run(model, inputs_of(model))


def test_a_window_around_all_tokens_gives_what_the_dense_family_gives():
    """A Longformer whose window covers the text, with equal projections, is a RoBERTa."""
    shape = {**tiny.BERT_SHAPE, **tiny.labels(*tiny.LABELS)}
    head = "ForSequenceClassification"
    dense, words = tiny.text_subject("Roberta", head, "wordpiece", **shape)
    banded, _ = tiny.text_subject("Longformer", head, "wordpiece", attention_window=64, **shape)
    given = {
        name.replace("roberta.", "longformer."): each for name, each in dense.state_dict().items()
    }
    for name in list(given):
        for part in ("query", "key", "value"):
            given[name.replace(f".self.{part}.", f".self.{part}_global.")] = given[name]
    banded.load_state_dict(given)
    both = [attlas.Subject(model, words) for model in (dense, banded)]
    for method in ("attention_rollout", "generic_relevance", "input_x_gradient", "attattr"):
        options = {"steps": 2} if method == "attattr" else {}
        one, other = (attlas.explain(each, "a warm film", method, **options) for each in both)
        assert other.scores == pytest.approx(one.scores, rel=1e-3, abs=1e-5)


def read(model, inputs, *given):
    with tap(model, list(given)) as seen:
        output = run(model, inputs)
    return output, [call for call in seen.calls if call.site.kind == "decoder"] or seen.calls


def test_streams_of_next_tokens_follow_the_tokens():
    """ProphetNet's own maps: of the tokens, and of each stream over the tokens and itself."""
    model, length = prophetnet(), 5
    inputs = inputs_of(model)
    before = run(model, inputs)
    output, calls = read(model, inputs)
    assert torch.equal(output, before)
    with torch.no_grad():
        own = model(**inputs, output_attentions=True)
    for layer, call in enumerate(calls):
        expected = torch.zeros(1, 4, 3 * length, 3 * length)
        expected[:, :, :length, :length] = own.decoder_attentions[layer]
        for number in range(2):
            rows = slice((1 + number) * length, (2 + number) * length)
            stream = own.decoder_ngram_attentions[layer].transpose(1, 2)[:, :, number]
            expected[:, :, rows, :length] = stream[..., :length]
            expected[:, :, rows, rows] = stream[..., length:]
        torch.testing.assert_close(call.weights, expected, atol=0, rtol=0)
        torch.testing.assert_close(call.weights.sum(-1), torch.ones(1, 4, 3 * length))
    assert torch.equal(read(model, inputs, edits.apply(torch.clone))[0], before)
    assert (read(model, inputs, edits.uniform().at(kind="decoder"))[0] - before).abs().max() > 1e-3
    assert torch.equal(run(model, inputs), before)


def test_streams_of_next_tokens_have_gradients():
    model = prophetnet().requires_grad_(False)
    inputs = inputs_of(model)
    with tap(model, gradients=True) as seen:
        total = model(**inputs).logits.square().sum()
        found = torch.autograd.grad(total, seen.weights, allow_unused=True)
    by_site = {site.name: each for site, each in zip(seen.sites, found, strict=True)}
    change = torch.zeros_like(by_site["decoder.0"])
    change[0, 1, 7, 2] = 1e-2  # the first stream at the third token, to that token

    def score(step):
        moved = edits.apply(lambda weights: weights + step).at(kind="decoder", layer=0)
        return float(read(model, inputs, moved)[0].double().square().sum())

    slope = (score(change) - score(-change)) / 2e-2
    assert float(by_site["decoder.0"][0, 1, 7, 2]) == pytest.approx(slope, rel=0.02, abs=1e-4)


@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("tokens", [3, TOKENS])
def test_chunks_see_their_neighbours_in_a_circle(tokens, before, after):
    """Dense attention with the mask of Reformer's definition; 11 tokens fill three chunks."""
    model = reformer(local_num_chunks_before=before, local_num_chunks_after=after)
    inputs = {"input_ids": tiny.token_ids(tokens, 1)}
    own = run(model, inputs)
    output, calls = read(model, inputs)
    assert torch.equal(output, own)
    attention = model.reformer.encoder.layers[0].attention.self_attention
    states = states_of(attention, model, inputs)[:, :tokens]
    scores = heads_of(attention.query, states) @ heads_of(attention.key, states).mT / 8**0.5
    chunks = -(-tokens // BLOCK)
    here = torch.arange(tokens) // BLOCK
    steps = [(here[:, None] + step - here) % chunks == 0 for step in range(-before, after + 1)]
    counts = torch.stack(steps).sum(0) if tokens > BLOCK else torch.ones(tokens, tokens)
    expected = masked_softmax(scores + counts.log(), counts > 0)
    torch.testing.assert_close(calls[0].weights, expected, atol=2e-5, rtol=1e-4)
    same = read(model, inputs, edits.apply(torch.clone))[0]
    torch.testing.assert_close(same, own, atol=1e-6, rtol=0)
    assert (read(model, inputs, edits.uniform())[0] - own).abs().max() > 1e-5


def test_reformers_gradients_and_hashed_layers_are_refused_by_name():
    def subject(*layers):
        given = {
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            **REFORMER,
            "attn_layers": layers,
        }
        head = "ForSequenceClassification"
        return attlas.Subject(*tiny.text_subject("Reformer", head, "wordpiece", **given))

    local = subject("local", "local")
    assert len(local.attention("a warm film").sites) == 2
    says = "ReformerForSequenceClassification lets no gradient through"
    for method in ("gradient", "gradient_attention", "raw_attention"):
        with pytest.raises(UnsupportedModelError, match=says):
            attlas.explain(local, "a warm film", method)
    assert attlas.explain(local, "a warm film", "leave_one_out").scores.any()
    with pytest.raises(UnsupportedModelError, match="LSHSelfAttention cannot be opened"):
        subject("local", "lsh").attention("a warm film")


def test_keys_kept_from_before_are_refused_by_name():
    model = prophetnet()
    inputs = inputs_of(model)
    kept = model(**inputs, use_cache=True).past_key_values
    with tap(model) as seen:
        assert run(model, {**inputs, "use_cache": True}).shape[1] == 5
    assert len(seen.calls) == 6
    more = {**inputs, "decoder_input_ids": inputs["decoder_input_ids"][:, -1:]}
    says = "ProphetNetNgramSelfAttention is opened on whole texts only"
    with pytest.raises(UnsupportedModelError, match=says), tap(model):
        run(model, {**more, "past_key_values": kept, "use_cache": True})
