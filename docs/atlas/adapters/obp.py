"""obp, the Open Bandit Pipeline. Only its estimators are imported, since the rest needs torch."""

import sys
from importlib.metadata import distribution
from types import ModuleType

import numpy as np

for package in ("obp", "obp.ope"):
    sys.modules[package] = ModuleType(package)
    sys.modules[package].__path__ = [
        str(distribution("obp").locate_file(package.replace(".", "/")))
    ]
sys.modules["torch"] = ModuleType("torch")
sys.modules["torch"].Tensor = object

from obp.ope.estimators import (  # noqa: E402
    InverseProbabilityWeighting,
    SelfNormalizedInverseProbabilityWeighting,
)

DISTRIBUTION, ENVIRONMENT = "obp", "obp"


def value(estimator, logged, target, rewards):
    """The value of a policy, where the logged action is 0 and 1 stands for all others."""
    target = np.array(target)
    return estimator.estimate_policy_value(
        reward=np.array(rewards),
        action=np.zeros(len(rewards), int),
        pscore=np.array(logged),
        position=np.zeros(len(rewards), int),
        action_dist=np.stack([target, 1 - target], 1)[:, :, None],
    )


CALLS = {
    "ips": "value(InverseProbabilityWeighting(), logged, target, rewards)",
    "snips": "value(SelfNormalizedInverseProbabilityWeighting(), logged, target, rewards)",
}
