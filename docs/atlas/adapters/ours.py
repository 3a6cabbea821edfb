"""streammetrics: the names in which the definitions have our calls."""

import streammetrics as sm
from streammetrics import (
    AP,
    DCG,
    ERR,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    P,
    R,
    RPrec,
    evaluate,
)

DISTRIBUTION = "streammetrics"


def result(metric, *rows, **columns):
    """What a metric says of these rows."""
    metric.update(*rows, **columns)
    return metric.compute()


def curve(labels, scores):
    """Every area and threshold."""
    return result(sm.ExactAUC(), labels, scores)


def rates(labels, scores, threshold):
    """The rates at one threshold."""
    return result(sm.BinaryConfusion(threshold=threshold), labels, scores)


def classes(labels, predictions):
    """The rates of many classes."""
    return result(sm.MulticlassConfusion(1 + max(labels + predictions)), labels, predictions)


def losses(labels, scores, **settings):
    """Log loss, Brier score and calibration."""
    return result(sm.Calibration(**settings), labels, scores)


def mean(measure, qrels, run, **rules):
    """The mean of a measure over queries."""
    return evaluate(qrels, run, [measure], **rules)[measure]


def drift(reference, current):
    """How far two samples are apart."""
    states = sm.ExactQuantiles(), sm.ExactQuantiles()
    for state, numbers in zip(states, (reference, current), strict=True):
        state.update(numbers)
    return sm.drift(*states)


def share(successes, trials):
    """The interval of a share."""
    labels = [1] * successes + [0] * (trials - successes)
    return rates([1] * trials, labels, 0.5).interval("recall")


def paired(labels, first, second):
    """Whether two models are wrong on different numbers of rows."""
    metric = sm.Paired(sm.BinaryConfusion())
    metric.update(labels=labels, scores_a=first, scores_b=second)
    return metric.compute().mcnemar().pvalue


def policy(logged, target, rewards):
    """The values of a policy, which its gates would leave out for few rows."""
    return result(sm.OffPolicy(clip=1_000.0), logged, target, rewards).raw


def uplift(labels, scores, treated):
    """The areas under the curves of a treatment."""
    return result(sm.ExactUplift(), labels, scores, treated)
