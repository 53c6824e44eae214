"""What methods cost, compared with captum, with one forward and backward pass, and in batches.

    python benchmarks/methods.py [--device cuda] [--tokens 128] [--texts 32] [--repeats 3]

BERT-base shape, random weights. `leave_one_out` (masking) is compared with captum's FeatureAblation
in its default use, one forward per token, and with a batch size; `integrated_gradients` with
captum's LayerIntegratedGradients at equal steps; `generic_relevance` with one forward and backward
pass of the plain model, with gradients only on the vectors of the tokens and with gradients on its
parameters. At the end, all methods on texts of one length, together and one by one.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

import torch
from captum.attr import FeatureAblation, LayerIntegratedGradients
from timing import seconds
from transformers import BertConfig, BertForSequenceClassification
from transformers.utils import logging

import attlas
from attlas.methods import METHODS
from attlas.models.asking.question import Question

STEPS = 50
FEW = {"samples": 64, "steps": 8, "probes": 8}  # for methods that would take minutes


def make_subject(device: str) -> attlas.Subject:
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = BertConfig(initializer_range=0.05, attn_implementation="sdpa")
    model = BertForSequenceClassification(config).eval().to(device)
    return attlas.Subject(model, attlas.load().tokenizer)


def make_texts(subject: attlas.Subject, count: int, length: int) -> list[str]:
    """Texts of words that are one token each; `length` includes the two special tokens."""
    whole = sorted(word for word in subject.tokenizer.get_vocab() if word.isalpha())
    numbers = torch.randint(len(whole), (count, length - 2))
    return [" ".join(whole[number] for number in row) for row in numbers.tolist()]


def ask(subject: attlas.Subject, text: str) -> Question:
    (question,) = subject.ask([text])
    return question


def say(what: str, ours: float, other: str, theirs: float) -> None:
    print(
        f"{what:<26} {ours * 1e3:9.1f} ms   {other:<34} {theirs * 1e3:9.1f} ms   "
        f"{theirs / ours:7.2f} times ours",
        flush=True,
    )


def forward(subject: attlas.Subject, question: Question) -> Callable[[torch.Tensor], torch.Tensor]:
    ((_, choice),) = question.targets[0].picks

    def run(ids: torch.Tensor) -> torch.Tensor:
        return subject.model(input_ids=ids).logits[:, choice]

    return run


def against_captum(subject: attlas.Subject, text: str, device: str, repeats: int) -> None:
    question = ask(subject, text)
    run = forward(subject, question)
    given = question.inputs.arguments["input_ids"]
    mask = subject.tokenizer.mask_token_id
    keep = torch.tensor(question.inputs.tokens[0].special, device=device)
    baseline = torch.where(keep, given, torch.full_like(given, mask))

    def ablation(at_once: int) -> torch.Tensor:
        with torch.no_grad():
            found: torch.Tensor = FeatureAblation(run).attribute(
                given, baselines=baseline, perturbations_per_eval=at_once
            )
        return found

    def score(name: str, options: dict[str, object]) -> torch.Tensor:
        return METHODS[name].score(question, options).scores

    ours = seconds(lambda: score("leave_one_out", {"removal": "mask"}), device, repeats)
    say("leave_one_out", ours, "FeatureAblation", seconds(lambda: ablation(1), device, repeats))
    many = seconds(lambda: ablation(len(question.inputs.tokens[0])), device, repeats)
    say("leave_one_out", ours, f"FeatureAblation, {len(question.inputs.tokens[0])} at once", many)

    embedding = subject.model.get_input_embeddings()
    gradients = LayerIntegratedGradients(run, embedding)

    def integrated() -> torch.Tensor:
        found: torch.Tensor = gradients.attribute(
            given, baselines=baseline, n_steps=STEPS, method="riemann_middle"
        )
        return found.sum(-1)

    ours = seconds(lambda: score("integrated_gradients", {"steps": STEPS}), device, repeats)
    say(
        "integrated_gradients",
        ours,
        "LayerIntegratedGradients",
        seconds(integrated, device, repeats),
    )
    difference = (score("integrated_gradients", {"steps": STEPS}) - integrated()).abs().max()
    print(f"{'':26} largest difference of integrated gradients {float(difference):.1e}")


def against_one_pass(subject: attlas.Subject, text: str, device: str, repeats: int) -> None:
    question = ask(subject, text)
    run = forward(subject, question)
    given = question.inputs.arguments["input_ids"]

    def with_parameters() -> None:
        subject.model.zero_grad(set_to_none=True)
        run(given).sum().backward()

    def without_parameters() -> None:
        for parameter in subject.model.parameters():
            parameter.requires_grad_(False)
        vectors = subject.model.get_input_embeddings()(given).requires_grad_()
        total = subject.model(inputs_embeds=vectors).logits.sum()
        torch.autograd.grad(total, vectors)
        for parameter in subject.model.parameters():
            parameter.requires_grad_(True)

    scores_alone = replace(question, maps=False)
    ours = seconds(lambda: METHODS["generic_relevance"].score(scores_alone, {}), device, repeats)
    say(
        "generic_relevance",
        ours,
        "forward, backward (vectors)",
        seconds(without_parameters, device, repeats),
    )
    say(
        "generic_relevance",
        ours,
        "forward, backward (parameters)",
        seconds(with_parameters, device, repeats),
    )
    subject.model.zero_grad(set_to_none=True)


def together(subject: attlas.Subject, texts: list[str], device: str, repeats: int) -> None:
    for method in METHODS:
        if method.name in ("random_scores", "attention_flow"):
            continue
        options = {name: value for name, value in FEW.items() if name in method.options}

        def explain(given: list[str]) -> None:
            attlas.explain(subject, given, method.name, maps=False, **options)  # noqa: B023

        def one_by_one() -> None:
            for text in texts:
                explain([text])

        alone = seconds(one_by_one, device, 1)
        say(method.name, seconds(lambda: explain(texts), device, repeats), "one by one", alone)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="*", default=[128, 32])
    given = parser.parse_args()
    subject = make_subject(given.device)
    (text,) = make_texts(subject, 1, given.tokens)
    print(f"one text of {given.tokens} tokens on {given.device}")
    against_captum(subject, text, given.device, given.repeats)
    against_one_pass(subject, text, given.device, given.repeats)
    for length in given.batches:
        print(f"{given.texts} texts of {length} tokens, together")
        texts = make_texts(subject, given.texts, length)
        together(subject, texts, given.device, given.repeats)


if __name__ == "__main__":
    main()
