"""What can be known of compose.yaml, chart and workflows without Docker, a cluster or GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
from streammetrics_consumers.cli.arguments import parse
from streammetrics_consumers.config.config import load_config

import streammetrics
from tests.requirements import ROOT, absent

COMPOSE = (ROOT / "consumers/compose.yaml").read_text(encoding="utf-8")
CHART = ROOT / "consumers" / "chart"
VALUES = (CHART / "values.yaml").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def tool(name: str, part: str = "linters") -> str:
    """The path of a program that checks; without it the test skips."""
    path = os.pathsep.join([str(ROOT / ".cache" / "linters" / "bin"), os.environ["PATH"]])
    return shutil.which(name, path=path) or absent(part, f"`{name}` is not there")


def run(*command: str | Path) -> str:
    """What a command prints, whose exit code must be 0."""
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, f"{command}\n{process.stdout}\n{process.stderr}"
    return process.stdout


def test_the_config_of_compose_is_one(tmp_path: Path) -> None:
    path = tmp_path / "clicks.toml"
    path.write_text(textwrap.dedent(COMPOSE.split("content: |\n")[1]))
    config = load_config(path)
    assert (config.source.kind, config.source.topics) == ("kafka", ("events",))
    assert config.store.url.startswith("postgresql://streammetrics@postgres/")


def test_the_commands_of_compose_are_ours() -> None:
    commands = [
        command.split() for command in re.findall(r"^    command: (.*)$", COMPOSE, re.MULTILINE)
    ]
    assert [words[0] for words in commands] == ["simulate", "run"]
    for words in commands:
        parse(words, {})


def test_the_config_and_the_commands_of_the_chart_are_ours(tmp_path: Path) -> None:
    path = tmp_path / "clicks.toml"
    path.write_text(textwrap.dedent(VALUES.partition("config: |\n")[2].partition("\n\n")[0]))
    assert load_config(path).server.host == "0.0.0.0"
    commands = []
    for name in ("workers", "page"):
        text = (CHART / "templates" / f"{name}.yaml").read_text(encoding="utf-8")
        (words,) = re.findall(r'list ("\w+" (?:\((?:[^()])*\)|"[^"]*"|[.\w]+| )*)', text)
        commands.append(re.sub(r"\(.*?\)|\.Values\.\w+", "1", words).replace('"', "").split())
    assert [words[0] for words in commands] == ["run", "serve"]
    for words in commands:
        parse(words, {})


def test_a_service_of_our_name_sets_no_flag_of_ours() -> None:
    # Kubernetes sets STREAMMETRICS_PORT=tcp://... beside a service of that name, by default.
    pod = (CHART / "templates" / "_pod.tpl").read_text(encoding="utf-8")
    assert "enableServiceLinks: false" in pod


def test_every_value_of_the_chart_is_in_its_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    names = re.findall(r"^(\w+):", VALUES, re.MULTILINE)
    assert set(names) == schema.keys() - {"global", "nameOverride"}
    for block in ("image", "workers", "page", "service", "ingress", "podMonitor"):
        text = re.split(r"\n(?=\S)", VALUES.partition(f"\n{block}:\n")[2])[0]
        keys = re.findall(r"^  (\w+):", text, re.MULTILINE)
        assert set(keys) == schema[block]["properties"].keys(), block


def test_the_chart_and_the_citation_name_this_version() -> None:
    version = streammetrics.__version__
    chart = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    assert f'\nversion: {version}\nappVersion: "{version}"\n' in chart
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_helm_lints_the_chart_and_kubernetes_would_take_what_it_renders(tmp_path: Path) -> None:
    helm = tool("helm", "helm")
    run(helm, "lint", "--strict", CHART)
    render = [helm, "template", "clicks", str(CHART)]
    every = "ingress.enabled=true,ingress.host=a.example,existingSecret=s,podMonitor.enabled=true"
    rendered = [run(*render, *flags) for flags in ([], ["--set", every])]
    assert [text.count("kind: Deployment\n") for text in rendered] == [2, 2]
    for wrong, hint in (("config=x", "the kubelet's probes"), ("store=x.db", "^postgresql://")):
        process = subprocess.run(
            [*render, "--set", wrong], check=False, capture_output=True, text=True
        )
        assert process.returncode != 0 and hint in process.stderr, wrong
    path = tmp_path / "rendered.yaml"
    path.write_text(rendered[1], encoding="utf-8")
    output = run(tool("kubernetes-validate"), "--strict", path)
    assert output.count(" passed for resource ") == 5
    assert (
        output.count("Couldn't find schema") == 1
    )  # the operator of Prometheus defines PodMonitor


def test_every_workflow_says_that_it_is_not_run_here_and_asks_for_no_more_than_it_needs() -> None:
    names = {"tests", "wheels", "docs", "release", "atlas", "speed"}
    assert {path.stem for path in WORKFLOWS} == names
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# Not run where the project is tested"), path.name
        assert "\npermissions:\n  contents: read\n" in text, path.name
        assert "secrets." not in text, path.name  # publishing is trusted: it stores no token


def test_every_target_of_make_in_a_workflow_is_one() -> None:
    targets = re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    used = [target for text in texts for target in re.findall(r"run: make ([\w./-]+)", text)]
    assert len(used) > 3
    assert set(used) <= set(targets)


def test_every_action_of_a_workflow_is_pinned_to_a_commit_of_a_named_version() -> None:
    pinned: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for used in re.findall(r"uses: ([^.].*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            match = re.fullmatch(r"([\w/-]+)@([0-9a-f]{40}  # v\d+\.\d+\.\d+)", used)
            assert match, f"{path.name}: {used}"
            pinned.setdefault(match[1], set()).add(match[2])
    assert len(pinned) > 5
    assert all(len(commits) == 1 for commits in pinned.values()), pinned


def test_actionlint_accepts_the_workflows() -> None:
    run(tool("actionlint", "actionlint"), *WORKFLOWS)


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("compose-spec", "consumers/compose.yaml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_a_file_for_another_program_is_as_its_schema_says(schema: str, files: str) -> None:
    paths = sorted(ROOT.glob(files))
    assert paths
    run(tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *paths)


def test_linters_of_yaml_and_of_the_dockerfile_find_nothing() -> None:
    # Short maps in braces and long lines are our style; the key `on` is GitHub's.
    style = """
extends: default
rules:
  braces: {max-spaces-inside: 1}
  document-start: disable
  line-length: {max: 130}
  truthy: {check-keys: false}
"""
    paths = (".github", ".pre-commit-config.yaml", "consumers/compose.yaml", "CITATION.cff")
    run(tool("yamllint"), "--strict", "--config-data", style, *paths)
    run(tool("hadolint"), ROOT / "consumers" / "Dockerfile")
