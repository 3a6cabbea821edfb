"""The public names of a package: its stub lists them, and the running program reads them there.

A program that counts one metric then loads the modules of that metric, not the whole library: a
name is imported when it is first used (PEP 562). `__init__.pyi` has a line for each name,

    from streammetrics.core.errors import InputError as InputError

which type checkers and editors read as a re-export (PEP 484), or one for all names of another
package, `from streammetrics.classification import *`, so that each name stands in one stub. A name
that is another in its module is assigned from that one, imported with an underscore.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pkgutil import get_data
from typing import NamedTuple


class Home(NamedTuple):
    """Where an exported name comes from: a module, and its name there."""

    module: str
    name: str


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
            home = homes[name]
            value = getattr(import_module(home.module), home.name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            value = import_module(f"{package}.{name}")  # as `import package` gave its modules
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value  # so that the next use does not come here
        return value

    return sorted(homes), find, lambda: sorted({*namespace, *homes})


def exported_names(stub: str) -> dict[str, Home]:
    """The names that a stub exports, each with its home.

    >>> exported_names("from package.rates import Rate as Rate")
    {'Rate': Home(module='package.rates', name='Rate')}
    >>> exported_names("from package.rates import Rate as _Rate\\nRatio = _Rate")
    {'Ratio': Home(module='package.rates', name='Rate')}
    """
    homes: dict[str, Home] = {}
    private: dict[str, Home] = {}
    words = stub.replace("(", " ").replace(",", " ").split()
    module = ""
    for before, word, after in zip(words, words[1:], [*words[2:], ""], strict=False):
        if before == "from":
            module = word
        elif word == "as":
            (private if after.startswith("_") else homes)[after] = Home(module, before)
        elif word == "=":
            homes[before] = private[after]
        elif word == "*":
            homes |= {name: Home(module, name) for name in import_module(module).__all__}
    return homes
