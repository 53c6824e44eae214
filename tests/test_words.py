"""The glossary is true; test_house.py sees that no class name is used twice."""

import re
from importlib import import_module
from pathlib import Path

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"


def rows():
    for line in GLOSSARY.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| word"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_class_of_the_glossary_is_where_it_says():
    places = [re.fullmatch(r"`(\w+)` in `([\w.]+)`", where) for _, _, where in rows() if where]
    assert len(places) > 20
    for place in places:
        name, module = place.groups()
        assert getattr(import_module(f"attlas.{module}"), name).__name__ == name


def test_every_word_of_the_glossary_is_explained_once():
    words = [word for word, _, _ in rows()]
    assert len(words) == len(set(words))
    assert all(meaning for _, meaning, _ in rows())
