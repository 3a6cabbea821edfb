"""The public names of a package: its stub lists them, and the running program reads them there.

A program that counts one metric then loads the modules of that metric, not the whole library: a
name is imported when it is first used (PEP 562). `__init__.pyi` has a line for each name,

    from streammetrics.core.errors import InputError as InputError

which type checkers and editors read as a re-export (PEP 484).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pkgutil import get_data


def exports(
    package: str,
) -> tuple[Sequence[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package.

    No name may be that of a module of the package, since importing that module would replace it.

    >>> names, find, listed = exports("streammetrics")
    >>> "InputError" in names, find("InputError").__name__, "InputError" in listed()
    (True, 'InputError', True)
    """
    homes = exported_names((get_data(package, "__init__.pyi") or b"").decode())
    namespace = vars(sys.modules[package])

    def find(name: str) -> object:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            value = import_module(f"{package}.{name}")  # as `import package` gave its modules
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value  # so that the next use does not come here
        return value

    return sorted(homes), find, lambda: sorted({*namespace, *homes})


def exported_names(stub: str) -> dict[str, str]:
    """The names that a stub exports, each with the module that defines it.

    >>> exported_names("from package.rates import Rate as Rate")
    {'Rate': 'package.rates'}
    """
    homes, module = {}, ""
    words = stub.replace("(", " ").replace(",", " ").split()
    for before, word in pairwise(words):
        if before == "from":
            module = word
        elif before == "as":
            homes[word] = module
    return homes
