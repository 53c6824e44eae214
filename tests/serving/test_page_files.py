"""The files of the live page, without a browser."""

import re
from importlib.resources import files

from attlas.views.page import view_script

PAGE = files("attlas.serving").joinpath("page")
SCRIPTS = {each.name: each.read_text("utf-8") for each in PAGE.iterdir() if each.name[-3:] == ".js"}


def test_every_script_is_checked_short_and_writes_text_as_text():
    assert len(SCRIPTS) > 20
    for name, text in SCRIPTS.items():
        assert not re.search("@ts-(nocheck|ignore|expect-error)", text), name
        assert not re.search("innerHTML|insertAdjacentHTML|document.write|eval\\(", text), name
        assert "outerHTML" not in text, name
        assert len(text.splitlines()) <= 300, name


def test_every_script_is_reached_from_the_first_one():
    seen, ahead = set(), ["laboratory.js"]
    while ahead:
        name = ahead.pop()
        if name in seen or name == "views.js":
            continue
        seen.add(name)
        ahead += re.findall(r'^import .* from "\./([a-z]+\.js)";', SCRIPTS[name], re.MULTILINE)
    assert seen == set(SCRIPTS)


def test_the_page_imports_only_what_the_views_export_and_declare():
    exported = set(re.search(r"\nexport \{ (.*) \};", view_script())[1].split(", "))
    declared = set(re.findall(r"_\w+ as (\w+)", PAGE.joinpath("views.d.ts").read_text("utf-8")))
    used = set()
    for text in SCRIPTS.values():
        for names in re.findall(r'import \{(.*)\} from "\./views\.js"', text):
            used |= {name.strip() for name in names.split(",")}
    assert used <= declared
    assert declared | {"embed"} == exported
    assert used | {"embed"} == exported  # nothing is exported for nobody


def test_nothing_is_inline():
    page = PAGE.joinpath("index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
