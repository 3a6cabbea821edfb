"""river, fed row by row."""

from river import metrics, stats

DISTRIBUTION, ENVIRONMENT = "river", "atlas"


def fed(metric, truth, predicted):
    """The value after all rows."""
    for y, prediction in zip(truth, predicted, strict=True):
        metric.update(y, prediction)
    return metric.get()


def at_half(metric, labels, scores):
    """A metric of classes, where scores of at least 0.5 are predicted positive."""
    return fed(metric, [y == 1 for y in labels], [score >= 0.5 for score in scores])


def rows(statistic, numbers):
    """A statistic of numbers."""
    for number in numbers:
        statistic.update(number)
    return statistic.get()


CALLS = {
    "auc": "fed(metrics.ROCAUC(), labels, scores)",
    "auc_rare": "fed(metrics.ROCAUC(), labels, scores)",
    "auc_one_class": "fed(metrics.ROCAUC(), labels, scores)",
    "accuracy": "at_half(metrics.Accuracy(), labels, scores)",
    "precision": "at_half(metrics.Precision(), labels, scores)",
    "recall": "at_half(metrics.Recall(), labels, scores)",
    "f1": "at_half(metrics.F1(), labels, scores)",
    "mcc": "at_half(metrics.MCC(), labels, scores)",
    "precision_undefined": "at_half(metrics.Precision(), labels, scores)",
    "log_loss": "fed(metrics.LogLoss(), [y == 1 for y in labels], scores)",
    "log_loss_sure": "fed(metrics.LogLoss(), [y == 1 for y in labels], scores)",
    "multiclass_accuracy": "fed(metrics.Accuracy(), labels, predictions)",
    "macro_f1": "fed(metrics.MacroF1(), labels, predictions)",
    "weighted_f1": "fed(metrics.WeightedF1(), labels, predictions)",
    "macro_precision": "fed(metrics.MacroPrecision(), labels, predictions)",
    "balanced_accuracy": "fed(metrics.BalancedAccuracy(), labels, predictions)",
    "kappa": "fed(metrics.CohenKappa(), labels, predictions)",
    "rmse": "fed(metrics.RMSE(), truth, predicted)",
    "mae": "fed(metrics.MAE(), truth, predicted)",
    "r2": "fed(metrics.R2(), truth, predicted)",
    "r2_constant": "fed(metrics.R2(), truth, predicted)",
    "median": "rows(stats.Quantile(0.5), numbers)",
    "variance": "rows(stats.Var(), numbers)",
    "skewness": "rows(stats.Skew(), numbers)",
}
