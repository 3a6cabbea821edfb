"""Adjustments by name."""

from __future__ import annotations

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments.multiplicity import adjust_fdr, adjust_fwer

P = {"ctr": 0.02, "auc": 0.001, "ndcg": 0.3}


def test_p_values_keep_their_names() -> None:
    assert adjust_fwer(P) == {"ctr": 0.04, "auc": 0.003, "ndcg": 0.3}
    assert adjust_fwer(P, "bonferroni") == {"ctr": 0.06, "auc": 0.003, "ndcg": 0.8999999999999999}


def test_e_values_keep_their_names() -> None:
    found = adjust_fdr(e_values={"ctr": 30.0, "auc": 70.0, "ndcg": 1.0}, alpha=0.05)
    assert adjust_fdr(e_values={"ctr": 19.0}) == {"ctr": False}
    assert found == {"ctr": True, "auc": True, "ndcg": False}


def test_another_method_is_refused() -> None:
    with pytest.raises(SettingsError):
        adjust_fwer(P, "bh")  # type: ignore[arg-type]


def test_nothing_to_adjust() -> None:
    assert adjust_fwer({}) == adjust_fdr(e_values={}) == {}
