"""Footprint: about how much memory a method takes for a text, and how many texts fit at once."""

from dataclasses import dataclass

import torch

from attlas.errors import AttlasError
from attlas.explaining.plan import size as size_in_words
from attlas.methods import METHODS, Method
from attlas.models.asking.map_selection import largest_map, map_bytes
from attlas.models.asking.memory import free_bytes, plain_tokens, rows_of
from attlas.models.asking.open_model import COPIES, WITHOUT_LOOKING, OpenModel
from attlas.models.asking.question import Question
from attlas.models.branching.block_runs import copies_at_once
from attlas.models.branching.branch_memory import VECTORS_KEPT, spare_bytes
from attlas.models.decomposing.token_terms import in_a_small_batch
from attlas.models.facts.anatomy import width_of
from attlas.models.rows.handing import is_for_rows
from attlas.results import Site

VECTORS_NOW = 16  # hidden-state vectors of each token that exist while a block runs
MAPS_IN_GRAPH = 3  # copies of each layer's attention that a gradient needs
LEAST_COPIES = 2  # of one layer's attention, with nothing kept: before the softmax and after it
LEAST_BRANCHED = 6  # if a branch has a gradient; three branches of two layers were seen to take 20
SLICES = 2**26  # bytes for the slices of a map that is never whole
FORWARD_AND_BACK = 3  # what a pass with the pass back weighs
SHARE = 0.5  # of the free memory that a batch may take


@dataclass(frozen=True)
class Footprint:
    """The bytes that one text takes beside the weights, by what they hold."""

    states: int  # vectors of its tokens, in all layers if they are kept for gradients
    attention: int  # weights while the model runs
    maps: int  # those that go into the result

    @property
    def total(self) -> int:
        """All of it."""
        return self.states + self.attention + self.maps


def footprint(question: Question, method: Method) -> Footprint:
    """About what a method takes for one row of a question, from the shape of the model."""
    subject, inputs = question.subject, question.inputs
    size = _number_bytes(subject)
    width = width_of(subject.model)
    tokens = len(inputs.tokens[0])
    kept = VECTORS_KEPT * len(subject.sites) if _learns_back(method) else VECTORS_NOW
    rows = 1
    if "removal" in method.needs:  # copies of the text without tokens share a batch
        rows = max(1, plain_tokens(subject.device) // tokens)
    attention = 0
    if takes_slices(question, method):
        attention = SLICES
    elif "attention" in method.needs:
        attention = COPIES * _largest(question) * size // 4
        if "gradients" in method.needs and "branches" not in method.needs:
            attention = MAPS_IN_GRAPH * map_bytes(inputs, subject.sites) * size // 4
    maps = map_bytes(inputs, map_sites(method, question)) if question.maps else 0
    return Footprint(rows * tokens * kept * width * size, attention, maps)


def peak_bytes(question: Question, method: Method, rows: int) -> int:
    """About what a method takes for so many rows of a question, with the copies that it makes."""
    subject = question.subject
    doubled = method.in_double and subject.dtype == torch.float32
    return _of_rows(question, method, rows) + (2 * weight_bytes(subject) if doubled else 0)


def weight_bytes(subject: OpenModel) -> int:
    """What the weights of a model take."""
    return sum(each.nbytes for each in subject.model.parameters())


def _of_rows(question: Question, method: Method, rows: int) -> int:
    each = footprint(question, method)
    if method.pair_vectors:
        together = min(rows, in_a_small_batch(question))
        return rows * each.total + together * pair_bytes(question, method)
    if "branches" in method.needs and not _learns_back(method):  # copies of one block's input
        return rows * (each.total + _copies(question, rows) * (each.states + each.attention))
    if method.weighs is None or not _learns_back(method):
        return rows * each.total
    subject, inputs = question.subject, question.inputs
    more = (method.weighs(question, method.options) / FORWARD_AND_BACK - 1) * rows
    if "branches" in method.needs:
        one = each.states + map_bytes(inputs, subject.sites) * _number_bytes(subject) // 4
        return rows * each.total + int(min(more * one, spare_bytes(subject.device)))
    most = rows_of(subject.device, len(inputs.tokens[0]))  # of all texts together
    return rows * each.total + int(max(0, min(more, most - rows)) * each.states)


def _copies(question: Question, rows: int) -> int:
    """How many copies of so many rows a block runs on at once: one for each token, if they fit."""
    tokens = len(question.inputs.tokens[0])
    attention = rows * _largest(question) * _number_bytes(question.subject) // 4
    return min(tokens, copies_at_once(question.subject.device, rows * tokens, attention))


def pair_bytes(question: Question, method: Method) -> int:
    """What a method takes for vectors of all pairs of tokens of one row."""
    pairs = len(question.inputs.tokens[0]) ** 2
    size = width_of(question.subject.model) * _number_bytes(question.subject)
    return pairs * method.pair_vectors * size


def fitting_rows(question: Question, method: Method) -> int:
    """How many rows of a question fit into the memory that is free; at least one is tried."""
    each = footprint(question, method).total
    if each * len(question) <= WITHOUT_LOOKING:
        return len(question)
    check_fits(question, method)
    if len(question) == 1:
        return 1
    free = free_bytes(question.subject.device)
    most = len(question) if free is None else int(SHARE * free) // each
    return max(1, min(len(question), most))


def check_fits(question: Question, method: Method) -> None:
    """Refuse a method that needs whole maps if not even those of one text could be held."""
    least = least_bytes(question, method)
    free = free_bytes(question.subject.device) if least > WITHOUT_LOOKING else None
    if free is None or least <= free:
        return
    tokens, device = len(question.inputs.tokens[0]), question.subject.device
    others = " or ".join(each.name for each in METHODS if each.by_rows)
    raise AttlasError(
        f"{method.name} needs whole maps of attention: those of one text of {tokens:,} tokens take "
        f"at least {size_in_words(least)}, and {size_in_words(free)} are free on {device}; "
        f"shorten the text, or use {others} without maps"
    )


def least_bytes(question: Question, method: Method) -> int:
    """What the attention of one text takes at the very least: all layers, or one after another."""
    if "attention" not in method.needs or takes_slices(question, method):
        return 0
    size, inputs = _number_bytes(question.subject), question.inputs
    if "gradients" in method.needs and "branches" not in method.needs:
        return map_bytes(inputs, question.subject.sites) * size // 4
    copies = LEAST_BRANCHED if "gradients" in method.needs else LEAST_COPIES
    return copies * _largest(question) * size // 4


def map_sites(method: Method, question: Question) -> tuple[Site, ...]:
    """The sites that a method makes maps of."""
    if method.maps == "all":
        return (Site("all", 0, 1),)
    return question.subject.sites if method.maps == "sites" else ()


def takes_slices(question: Question, method: Method) -> bool:
    """Whether a method makes no map of these inputs, because they are long."""
    return method.by_rows and is_for_rows(question, question.subject.sites)


def _learns_back(method: Method) -> bool:
    """Whether a method needs passes back, for which vectors of all layers are kept."""
    return not {"gradients", "embeddings"}.isdisjoint(method.needs)


def _number_bytes(subject: OpenModel) -> int:
    """The bytes of one number in the precision of a model."""
    return subject.dtype.itemsize


def _largest(question: Question) -> int:
    """The bytes of the largest map of one layer in single precision."""
    return largest_map(question.inputs, question.subject.sites)
