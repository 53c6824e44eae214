"""The rules of relevance, each against its formula, and conservation through whole families."""

import threading
from functools import cache, partial

import pytest
import tiny
import torch
from subjects import picture
from torch import Tensor
from torch.nn import functional
from transformers.activations import ACT2FN

import attlas
from attlas.errors import UnsupportedModelError
from attlas.models.asking.scores import target_scores_in_graph
from attlas.models.encoding.request import Request
from attlas.models.relevance.gradient_rules import AttnRules, ConservativeRules
from attlas.models.relevance.passes import carry, check_conservation, token_relevance
from attlas.models.relevance.positive_rules import PositiveRules
from attlas.models.relevance.rules import caught, is_elementwise

check = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-8)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_gradient(function, *inputs, rules=AttnRules, seed=9):
    """Random relevance of a result, and what comes of it to each input as input × gradient."""
    leaves = [each.clone().requires_grad_() for each in inputs]
    plain = function(*leaves)
    with rules(list):
        result = function(*leaves)
    check(result, plain, atol=1e-12, rtol=1e-12)
    relevance = random(*result.shape, seed=seed)
    found = torch.autograd.grad(result, leaves, relevance / result.detach(), materialize_grads=True)
    return relevance, [each * slope for each, slope in zip(inputs, found, strict=True)]


def by_relevance(function, *inputs, rows=1, seed=9):
    """Random relevance of a result, and what comes of it to each input by rules for relevance."""
    leaves = [each.clone().requires_grad_() for each in inputs]
    plain = function(*leaves)
    with PositiveRules(rows):
        result = function(*leaves)
    check(result, plain, atol=1e-12, rtol=1e-12)
    relevance = random(*result.shape, seed=seed)
    return relevance, torch.autograd.grad(result, leaves, relevance, materialize_grads=True)


# AttnLRP


def test_a_product_of_two_activations_by_epsilon_and_uniform_rule():
    a, b = random(2, 3, 4), random(2, 4, 5, seed=1)
    relevance, (to_a, to_b) = by_gradient(torch.matmul, a, b)
    shares = relevance / (2 * (a @ b))
    check(to_a, a * (shares @ b.mT))
    check(to_b, b * (a.mT @ shares))
    check(to_a.sum() + to_b.sum(), relevance.sum())


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a * b,
        lambda a, b: torch.mul(input=a, other=b),
        lambda a, b: torch.einsum("ij,ij->ij", a, b),
    ],
)
def test_an_elementwise_product_is_shared_equally(function):
    relevance, parts = by_gradient(function, random(3, 4), random(3, 4, seed=1))
    for part in parts:
        check(part, relevance / 2)


def test_a_product_written_over_its_operand():
    def function(a, b):
        product = a + 0
        product *= b
        return product

    def statement(a, b):
        product = a + 0
        product.mul_(b)
        return product

    for each in (function, statement):
        relevance, parts = by_gradient(each, random(3, 4), random(3, 4, seed=1))
        for part in parts:
            check(part, relevance / 2)


def test_a_product_with_something_added():
    bias, a, b = random(2, 3, 5), random(2, 3, 4, seed=1), random(2, 4, 5, seed=2)

    def function(a, b):
        return bias.baddbmm(batch1=a, batch2=b, beta=0.5, alpha=2.0)

    relevance, (to_a, to_b) = by_gradient(function, a, b)
    shares = relevance / (2 * a @ b + 0.5 * bias)  # what the constant takes is lost
    check(to_a, a * (shares @ b.mT))
    check(to_b, b * (a.mT @ shares))


@pytest.mark.parametrize(
    "function",
    [
        *(functional.gelu, functional.silu, torch.tanh, torch.sigmoid, Tensor.tanh, torch.square),
        lambda x: x**3,
        lambda x: torch.clamp(x, -0.5, 0.5),
    ],
)
def test_a_function_of_each_element_passes_everything(function):
    relevance, (part,) = by_gradient(function, random(3, 4))
    check(part, relevance)


def test_nothing_comes_of_nothing():
    given = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    with AttnRules(list):
        result = functional.relu(given)
    assert torch.autograd.grad(result.sum(), given)[0].tolist() == [0, 0, 0]


