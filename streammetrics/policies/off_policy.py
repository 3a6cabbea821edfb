"""OffPolicy: the value of a policy from the log of another one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Batch,
    Counts,
    ExactSum,
    Extreme,
    Factor,
    Inputs,
    NamedSums,
    Propensity,
    Schemas,
    Slots,
    Terms,
    check_factor,
    factors,
    require,
    side_by_side,
)
from streammetrics.core import DOT_ROWS, check_limit, ordered_integers
from streammetrics.results.policy_value import PolicySums, PolicyValue

Floats = NDArray[np.float64]


class OffPolicy(Accumulator, schema="off-policy/2"):
    """The mean reward that a target policy would have had, from the log of another policy.

    A row is weighted by w = target / logged: how much likelier its action is under the target.

    Settings
        clip: `clipped` counts a larger weight as this one; a positive number. reward_limit: rewards
        are in [0, reward_limit] by design, and others are refused; None: they may be any.
    Rows
        logged: [n] in (0, 1], the probability with which the log's policy took the action of the
        row. target: [n] in [0, 1], that of the same action under the target policy. rewards: [n],
        finite. predicted_logged, predicted_target: [n] or neither, the reward that a model fitted
        on other rows predicts for that action, and its mean over the actions of the target policy.
        A row without one of both probabilities is refused, as no other number can replace it.
    State
        Numbers of rows of each kind; exact sums of w, w², r, r², wr, w²r and w²r², in the latter
        two of the rounded wr; those of clipped rows; of predictions, and of t² and wt for the
        rounded terms t of `dr`; the largest weight.
    Result
        PolicyValue: `snips`, `ips`, `clipped`, `dr`, `sndr`, and the diagnostics of the weights.
    Undefined
        The values are nan, and `reason` says why, where support is thin: an effective sample size
        below 100, fewer than 10 rewards other than 0, or a row with more than 10 % of the weight.
        `raw` has them nevertheless. `dr` and `sndr` are nan unless all rows have predictions. No
        value has an interval where the mean weight is certainly more than 1 % below 1; where it is
        lower by chance, the ends are farther out by as many of its standard errors. That of `sndr`
        is the widest for any Σ wt where a state of before this sum was kept lacks it.
    Exactness
        w is rounded once, and so is each value; their sums are exact. Intervals are from sums of
        rounded terms. Weights, rewards and predictions below 2**-200 in size count as 0.
    Cost
        As Regression where few rewards differ from 0, up to twice as much where all do. State:
        about 500 bytes.
    Source
        Horvitz & Thompson 1952, JASA 47; Swaminathan & Joachims 2015, NeurIPS; Dudík, Langford & Li
        2011, ICML; Saito et al. 2021, NeurIPS Datasets (Open Bandit Pipeline), for the names.

    >>> import numpy as np
    >>> from streammetrics import OffPolicy
    >>> policy = OffPolicy()
    >>> clicks = np.arange(1000) % 5 == 0
    >>> logged = np.where(clicks, 0.25, 0.5)
    >>> policy.update(logged, target=np.full(1000, 0.5), rewards=clicks)
    >>> found = policy.compute()
    >>> found.snips, found.mean_reward, round(found.effective_sample_size)
    (0.3333333333333333, 0.2, 900)
    """

    _schemas: ClassVar[Schemas] = {"off-policy/1": {"products"}}

    _reads_each_row = True

    clip: float = 10.0
    reward_limit: float | None = None

    inputs = Inputs(
        logged=Propensity(positive=True),
        target=Propensity(),
        rewards=Factor(limit="reward_limit"),
        predicted_logged=Factor(optional=True),
        predicted_target=Factor(optional=True, beside="predicted_logged"),
    )
    rows = Counts(2, 2, 2)  # [the reward is not 0, the weight is clipped, there are predictions]
    sums = NamedSums(*PolicySums._fields[:-1])
    products = ExactSum()  # Σ w t, the last of PolicySums
    largest = Extreme("max")  # weight, as an ordered integer

    if TYPE_CHECKING:

        def update(
            self,
            logged: ArrayLike,
            target: ArrayLike,
            rewards: ArrayLike,
            predicted_logged: ArrayLike | None = None,
            predicted_target: ArrayLike | None = None,
        ) -> None: ...

    def check_settings(self) -> None:
        self._set("clip", check_factor(self.clip, "OffPolicy.clip", "pass the largest weight"))
        self._set("reward_limit", check_limit(self.reward_limit, "OffPolicy.reward_limit"))

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        rows = super()._read_rows(given)
        rows.columns["weights"] = factors(rows.target / rows.logged, "target / logged")
        del rows.columns["logged"], rows.columns["target"]
        return rows

    def _mean_views(self) -> tuple[str, ...]:
        return "ips", "clipped"

    def _row_terms(self, batch: Batch) -> tuple[Terms, ...]:
        weights, rewards = batch.weights, batch.rewards
        return Terms(weights * rewards), Terms(np.minimum(weights, self.clip) * rewards)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        rewarded = batch.rewards != 0
        few = 2 * np.count_nonzero(rewarded) < batch.n  # of clicks; other rewards add 0
        for rows, piece_slots in batch.pieces(slots, DOT_ROWS):
            w, r, q = rows.weights, rows.rewards, rows.optional("predicted_logged")
            self.rows.add_flags(piece_slots, r != 0, w > self.clip, q is not None)
            self.largest.add(ordered_integers(w), piece_slots)
            terms = {"w": w, "ww": (w, w), **({} if few else _reward_terms(w, r))}
            if q is not None:
                p = rows.predicted_target
                t = p + w * (r - q)
                terms |= {"p": p, "wq": (w, q), "terms": np.square(t)}
                self.products.add(w * t, piece_slots)
            self.sums.add(piece_slots, **terms)
        batch, slots = batch.where(rewarded, slots)
        for rows, piece_slots in batch.pieces(slots, DOT_ROWS) if few else ():
            self.sums.add(piece_slots, **_reward_terms(rows.weights, rows.rewards))
        batch, slots = batch.where(batch.weights > self.clip, slots)
        for rows, piece_slots in batch.pieces(slots, DOT_ROWS):
            terms = _reward_terms(rows.weights, rows.rewards)
            del terms["wwr"]
            self.sums.add(piece_slots, **{f"c_{name}": term for name, term in terms.items()})

    def _require_possible(self) -> None:
        slots = np.arange(self._width)
        lost = self.products.infinities[: self._width]
        rows = self.rows.tables(slots).sum(axis=(1, 2, 3))
        is_possible = np.array_equal(*lost.T) and bool((lost[:, 0] <= rows).all())
        require(is_possible, "impossible sums of weights and rewards")
        clipped_rewards = self.rows.tables(slots)[:, 1, 1].sum(axis=1).tolist()
        for value, n_clipped in zip(self._compute_all(slots), clipped_rewards, strict=True):
            require(value._possible(n_clipped), "impossible sums of weights and rewards")

    def compute(self) -> PolicyValue:
        """The value of the target policy by each estimator, and how far the log supports it."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[PolicyValue]:
        return side_by_side(
            PolicyValue,
            len(slots),
            *self.rows.flag_totals(slots),
            _largest=self.largest.floats(slots).tolist(),
            _clip=repeat(self.clip),
            _limit=repeat(self.reward_limit),
            _units=self.sums.pairs(slots),
            _products=self.products.pairs(slots),
        )


def _reward_terms(w: Floats, r: Floats) -> dict[str, Floats | tuple[Floats, Floats]]:
    """The terms of rewards r with weights w, [n] each."""
    u = w * r
    return {"r": r, "rr": (r, r), "wr": (w, r), "wwr": (w, u), "wwrr": (u, u)}
