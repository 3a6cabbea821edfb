"""What to do about a name that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: object, known: Iterable[str], otherwise: str = "correct the name") -> str:
    """The known name that is most like it, as a question; `otherwise` where none is like it.

    >>> nearest("crt", ("ctr", "auc")), nearest("x", ("ctr", "auc"))
    ("did you mean 'ctr'?", 'correct the name')
    """
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else otherwise
