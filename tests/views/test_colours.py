import json
import re

import pytest

from attlas.views.colours import DARK, LIGHT, background, contrast, css, ink, limit_of, strength
from attlas.views.page import view_script, view_style

themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


@themes
@pytest.mark.parametrize("signed", [True, False])
def test_text_is_readable_on_every_score(theme, signed):
    for step in range(-1000, 1001):
        paper = background(step / 1000, signed, theme)
        assert contrast(ink(paper, theme), paper) >= 4.5, step


@themes
def test_a_score_of_nothing_is_paper_and_the_strongest_is_the_full_colour(theme):
    assert background(0.0, True, theme) == theme.paper
    assert background(1.0, True, theme) == theme.favour
    assert background(-1.0, True, theme) == theme.against
    assert background(1.0, False, theme) == theme.plain


@themes
def test_for_and_against_differ_without_colour_too(theme):
    assert contrast(theme.favour, theme.against) > 1.3


@themes
def test_a_bar_stands_out_from_the_paper(theme):
    for colour in (theme.favour, theme.against, theme.plain):
        assert contrast(colour, theme.paper) >= 2.8


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((0, 0, 0), (255, 255, 255), 21.0), ((119, 119, 119), (255, 255, 255), 4.478)],
)
def test_contrast_is_that_of_the_standard(one, other, expected):
    assert contrast(one, other) == contrast(other, one) == pytest.approx(expected, abs=1e-3)


def test_the_scale_leaves_special_tokens_out():
    assert limit_of([(9.0, True), (-2.0, False), (1.0, False)]) == 2.0
    assert limit_of([(9.0, True)]) == 9.0
    assert limit_of([]) == 0.0


def test_strength_is_a_share_of_the_limit():
    assert strength(-1.0, 2.0) == -0.5
    assert strength(9.0, 2.0) == 1.0
    assert strength(0.0, 0.0) == 0.0


def test_the_page_has_the_same_palette():
    written = re.search(r"const PALETTE = (\{.*?\n\});", view_script(), re.DOTALL)
    assert written is not None
    palette = json.loads(written[1])
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        expected = {key: getattr(theme, key) for key in ("paper", "favour", "against", "plain")}
        assert palette[name] == json.loads(json.dumps({**expected, "inks": theme.inks}))


@themes
def test_the_style_has_the_same_paper_and_accent(theme):
    style = view_style()
    assert f"--paper: {css(theme.paper)};" in style
    assert f"--accent: {css(theme.plain)};" in style
