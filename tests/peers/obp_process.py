"""obp, the Open Bandit Pipeline, asked in the environment of its own that `make peers` makes.

This file runs there too, as a script: it reads logs as JSON, a line each, and answers with the
values of the estimators. obp imports torch, of 2 GB, for gradients. Here an empty module stands in
its place, and the packages of obp are replaced by empty ones with the same folder, so that only the
estimators are imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "obp"
PYTHON = ENVIRONMENT / "bin" / "python"
Question = Mapping[str, Sequence[float]]  # logged, target, rewards, predicted_logged, ..._target
Answer = Mapping[str, float]


def ask(questions: Sequence[Question]) -> list[Answer]:
    """The values of each log, by the name of the view."""
    process = subprocess.run(
        [PYTHON, __file__],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr)
    return [json.loads(line) for line in process.stdout.splitlines()]


def _answer() -> None:
    from types import ModuleType

    for name in ("obp", "obp.ope"):
        folder = ENVIRONMENT.glob("lib/python3*/site-packages/" + name.replace(".", "/"))
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(next(folder))]
    sys.modules["torch"] = torch = ModuleType("torch")
    torch.Tensor = object  # type: ignore[attr-defined]
    import numpy as np
    from obp.ope.estimators import (  # type: ignore[import-not-found]
        DoublyRobust,
        InverseProbabilityWeighting,
        SelfNormalizedDoublyRobust,
        SelfNormalizedInverseProbabilityWeighting,
    )

    for line in sys.stdin:
        log = {name: np.array(column) for name, column in json.loads(line).items()}
        n = len(log["rewards"])
        # Two actions: the logged one, 0, and one that stands for all others.
        chosen = np.zeros(n, int)
        dist = np.stack([log["target"], 1 - log["target"]], 1)[:, :, None]
        # obp has a prediction for each action; its mean under the target must be predicted_target.
        rest = 1 - log["target"]
        complement = (log["predicted_target"] - log["target"] * log["predicted_logged"]) / rest
        predicted = np.stack([log["predicted_logged"], complement], 1)[:, :, None]
        inputs = {
            "reward": log["rewards"],
            "action": chosen,
            "position": np.zeros(n, int),
            "pscore": log["logged"],
            "action_dist": dist,
        }
        model_inputs = {**inputs, "estimated_rewards_by_reg_model": predicted}
        estimates = {
            "ips": InverseProbabilityWeighting().estimate_policy_value(**inputs),
            "snips": SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**inputs),
            "dr": DoublyRobust().estimate_policy_value(**model_inputs),
            "sndr": SelfNormalizedDoublyRobust().estimate_policy_value(**model_inputs),
        }
        print(json.dumps({name: float(value) for name, value in estimates.items()}))  # noqa: T201


if __name__ == "__main__":
    _answer()
