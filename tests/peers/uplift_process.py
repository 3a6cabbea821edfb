"""scikit-uplift and causalml, asked in the environment of their own that `make peers` makes.

This file runs there too, as a script: it reads questions as JSON, a line each, and answers them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "uplift-peers"
PYTHON = ENVIRONMENT / "bin" / "python"


@dataclass(frozen=True)
class Question:
    """Rows of both arms. parts: their number, for the uplift in each; ties: whether scores tie, so
    that only scikit-uplift has an answer that does not depend on a sort."""

    labels: Sequence[int]
    scores: Sequence[float]
    treated: Sequence[int]
    parts: int
    ties: bool


Answer = Mapping[str, Any]


def ask(questions: Sequence[Question]) -> list[Answer]:
    """The answers of one process."""
    process = subprocess.run(
        [PYTHON, __file__],
        input="\n".join(json.dumps(asdict(question)) for question in questions),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr)
    return [json.loads(line) for line in process.stdout.splitlines()]


def _answer() -> None:
    import numpy as np
    import pandas as pd
    from causalml.metrics import auuc_score, qini_score
    from sklearn.metrics import auc
    from sklift import metrics

    for line in sys.stdin:
        question = json.loads(line)
        y, s, t = (np.array(question[name]) for name in ("labels", "scores", "treated"))
        answer = {
            "qini_auc_score": float(metrics.qini_auc_score(y, s, t)),
            "uplift_auc_score": float(metrics.uplift_auc_score(y, s, t)),
            "qini_curve": float(auc(*metrics.qini_curve(y, s, t))),
            "uplift_curve": float(auc(*metrics.uplift_curve(y, s, t))),
        }
        if not question["ties"]:
            k = question["parts"]
            rates = [
                metrics.response_rate_by_percentile(y, s, t, group=arm, strategy="overall", bins=k)
                for arm in ("treatment", "control")
            ]
            frame = pd.DataFrame({"y": y, "w": t, "model": s})
            answer |= {
                "by_percentile": (rates[0][0] - rates[1][0]).tolist(),
                "qini_score": float(qini_score(frame, normalize=False)["model"]),
                "auuc_score": float(auuc_score(frame, normalize=True)["model"]),
            }
        print(json.dumps(answer))  # noqa: T201


if __name__ == "__main__":
    _answer()
