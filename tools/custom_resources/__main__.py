"""Write the definitions."""

from pathlib import Path

from tools.custom_resources.definitions import documents

CRDS = Path(__file__).parents[2] / "deploy" / "crds"

CRDS.mkdir(parents=True, exist_ok=True)
for name, text in documents().items():
    (CRDS / name).write_text(text)
    print(CRDS / name)
