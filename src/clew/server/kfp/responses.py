"""JSON responses, which leave out empty fields as Kubeflow's do, and the router that sends them."""

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from clew.prov.graph import Graph
from clew.server.kfp.request_fields import Fields, ServiceDep, UrlFields

_EMPTY: tuple[object, ...] = (None, "", [], {})
Document = dict[str, Any]
Action = Callable[[Graph, Fields], Document | None]


class GraphRouter(APIRouter):
    """Routes to functions of the graph and the fields of the URL, which return a document."""

    def route_to_graph(
        self, method: str, path: str, *, wakes_workers: bool = False
    ) -> Callable[[Action], Action]:
        """`wakes_workers`: a worker may have something to do afterwards."""

        def add(action: Action) -> Action:
            def respond(service: ServiceDep, params: UrlFields) -> Response:
                with service.graph() as graph:
                    document = action(graph, params)
                if wakes_workers:
                    service.work_available.set()
                return json_response(document or {})

            self.add_api_route(path, respond, methods=[method])
            return action

        return add


def json_response(document: Document) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


def without_empty(**fields: Any) -> Document:
    """The fields that are not empty."""
    return {name: value for name, value in fields.items() if value not in _EMPTY}


def grpc_status(message: str | None) -> Document | None:
    """An error message as a gRPC status with the code ABORTED."""
    return None if message is None else {"code": 10, "message": message}
