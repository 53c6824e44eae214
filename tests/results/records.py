"""Results for tests: some worked out by hand, some drawn at random by hypothesis."""

from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attlas.results import Explanation, Maps, Site, TargetRecord
from attlas.results.explanation import Origin
from attlas.tokens import Tokens

TEXT = st.text(max_size=12)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def film(**changes):
    """A sentence of seven tokens, two of them special and two of them one word."""
    pieces = ["[CLS]", "not", "good", "film", "##s", "!", "[SEP]"]
    spans = (None, (0, 3), (4, 8), (9, 13), (13, 14), (14, 15), None)
    tokens = Tokens(
        tuple(pieces),
        spans,
        tuple(span is None for span in spans),
        ("text",) * 7,
        {"text": "Not good films!"},
    )
    given = {
        "tokens": tokens,
        "scores": np.array([0.5, -2.0, 1.0, 0.25, 0.5, 0.125, 0.0]),
        "target": TargetRecord("NEGATIVE", "logit", 1.5),
        "origin": origin(),
        "prediction": ({"label": "NEGATIVE", "probability": 0.75},),
        "notes": ("a note",),
        **changes,
    }
    return Explanation(**given)


def origin(**changes):
    given = {
        "model": "sentiment",
        "task": "sequence classification",
        "method": "gradient_attention",
        "signed": True,
        "options": {"layer": -1, "positive": False},
        "asked": {"text": "Not good films!", "target": "NEGATIVE"},
        "versions": {"attlas": "0.1.0"},
        **changes,
    }
    return Origin(**given)


def maps(tokens=None, signed=False):
    """An encoder over three tokens, and a decoder's token that attends to two of them."""
    tokens = tokens or Tokens(
        ("a", "b", "x"), (None,) * 3, (False,) * 3, ("text", "text", "prefix")
    )
    encoder = np.arange(18, dtype=np.float32).reshape(2, 3, 3) / 18
    cross = np.array([[[0.25, 0.75]]], dtype=np.float32)
    sites = (Site("encoder", 0, 2), Site("cross", 1, 1))
    return Maps(sites, (encoder, cross), tokens, ((0, 1, 2), (2,)), ((0, 1, 2), (0, 1)), signed)


# The strategies return functions that make a result: beartype draws random numbers when it checks a
# new object, which hypothesis does not allow inside a strategy.


@st.composite
def any_tokens(draw, count):
    source = draw(st.text(max_size=20))
    place = st.tuples(*(st.integers(0, len(source)),) * 2).map(lambda ends: tuple(sorted(ends)))

    def each(values):
        return tuple(draw(st.lists(values, min_size=count, max_size=count)))

    return partial(
        Tokens,
        each(TEXT),
        each(st.none() | place),
        each(st.booleans()),
        each(st.sampled_from(["one", "two"])),
        {"one": source, "two": source},
        draw(st.sampled_from([{}, {"one": ((0, 1), (2, 4))}])),
        draw(st.sampled_from([{}, {"image": (1, count)}, {"one": (1, count)}])),
    )


def any_array(shape):
    """Finite numbers of any precision and size, except those whose sums no float can hold."""
    finite = {"allow_nan": False, "allow_infinity": False}
    limits = {"f2": finite, "f4": finite, "f8": {"min_value": -1e300, "max_value": 1e300}}
    return st.sampled_from(sorted(limits)).flatmap(
        lambda kind: arrays.arrays(kind, shape, elements=limits[kind])
    )


@st.composite
def any_maps(draw, count):
    places = st.lists(st.integers(0, count - 1), max_size=3).map(tuple)
    sites, found, queries, keys = [], [], [], []
    for layer in range(draw(st.integers(0, 3))):
        heads = draw(st.integers(1, 2))
        queries.append(draw(places))
        keys.append(draw(places))
        sites.append((draw(st.sampled_from(["encoder", "all"])), layer, heads))
        found.append(draw(any_array((heads, len(queries[-1]), len(keys[-1])))))
    signed = draw(st.booleans())
    return lambda tokens: Maps(
        tuple(Site(*site) for site in sites),
        tuple(found),
        tokens,
        tuple(queries),
        tuple(keys),
        signed,
    )


any_target = st.tuples(TEXT, TEXT, NUMBER, st.none() | TEXT, st.none() | st.integers(0, 9))
any_origin = st.fixed_dictionaries(
    {
        **dict.fromkeys(("model", "task", "method", "paper", "reading"), TEXT),
        "signed": st.booleans(),
        "options": st.dictionaries(TEXT, JSON, max_size=3),
        "asked": st.fixed_dictionaries(
            {"text": TEXT | st.tuples(TEXT, TEXT) | st.lists(TEXT) | st.lists(st.integers())}
        ),
        "versions": st.dictionaries(TEXT, TEXT, max_size=2),
    }
)


@st.composite
def any_explanation(draw):
    count = draw(st.integers(1, 6))
    make_tokens, make_maps = draw(any_tokens(count)), draw(st.none() | any_maps(count))
    scores, target, source = draw(any_array((count,))), draw(any_target), draw(any_origin)
    others = draw(st.lists(st.dictionaries(TEXT, JSON, max_size=2), max_size=2))
    prediction = tuple({"probability": None, **each, "label": draw(TEXT)} for each in others)
    notes = tuple(draw(st.lists(TEXT, max_size=2)))

    def make():
        tokens = make_tokens()
        drawn = make_maps and make_maps(tokens)
        asked = TargetRecord(*target)
        if asked.position is not None:  # one of the tokens
            asked = replace(asked, position=asked.position % count)
        about = asked, Origin(**source)
        return Explanation(tokens, scores, *about, prediction, notes, drawn)

    return make


def same_maps(one, other):
    assert one.sites == other.sites
    assert (one.tokens, one.queries, one.keys) == (other.tokens, other.queries, other.keys)
    assert one.signed is other.signed
    for first, second in zip(one.weights, other.weights, strict=True):
        same_array(first, second)


def same_array(one, other):
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tobytes() == other.tobytes()
