"""What carrying relevance costs, compared with one forward and backward pass of the plain model.

    python benchmarks/relevance.py [--device cuda] [--tokens 128] [--texts 1] [--repeats 5]

BERT-base shape, random weights, fused attention in the plain model; its backward pass goes down to
the vectors of the tokens. The first call also tests whether the model conserves relevance; its time
is printed separately.
"""

import argparse
from functools import partial

import torch
from methods import make_subject, make_texts
from timing import seconds, timed

from attlas.methods import METHODS
from attlas.models.states.embeddings import embedding_gradients

METHODS_AND_OPTIONS = [
    ("attn_lrp", {}),
    ("attn_lrp", {"variant": "cp"}),
    ("lrp_relevance", {}),
    ("generic_relevance", {}),
    ("input_x_gradient", {}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--texts", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.manual_seed(0)
    subject = make_subject(given.device)
    (question,) = subject.ask(make_texts(subject, given.texts, given.tokens))
    first, _ = timed(partial(METHODS["attn_lrp"].score, question, {}), given.device)
    print(f"first call of attn_lrp   {first * 1e3:9.1f} ms")
    base = seconds(partial(embedding_gradients, question, "logit"), given.device, given.repeats)
    print(f"forward and backward     {base * 1e3:9.1f} ms")
    for name, options in METHODS_AND_OPTIONS:
        work = partial(METHODS[name].score, question, options)
        taken = seconds(work, given.device, given.repeats)
        said = " ".join([name, *map(str, options.values())])
        print(f"{said:<24} {taken * 1e3:9.1f} ms   {taken / base:5.2f} times", flush=True)


if __name__ == "__main__":
    main()
