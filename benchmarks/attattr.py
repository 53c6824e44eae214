"""Self-attention attribution: branches against the published procedure as a plain loop.

    python benchmarks/attattr.py [--device cuda] [--tokens 128] [--dtype float32] [--tf32]
        [--texts 16] [--memory 16]

BERT-base shape, random weights, one text, all layers. The loop is the published procedure: for
each layer, one batch of m copies through the whole model on eager attention, that layer's attention
scaled by k/m, and the gradient of the probability on it. `branches` is what Attlas does at the same
points, and then with fewer midpoints. The error is against 324 midpoints in float32: the mean over
layers of |I - I*|₁ / |I*|₁. At the end, many texts at once.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import BertConfig, BertForSequenceClassification
from transformers.models.bert import modeling_bert
from transformers.utils import logging

import attlas
from attlas.models.asking.question import Question
from attlas.models.branching.attribution import Quadrature, attributions

STEPS = 20


def make_question(device: str, dtype: torch.dtype, tokens: int, texts: int = 1) -> Question:
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = BertConfig(initializer_range=0.05, attn_implementation="sdpa")
    model = BertForSequenceClassification(config).eval().to(device, dtype)
    subject = attlas.Subject(model, attlas.load().tokenizer)
    words = sorted(word for word in subject.tokenizer.get_vocab() if word.isalpha())
    numbers = torch.randint(len(words), (texts, tokens - 2)).tolist()
    (question,) = subject.ask([" ".join(words[number] for number in row) for row in numbers])
    return question


@contextmanager
def raised(layer: int, factors: Tensor) -> Iterator[list[Tensor]]:
    """BERT with the attention of one layer times a factor for each row of the batch."""
    own, calls, held = modeling_bert.eager_attention_forward, [], []

    def attend(module, query, key, value, *args, **kwargs):  # type: ignore[no-untyped-def]
        output, weights = own(module, query, key, value, *args, **kwargs)
        calls.append(module)
        if len(calls) - 1 == layer:
            weights = (factors[:, None, None, None] * weights).detach().requires_grad_()
            held.append(weights)
            output = (weights @ value).transpose(1, 2).contiguous()
        return output, weights

    modeling_bert.eager_attention_forward = attend
    try:
        yield held
    finally:
        modeling_bert.eager_attention_forward = own


def loop(question: Question, factors: Tensor) -> list[Tensor]:
    """The published procedure, layer by layer."""
    model = question.subject.model
    ((_, choice),) = question.targets[0].picks
    given = {k: v.expand(len(factors), -1) for k, v in question.inputs.arguments.items()}
    found = []
    for layer in range(model.config.num_hidden_layers):
        with raised(layer, factors.to(model.dtype)) as held:
            total = model(**given).logits.float().softmax(-1)[:, choice].sum()
            (gradients,) = torch.autograd.grad(total, held)
        attention = held[0][-1].float() / factors[-1]
        found.append(attention.detach() * gradients.float().mean(0))
    return found


def branched(question: Question, quadrature: Quadrature) -> list[Tensor]:
    found = attributions(question, question.subject.sites, quadrature)
    return [each.weights[0].float() for each in found]


def seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times)


def map_error(found: list[Tensor], reference: list[Tensor]) -> float:
    pairs = zip(found, reference, strict=True)
    shares = [float((a - b).abs().sum() / b.abs().sum()) for a, b in pairs]
    return sum(shares) / len(shares)


def operations(question: Question, steps: int) -> float:
    """Multiplications and additions by the blocks' matrices for one text, forward and backward.

    Each block runs the clean row and the rows that have started by then: one for each step, and one
    without attention. The backward pass only reaches the streams, so it costs as much as forward.
    """
    blocks = question.subject.model.bert.encoder.layer
    weights = sum(each.numel() for each in blocks[0].parameters() if each.ndim == 2)
    rows = sum(1 + (steps + 1) * (place + 1) for place in range(len(blocks)))
    return 2.0 * 2 * weights * rows * len(question.inputs.tokens[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--reference", type=int, default=324)
    parser.add_argument("--texts", type=int, default=0)
    parser.add_argument("--memory", type=float, help="gigabytes that Attlas may use")
    given = parser.parse_args()
    device, dtype = given.device, getattr(torch, given.dtype)
    most = None if given.memory is None else int(given.memory * 2**30)
    exact = make_question(device, torch.float32, given.tokens)
    reference = branched(exact, Quadrature(steps=given.reference, memory=most))
    torch.backends.cuda.matmul.allow_tf32 = given.tf32
    question = make_question(device, dtype, given.tokens)
    question.subject.model.set_attn_implementation("eager")
    for parameter in question.subject.model.parameters():
        parameter.requires_grad_(False)
    factors = torch.arange(1, STEPS + 1, device=device) / STEPS
    name = "tf32" if given.tf32 else given.dtype
    print(f"{name}, {given.tokens} tokens, {device}")
    slow = seconds(lambda: loop(question, factors), device, given.repeats)
    published = loop(question, factors)
    worst = map_error(published, reference)
    print(f"loop, right sum, {STEPS} steps      {slow * 1e3:9.1f} ms   map error {worst:.4f}")
    question.subject.model.set_attn_implementation("sdpa")
    right = Quadrature("right", STEPS, memory=most)
    same = seconds(lambda: branched(question, right), device, given.repeats)
    ours = branched(question, right)
    apart = map_error(ours, published)
    print(
        f"branches, the same points      {same * 1e3:9.1f} ms   map error "
        f"{map_error(ours, reference):.4f}   {slow / same:5.1f} times; differs by {apart:.1e}"
    )
    for steps in (3, 4, 5, 6, 8):
        few = Quadrature(steps=steps, memory=most)
        error = map_error(branched(question, few), reference)
        took = seconds(lambda: branched(question, few), device, given.repeats)  # noqa: B023
        print(
            f"branches, {steps} midpoints         {took * 1e3:9.1f} ms   map error {error:.4f}   "
            f"{slow / took:5.1f} times",
            flush=True,
        )
    if given.texts:
        many = make_question(device, dtype, given.tokens, given.texts)
        took = seconds(lambda: list(attributions(many, many.subject.sites, few)), device, 2)
        rate = given.texts * operations(many, few.steps) / took
        print(
            f"{given.texts} texts, {few.steps} midpoints: {given.texts / took:.1f} texts/s, "
            f"{rate / 1e12:.1f} TFLOP/s"
        )
    if device == "cuda":
        print(f"peak memory: {torch.cuda.max_memory_allocated() / 2**30:.1f} GB")


if __name__ == "__main__":
    main()
