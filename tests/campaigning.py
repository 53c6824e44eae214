"""How often campaigns try: the full counts, unless `ATTLAS_CAMPAIGNS` asks for a share of them."""

import os

SHARE = float(os.environ.get("ATTLAS_CAMPAIGNS", "1"))


def times(full, least=1):
    """How often to try, where this is the full count."""
    return max(least, round(full * SHARE))
