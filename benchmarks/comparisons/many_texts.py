"""Many texts: 872 sentences with the lengths of SST-2's dev split.

They are compared with plain padded batches of 64, forward and backward, which explain nothing; some
of them are also explained one by one, to compare the scores.
"""

from collections.abc import Iterator
from functools import partial

import torch
from comparing import Row, Setup, largest_difference
from shapes import bert, lengths_like_sst2, texts_of

import attlas

BATCH = 64
FACTORS = {
    "raw_attention": 2.0,
    "attention_rollout": 2.0,
    "gradient_attention": 2.0,
    "generic_relevance": 2.0,
    "gradient": 2.0,
    "attn_lrp": 3.0,
    "integrated_gradients": None,
}


def compare(setup: Setup) -> Iterator[Row]:
    subject = bert(setup.device, layers=setup.size(12, 2))
    count = setup.size(872, 8)
    texts = texts_of(subject, lengths_like_sst2(count))
    some = texts[:: setup.size(28, 4)]
    for name, factor in FACTORS.items():
        work = partial(attlas.explain, subject, texts, name, maps=False)
        ours, peer = setup.in_turns(work, partial(_plain, subject, texts), rounds=2)
        found = [each.scores for each in work()[:: setup.size(28, 4)]]
        alone = [attlas.explain(subject, each, name, maps=False).scores for each in some]
        yield Row(
            f"`{name}` of {count} sentences",
            f"plain padded batches of {BATCH}, forward and backward",
            ours,
            peer,
            difference=largest_difference(found, alone),
            goal=(factor, 0.0) if factor and setup.on_gpu else None,
        )


def _plain(subject: attlas.Subject, texts: list[str]) -> None:
    for start in range(0, len(texts), BATCH):
        batch = subject.tokenizer(texts[start : start + BATCH], padding=True, return_tensors="pt")
        ids, mask = (batch[name].to(subject.device) for name in ("input_ids", "attention_mask"))
        vectors = subject.model.get_input_embeddings()(ids).detach().requires_grad_()
        logits = subject.model(inputs_embeds=vectors, attention_mask=mask).logits
        torch.autograd.grad(logits.amax(-1).sum(), vectors)
