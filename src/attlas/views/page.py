"""A result as one HTML file that opens in any browser and needs no network."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from attlas.views.kinds import view_of
from attlas.views.map_codes import PackedCodes
from attlas.views.units import visible

_BROWSER = Path(__file__).with_name("browser")
STYLES = ("view.css", "maps.css", "report.css", "report_trials.css")

_START = """
embed(document.getElementById("view"), JSON.parse(document.getElementById("payload").textContent));
"""
# The files have no exports, so that a type checker sees one scope, as a browser does.
# What the live page (serving/page) uses of them; its views.d.ts has the same names.
_PARTS = (
    "draw make drawn button rove visible minus keptIn headOf headNumber layerNames codeBox "
    "saveText "
    "figureDrawing drawText drawBars drawPicture drawMaps drawFlow drawMatrix drawTip "
    "drawSideBySide drawPairs drawDifference"
)
_EXPORTS = f"\nexport {{ embed, {', '.join(_PARTS.split())} }};\nexport default {{ render }};\n"
# Comments that only the type checker reads.
_TYPES = re.compile(r"^ */\*\*.*?\*/\n", re.MULTILINE | re.DOTALL)
# A browser ends a script element at the first "</script", even inside a JSON string.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(payload: Mapping[str, Any], title: str) -> str:
    """One HTML file that holds the payload, the script that draws it, and its style.

    A payload of an unknown kind is an error; a number that JSON cannot hold (NaN, infinity) is a
    ValueError.
    """
    view_of(payload)
    script, style = view_script() + _START, view_style()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.escape(visible(title))}</title>
<style>{style}</style>
</head>
<body class="attlas-page">
<main id="view"></main>
<noscript>This page draws itself with the script it carries; please allow it to run.</noscript>
<script type="application/json" id="payload">{_json(payload)}</script>
<script type="module">{script}</script>
</body>
</html>
"""


@cache
def view_script() -> str:
    """The module that draws a payload: `embed` for a page, the default export for a notebook."""
    # `view.js` comes first: the others add their kinds to its table.
    names = sorted(path.name for path in _BROWSER.glob("*.js") if path.name != "view.js")
    files = [(_BROWSER / name).read_text("utf-8") for name in ("view.js", *names)]
    return _TYPES.sub("", "\n".join(files)) + _EXPORTS


@cache
def view_style() -> str:
    """The style that goes with the module."""
    return "\n".join((_BROWSER / name).read_text("utf-8") for name in STYLES)


def _json(payload: Mapping[str, Any]) -> str:
    # Only ASCII, so that U+2028, U+2029 and lone surrogates are escaped.
    packed: list[PackedCodes] = []
    mark = uuid4().hex
    text = json.dumps(
        _apart(payload, packed, mark), allow_nan=False, ensure_ascii=True, separators=(",", ":")
    )
    first, *others = text.translate(_ESCAPES).split(mark)
    return first + "".join(part for pair in zip(packed, others, strict=True) for part in pair)


def _apart(value: Any, packed: list[PackedCodes], mark: str) -> Any:
    """A payload with a mark for all that is packed, which is long and needs no escaping."""
    kind = type(value)
    if kind is PackedCodes:
        packed.append(value)
        return mark
    if kind is dict:
        return {name: _apart(each, packed, mark) for name, each in value.items()}
    if kind is list and value and type(value[0]) in (dict, list):
        return [_apart(each, packed, mark) for each in value]
    return value


@cache
def _policy(script: str, style: str) -> str:
    """A policy by which nothing runs or loads except this script and this style."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
