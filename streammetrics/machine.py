"""What makes numpy sort fast on this processor: environment variables, to set before its import.

Exact areas, grouped areas and exact quantiles sort. On AMD's Zen 4 numpy's AVX-512 sorts use an
instruction that takes some hundred cycles there, and those of AVX2 are five times as fast. All give
the same bits. numpy has no narrower setting: without AVX-512 its `np.exp` takes five times as long,
which the library does not call, and sorts of short rows, such as ranked lists, a fifth longer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "NPY_DISABLE_CPU_FEATURES"
_SETTINGS_OF_NUMPY: Final = (VARIABLE, "NPY_ENABLE_CPU_FEATURES")  # numpy refuses both together
_CPUINFO: Final = Path("/proc/cpuinfo")
_FIRST_CORE: Final = 1 << 13  # bytes of that file, which has some 1.5 kB for each core

# The names of AVX-512 that stop its sorts, by the version of numpy: 2.0 to 2.3 check AVX512F; from
# 2.4 on there are groups of features. Names that a version does not know change nothing.
_WIDE: Final = {
    **dict.fromkeys(("2.0", "2.1", "2.2", "2.3"), "AVX512F"),
    **dict.fromkeys(("2.4", "2.5"), "X86_V4 AVX512_ICL AVX512_SPR"),
}


def check_machine() -> Mapping[str, str]:
    """The environment variables to set before numpy is imported, {} if nothing is to be set.

    On AMD's Zen 4 np.sort is five times as fast without numpy's AVX-512, and exact areas, grouped
    areas and exact quantiles two to four times. Our results have the same bits. np.exp, np.log and
    the like take longer and may differ in their last bits: a program that spends its time in them
    should not set this. The command line sets these variables itself. {} also where the environment
    already selects features of numpy, and for a numpy that is not a wheel of versions 2.0 to 2.5,
    since the names differ.

    >>> all(name.startswith("NPY_") for name in check_machine())
    True
    """
    try:
        with _CPUINFO.open("rb") as file:
            processor = file.read(_FIRST_CORE).decode("utf-8", "replace")
    except OSError:  # not Linux
        return {}
    if not _is_zen_4(processor):
        return {}
    from importlib.metadata import PackageNotFoundError, distribution  # slow, and rarely needed

    try:
        numpy = distribution("numpy")
    except PackageNotFoundError:
        return {}
    return _advised(numpy.version, numpy.read_text("WHEEL") or "", os.environ)


def _is_zen_4(processor: str) -> bool:
    """Whether this text of /proc/cpuinfo describes Zen 4: of its family, which is that of Zen 3
    too, only Zen 4 has AVX-512."""
    first = processor.partition("\n\n")[0].splitlines()
    fields = {name.strip(): value.split() for name, _, value in (s.partition(":") for s in first)}
    return (
        fields.get("vendor_id") == ["AuthenticAMD"]
        and fields.get("cpu family") == ["25"]
        and "avx512f" in fields.get("flags", ())
    )


def _advised(version: str, wheel: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables for a numpy on Zen 4. wheel: its metadata; a numpy that was built for one
    machine may need the features, and then refuses to be imported without them."""
    names = _WIDE.get(".".join(version.split(".")[:2]))
    usual = "manylinux" in wheel or "musllinux" in wheel
    chosen = any(name in environ for name in _SETTINGS_OF_NUMPY)
    return {VARIABLE: names} if names and usual and not chosen else {}
