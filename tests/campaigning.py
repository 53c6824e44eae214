"""How often campaigns try: a share of the full count, so that all of them take minutes.

`ATTLAS_CAMPAIGNS=1` asks for the full counts, which take an hour or more.
"""

import os

SHARE = float(os.environ.get("ATTLAS_CAMPAIGNS", "0.05"))


def times(full, least=1):
    """How often to try, where this is the full count."""
    return max(least, round(full * SHARE))
