"""torchmetrics, torcheval and real tensors, in the environment of their own that `make test` makes.

This file runs there too, as a script: it reads questions as JSON, a line each, and answers them. A
question is an object and what is done with it; our own classes can be asked there as well, since
that environment has this package installed from its source.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "torch"
PYTHON = ENVIRONMENT / "bin" / "python"


@dataclass(frozen=True)
class Tensor:
    """A tensor to be made there, of nested lists or of an array."""

    values: Any
    dtype: str = "float32"
    grad: bool = False
    device: str = "cpu"

    def as_json(self) -> dict[str, object]:
        values = getattr(self.values, "tolist", lambda: self.values)()
        return {"tensor": values, "dtype": self.dtype, "grad": self.grad, "device": self.device}


@dataclass(frozen=True)
class Step:
    """A call of a method, or of the name of an attribute: read, or set to the one argument."""

    name: str
    arguments: Sequence[object] = ()
    named: Mapping[str, object] | None = None


class Peers:
    """The process: started once, since it takes four seconds to import torch."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [PYTHON, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, class_path: str, settings: Mapping[str, object], *steps: Step) -> list[Any]:
        """What each step returned: tensors as nested lists, None of a method without a result.

        `class_path` is the dotted path of the class.
        """
        question = {
            "class_path": class_path,
            "settings": dict(settings),
            "steps": [_step(step) for step in steps],
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(question, default=_plain), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process with torch ended; what it said is on stderr")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        answers: list[Any] = answer["answers"]
        return answers

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def update(*tensors: Tensor, **keywords: Tensor) -> Step:
    """The step that most tests take."""
    return Step("update", tensors, keywords)


COMPUTE = Step("compute")


@dataclass(frozen=True)
class Another:
    """An argument: another object of the same class and settings, with which steps were done."""

    steps: Sequence[Step]


def _step(step: Step) -> dict[str, object]:
    return {"name": step.name, "arguments": list(step.arguments), "named": dict(step.named or {})}


def _plain(value: object) -> object:
    if isinstance(value, Tensor):
        return value.as_json()
    if isinstance(value, Another):
        return {"another": [_step(step) for step in value.steps]}
    raise TypeError(f"{value!r} is no tensor, no other object, and nothing that JSON has")


def _run() -> None:
    import importlib
    import warnings

    import torch  # type: ignore[import-not-found]

    def decode(value: Any, make_metric: Any) -> Any:
        if isinstance(value, dict) and "tensor" in value:
            kind = {"dtype": getattr(torch, value["dtype"]), "device": value["device"]}
            tensor = torch.tensor(value["tensor"], **kind)
            return tensor.requires_grad_() if value["grad"] else tensor
        if isinstance(value, dict) and "another" in value:
            metric = make_metric()
            for step in value["another"]:
                perform(metric, step, make_metric)
            return metric
        if isinstance(value, list):
            return [decode(entry, make_metric) for entry in value]
        return value

    def perform(metric: Any, step: Any, make_metric: Any) -> Any:
        arguments = [decode(value, make_metric) for value in step["arguments"]]
        keywords = {name: decode(value, make_metric) for name, value in step["named"].items()}
        member = getattr(metric, step["name"])
        if callable(member) and not isinstance(member, torch.Tensor):
            return member(*arguments, **keywords)
        if arguments:
            setattr(metric, step["name"], arguments[0])
        return getattr(metric, step["name"])

    def shown(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().tolist()
        if isinstance(value, list | tuple):
            return [shown(entry) for entry in value]
        return value if isinstance(value, int | float | str) else None

    def answered(question: Any) -> list[Any]:
        module, _, name = question["class_path"].rpartition(".")
        kind = getattr(importlib.import_module(module), name)

        def make_metric() -> Any:
            return kind(**question["settings"])

        metric = make_metric()
        return [shown(perform(metric, step, make_metric)) for step in question["steps"]]

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # the other core has other tests
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"answers": answered(json.loads(line))}
        except Exception as error:  # whatever it is, the test that asked shall say it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    _run()
