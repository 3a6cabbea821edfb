"""The recipes of docs/engines.md print the digests of a single process, each in its environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from streammetrics import Accumulator, GroupedAUC, HistogramAUC, Panel
from streammetrics.engines import Sealing, partial, seal
from tests.id_pools import EVERY
from tests.requirements import ROOT, absent

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```python\n# ([a-z.]+)(?:: [^\n]*)?\n(.*?)```", PAGE, re.DOTALL))
SPEC = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()}, inputs={"gauc": {"groups": "users"}})
VARIANTS = ("bts", "random")
FILES, ROWS = 5, 3_000
RUN_IN = {"plain": "", "sealed": "", "duckdb": "recipes", "dask": "recipes", "ray": "recipes"}
SEALED = {"sealed", "duckdb"}


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Accumulator]]:
    """The folder in which recipes run, and the state of each variant in a single process."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "day").mkdir()
    rng = np.random.default_rng(6)  # with these ids a table once split the user 0 in two
    states: dict[str, Accumulator] = {name: SPEC.empty() for name in VARIANTS}
    user_sets: dict[str, set[int]] = {name: set() for name in VARIANTS}
    for file in range(FILES):
        user = rng.choice(rng.choice(EVERY, 40), ROWS)  # sparse ids, others in each file
        user[: ROWS // 10] = 0  # one user has a tenth of the rows
        score = rng.random(ROWS, np.float32)
        label = (rng.random(ROWS) < score / 3).astype(np.int16)
        variant = rng.integers(0, 2, ROWS)
        names = pa.array([VARIANTS[i] for i in variant])
        rows = pa.table({"variant": names, "user": user, "score": score, "label": label})
        pq.write_table(rows, folder / "day" / f"{file}.parquet", row_group_size=1_000)
        for i, name in enumerate(VARIANTS):
            mask = variant == i
            states[name].update(labels=label[mask], scores=score[mask], users=user[mask])
            user_sets[name].update(user[mask].tolist())
    for name, state in states.items():
        result = state.compute()
        assert isinstance(result, Mapping) and result["gauc"].groups == len(user_sets[name])
    (folder / "counting.py").write_text(BLOCKS["counting.py"], encoding="utf-8")
    return folder, states


def python_of(name: str) -> Path:
    """The interpreter of an environment, or a skip that says how to enable it."""
    if not name:
        return Path(sys.executable)
    environment = ROOT / ".cache" / name
    if not (environment / ".made").is_file():
        absent(name, f"no {environment}")
    return environment / "bin" / "python"


@pytest.mark.parametrize("name", [*RUN_IN, "beam"])
def test_a_recipe_prints_the_digests_of_a_single_process(
    name: str, day: tuple[Path, dict[str, Accumulator]]
) -> None:
    folder, states = day
    interpreter = python_of(RUN_IN.get(name, "beam"))
    script = folder / f"run_{name}.py"
    script.write_text(BLOCKS[name], encoding="utf-8")
    # Ray is not to write into the home of whoever tests.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"}
    process = subprocess.run(
        [interpreter, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    if name in SEALED:
        whole = Sealing("user", 1, "anywhere", "day")
        states = {variant: seal(state, whole) for variant, state in states.items()}
    expected = {f"{variant} {state.digest()}" for variant, state in states.items()}
    assert set(process.stdout.splitlines()) == expected


def test_the_rows_to_try_it_on_have_what_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fewer = BLOCKS["rows.py"].replace("100_000", "1_000")
    exec(compile(fewer, "rows.py", "exec"), {})  # our own text, not data from outside
    assert len(list(tmp_path.glob("day/*.parquet"))) == 5
    rows = pq.read_table(tmp_path / "day")
    columns = {"labels": "label", "scores": "score", "users": "user"}
    (output,) = partial(rows.to_batches(), SPEC, ["variant"], columns=columns)
    assert sorted(output["variant"].to_pylist()) == ["bts", "random"]


def test_every_python_block_is_a_recipe_that_runs() -> None:
    assert BLOCKS.keys() == {"counting.py", "rows.py", "beam", *RUN_IN}
    assert PAGE.count("```python") == len(BLOCKS)
