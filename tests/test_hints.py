"""Each command that a message or a docstring names can be run: from a clone, today."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

import pytest
from streammetrics_consumers.cli.arguments import COMMANDS

from streammetrics.__main__ import EXTRAS as USERS_EXTRAS
from tests.python_source import sources_of
from tests.requirements import ROOT

pytestmark = pytest.mark.xdist_group("architecture")  # one worker reads the source, once

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAMES = {
    re.split(r"[\[<>=!~ ]", line, maxsplit=1)[0]
    for lines in (PROJECT["dependencies"], *EXTRAS.values())
    for line in lines
}
WHERE = " in a clone of streammetrics"
SUFFIXES = {"", ".cff", ".ipynb", ".md", ".py", ".pyi", ".sh", ".toml", ".txt", ".yaml", ".yml"}
UNKNOWN = "{}"  # a part of a text that is put in when the program runs
CODE = [*sources_of("streammetrics"), *sources_of("consumers/streammetrics_consumers")]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.ipynb")]
    if path.name != "CHANGELOG.md"
)


@cache
def texts() -> list[tuple[str, str]]:
    """Every text of the code with its place; parts that are not known are `UNKNOWN`."""
    texts = []
    for source in CODE:
        inside = {
            id(part)
            for node in source.nodes
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in source.nodes:
            if id(node) in inside:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else UNKNOWN for p in node.values)
                texts.append((f"{source.path}:{node.lineno}", "".join(map(str, parts))))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append((f"{source.path}:{node.lineno}", node.value))
    return texts


def installs(text: str) -> Iterator[tuple[str, str]]:
    """What each `pip install` of a text installs, and what follows."""
    for match in re.finditer(r"pip install (?:-\S+ )*('[^']*'|\"[^\"]*\"|[^\s;,`]+)`?(.*)", text):
        yield match[1].strip("'\""), match[2]


def test_what_messages_install_is_installed_from_a_clone() -> None:
    count = 0
    for place, text in texts():
        for requirement, ending in installs(text):
            count += 1
            extras = re.fullmatch(r"\.\[(.*)\]", requirement)
            if extras is None:  # a package of an index, by its name
                assert requirement in {*NAMES, UNKNOWN} - {"streammetrics"}, (place, requirement)
                continue
            assert set(extras[1].split(",")) <= {*EXTRAS, UNKNOWN}, (place, requirement)
            assert ending.startswith(WHERE), (place, ending)
    assert count > 12


# A requirement by our name, in a command that would ask an index for it.
FROM_AN_INDEX = re.compile(
    r"\b(?:pip3?|uv|pipx|poetry|conda|mamba|pdm)\b[^\n;|]*\b(?:install|add|run|download)[ \t]+"
    r"(?:[^\s;|,'\"]+[ \t]+|'[^'\n]*'[ \t]+)*['\"]?(?<!of )(?<!run )streammetrics"
    r"(?:\[[\w,-]*\])?(?:[=<>~!]=?[\w.]+)?['\"]?(?!\s*@)(?=[\s`.,)]|$)"
)
ASKS = """pip install streammetrics
pip install -U "streammetrics[serve]"
uv add numpy streammetrics
pipx install streammetrics==0.1
uv pip install 'streammetrics[serve,parquet]'.""".splitlines()
ASKS_NOTHING = """pip install '.[serve]' in a clone of streammetrics
pip install ./streammetrics-1-py3-none-any.whl
pip install 'streammetrics @ file:///x.whl'
uv run streammetrics eval x""".splitlines()


def test_no_file_tells_to_install_our_name_from_an_index() -> None:
    """The name is not taken there: whoever takes it would be installed."""
    assert all(map(FROM_AN_INDEX.search, ASKS)) and not any(map(FROM_AN_INDEX.search, ASKS_NOTHING))
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    spared = {"CHANGELOG.md", "CONTRIBUTING.md", "tests/test_hints.py"}  # of the past, of a release
    for name in {*listed} - spared:
        path = ROOT / name
        if path.suffix in SUFFIXES and path.is_file():
            match = FROM_AN_INDEX.search(path.read_text(encoding="utf-8"))
            assert match is None, (name, match)


def test_the_readme_says_what_each_extra_adds() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    phrases = readme.partition("Each extra adds: ")[2].partition(". ")[0].split("; ")
    assert phrases == [f"`{extra}`: {purpose}" for extra, purpose in USERS_EXTRAS.items()]
    assert {*USERS_EXTRAS} <= {*EXTRAS}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_pages_install_is_installed_from_a_clone(path: object) -> None:
    text = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    for requirement, _ in installs(text):
        assert not requirement.startswith("streammetrics"), requirement
        if extras := re.fullmatch(r"\.\[(.*)\]", requirement):
            assert set(extras[1].split(",")) <= {*EXTRAS}, requirement


def test_the_commands_and_modules_that_messages_name_are_there() -> None:
    names = {command.name for command in COMMANDS}
    mentions = set()
    for place, text in texts():
        for name in re.findall(r"(?:^|[`:(] ?|\n {2,})streammetrics ([a-z]+)\b(?!/| import)", text):
            if name in ("as", "import", "sets", "that") or text == f"streammetrics {name}":
                continue  # no command, or the salt of a hash
            assert name in names, (place, name)
            mentions.add(name)
        for module in re.findall(r"python -m ([a-z_.]+[a-z])", text):
            assert find_spec(module) is not None, (place, module)
    assert len(mentions) > 3


def test_the_flags_that_messages_name_are_those_of_a_command() -> None:
    flags = {f"--{flag.name}" for command in COMMANDS for flag in command.flags}
    flags |= {"--help", "--version"}
    mentions = set()
    for place, text in texts():
        if not place.startswith("consumers/"):
            continue
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]\b", text):
            assert flag in flags, (place, flag)
            mentions.add(flag)
    assert len(mentions) > 10
