"""Terms by token where a feed-forward has experts, or stands beside the attention."""

import pytest
import torch
from subjects import LONG, on_eager, small
from tiny import TOWER

import attlas
from attlas.errors import NotDefinedError, UnsupportedModelError
from attlas.methods import METHODS
from attlas.methods.support.decomposition import closeness, closeness_shares
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request
from attlas.models.relevance.passes import without_rule

EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
# What the two families choose differently.
ALIKE = {
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}


def score(model, words, method):
    (question,) = attlas.Subject(model, words).ask([LONG], Request(target=7))
    return question, METHODS[method].score(question, {}).scores


@pytest.fixture
def dense():
    """A Mistral, and a Mixtral of three experts that are all its feed-forward."""
    asked = small("Mistral", "ForCausalLM", "bpe", **TOWER, **ALIKE)
    alike = small("Mixtral", "ForCausalLM", "bpe", **TOWER, **ALIKE, **EXPERTS).model
    with torch.no_grad():
        taken = {name: value for name, value in asked.model.named_parameters() if "mlp" not in name}
        alike.load_state_dict(taken, strict=False)
        for layer, other in zip(asked.model.model.layers, alike.model.layers, strict=True):
            both = torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight])
            other.mlp.experts.gate_up_proj.copy_(both.expand(3, -1, -1))
            other.mlp.experts.down_proj.copy_(layer.mlp.down_proj.weight.expand(3, -1, -1))
    return asked, alike


@pytest.mark.parametrize(
    ("method", "how"),
    [
        ("decompx", "eager"),
        ("decompx", "grouped_mm"),
        ("decompx", "batched_mm"),
        ("alti", "grouped_mm"),
        ("globenc", "eager"),
    ],
)
def test_experts_that_are_equal_are_one_feed_forward(dense, method, how):
    asked, alike = dense
    alike.set_experts_implementation(how)
    _, expected = score(asked.model, asked.tokenizer, method)
    _, found = score(alike, asked.tokenizer, method)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", ["Mixtral", "GptOss"])
def test_the_terms_of_experts_sum_to_the_logit(family):
    sizes = {**TOWER, "num_key_value_heads": 2, "head_dim": 8, **EXPERTS}
    asked = small(family, "ForCausalLM", "bpe", **sizes)
    question, found = score(asked.model, asked.tokenizer, "decompx")
    whole = target_scores(question, "logit")
    torch.testing.assert_close(found.sum(dim=1), whole, rtol=1e-4, atol=1e-4)
    assert found.count_nonzero() == found.numel()


def beside(model, number):
    """GPT-NeoX: the values of a block, and its output projection."""
    block = model.gpt_neox.layers[number]
    heads = block.attention.config.num_attention_heads

    def values(given):
        mixed = block.attention.query_key_value(block.input_layernorm(given))
        return mixed.unflatten(-1, (heads, -1)).chunk(3, dim=-1)[2]

    return values, block.attention.dense


def written_out(model, number):
    """ESM: its feed-forward has a GELU that is written out."""
    block = model.esm.encoder.layer[number].attention
    heads = block.self.num_attention_heads

    def values(given):
        return block.self.value(block.LayerNorm(given)).unflatten(-1, (heads, -1))

    return values, block.output.dense


def contributions(model, arguments, parts_of):
    """For each block, what each token adds to the sum of attention and residual, and that sum."""
    output = model.base_model(**arguments, output_hidden_states=True, output_attentions=True)
    for number, weights in enumerate(output.attentions):
        given = output.hidden_states[number][0]
        values, projection = parts_of(model, number)
        heads = values(given)
        matrix = projection.weight.T.unflatten(0, heads.shape[1:])
        parts = torch.einsum("hij,jhw,hwf->ijf", weights[0], heads, matrix)
        parts = parts + torch.eye(len(parts))[:, :, None] * given[:, None]
        yield parts, parts.sum(dim=1) + projection.bias


