"""Fit a few models, over and over: the kind of work a scientist waits for."""

import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

source = np.random.default_rng(3)
x = source.normal(size=(4000, 20))
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
for turn in range(int(sys.argv[1])):
    for model in (
        RandomForestClassifier(n_estimators=20, random_state=turn),
        HistGradientBoostingClassifier(max_iter=10, random_state=turn),
        LogisticRegression(),
    ):
        model.fit(x, y)
