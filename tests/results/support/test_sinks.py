"""First tokens that hold most of the score."""

import numpy as np
import pytest
from results.records import film, origin

from attlas.results.support.sums import find_sinks
from attlas.tokens import Tokens


def tokens(*segments):
    count = len(segments)
    return Tokens(("x",) * count, (None,) * count, (False,) * count, segments)


@pytest.mark.parametrize(
    ("segments", "scores", "expected"),
    [
        (("text",) * 3, [6.0, 1.0, 3.0], [(0, 0.6)]),
        (("text",) * 3, [5.0, 2.0, 3.0], []),  # half is not more than half
        (("text",) * 3, [1.0, 8.0, 1.0], []),  # not the first
        (("text",) * 3, [0.0, 0.0, 0.0], []),
        (("text",), [1.0], []),
        ((), [], []),
        (("text", "text", "prefix", "prefix"), [1.0, 1.0, 7.0, 1.0], [(2, 0.7)]),
        (("text_a", "text_b", "text_b"), [1.0, 7.0, 2.0], []),  # one stream
        (("prefix", "prefix"), [3.0, 1.0], [(0, 0.75)]),
    ],
)
def test_the_first_of_a_stream_with_more_than_half(segments, scores, expected):
    found = find_sinks(tokens(*segments), np.array(scores, dtype=np.float32))
    assert [sink.position for sink in found] == [place for place, _ in expected]
    assert [sink.share for sink in found] == pytest.approx([share for _, share in expected])


def unsigned(scores):
    return film(scores=np.array(scores), origin=origin(signed=False))


def test_an_explanation_without_its_sink():
    scores = [8.0, 0.5, 0.25, 0.25, 0.5, 0.25, 0.25]
    full = unsigned(scores)
    rest = full.without_sinks()
    assert rest.scores.tolist() == [0.0, *scores[1:]]
    assert full.scores.tolist() == scores
    assert rest.notes[-1] == (
        "Left out as an attention sink: the first token '[CLS]' (held 80% of the score)."
    )
    assert rest.code().endswith(").without_sinks()")
    assert full.payload()["sinks"] == [{"position": 0, "share": 0.8}]


def test_nothing_is_left_out_where_there_is_no_sink():
    even = unsigned([1.0] * 7)
    assert even.without_sinks() is even
    assert even.payload()["sinks"] == []
    signed = film(scores=np.array([8.0, 0, 0, 0, 0, 0, 0.0]))
    assert signed.without_sinks() is signed
