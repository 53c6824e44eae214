"""Every kind of payload is drawn in a terminal, in a notebook and on a page; others are refused."""

import re

import pytest
from results.every_result import result_classes

from attlas.errors import UnknownNameError
from attlas.views import fragment, page, render
from attlas.views.kinds import VIEWS
from attlas.views.page import view_script


def browser_kinds():
    return set(re.findall(r"^VIEWS\.(\w+) = \[", view_script(), re.MULTILINE))


@pytest.mark.parametrize("result", result_classes(), ids=lambda each: each.__name__)
def test_the_kind_of_every_result_has_a_view_everywhere(result):
    assert result.view_kind in VIEWS, "add its file in attlas/views/kinds"
    assert result.view_kind in browser_kinds(), "add VIEWS.<kind> in a file of attlas/views/browser"


def test_the_browser_draws_the_same_kinds_as_a_terminal_and_a_notebook():
    drawn, shown = browser_kinds(), set(VIEWS)
    assert drawn - shown == set(), "add its file in attlas/views/kinds, named like the kind"
    assert shown - drawn == set(), "add VIEWS.<kind> in a file of attlas/views/browser"


def test_every_function_that_a_page_draws_with_is_there():
    script = view_script()
    names = re.findall(r"^VIEWS\.\w+ = \[([^\]]*)\];", script, re.MULTILINE)
    called = {name.strip() for each in names for name in each.split(",")}
    written = re.findall(r"^(?:async )?function (\w+)\(", script, re.MULTILINE)
    assert called - set(written) == set(), "VIEWS names functions that no file has"
    twice = {name for name in written if written.count(name) > 1}
    assert twice == set(), "all files become one module: give these functions other names"


@pytest.mark.parametrize("show", [fragment, render, lambda payload: page(payload, "title")])
@pytest.mark.parametrize("payload", [{"kind": "explanaton"}, {"kind": None}, {}])
def test_an_unknown_kind_is_an_error_that_names_the_known_ones(show, payload):
    with pytest.raises(
        UnknownNameError, match=r"unknown kind of payload .*check, comparison, explanation, "
    ):
        show(payload)
