"""What a result looks like: on a page, in a notebook, in a terminal.

Everything here takes a payload, a plain dict that JSON can hold, and knows nothing of models.
"""

from attlas.views.files import write_whole
from attlas.views.fragment import fragment
from attlas.views.page import page
from attlas.views.terminal import render

__all__ = ["fragment", "page", "render", "write_whole"]
