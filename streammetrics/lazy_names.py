"""The names of a package, each imported when it is first used (PEP 562).

A program that counts one metric then loads the modules of that metric, not the whole library. The
package lists the same names three times: in `__all__`, which is the public list; as imports under
`TYPE_CHECKING`, for editors and type checkers; and as homes, for the running program.
`tests/test_lazy_names.py` compares the three.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    homes: by module, the names that it defines, with spaces between them. No name may be that of a
    module of the package, since importing that module would replace it.

    >>> find, names = lazy_names("streammetrics", {"streammetrics.core.errors": "InputError"})
    >>> find("InputError").__name__, "InputError" in names()
    ('InputError', True)
    """
    home = {name: module for module, names in homes.items() for name in names.split()}
    known = vars(sys.modules[package])

    def find(name: str) -> object:
        if name in home:
            found = getattr(import_module(home[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            found = import_module(f"{package}.{name}")  # as `import package` gave its modules
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        known[name] = found  # so that the next use does not come here
        return found

    return find, lambda: sorted({*known, *home})
