"""Python's own garbage collection while many texts are explained one part after another."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def set_aside() -> Iterator[None]:
    """Leave everything that exists before the block out of the search for garbage within it.

    A process with a model holds about 400,000 objects. Explanations come and go by
    the thousand, which has Python look through all of these again and again. A caller who has set
    objects aside before, as one does who forks, keeps them set aside.
    """
    own = gc.isenabled() and gc.get_freeze_count() == 0
    if own:
        gc.freeze()
    try:
        yield
    finally:
        if own:
            gc.unfreeze()
