"""What users install: the wheel in a clean environment of each Python here, and the image's stages.

`make test-wheel` runs these; they download numpy and what builds a wheel.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import streammetrics
from docs import addresses
from tests import pythons
from tests.requirements import ROOT

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("wheel"),  # one build for all
]
PROGRAMS = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)
DAY = """
[source]
kind = "file"
path = "day.jsonl"
[event]
time = "ts"
time_unit = "s"
variant = "variant"
variants = ["a", "b"]
label = "clicked"
[slices]
by = [["variant"]]
[store]
url = "day.sqlite"
[metrics]
ctr = { type = "Ratio", inputs = { numerators = "clicked" } }
"""
REPOSITORY, COMMIT = "https://github.com/example/streammetrics", "0" * 40
DOCKERFILE = ROOT / "consumers" / "Dockerfile"


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, where nothing of this process is seen but the PATH."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    process = subprocess.run(
        command, cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, f"{command}\n{process.stdout}\n{process.stderr}"
    return process.stdout


def files() -> set[str]:
    """The files of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that is built from it, as a release is."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    run(sys.executable, "-m", "docs.addresses", REPOSITORY, COMMIT, cwd=source)
    run(sys.executable, "-m", "build", "--outdir", folder, source, cwd=folder)
    return folder


def test_an_index_of_packages_would_take_them(dist: Path) -> None:
    output = run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=dist)
    assert output.count("PASSED") == 2


def test_the_page_of_the_package_links_to_the_repository_and_to_nothing_beside_it(
    dist: Path,
) -> None:
    (wheel,) = dist.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    metadata = email.message_from_bytes(archive.read(name))
    shown = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert shown == addresses.urls(REPOSITORY)
    page = str(metadata.get_payload())
    assert f"]({REPOSITORY}/blob/{COMMIT}/docs/" in page
    assert addresses.absolute(page, REPOSITORY, COMMIT) == page


