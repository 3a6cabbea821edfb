"""The setting that makes numpy sort fast on AMD's Zen 4, and nothing anywhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streammetrics import check_machine, machine
from streammetrics.machine import VARIABLE

ZEN_4 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9R14
flags\t\t: fpu sse2 avx2 avx512f avx512dq avx512vl avx512_vbmi2
bugs\t\t:

processor\t: 1
"""
PROCESSORS = {
    "Zen 4": ZEN_4,
    "Zen 3": ZEN_4.replace(" avx512f", ""),
    "Zen 5": ZEN_4.replace(": 25", ": 26"),
    "Intel": ZEN_4.replace("AuthenticAMD", "GenuineIntel"),
    "two, the second of which has AVX-512": ZEN_4.replace(" avx512f", "") + "flags : avx512f\n",
    "Arm": "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\n",
    "nothing": "",
}
KNOWN = ".".join(np.__version__.split(".")[:2]) in machine._WIDE
of_known_numpy = pytest.mark.skipif(
    not KNOWN, reason=f"the names of numpy {np.__version__} are not in streammetrics/machine.py yet"
)
WHEEL = "Tag: cp311-cp311-manylinux_2_27_x86_64"


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that describes the processor."""
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "_CPUINFO", file)
    monkeypatch.delenv(VARIABLE, raising=False)
    return file


@of_known_numpy
def test_only_zen_4_needs_a_setting(cpuinfo: Path) -> None:
    assert check_machine() == {}  # no such file, as on other systems than Linux
    for name, text in PROCESSORS.items():
        cpuinfo.write_text(text, encoding="utf-8")
        assert list(check_machine()) == [VARIABLE] * (name == "Zen 4"), name


@pytest.mark.parametrize("name", [VARIABLE, "NPY_ENABLE_CPU_FEATURES"])
def test_a_setting_of_the_user_stays(
    cpuinfo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cpuinfo.write_text(ZEN_4, encoding="utf-8")
    monkeypatch.setenv(name, "")
    assert check_machine() == {}


def test_a_numpy_whose_names_are_not_known_is_left_alone() -> None:
    for version, wheel, names in (
        ("2.0.2", WHEEL, "AVX512F"),
        ("2.3.5", WHEEL.replace("many", "musl"), "AVX512F"),
        ("2.4.6", WHEEL, "X86_V4 AVX512_ICL AVX512_SPR"),
        ("2.5.5", WHEEL, "X86_V4 AVX512_ICL AVX512_SPR"),
        ("2.6.0", WHEEL, ""),
        ("2.40.0", WHEEL, ""),
        ("1.26.4", WHEEL, ""),
        ("2.4.6", "Tag: cp311-cp311-linux_x86_64", ""),  # may be built for this machine alone
        ("2.4.6", "", ""),
    ):
        assert machine._advised(version, wheel, {}).get(VARIABLE, "") == names, (version, wheel)


@of_known_numpy
def test_the_command_line_sets_it_before_numpy_is_imported_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(ZEN_4, encoding="utf-8")
    script = (
        "import pathlib, sys\nfrom streammetrics import machine\n"
        f"machine._CPUINFO = pathlib.Path({str(file)!r})\n"
        "from streammetrics_consumers.cli import main\n"
        "print(main(['run', 'no-such.toml', '--log', 'debug']))\n"
        "from numpy._core._multiarray_umath import __cpu_features__ as has\n"
        "print(has['AVX512F'] and has.get('X86_V4', True))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == "2\nFalse\n"
    version = ".".join(np.__version__.split(".")[:2])
    message = (
        f"debug: {VARIABLE}='{machine._WIDE[version]}' is set: numpy sorts faster on this proce"
    )
    assert message in run.stderr
