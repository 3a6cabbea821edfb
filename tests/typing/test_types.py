"""The type checker sees what the documentation promises, and refuses what it forbids."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import streammetrics.combine
import streammetrics.ranking  # noqa: F401 - whose metrics are among the classes then
from streammetrics.core.declared import CLASSES

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def said() -> dict[str, set[tuple[int, str]]]:
    """The errors of mypy by file: (line, code)."""
    api = pytest.importorskip("mypy.api")
    files = ["public_types.py", "mistakes.py"]
    out, err, _ = api.run(
        [
            *("--strict", "--no-error-summary", "--hide-error-context", "--no-pretty"),
            *("--config-file", str(HERE.parents[1] / "pyproject.toml")),
            *(str(HERE / name) for name in files),
        ]
    )
    assert not err
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in files}
    for line in out.splitlines():
        if match := re.fullmatch(r"(.*?):(\d+): error: .*\[([a-z-]+)\]", line):
            found.setdefault(Path(match[1]).name, set()).add((int(match[2]), match[3]))
    return found


def test_public_names_have_the_types_that_are_promised(
    said: dict[str, set[tuple[int, str]]],
) -> None:
    assert said["public_types.py"] == set()


def test_each_mistake_is_found_where_it_is_made(said: dict[str, set[tuple[int, str]]]) -> None:
    lines = enumerate((HERE / "mistakes.py").read_text().splitlines(), 1)
    expected = {(n, line.split("# E: ")[1]) for n, line in lines if "# E: " in line}
    assert len(expected) > 10
    assert said["mistakes.py"] == expected


# What a user's file may say; both type checkers take it under their strictest settings.
USER = """
from streammetrics import HistogramAUC, Panel, PerKey, Ratio, UserGroups, Windows

panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
panel.update(labels=[0, 1], scores=[0.1, 0.9])
print(panel.compute()["auc"].auc)
print(PerKey(panel).compute()["de"]["auc"].auc)
print(PerKey(HistogramAUC()).compute()["de"].auc)
print(Windows(Ratio(), 60).compute().total.ratio)
print(UserGroups(Ratio()).compute().value.ratio)
HistogramAUC().update([1], [0.5], weights=[2])


def of_key(state: PerKey, key: str) -> float:
    return float(state.compute()[key].auc)
"""


def test_results_of_a_panel_and_of_keys_are_typed_in_a_users_file_for_mypy(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    (tmp_path / "user.py").write_text(USER)
    config = str(HERE.parents[1] / "pyproject.toml")
    out, err, code = api.run(["--strict", "--config-file", config, str(tmp_path / "user.py")])
    assert (code, err) == (0, ""), out


def test_results_of_a_panel_and_of_keys_are_typed_in_a_users_file_for_pyright(
    tmp_path: Path,
) -> None:
    pytest.importorskip("basedpyright")
    (tmp_path / "user.py").write_text(USER)
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(HERE.parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    found = subprocess.run(
        [*command, "-p", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def arguments_in(text: str) -> dict[str, list[tuple[str, str, bool, bool]]]:
    """Of each class of a source the arguments of the `update` that a type checker sees: name, type,
    whether it may be left out, and whether it is given by name only."""
    found = {}
    for kind in ast.walk(ast.parse(text)):
        if isinstance(kind, ast.ClassDef):
            for block in (one for one in kind.body if isinstance(one, ast.If)):
                for method in block.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "update":
                        found[kind.name] = _arguments(method.args)
    return found


def _arguments(args: ast.arguments) -> list[tuple[str, str, bool, bool]]:
    defaults = [None] * (len(args.args) - len(args.defaults)) + [*args.defaults]
    plain = [(a, d, False) for a, d in zip(args.args, defaults, strict=True)][1:]
    named = [(a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [
        (a.arg, ast.unparse(a.annotation) if a.annotation else "", d is not None, keyword)
        for a, d, keyword in plain + named
    ]


def test_what_a_type_checker_sees_of_update_is_what_the_inputs_say() -> None:
    declared = {kind.__name__: kind for kind in CLASSES.values() if kind._inputs.columns}
    ours = {
        name: kind
        for name, kind in declared.items()
        if kind.__module__.startswith("streammetrics.")
        and hasattr(sys.modules[kind.__module__], name)  # and is not of a docstring's example
    }
    seen = 0
    for name, kind in ours.items():
        text = Path(inspect.getfile(kind)).read_text(encoding="utf-8")
        for argument, one in zip(arguments_in(text)[name], kind._inputs, strict=True):
            says = one[1].type_text + " | None" * one[1].optional
            assert argument == (one[0], says, one[1].optional, one[1].keyword), name
            seen += 1
    assert seen > 40
