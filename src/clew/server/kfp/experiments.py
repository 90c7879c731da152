"""`/experiments`."""

from starlette.responses import Response

from clew.db.connection_interface import Row
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue.list_fields import EXPERIMENTS
from clew.server.catalogue.pipelines import experiments
from clew.server.catalogue.pipelines.experiments import Experiment
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, Fields, ServiceDep
from clew.server.kfp.responses import Document, GraphRouter, json_response, without_empty

router = GraphRouter()


def _experiment_response(experiment: Experiment) -> Document:
    return without_empty(
        experiment_id=experiment.id,
        display_name=experiment.name,
        description=experiment.description,
        created_at=format_time(experiment.created),
        last_run_created_at=format_time(experiment.last_run),
        storage_state="ARCHIVED" if experiment.archived else "AVAILABLE",
    )


def _list_response(rows: list[Row]) -> list[Document]:
    return [_experiment_response(experiments.from_row(row)) for row in rows]


@router.post("/experiments")
def create(service: ServiceDep, body: BodyFields) -> Response:
    name, description = body.required_name("display_name"), body.text("description")
    with service.graph() as graph:
        experiment_id = experiments.create(graph, name, description)
        return json_response(_experiment_response(experiments.get(graph, experiment_id)))


@router.route_to_graph("GET", "/experiments")
def list_all(graph: Graph, params: Fields) -> Document:
    return list_page(graph, EXPERIMENTS, params, "experiments", _list_response)


@router.route_to_graph("GET", "/experiments/{experiment_id}")
def get(graph: Graph, params: Fields) -> Document:
    return _experiment_response(experiments.get(graph, params.id("experiment_id")))


@router.route_to_graph("DELETE", "/experiments/{experiment_id}")
def delete(graph: Graph, params: Fields) -> None:
    experiments.delete(graph, params.id("experiment_id"))


@router.route_to_graph("POST", "/experiments/{experiment_id}:archive")
def archive(graph: Graph, params: Fields) -> None:
    experiments.archive(graph, params.id("experiment_id"))


@router.route_to_graph("POST", "/experiments/{experiment_id}:unarchive")
def unarchive(graph: Graph, params: Fields) -> None:
    experiments.unarchive(graph, params.id("experiment_id"))
