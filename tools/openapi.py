"""Print the OpenAPI document of the server, from which the types of the web app are generated.

python -m tools.openapi > openapi.json
"""

import json

from fastapi import FastAPI

from clew.server.kubeflow.routes import router as kubeflow
from clew.server.v1 import routes


def main() -> None:
    app = FastAPI(openapi_url=None)
    routes.include(app)
    app.include_router(kubeflow)
    print(json.dumps(routes.openapi_document(app), indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