def written_out(x, weight):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


@pytest.mark.parametrize("norm", [written_out, lambda x, w: functional.rms_norm(x, (5,), w, 1e-6)])
def test_a_root_mean_square_norm_passes_everything(norm):
    weight = random(5, seed=1)
    relevance, (part,) = by_gradient(lambda x: norm(x, weight), random(3, 5))
    check(part, relevance)


def test_a_layer_norm_is_centring_times_a_constant():
    x, weight, bias = random(3, 5), random(5, seed=1), random(5, seed=2)
    relevance, (part,) = by_gradient(lambda x: functional.layer_norm(x, (5,), weight, bias), x)
    result = functional.layer_norm(x, (5,), weight, bias)
    deviation = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    centring = torch.eye(5, dtype=torch.float64) - 1 / 5
    check(part, x * ((relevance / result * weight / deviation) @ centring))


def test_a_softmax_to_first_order():
    x = random(3, 5)
    relevance, (part,) = by_gradient(lambda x: x.softmax(-1), x)
    check(part, x * (relevance - x.softmax(-1) * relevance.sum(-1, keepdim=True)))


def test_what_divides_has_no_part():
    a, b = random(3, 4), random(3, 4, seed=1)
    relevance, (above, below) = by_gradient(torch.div, a, b)
    check(above, relevance)
    assert not below.any()


def spelled_out(query, key, value):
    return (query @ key.mT * 0.5).softmax(-1) @ value


@pytest.mark.parametrize("rules", [AttnRules, ConservativeRules])
def test_fused_attention_is_as_spelled_out(rules):
    given = [random(1, 2, 3, 4, seed=seed) for seed in range(3)]
    fused = partial(functional.scaled_dot_product_attention, scale=0.5)
    for one, other in zip(
        by_gradient(fused, *given, rules=rules)[1],
        by_gradient(spelled_out, *given, rules=rules)[1],
        strict=True,
    ):
        check(one, other)


# CP-LRP


def test_cp_goes_by_values_and_by_what_is_gated():
    query, key, value = (random(1, 2, 3, 4, seed=seed) for seed in range(3))
    relevance, parts = by_gradient(spelled_out, query, key, value, rules=ConservativeRules)
    assert not parts[0].any() and not parts[1].any()
    check(parts[2].sum(), relevance.sum())
    gated = by_gradient(lambda a, b: functional.silu(a) * b, query, key, rules=ConservativeRules)
    assert not gated[1][0].any()
    check(gated[1][1], gated[0])


# Activation functions that are modules


# One passes everything on as it is, and two have parameters.
@pytest.mark.parametrize("name", sorted(set(ACT2FN) - {"linear", "xielu", "prelu"}))
def test_activation_modules_are_known(name):
    assert is_elementwise(ACT2FN[name])


def test_other_modules_are_not_activation_modules():
    for module in (
        *(torch.nn.Softmax(dim=-1), torch.nn.LayerNorm(8, elementwise_affine=False)),
        *(torch.nn.Identity(), torch.nn.Dropout().eval(), torch.nn.Linear(8, 8)),
        *(torch.nn.Flatten(), torch.nn.GLU(), torch.nn.Sequential(torch.nn.GELU())),
    ):
        assert not is_elementwise(module)


@pytest.mark.parametrize("name", ["gelu_new", "quick_gelu", "gelu_fast", "relu2", "silu"])
def test_an_activation_module_passes_everything_however_it_is_written(name):
    model = torch.nn.Sequential(ACT2FN[name])
    given = random(3, 4).requires_grad_()
    rules = AttnRules(list)
    with rules, caught(model, rules):
        result = model(given)
    check(result, model(given), atol=1e-12, rtol=1e-12)
    relevance = random(3, 4, seed=1) * (result != 0)
    found = torch.autograd.grad(result, given, relevance / result.where(result != 0, 1.0))[0]
    check(given * found, relevance)
    assert not any(len(each._forward_hooks) for each in model.modules())


