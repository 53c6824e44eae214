"""Pages, benchmarks and scripts are true: every link, path, name and command in them exists."""

import ast
import inspect
import pkgutil
import re
import shlex
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest
import typer

import attlas
from attlas.catalogue import catalogue
from attlas.cli.main import commands

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attlas"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *SOURCE.rglob("*.md")],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
SCRIPTS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "scripts").glob("*.py")])
INDEXED = ("methods", "measures", "trials", "objectives", "studies")
COMMANDS = typer.main.get_command(commands()).commands
FILES = {path.name for path in ROOT.rglob("*") if ".git" not in path.parts}
# Groups of entry points are named like modules, but need not be modules.
ENTRY_POINTS = {"attlas.rankings"}

# Its examples write files and parts of their own; tests/test_contributing.py runs them.
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def of_pages(pages):
    return pytest.mark.parametrize(
        "page", pages, ids=lambda path: path.relative_to(ROOT).as_posix()
    )


every_page = of_pages(PAGES)
every_other_page = of_pages([page for page in PAGES if page != CONTRIBUTING])


def text_of(page):
    return page.read_text(encoding="utf-8")


def prose(page):
    """The text of a page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)


def blocks(page, language):
    """The fenced blocks of a page in one language, without their indentation."""
    fence = rf"^( *)```{language}\n(.*?)^ *```"
    for indent, block in re.findall(fence, text_of(page), flags=re.DOTALL | re.MULTILINE):
        yield re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)


def anchors(page):
    """The names under which GitHub finds the headings of a page."""
    for heading in re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@every_page
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in anchors(file), f"{target} has no such heading"


@every_other_page
def test_every_file_that_is_mentioned_exists(page):
    for name in re.findall(r"[\w./-]*\w+\.(?:py|md|js|sh|css|toml)\b", text_of(page)):
        if "my_" in name or "//" in name:  # stands for a file that the reader writes
            continue
        places = (ROOT, SOURCE, page.parent, ROOT / "benchmarks")
        found = any((place / name).exists() for place in places)
        assert found or ("/" not in name and name in FILES), f"{name} does not exist"


@every_other_page
def test_every_folder_that_is_mentioned_exists(page):
    for name in re.findall(
        r"\b((?:src/attlas|tests|docs|scripts)/[\w/-]+)(?![\w.]*\w)", text_of(page)
    ):
        assert (ROOT / name).exists() or "my_" in name, f"{name} does not exist"


@every_other_page
def test_every_dotted_name_can_be_imported(page):
    for name in set(re.findall(r"\battlas(?:\.[A-Za-z_]\w*)+(?![\w-]*\.(?:py|md))", text_of(page))):
        if name not in ENTRY_POINTS:
            pkgutil.resolve_name(name)


@every_other_page
def test_every_python_block_is_true(page):
    """It parses, its imports of attlas exist, and its calls of attlas use arguments that exist."""
    for block in blocks(page, "python"):
        tree = ast.parse(block)
        known = {"attlas": attlas, **dict(imported(tree))}
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            if re.fullmatch(r"\w+(\.\w+)*", name) and name.split(".")[0] in known:
                first, *rest = name.split(".")
                check_arguments(call, name, reduce(getattr, rest, known[first]))


def imported(tree):
    """The names that some code imports from attlas, with what they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attlas"):
            for each in node.names:
                home = import_module(node.module)
                if not hasattr(home, each.name):
                    import_module(f"{node.module}.{each.name}")
                yield each.asname or each.name, getattr(home, each.name)


def check_arguments(call, name, function):
    assert callable(function), f"{name} cannot be called"
    parameters = inspect.signature(function).parameters
    if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        for keyword in call.keywords:
            assert keyword.arg in parameters, f"{name} has no argument {keyword.arg}"


@every_page
def test_every_command_has_the_options_that_are_shown(page):
    for line in re.findall(r"^(?: {4}|)(?:\w+=\S+ )?attlas (.+)$", text_of(page), re.MULTILINE):
        words = shlex.split(line.replace("…", ""), comments=True)
        if not words or words[0] not in COMMANDS:
            continue
        known = {option for each in COMMANDS[words[0]].params for option in each.opts}
        if words[0] == "study" and len(words) > 1 and words[1] in catalogue("study"):
            own = catalogue("study")[words[1]].options
            known |= {f"--{name.replace('_', '-')}" for name in own}
        shown = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert shown <= {*known, "--help"}, f"attlas {line}"


def test_one_script_draws_every_picture():
    sources = [
        text_of(ROOT / "scripts" / f"{name}.py") for name in ("pictures", "laboratory_pictures")
    ]
    drawn = set(re.findall(r'^    "(\w+)": \(\w+.*\),$', "\n".join(sources), re.M))
    shown = {
        Path(place).name
        for page in PAGES
        if page.parent.name != "studies"  # scripts/studies_page.py draws theirs
        for place in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose(page))
        if "gallery/" not in place and "costs_" not in place  # other scripts draw these
    }
    there = {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
    assert shown == there == {f"{name}.png" for name in drawn}


@pytest.mark.parametrize("folder", INDEXED)
def test_the_index_links_every_page_of_its_folder(folder):
    pages = {path.name for path in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
    linked = set(re.findall(r"\]\(([^)\s#]+)\)", text_of(ROOT / "docs" / folder / "README.md")))
    assert pages and pages <= linked


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", text_of(page))
        waiting += [(page.parent / link).resolve() for link in links]
    pages = set((ROOT / "docs").rglob("*.md"))
    assert {str(page.relative_to(ROOT)) for page in pages - reached} == set()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_script_imports_names_that_exist(script):
    assert dict(imported(ast.parse(text_of(script)))) is not None
