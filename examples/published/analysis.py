"""Does a new way of teaching help? The probit model of Spector and Mazzeo (1980), fitted again.

Code and data are statsmodels' own: 32 students of economics, their grade point average, a test
at the beginning of the term, whether they were taught in the new way (PSI), and whether their
grade improved.
"""

from __future__ import annotations

import json
from pathlib import Path

import statsmodels.api as sm

FORMULA = ("const", "GPA", "TUCE", "PSI")

data = sm.datasets.spector.load_pandas()
model = sm.Probit(data.endog, sm.add_constant(data.exog)).fit(disp=False)
effects = model.get_margeff(at="mean").margeff

result = {
    "students": int(model.nobs),
    "coefficients": {name: round(float(model.params[name]), 4) for name in FORMULA},
    "effect of PSI at the mean": round(float(effects[FORMULA.index("PSI") - 1]), 4),
    "log-likelihood": round(float(model.llf), 4),
}
Path("result.json").write_text(json.dumps(result, indent=2) + "\n")
print(model.summary2().tables[1].round(4).to_string())
