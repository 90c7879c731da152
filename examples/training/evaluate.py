"""Judge the model by rows it has not seen."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, roc_auc_score


def main(model_file: Path, source: Path, target: Path) -> None:
    with model_file.open("rb") as file:
        model = pickle.load(file)
    table = np.loadtxt(source, delimiter=",", skiprows=1)
    chance = model.predict_proba(table[:, :-1])[:, 1]
    metrics = {
        "accuracy": round(float(accuracy_score(table[:, -1], chance > 0.5)), 4),
        "auc": round(float(roc_auc_score(table[:, -1], chance)), 4),
        "rows": len(table),
    }
    target.write_text(json.dumps(metrics, indent=2) + "\n")
    print(f"evaluate: accuracy {metrics['accuracy']}, AUC {metrics['auc']}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