def test_the_wheel_has_the_packages_and_the_archive_the_repository(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    version = streammetrics.__version__
    assert tops == {
        "streammetrics",
        "streammetrics_consumers",
        f"streammetrics-{version}.dist-info",
    }
    packages = ("streammetrics/", "consumers/streammetrics_consumers/")
    of_packages = {name for name in files() if name.startswith(packages)}
    assert {name.removeprefix("consumers/") for name in of_packages} == {
        name for name in names if ".dist-info/" not in name
    }
    assert f"streammetrics-{version}.dist-info/licenses/LICENSE" in names
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {member.name.partition("/")[2] for member in opened if member.isfile()}
    assert inside == files() | {"PKG-INFO"}


def test_the_programs_of_the_readme_print_the_same_on_each_python(
    dist: Path, tmp_path: Path
) -> None:
    (wheel,) = dist.glob("*.whl")
    versions = pythons.installed_pythons()
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in versions
    assert PROGRAMS
    printed: dict[str, list[str]] = {}
    for version, python in versions.items():
        home = tmp_path / version
        run(python, "-m", "venv", home, cwd=tmp_path)
        interpreter = home / "bin" / "python"
        run(interpreter, "-m", "pip", "install", "-q", wheel, cwd=home)
        printed[version] = [
            run(interpreter, "-W", "error", "-c", text, cwd=home) for text in PROGRAMS
        ]
        assert f"Python {version}." in run(interpreter, "-m", "streammetrics", cwd=home)
        version_line = run(home / "bin" / "streammetrics", "--version", cwd=home)
        assert version_line == f"streammetrics {streammetrics.__version__}\n"
        shutil.rmtree(home)
    first, *later_outputs = printed.values()
    assert all(outputs == first for outputs in later_outputs), printed


def test_the_commands_start_after_the_line_that_the_readme_installs_with(
    dist: Path, tmp_path: Path
) -> None:
    """Evaluation of a file, the demo and a report: what a newcomer tries first."""
    (wheel,) = dist.glob("*.whl")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    line = re.search(r"^pip install '\.(\[[\w,]+\])'(?=  )", readme, re.MULTILINE)
    assert line is not None
    home = tmp_path / "newcomer"
    run(sys.executable, "-m", "venv", home, cwd=tmp_path)
    run(home / "bin" / "python", "-m", "pip", "install", "-q", f"{wheel}{line[1]}", cwd=home)
    (home / "day.csv").write_text("label,score\n1,0.9\n0,0.2\n1,0.4\n0,0.5\n", encoding="utf-8")
    (home / "day.jsonl").write_text(
        '{"ts": 1700000000, "variant": "a", "clicked": 1}\n'
        '{"ts": 1700000001, "variant": "b", "clicked": 0}\n',
        encoding="utf-8",
    )
    (home / "day.toml").write_text(DAY, encoding="utf-8")
    program = home / "bin" / "streammetrics"
    columns = "--labels", "label", "--scores", "score", "--metrics", "auc"
    assert "0.75" in run(program, "eval", "day.csv", *columns, cwd=home)
    for name, score in (("a", 1), ("b", 3)):
        (home / f"{name}.run").write_text(f"q Q0 d 1 2 t\nq Q0 e 2 {score} t\n", encoding="utf-8")
    (home / "qrels").write_text("q 0 e 1\n", encoding="utf-8")
    of_runs = "--qrels", "qrels", "--metrics", "mrr", "--format", "csv"
    assert "MRR,b,1.0000,+0.5000" in run(program, "eval", "a.run", "b.run", *of_runs, cwd=home)
    text = (
        "from pyarrow import csv, parquet as p; p.write_table(csv.read_csv('day.csv'), 'x.parquet')"
    )
    run(home / "bin" / "python", "-c", text, cwd=home)
    assert "0.75" in run(program, "eval", "x.parquet", *columns, cwd=home)
    assert "auc" in run(program, "demo", "--once", "--events", "5000", cwd=home)
    assert "complete" in run(program, "completion", "bash", cwd=home)
    run(program, "run", "day.toml", "--until-end", "--no-serve", cwd=home)
    run(program, "report", "day.sqlite", "-o", "report.html", cwd=home)
    assert "<html" in (home / "report.html").read_text(encoding="utf-8")
    run(program, "eval", "day.jsonl", "--values", "clicked", "--metrics", "mean", cwd=home)


def test_each_python_that_the_project_names_is_one_that_ci_tests() -> None:
    versions = pythons.declared_versions()
    for workflow in ("tests", "wheels"):
        text = (ROOT / f".github/workflows/{workflow}.yml").read_text(encoding="utf-8")
        assert [re.findall(r'"([\d.]+)"', line) for line in re.findall(r"python: (\[.*\])", text)]
        assert f"python: {versions}".replace("'", '"') in text
    assert f'requires-python = ">={versions[0]}"\n' in (ROOT / "pyproject.toml").read_text("utf-8")


class Image:
    """The stages of a Dockerfile, made by hand: `/` is a folder, and commands run on this machine.

    Left out are the accounts of the image, its user, and pip's `--no-cache-dir`.
    """

    def __init__(self, text: str, root: Path, python: Path) -> None:
        self.root, self.python = root, python
        self.stages: dict[str, Path] = {}
        self.arguments: dict[str, str] = {}
        self.folder, self.entry, self.command = "/", "", ""
        lines = re.sub(r"^#.*\n|\\\n", "", text, flags=re.MULTILINE).splitlines()
        for word, _, rest in (line.partition(" ") for line in lines if line.strip()):
            getattr(self, f"do_{word.lower()}")(rest.strip())

    def path(self, name: str) -> Path:
        return self.root / (name if name.startswith("/") else f"{self.folder}/{name}").lstrip("/")

    def do_from(self, rest: str) -> None:
        if self.root.exists():  # where a stage was is the next one: environments know their place
            aside = self.root.with_name(f"stage-{len(self.stages)}")
            self.stages[self.name] = self.root.rename(aside)
        self.name, self.folder = rest.rpartition(" AS ")[2], "/"
        self.root.mkdir()

    def do_arg(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self.arguments[name] = value

    def do_workdir(self, rest: str) -> None:
        self.folder = rest
        self.path(rest).mkdir(parents=True, exist_ok=True)

    def do_copy(self, rest: str) -> None:
        words = rest.split()
        source = ROOT
        if words[0].startswith("--from="):
            source = self.stages[words.pop(0).removeprefix("--from=")]
        *names, target = words
        for name in names:
            origin, destination = source / name.lstrip("/"), self.path(target)
            destination.parent.mkdir(parents=True, exist_ok=True)
            if origin.is_dir():
                shutil.copytree(origin, destination, symlinks=True)
            else:
                shutil.copy2(origin, destination)

    def do_run(self, rest: str) -> None:
        if rest.startswith("useradd "):
            assert "--uid 10001" in rest
            return
        for name, value in self.arguments.items():
            rest = rest.replace(f"${{{name}}}", value)
        rest = re.sub(r"^python ", f"{self.python} ", rest).replace("--no-cache-dir ", "")
        run("sh", "-c", rest.replace("/opt/", f"{self.root}/opt/"), cwd=self.path(self.folder))

    def do_entrypoint(self, rest: str) -> None:
        self.entry = rest

    def do_env(self, rest: str) -> None:
        assert rest == 'PATH="/opt/streammetrics/bin:${PATH}"'

    def do_ignored(self, rest: str) -> None:
        """Says how the image is started."""

    do_user = do_expose = do_stopsignal = do_cmd = do_ignored


def test_the_stages_of_the_image_give_a_command_line_that_counts(tmp_path: Path) -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    version = re.findall(r"^ARG PYTHON=(.*)$", text, re.MULTILINE)[0]
    versions = pythons.installed_pythons()
    if version not in versions:
        pytest.skip(f"no Python {version}. To enable: install it, with its venv module")
    built_from = text.replace("ARG COMMIT=\n", f"ARG COMMIT={'0123456789' * 4}\n")
    image = Image(built_from, tmp_path / "image", versions[version])
    assert image.entry == '["streammetrics"]'
    assert not image.path("/src").exists()
    program = image.path("/opt/streammetrics/bin/streammetrics")
    data = image.path("/data")
    assert run(program, "--version", cwd=data).strip().endswith("+g01234567")
    run(program, "simulate", "--events", "1000", "-o", "events.jsonl", cwd=data)
    chosen = ROOT / "consumers" / "chart" / "values.yaml"
    config = re.sub(r"\[source\].*?\[event\]", "[event]", _config(chosen), flags=re.DOTALL)
    source = '[source]\nkind = "file"\npath = "events.jsonl"\n'
    (data / "clicks.toml").write_text(source + config, encoding="utf-8")
    run(program, "run", "clicks.toml", "--until-end", "--no-serve", cwd=data)
    assert "auc" in run(program, "results", "streammetrics.db", cwd=data)
    listed = run(image.path("/opt/streammetrics/bin/python"), "-m", "streammetrics", cwd=data)
    for extra in image.arguments["EXTRAS"].split(","):
        assert re.search(rf"^  {extra} +yes", listed, re.MULTILINE), extra


def _config(values: Path) -> str:
    text = values.read_text(encoding="utf-8").partition("config: |\n")[2].partition("\n\n")[0]
    return "".join(line.removeprefix("  ") + "\n" for line in text.splitlines())
