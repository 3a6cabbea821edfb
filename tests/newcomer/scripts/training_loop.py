import numpy as np

from streammetrics import ExactAUC

labels, scores = np.load("labels.npy"), np.load("scores.npy")
metric, history = ExactAUC(), list[float]()
for epoch in range(3):
    metric.reset()
    for target, preds in zip(np.split(labels, 20), np.split(scores[epoch], 20), strict=True):
        metric.update(target, preds)
    metric.save("auc.state")
    history.append(metric.compute().auc)
resumed = ExactAUC.load("auc.state")
