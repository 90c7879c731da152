"""Learn to tell from a reading whether the pump is about to fail."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier


def main(source: Path, settings: Path, target: Path) -> None:
    table = np.loadtxt(source, delimiter=",", skiprows=1)
    model = GradientBoostingClassifier(**json.loads(settings.read_text()))
    model.fit(table[:, :-1], table[:, -1])
    with target.open("wb") as file:
        pickle.dump(model, file)
    print(f"train: {model.n_estimators_} trees from {len(table)} rows")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
