"""What the files at the top of the repository promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from streammetrics_consumers.model.version import clone_commit, program_version

import streammetrics
from streammetrics import __main__ as package_versions
from tests.requirements import ROOT

TOP = {
    *("pyproject.toml", "streammetrics", "consumers", "tests", "benchmarks", "README.md"),
    *("Makefile", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", ".ci", ".gitignore", "docs"),
    *("SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "llms.txt", ".github"),
    *(".pre-commit-config.yaml", "mkdocs.yml", "examples", "README.zh-CN.md"),
}
# Absolute paths of somebody's machine, settings of somebody's package index, and hosts of package
# registries. Each is written so that it does not match itself.
PRIVATE = re.compile(
    r"[\s\"'(=`](/(?:work|root|home|Users)/)|(index[-_]url|find[-_]links|trusted[-_]host"
    r"|<mirror[s]?>|<repository>)"
    r"|\b((?:test\.|files\.)?(?:pypi|pythonhosted)\.org|registry\.(?:npmjs\.org|yarnpkg\.com)"
    r"|(?:static\.|index\.)?crates\.io|(?:proxy|sum)\.golang\.org|repo1?\.maven\.(?:org|apache\.org)"
    r"|central\.sonatype\.\w+|(?:deb|security)\.debian\.org|conda\.anaconda\.org|ghcr\.io|quay\.io"
    r"|(?:registry\.|index\.|hub\.)?docker\.(?:io|com))\b"
)


def files() -> Iterator[Path]:
    """Every file of the repository, as far as it is text of ours."""
    for name in sorted(TOP):
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts and path != Path(__file__):
                yield path


def private(text: str) -> list[str]:
    """Traces of one machine."""
    return [match.group(0).strip() for match in PRIVATE.finditer("\n" + text)]


def test_no_file_names_a_path_of_a_machine_or_a_package_index() -> None:
    leaks_by_path = {}
    for path in files():
        leaks = private(path.read_bytes().decode("utf-8", errors="ignore"))
        if leaks:
            leaks_by_path[str(path.relative_to(ROOT))] = leaks
    assert leaks_by_path == {}
    assert all(map(private, ["cd /home/ann", 'open("/root/x")', "pip --index-url x"]))
    for host in ("https://pypi.org/p", "files.pythonhosted.org", "ghcr.io/a", "proxy.golang.org"):
        assert private(f"see {host}"), host


def test_the_top_level_holds_what_the_plan_says_and_nothing_else() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout. To enable: clone the repository")
    assert {name.partition("/")[0] for name in listed.stdout.splitlines()} <= TOP


def uncommented(text: str) -> list[str]:
    """Dependencies that have no comment line, or more than one, right above them."""
    lines = [line.strip() for line in text.splitlines()]
    dependencies = []
    for before, above, line in zip(["", "", *lines], ["", *lines], lines, strict=False):
        if re.fullmatch(r'"[^"]+",', line) and (
            not above.startswith("#") or before.startswith("#")
        ):
            dependencies.append(line)
    return dependencies


def test_every_dependency_says_in_one_comment_line_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text[text.index("\ndependencies = [") : text.index("\n[project.scripts]")]
    assert section.count('",') > 10
    assert uncommented(section) == []
    assert uncommented('[\n# Why.\n"numpy>=2.0",\n"left-pad",\n]') == ['"left-pad",']
    assert uncommented('[\n# One\n# two.\n"numpy>=2.0",\n]') == ['"numpy>=2.0",']


def test_make_help_lists_every_target_and_each_does_something() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    ask = ["make", "--no-print-directory", "help"]  # `make check` runs this within a make
    shown = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [line.split()[0] for line in shown.stdout.splitlines()]
    assert listed == phony.group(1).split()
    for target in listed:
        body = text.partition(f"\n{target}:")[2].split("\n")
        match = re.search(r" \.(venv|cache)/", body[0])
        assert body[1].startswith("\t") or match, f"{target} does nothing"


def test_the_version_has_an_entry_in_the_changelog_with_its_state_format() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.split(r"^## \[", changelog, flags=re.MULTILINE)[1:]
    assert project["dynamic"] == ["version"]
    assert releases[0].startswith(streammetrics.__version__ + "]")
    assert all("\n### State format\n" in release for release in releases)


def test_the_wheel_holds_the_two_packages_with_their_types_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["streammetrics", "consumers/streammetrics_consumers"]}
    assert all((ROOT / package / "py.typed").is_file() for package in wheel["packages"])
    assert not list((ROOT / "consumers").glob("*.py"))  # or it would be a package itself


def test_a_package_of_the_user_called_consumers_does_not_break_the_command_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "consumers").mkdir()
    (tmp_path / "consumers" / "__init__.py").write_text("raise RuntimeError('not meant')", "utf-8")
    command = [sys.executable, "-m", "streammetrics", "--version"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 0
    assert process.stdout == f"streammetrics {program_version()}\n"
    assert process.stderr == ""


def test_the_module_without_a_command_says_what_is_installed_and_what_each_extra_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = package_versions.version

    def without_psycopg(package: str) -> str:
        if package == "psycopg":
            raise PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(package_versions, "version", without_psycopg)
    assert package_versions.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"streammetrics {program_version()}"
    extras = [line.split()[:2] for line in lines if re.match(r"  \w+ +(yes|no) ", line)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [name for name, _ in extras] == list(package_versions.EXTRAS)
    assert {name for name, _ in extras} < project["optional-dependencies"].keys()
    assert ["postgres", "no"] in extras
    assert ["serve", "yes"] in extras
    index = lines.index(f"{'':<18}missing psycopg")
    assert lines[index + 1].strip() == "pip install '.[postgres]' in a clone of streammetrics"
    assert max(map(len, lines)) <= 100


def test_each_file_that_runs_pages_is_named_by_make_test_docs_and_ci_runs_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"tests/\S+", makefile.partition("\ntest-docs:")[2].partition("\n\n")[0])
    files = {path for name in names for path in (ROOT / name, *(ROOT / name).glob("test_*.py"))}
    paths = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    assert {path for path in paths if "pytest.mark.docs" in path.read_text("utf-8")} <= files
    for script in (".ci/run", ".github/workflows/tests.yml"):
        assert "make test-docs\n" in (ROOT / script).read_text(encoding="utf-8"), script


def test_ci_can_be_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_a_stage_of_ci_notes_its_seconds_and_a_failed_one_ends_it(tmp_path: Path) -> None:
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    timed = "timed() {" + text.partition("\ntimed() {")[2].partition("\n}\n")[0] + "\n}\n"
    work = "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo said >&2'"
    script = f"set -euo pipefail; logs=. stages=stages.tsv\n{timed}"
    script += (
        f"timed work {work}\n{work} &\ntimed wait sleep 1\ntimed bad false\ntimed never true\n"
    )
    process = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 1 and process.stderr == "said\nsaid\n"
    lines = (tmp_path / "stages.tsv").read_text(encoding="utf-8").splitlines()
    (work_row, wait_row) = [line.split("\t") for line in lines]
    assert (work_row[0], wait_row[0]) == ("work", "wait")
    assert float(work_row[2]) > 0 and float(wait_row[1]) >= 1
    assert float(wait_row[2]) < float(work_row[2]), "what ends beside a stage counts for it"
    assert f"== work took {work_row[1]} s, and {work_row[2]} s of the processor" in process.stdout


def test_the_version_of_a_program_has_the_commit_of_its_clone(tmp_path: Path) -> None:
    release = re.escape(streammetrics.__version__)
    assert re.fullmatch(rf"{release}(\+g[0-9a-f]{{8}})?", program_version())
    (tmp_path / "consumers" / "streammetrics_consumers").mkdir(parents=True)
    assert clone_commit(tmp_path) is None
    git = tmp_path / ".git"
    for name, text in (
        ("HEAD", "ref: refs/heads/main\n"),
        ("packed-refs", f"# pack-refs with: peeled\n{'a' * 40} refs/heads/main\n"),
        ("refs/heads/main", f"{'b' * 40}\n"),
    ):
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).write_text(text, encoding="utf-8")
        expected = {"HEAD": None, "packed-refs": "a" * 40, "refs/heads/main": "b" * 40}[name]
        assert clone_commit(tmp_path) == expected
    (git / "HEAD").write_text(f"{'c' * 40}\n", encoding="utf-8")  # a commit without a branch
    assert clone_commit(tmp_path) == "c" * 40
    # A second worktree has a file that names its folder, which shares the branches.
    second = tmp_path / "second"
    (second / "consumers" / "streammetrics_consumers").mkdir(parents=True)
    git_folder = git / "worktrees" / "second"
    git_folder.mkdir(parents=True)
    (second / ".git").write_text(f"gitdir: {git_folder}\n", encoding="utf-8")
    (git_folder / "commondir").write_text("../..\n", encoding="utf-8")
    (git_folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    assert clone_commit(second) == "b" * 40
    (second / "consumers" / "streammetrics_consumers").rmdir()  # the repository of another project
    assert clone_commit(second) is None


def test_an_import_looks_for_no_commit() -> None:
    script = "import sys, streammetrics; print('streammetrics_consumers' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout == "False\n"
