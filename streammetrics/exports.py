"""The public names of a package: its stub lists them, and the running program reads them there.

A program that counts one metric then loads the modules of that metric, not the whole library: a
name is imported when it is first used (PEP 562). `__init__.pyi` has a line for each name,

    from streammetrics.core.errors import InputError as InputError

which type checkers and editors read as a re-export (PEP 484), or one for all names of another
package, `from streammetrics.classification import *`, so that each name stands in one stub. A name
that is another in its module is assigned from that one, imported with an underscore.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pkgutil import get_data
from typing import Final, NamedTuple


class Home(NamedTuple):
    """Where an exported name comes from: a module, and its name there."""

    module: str
    name: str


def exports(
    package: str,
) -> tuple[Sequence[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package.

    No name may be that of a module of the package, since importing that module would replace it.
    `__all__` leaves out the names of builtins, such as `open`: `import *` must not replace those.

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
            text = f"module {package!r} has no attribute {name!r}"
            hint = "" if name.startswith("_") else _hint(name, homes)
            # Python replaces the text of an AttributeError in `from package import name`.
            if hint and sys._getframe(1).f_code.co_name == "_handle_fromlist":
                raise ImportError(f"{text}; {hint}", name=package)
            raise AttributeError(f"{text}; {hint}" if hint else text)
        namespace[name] = value  # so that the next use does not come here
        return value

    names = [name for name in sorted(homes) if not hasattr(builtins, name)]
    return names, find, lambda: sorted({*namespace, *homes})


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


# -- names that the package does not have ----------------------------------------------------------
PACKAGES: Final = ("experiments", "results", "present", "authoring", "join", "combine")


def bare_name(name: str) -> str:
    """A name as it is compared with others: without capitals, spaces and marks.

    >>> bare_name("LogLoss") == bare_name("log_loss") == bare_name("log loss")
    True
    """
    return "".join(filter(str.isalnum, name.casefold()))


def _hint(name: str, known_names: Iterable[str]) -> str:
    """Where the name is, what it is called here, or a similar name; "" if there is none."""
    for package in PACKAGES:
        stub = (get_data(f"streammetrics.{package}", "__init__.pyi") or b"").decode()
        if name in exported_names(stub):
            return f"it is in streammetrics.{package}: from streammetrics.{package} import {name}"
    lines = (get_data("streammetrics", "usual_names.txt") or b"").decode().splitlines()
    usual = dict(line.split("\t") for line in lines)
    bare = bare_name(name)
    if bare in usual:
        return usual[bare]
    from difflib import get_close_matches

    names = {**{key: key for key in usual}, **{bare_name(export): export for export in known_names}}
    [close, *_] = [*get_close_matches(bare, names, n=1, cutoff=0.75), ""]
    if not close:
        return ""
    return usual[close] if names[close] in usual else f"did you mean {names[close]!r}?"
