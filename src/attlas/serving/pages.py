"""The files of the page, which come with the package; a name that is not among them is refused."""

from functools import cache
from importlib.resources import files

from starlette.responses import Response

from attlas.serving.errors import NoSuchThing
from attlas.views.page import view_script, view_style

MEDIA = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def page_file(name: str) -> Response:
    """One file of the page; `views.js` and `views.css` are those of all views."""
    known = page_files()
    if name not in known:
        raise NoSuchThing("there is no such page")
    kind = MEDIA[name.rpartition(".")[2]]
    return Response(known[name], media_type=f"{kind}; charset=utf-8")


@cache
def page_files() -> dict[str, str]:
    """All files by name."""
    folder = files("attlas.serving").joinpath("page")
    own = {
        each.name: each.read_text("utf-8")
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in MEDIA
    }
    return {**own, "views.js": view_script(), "views.css": view_style()}