def test_another_thread_sees_nothing_of_it():
    model, given = torch.nn.Sequential(torch.nn.GELU()), random(3).requires_grad_()
    found = []
    rules = AttnRules(list)
    with rules, caught(model, rules):
        work = threading.Thread(
            target=lambda: found.append(torch.autograd.grad(model(given).sum(), given)[0])
        )
        work.start()
        work.join()
    check(found[0], torch.autograd.grad(functional.gelu(given).sum(), given)[0])


# The rules of Chefer, Gur and Wolf


def slow_linear(x, weight, relevance):
    """Each input's part of the positive products, one by one."""
    found = torch.zeros_like(x)
    for row in range(len(x)):
        for out in range(len(weight)):
            products = (x[row] * weight[out]).clamp(min=0)
            if products.sum() > 0:
                found[row] += products / products.sum() * relevance[row, out]
    return found


def test_a_linear_layer_goes_by_what_adds():
    x, weight, bias = random(3, 4), random(5, 4, seed=1), random(5, seed=2)
    for function in (
        lambda x: functional.linear(x, weight, bias),
        lambda x: torch.addmm(bias, x, weight.T),
        lambda x: torch.einsum("ij,kj->ik", x, torch.nn.Parameter(weight, False)) + bias,
    ):
        relevance, (part,) = by_relevance(function, x)
        check(part, slow_linear(x, weight, relevance), atol=1e-6, rtol=1e-6)
        check(part.sum(), relevance.sum(), atol=1e-6, rtol=1e-6)


def test_a_product_is_shared_by_its_operands():
    a, b = random(2, 3, 4), random(2, 4, 5, seed=1)
    relevance, (to_a, to_b) = by_relevance(torch.matmul, a, b)
    shares = relevance / (2 * (a @ b))
    check(to_a, a * (shares @ b.mT), atol=1e-6, rtol=1e-6)
    check(to_b, b * (a.mT @ shares), atol=1e-6, rtol=1e-6)
    check(to_a.sum() + to_b.sum(), relevance.sum(), atol=1e-6, rtol=1e-6)


def test_a_sum_is_shared_by_what_comes_to_each():
    a, b = torch.tensor([[3.0, 1.0]]).double(), torch.tensor([[1.0, 1.0]]).double()
    a.requires_grad_(), b.requires_grad_()
    with PositiveRules(1):
        result = a + b
    relevance = torch.tensor([[4.0, -8.0]]).double()
    # By elements: a gets 3 and -4, b gets 1 and -4: sums -1 and -3, so shares 1/4 and 3/4 of -4.
    to_a, to_b = torch.autograd.grad(result, (a, b), relevance)
    check(to_a, torch.tensor([[3.0, -4.0]]).double(), atol=1e-6, rtol=1e-6)
    check(to_b, torch.tensor([[1.0, -4.0]]).double(), atol=1e-6, rtol=1e-6)


def test_a_sum_whose_parts_pull_apart_is_scaled():
    a, b = torch.tensor([[3.0, 1.0]]).double(), torch.tensor([[1.0, -3.0]]).double()
    a.requires_grad_(), b.requires_grad_()
    with PositiveRules(1):
        result = a + b
    relevance = torch.tensor([[4.0, 2.0]]).double()
    # By elements: a gets 3 and -1, b gets 1 and 3: sums 2 and 4, so 1/3 and 2/3 of 6: as they are.
    for part, expected in zip(
        torch.autograd.grad(result, (a, b), relevance), ([[3.0, -1.0]], [[1.0, 3.0]]), strict=True
    ):
        check(part, torch.tensor(expected).double(), atol=1e-6, rtol=1e-6)
    with PositiveRules(1):
        result = a + b
    relevance = torch.tensor([[4.0, -6.0]]).double()
    # a gets 3 and 3, b gets 1 and -9: sums 6 and -8, of -2: 6/14 and 8/14 of it.
    to_a, to_b = torch.autograd.grad(result, (a, b), relevance)
    check(to_a, torch.tensor([[3.0, 3.0]]).double() * (-2 * 6 / 14 / 6), atol=1e-6, rtol=1e-6)
    check(to_b, torch.tensor([[1.0, -9.0]]).double() * (-2 * 8 / 14 / -8), atol=1e-6, rtol=1e-6)


