"""OffPolicy: the value of a policy from the log of another one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import repeat
from math import inf
from operator import add
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import require
from streammetrics.core.errors import InputError
from streammetrics.core.factors import Factor, Propensity, check_factor, factors
from streammetrics.core.inputs import Inputs
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum, ExactSumColumn
from streammetrics.core.parts.exact_sums import require_finite, require_moments
from streammetrics.core.parts.part import SLOT_0, Column, Extreme, Slots
from streammetrics.core.rows import Terms
from streammetrics.results.deferred import side_by_side
from streammetrics.results.policy_value import PolicySums, PolicyValue

Floats = NDArray[np.float64]

_INFINITE: Final = int(np.array([inf]).view(np.int64)[0])
_ROUNDED: Final = 1 + Fraction(1, 1 << 48)  # of sums of squares of rounded terms


class OffPolicy(Accumulator, schema="off-policy/1"):
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
        Numbers of rows; exact sums of w, w², r, wr, w²r and w²r², in the latter two of the rounded
        wr; those of clipped rows, and of predictions; the largest weight.
    Result
        PolicyValue: `snips`, `ips`, `clipped`, `dr`, `sndr`, and the diagnostics of the weights.
    Undefined
        The values are nan, and `reason` says why, where support is thin: an effective sample size
        below 100, fewer than 10 rewards other than 0, or a row with more than 10 % of the weight.
        `raw` has them nevertheless. `dr` and `sndr` are nan unless all rows have predictions.
    Exactness
        w is rounded once, and so is each value; their sums are exact. Intervals are from sums of
        rounded terms. Weights, rewards and predictions below 2**-200 in size count as 0.
    Cost
        Two thirds of that of Regression where few rewards differ from 0, 1.4 times as much where
        all do. State: about 500 bytes.
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

    clip: float = 10.0
    reward_limit: float | None = None

    inputs = Inputs(
        logged=Propensity(positive=True),
        target=Propensity(),
        rewards=Factor(limit="reward_limit"),
        predicted_logged=Factor(optional=True),
        predicted_target=Factor(optional=True),
    )
    rows = Counts(2, 2)  # [whether the reward is not 0, whether the weight is clipped]
    weight = ExactSum()
    weight_squares = ExactSum()
    reward = ExactSum()
    weighted = ExactSum()  # Σ w r
    cross = ExactSum()  # Σ w u, u the rounded w r
    squares = ExactSum()  # Σ u²
    clipped_reward = ExactSum()  # Σ r, Σ r², Σ w r and Σ u² over clipped rows
    clipped_reward_squares = ExactSum()
    clipped_weighted = ExactSum()
    clipped_squares = ExactSum()
    predicted_rows = Counts(1)
    expected = ExactSum()  # Σ of predictions for the target
    predicted = ExactSum()  # Σ w q, q the prediction for the logged action
    term_squares = ExactSum()  # Σ of the squares of DR's terms, each rounded
    largest = Extreme("max")  # weight, as the integer with its bits

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
        if self.reward_limit is not None:
            where, hint = "OffPolicy.reward_limit", "leave it out, or pass 1"
            self._set("reward_limit", check_factor(self.reward_limit, where, hint))

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        names = "predicted_logged", "predicted_target"
        predicted = [name for name in names if given[name] is not None]
        if len(predicted) == 1:
            raise InputError(
                expected=f"both {names[0]} and {names[1]}, or neither",
                got=f"only {predicted[0]}",
                where="OffPolicy.update",
                hint="dr and sndr need the prediction for the logged action and its mean over the "
                "actions of the target policy",
            )
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
        for piece, at in batch.pieces(slots):
            self._add(piece, at)

    def _add(self, batch: Batch, slots: Slots | None) -> None:
        weights, rewards = batch.weights, batch.rewards
        some, over = rewards != 0, weights > self.clip
        self._count(some, over, slots)
        self.weight.add(weights, slots)
        self.weight_squares.add_products(weights, weights, slots)
        top = weights if slots is not None else weights.max(keepdims=True)
        self.largest.add(top.view(np.int64), slots)
        if not some.all():  # of clicks a few: other rows add nothing to these sums
            at = np.flatnonzero(some)
            weights, rewards, over = weights[at], rewards[at], over[at]
            slots_of = None if slots is None else slots[at]
        else:
            slots_of = slots
        self._add_rewards(weights, rewards, over, slots_of)
        if batch.optional("predicted_logged") is not None:
            self._add_predictions(batch, slots)

    def _count(self, some: NDArray[np.bool_], over: NDArray[np.bool_], slots: Slots | None) -> None:
        if slots is not None:
            self.rows.add(2 * some.astype(np.intp) + over, slots)
            return
        both, rewarded, clipped = (int(np.count_nonzero(x)) for x in (some & over, some, over))
        cells = [len(some) - rewarded - clipped + both, clipped - both, rewarded - both, both]
        counts = np.array(cells, np.int64)
        self.rows.add(np.arange(4, dtype=np.intp), np.zeros(4, np.intp), counts)

    def _add_rewards(
        self, weights: Floats, rewards: Floats, over: NDArray[np.bool_], slots: Slots | None
    ) -> None:
        terms = self.weighted.add_products(weights, rewards, slots)
        self.reward.add(rewards, slots)
        self.cross.add_products(weights, terms, slots)
        self.squares.add_products(terms, terms, slots)
        some = np.flatnonzero(over)
        if not len(some):
            return
        weights, rewards, terms = weights[some], rewards[some], terms[some]
        at = None if slots is None else slots[some]
        self.clipped_reward.add(rewards, at)
        self.clipped_reward_squares.add_products(rewards, rewards, at)
        self.clipped_weighted.add_products(weights, rewards, at)
        self.clipped_squares.add_products(terms, terms, at)

    def _add_predictions(self, batch: Batch, slots: Slots | None) -> None:
        predicted, expected = batch.predicted_logged, batch.predicted_target
        self.predicted_rows.add(np.zeros(batch.n, np.intp), slots)
        self.expected.add(expected, slots)
        self.predicted.add_products(batch.weights, predicted, slots)
        terms = expected + batch.weights * (batch.rewards - predicted)
        self.term_squares.add(terms * terms, slots)

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new, what = super()._read(columns, width), "impossible sums of weights and rewards"
        for column in new._sums():
            require_finite(column, what)
        for slot in range(width):
            none, none_over, some, some_over = new.rows.dense(slot).ravel().tolist()
            n, nonzero = none + none_over + some + some_over, some + some_over
            bits = new.largest.value(slot)
            require((bits is not None) == (n > 0) and 0 <= (bits or 0) < _INFINITE, what)
            largest = Fraction(np.array([bits or 0]).view(np.float64).item())
            require((largest > self.clip) == (none_over + some_over > 0), what)
            of = PolicySums(*(column.fraction(slot) for column in new._sums()))
            w, ww, _, wr, wwr, wwrr, r, rr, over_wr, over_wwrr, *predictions = of
            require(largest <= w <= n * largest and largest * w >= ww, what)
            require_moments(n, w, ww, what, 1)
            require_moments(nonzero, wr, wwrr * _ROUNDED, what, 1)
            require(wwr * wwr <= ww * wwrr and (nonzero > 0 or not new.reward.fraction(slot)), what)
            require_moments(some_over, r, rr, what, 1)
            require_moments(some_over, over_wr, over_wwrr * _ROUNDED, what, 1)
            require(over_wwrr <= wwrr and (some_over > 0 or not over_wwrr), what)
            require(rr * Fraction(self.clip) ** 2 <= over_wwrr * _ROUNDED, what)
            predicted = int(new.predicted_rows.dense(slot)[0])
            require(predicted <= n and (predicted > 0 or not any(predictions)), what)
            require(of.terms >= 0, what)
        return new

    def _sums(self) -> tuple[ExactSumColumn, ...]:
        """In the order of PolicySums."""
        clipped = self.clipped_reward, self.clipped_reward_squares, self.clipped_weighted
        return (
            *(self.weight, self.weight_squares, self.reward, self.weighted, self.cross),
            *(self.squares, *clipped, self.clipped_squares),
            *(self.expected, self.predicted, self.term_squares),
        )

    def compute(self) -> PolicyValue:
        """The value of the target policy by each estimator, and how far the log supports it."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[PolicyValue]:
        none, none_over, some, some_over = self.rows.columns(slots)
        largest = np.where(self.largest.known[slots], self.largest.values[slots], 0)
        return side_by_side(
            PolicyValue,
            len(slots),
            rows=map(sum, zip(none, none_over, some, some_over, strict=True)),
            nonzero_rewards=map(add, some, some_over),
            rows_clipped=map(add, none_over, some_over),
            rows_predicted=self.predicted_rows.columns(slots)[0],
            _largest=largest.view(np.float64).tolist(),
            _clip=repeat(self.clip),
            _limit=repeat(self.reward_limit),
            _units=zip(*(column.pairs(slots) for column in self._sums()), strict=True),
        )
