"""The vectors with which tokens enter a plain model, and their gradients, without Attlas."""

import torch
from subjects import arguments, plain

TABLES = {
    "sequence classification": lambda model: [model.bert.embeddings.word_embeddings],
    "regression": lambda model: [model.bert.embeddings.word_embeddings],
    "causal lm": lambda model: [model.transformer.wte],
    "sequence to sequence": lambda model: [model.encoder.embed_tokens, model.decoder.embed_tokens],
    "image classification": lambda model: [model.vit.embeddings.patch_embeddings.projection],
}


def entered(task, text, choice=None, place=-1, **asked):
    """Each stream's vectors and the gradient of a logit on them, found by plain hooks."""
    model, kept = plain(task), []

    def keep(_module, _given, output):
        kept.append(output)

    handles = [each.register_forward_hook(keep) for each in TABLES[task](model)]
    output = model(**arguments(task, text, **asked)).logits.flatten(0, -2)[place]
    for handle in handles:
        handle.remove()
    # T5's two stacks may share one table: then each hook sees it twice.
    vectors = list({id(each): each for each in kept}.values())
    score = output.max() if choice is None else output[choice]
    gradients = torch.autograd.grad(score, vectors)
    pairs = zip(vectors, gradients, strict=True)
    return [(by_token(each.detach()), by_token(gradient)) for each, gradient in pairs]


def by_token(vectors):
    flat = vectors.flatten(2).transpose(1, 2) if vectors.ndim == 4 else vectors
    return torch.nn.functional.pad(flat, (0, 0, 1, 0)) if vectors.ndim == 4 else flat