@pytest.mark.parametrize(
    ("family", "head", "kind", "parts_of"),
    [
        ("GPTNeoX", "ForCausalLM", "bpe", beside),
        ("Esm", "ForSequenceClassification", "wordpiece", written_out),
    ],
)
def test_the_feed_forward_is_left_out_wherever_it_stands(family, head, kind, parts_of):
    asked = small(family, head, kind, **TOWER, max_position_embeddings=64, pad_token_id=0)
    model = on_eager(asked.model.double())
    (question,) = attlas.Subject(model, asked.tokenizer).ask([LONG])
    shares = lengths = torch.eye(len(question.inputs.tokens[0]), dtype=torch.float64)
    with torch.no_grad():
        for parts, whole in contributions(model, question.inputs.arguments, parts_of):
            near = closeness(whole[None], parts.transpose(0, 1)[:, None])
            each = closeness_shares(near.permute(1, 2, 0))
            shares, lengths = each[0] @ shares, parts.norm(dim=-1) @ lengths
    lengths = lengths / lengths.amax(dim=-1, keepdim=True)
    for method, expected in (("alti", shares), ("globenc", lengths)):
        ((_, found),) = METHODS[method].score(question, {}).maps
        torch.testing.assert_close(found[0, 0], expected, rtol=1e-6, atol=1e-8)


def test_several_attentions_in_a_block_are_refused_by_alti():
    asked = small("GPTNeoX", "ForCausalLM", "bpe", **TOWER, max_position_embeddings=64)
    first, second = asked.model.gpt_neox.layers

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, hidden_states, **given):
            return self.second(self.first(hidden_states, **given), **given)

    asked.model.gpt_neox.layers = torch.nn.ModuleList([Both()])
    with pytest.raises(UnsupportedModelError, match=r"GPTNeoX.* 2 attentions, 1 of"):
        attlas.explain(attlas.Subject(asked.model, asked.tokenizer), LONG, "alti")


class TinyGatedDeltaNet(torch.nn.Module):
    """Stands for a mixer that carries what came before along, without attention."""


@pytest.mark.parametrize("method", ["alti", "decompx", "globenc"])
def test_where_not_only_attention_mixes_tokens_nothing_is_defined(method):
    asked = small("GPTNeoX", "ForCausalLM", "bpe", **TOWER, max_position_embeddings=64)
    asked.model.mixer = TinyGatedDeltaNet()
    with pytest.raises(NotDefinedError, match="TinyGatedDeltaNet does without"):
        attlas.explain(attlas.Subject(asked.model, asked.tokenizer), LONG, method)


def convolution(kernel):
    """A GPT-NeoX with a convolution in its second block, over as many tokens as the kernel has."""
    asked = small("GPTNeoX", "ForCausalLM", "bpe", **TOWER, max_position_embeddings=64)
    block = asked.model.gpt_neox.layers[1]
    block.convolution = torch.nn.Conv1d(8, 8, kernel)
    return attlas.Subject(asked.model, asked.tokenizer)


@pytest.mark.parametrize("method", ["alti", "decompx", "globenc"])
def test_where_a_convolution_mixes_tokens_nothing_is_defined(method):
    with pytest.raises(NotDefinedError, match=r"Conv1d convolution of GPTNeoXLayer does without"):
        attlas.explain(convolution(3), LONG, method)
    assert attlas.explain(convolution(1), LONG, method).scores.any()


def test_convolutions_that_only_weigh_leave_the_terms_of_convbert_whole():
    asked = small("ConvBert", "ForSequenceClassification", **TOWER)
    (question,) = asked.ask([LONG])
    found = METHODS["decompx"].score(question, {}).scores.sum(dim=1)
    torch.testing.assert_close(found, target_scores(question, "logit"), rtol=1e-4, atol=1e-4)


def test_a_loss_of_relevance_is_by_definition_only_where_a_mixer_is():
    plain, mixing = torch.nn.Sequential(), torch.nn.Sequential(TinyGatedDeltaNet())
    assert isinstance(without_rule(mixing, "half is lost"), NotDefinedError)
    assert "half is lost (TinyGatedDeltaNet)" in str(without_rule(mixing, "half is lost"))
    assert not isinstance(without_rule(plain, "half is lost"), NotDefinedError)
