"""Tiny classifiers of four families that learn, with texts of which some have marked words."""

from functools import cache
from itertools import product

import torch
import transformers
from tiny_tokenizers import tokenizer
from torch.overrides import TorchFunctionMode

from attlas.data.example import Example
from attlas.models.teaching.reading_row import find_reading_row
from attlas.models.teaching.training_tap import opened_for_training
from attlas.training.aiming import make_step
from attlas.training.objective_trainer import marked_features

FAMILIES = {"Bert": "first", "DistilBert": "first", "ModernBert": "first", "Llama": "last"}
TEXTS = [  # for recurrent models
    (f"the {what} was {word} . {more} !", "good" if word in ("fine", "warm") else "bad")
    for what, word, more in product(("film", "play"), ("fine", "warm", "dull", "slow"), "abc")
]
EXAMPLES = [
    Example("the film was not good", "bad", ((13, 21),)),
    Example("the music was wonderful", "good", ((14, 23),)),
    Example("a quick brown fox", "good"),
    Example("it was long , loud and boring", "bad", ((7, 11), (23, 29))),
    Example("we laughed and we will come back", "good", ((3, 10),)),
    Example("the dog lay down", "bad"),
    Example("the doctor was very kind", "good", ((15, 24),)),
    Example("his children always sing at night", "bad", ((13, 19),)),
]


def tokens(family="Bert"):
    made = tokenizer("wordpiece")
    if made.pad_token is None:
        made.pad_token = made.eos_token
    return made


def classifier(family="Bert", *, dropout=0.2, seed=0):
    """A tiny classifier with random weights, whose attention is far from uniform."""
    size = {"vocab_size": len(tokens()), "pad_token_id": tokens().pad_token_id, "num_labels": 2}
    if family == "DistilBert":
        size |= {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 32}
        size |= {"dropout": dropout, "attention_dropout": dropout, "seq_classif_dropout": dropout}
    else:
        size |= {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
        size |= {"intermediate_size": 32}
    if family == "Bert":
        size |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    if family == "ModernBert":
        size |= {"attention_dropout": dropout, "mlp_dropout": dropout, "local_attention": 8}
        size |= dict.fromkeys(("cls_token_id", "bos_token_id"), tokens().cls_token_id)
        size |= dict.fromkeys(("sep_token_id", "eos_token_id"), tokens().sep_token_id)
    if family == "Llama":
        size |= {"num_key_value_heads": 2, "attention_dropout": dropout}
    config = getattr(transformers, f"{family}Config")(**size)
    config.id2label, config.label2id = {0: "bad", 1: "good"}, {"bad": 0, "good": 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, f"{family}ForSequenceClassification")(config)
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embed" not in name:
                weight.data.normal_(0, 0.3)
    return model


class InDouble(TorchFunctionMode):
    """What a modelling file rounds to single precision on its way stays in double.

    Llama and ModernBERT take softmaxes, norms and rotations in float32, whose rounding drowns a
    finite difference. Within the block their own code runs with these casts left out.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        wide = bool(args) and isinstance(args[0], torch.Tensor) and args[0].dtype == torch.float64
        if not wide:
            return func(*args, **(kwargs or {}))
        if func is torch.Tensor.float:
            return args[0]
        named = {name: _in_double(each) for name, each in (kwargs or {}).items()}
        return func(*map(_in_double, args), **named)


def _in_double(each):
    return torch.float64 if each is torch.float32 else each


@cache
def features():
    return marked_features(tokens(), EXAMPLES, {"bad": 0, "good": 1})


def batch(count=None):
    """Arguments, labels and marks of the first texts."""
    rows = features()[:count]
    names = ("input_ids", "attention_mask")
    given = [{name: row[name] for name in names} for row in rows]
    filled = tokens().pad(given, return_tensors="pt")
    marks = torch.zeros(filled["input_ids"].shape)
    for row, each in enumerate(rows):
        marks[row, : len(each["marks"])] = torch.tensor(each["marks"])
    return dict(filled), torch.tensor([row["labels"] for row in rows]), marks


def step_of(model, *, count=None, marked=True):
    """One training step of a model, with its attention in the graph."""
    arguments, labels, marks = batch(count)
    with opened_for_training(model) as tap:
        model(**arguments)
    reads = find_reading_row(model, arguments)
    chosen = marks.to(next(model.parameters()).dtype) if marked else None
    return make_step(tap, model, arguments, labels, marks=chosen, reads=reads, tokenizer=tokens())
