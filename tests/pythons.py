"""The Pythons of this machine; `python -m tests.pythons` runs laws and commands on each of them.

Found are `python3.11` and later on the PATH, those of pyenv, and those that STREAMMETRICS_PYTHONS
lists, separated by colons. An environment of its own for each is kept in .cache.

What another Python can change shows in the laws (each metric with its bytes, merges and results),
the golden files, the README, the events and the commands. `make check` runs on each of them too, in
.github/workflows/tests.yml.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import ROOT

MINORS = range(11, 20)
COMMANDS = (f"tests/consumers/cli/test_{name}.py" for name in ("cli", "run_command", "start"))
QUICK_S = 2  # of each test, so many seconds of cases: a law of a case of each class
TESTS = ("tests/laws", "tests/test_pages.py", "tests/consumers/end_to_end", *COMMANDS)
# Its version, if it can make environments. A build without the GIL is another Python.
PROBE = """
import sys, sysconfig, venv, ensurepip
assert not sysconfig.get_config_var("Py_GIL_DISABLED")
print("%d.%d" % sys.version_info[:2])
"""


def _candidates() -> Iterator[Path]:
    yield from map(Path, filter(None, os.environ.get("STREAMMETRICS_PYTHONS", "").split(":")))
    for minor in MINORS:
        for folder in os.get_exec_path():
            yield Path(folder) / f"python3.{minor}"
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        yield from sorted(pyenv.glob(f"3.{minor}.*/bin/python"))


def installed_pythons() -> dict[str, Path]:
    """One Python for each version from 3.11 on, such as `3.12`, that can make environments."""
    pythons: dict[str, Path] = {}
    for path in _candidates():
        if not path.is_file():
            continue
        process = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=False)
        version = process.stdout.strip()
        if process.returncode == 0 and int(version.partition(".")[2]) in MINORS:
            pythons.setdefault(version, path)
    return dict(sorted(pythons.items(), key=lambda entry: int(entry[0].partition(".")[2])))


def declared_versions() -> list[str]:
    """The versions that pyproject.toml says are tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)


def laws(version: str, python: Path) -> int:
    """Run the fast tests of TESTS on a Python, in its environment in .cache; the exit code."""
    folder = ROOT / ".cache" / f"python-{version}"
    stamp, interpreter = folder / ".made", folder / "bin" / "python"
    project = ROOT / "pyproject.toml"
    if not stamp.exists() or stamp.stat().st_mtime < project.stat().st_mtime:
        subprocess.run([python, "-m", "venv", folder], check=True)
        install = [interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, "--no-compile", "-e", f"{ROOT}[engine-tests]"], check=True)
        stamp.touch()
    chosen = "not kafka and not postgres and not docs"
    # One process: two would each compile and import every test, which is half of the time.
    tests = [
        interpreter,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-m",
        chosen,
        f"--at-most={QUICK_S}",
        *TESTS,
    ]
    # Parts that this Python may lack are required of the one that all tests run on.
    environment = {name: os.environ[name] for name in os.environ if name != "STREAMMETRICS_REQUIRE"}
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Run them on each Python but this one, which `make check` is for."""
    current_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    failed, pythons = [], installed_pythons()
    for version in declared_versions():
        if version not in pythons:
            hint = "to test it, set STREAMMETRICS_PYTHONS to its path"
            sys.stderr.write(f"== no Python {version} on this machine; {hint}\n")
    for version, python in pythons.items():
        if version == current_version:
            continue
        sys.stderr.write(f"== laws and commands on Python {version}\n")
        if laws(version, python):
            failed.append(version)
    if failed:
        sys.stderr.write(f"tests fail on Python {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