def test_the_rows_of_a_batch_do_not_mix():
    a, b = random(2, 3, 4), random(2, 3, 4, seed=1)
    relevance, together = by_relevance(torch.add, a, b, rows=2)
    for row in range(2):
        leaves = [each[row : row + 1].clone().requires_grad_() for each in (a, b)]
        with PositiveRules(1):
            result = leaves[0] + leaves[1]
        alone = torch.autograd.grad(result, leaves, relevance[row : row + 1])
        for one, other in zip(together, alone, strict=True):
            check(one[row : row + 1], other)


def test_what_is_used_twice_gets_both():
    relevance, (part,) = by_relevance(lambda x: torch.cat([x, x]), random(2, 3))
    check(part, relevance[:2] + relevance[2:])


@pytest.mark.parametrize(
    "function",
    [
        *(torch.neg, functional.gelu, lambda x: x.softmax(-1), lambda x: 3 * x, lambda x: x - 2),
        *(lambda x: x / 2, lambda x: 1 - x, lambda x: functional.layer_norm(x, (4,))),
        partial(written_out, weight=random(4, seed=1)),
    ],
)
def test_what_is_passed_unchanged(function):
    relevance, (part,) = by_relevance(function, random(3, 4))
    check(part, relevance)


def test_a_mean_goes_to_each_by_its_part():
    x = random(3, 4).abs()
    relevance, (part,) = by_relevance(lambda x: x.mean(1), x)
    check(part, x / x.sum(1, keepdim=True) * relevance[:, None], atol=1e-6, rtol=1e-6)


# Whole families

FAMILIES = {**tiny.FAMILIES, **tiny.SECOND_ROAD}
CONSERVED = [
    *("bert", "roberta", "distilbert", "albert", "electra", "modernbert", "gpt2", "gpt_neox"),
    *("opt", "llama", "qwen3", "gemma2", "phi3", "olmo2", "granite", "cohere2", "t5", "bart"),
    *("pegasus", "vit", "deberta_v2", "mpnet", "xlnet", "bloom", "falcon", "gptj", "mpt"),
]


@cache
def double(family, biased=False):
    """A tiny model in float64 that its tokenizer's ids fit, with all biases zero or as they are."""
    settings, words = dict(tiny.TEXT), tiny.tokenizer("wordpiece")
    tiny.TEXT["vocab_size"] = len(words)
    try:
        model = FAMILIES[family]().model.double()
    finally:
        tiny.TEXT.update(settings)
    for name, parameter in model.named_parameters():
        if name.endswith("bias") and not biased:
            parameter.data.zero_()
    return attlas.Subject(model, tiny.image_subject()[1] if family == "vit" else words)


def question_of(subject, **asked):
    text = picture(0) if subject.reads_images else "the film was not good"
    prefix = {"prefix": "a cat"} if subject.has_decoder else {}
    (question,) = subject.ask([text], Request(target=1, **prefix, **asked))
    return question


@pytest.mark.parametrize("family", CONSERVED)
def test_the_tokens_have_all_of_the_logit_where_there_are_no_biases(family):
    question = question_of(double(family))
    found = token_relevance(question, ConservativeRules)
    with torch.no_grad(), question.subject.tap(sites=()):
        logit = target_scores_in_graph(question, "logit")
    check(found.sum(dim=1), logit, atol=1e-12, rtol=1e-6)
    assert found.abs().max() > 1e-3
    check(carry(question, AttnRules).scores, logit, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bloom", "t5", "vit"])
def test_biases_are_counted_where_there_are_some(family):
    check_conservation(double(family, biased=True))


def test_a_family_with_an_operation_that_has_no_rule_is_refused():
    """ESM writes its activation out as a function: one that the rules would take for a gate."""
    settings = {**tiny.BERT_SHAPE, **tiny.labels(*tiny.LABELS), "mask_token_id": 4}
    subject = attlas.Subject(
        *tiny.text_subject("Esm", "ForSequenceClassification", "wordpiece", **settings)
    )
    with pytest.raises(UnsupportedModelError, match=r"of a logit of .*, .* arrives, so one"):
        attlas.explain(subject, "a cat sat", "attn_lrp")
