"""Parse a compiled pipeline, one or two YAML documents, to the values of `ir`.

Everything is checked before anything runs: what is malformed or not supported is refused with its
place in the file. Nothing is ignored silently.
"""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from clew.bounded_documents import load_documents
from clew.errors import NotFound, UsageError
from clew.pipelines.spec import executors, ir, kubernetes_platform, resources, task_parser
from clew.pipelines.spec.document_part import InvalidPipeline, Part
from clew.pipelines.spec.values import TYPES, WrongType, convert

NO_POD_WARNING = "the settings that a task passes on to its Pod are empty: there is no Pod here"


def read_file(file: Path) -> str:
    """Read the text of a compiled pipeline."""
    try:
        return file.read_text()
    except FileNotFoundError as error:
        raise NotFound(f"no file {file}", hint="clew pipeline run FILE.yaml") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=f"ls -l {file}") from error


def parse_pipeline(text: str, name: str = "the pipeline") -> ir.Pipeline:
    """Parse YAML; `name` is used in messages."""
    try:
        found = load_documents(text)
    except UsageError as error:
        raise InvalidPipeline(f"{name}: {error.message}", hint="kfp dsl compile") from error
    if not found or not isinstance(found[0], dict) or "root" not in found[0]:
        raise InvalidPipeline(f"{name} is not a compiled pipeline", hint="kfp dsl compile")
    if len(found) > 2:
        raise InvalidPipeline(
            f"{name} has {len(found)} documents, more than two", hint="kfp dsl compile"
        )
    second = Part(found[1] if len(found) > 1 else None, "platform document")
    pipeline = _parse_document(Part(found[0], ""), second)
    if not pipeline.workspace and (
        place := next(kubernetes_platform.find_workspace_uses(found[0], ""), None)
    ):
        raise InvalidPipeline(
            f"{place}: the pipeline has no workspace", hint="dsl.WorkspaceConfig(size=…)"
        )
    return pipeline


def _parse_document(document: Part, second: Part) -> ir.Pipeline:
    document.allow_only(
        "pipelineInfo", "components", "deploymentSpec", "root", "schemaVersion", "sdkVersion",
        "defaultPipelineRoot",
    )  # fmt: skip
    if not str(document.get("schemaVersion", "")).startswith("2."):
        raise document.error("schemaVersion", "only 2.x is supported")
    known = dict(document.part("deploymentSpec").parts("executors"))
    warnings: list[str] = []
    if document.get("defaultPipelineRoot"):
        warnings.append("artifacts are stored in this project, not at the pipeline root")
    second.allow_only("platforms")
    second.part("platforms").allow_only("kubernetes")
    kubernetes = second.part("platforms").part("kubernetes")
    kubernetes.allow_only("deploymentSpec", "pipelineConfig")
    workspace, workspace_settings, deadline = kubernetes_platform.parse_pipeline_config(
        kubernetes.part("pipelineConfig")
    )
    settings = kubernetes.part("deploymentSpec").part("executors")
    kubernetes_platform.reject_unknown_executors(settings, set(known))
    components = {
        name: _parse_component(name, part, known, settings, warnings)
        for name, part in document.parts("components")
    }
    root = _parse_component("root", document.part("root"), known, settings, warnings)
    if not isinstance(root.body, ir.Dag):
        raise document.error("root", "has no tasks")
    root = kubernetes_platform.add_platform_inputs(root, components)
    components = {
        name: kubernetes_platform.add_platform_inputs(one, components)
        for name, one in components.items()
    }
    for component in (root, *components.values()):
        _check(component, components)
    name = document.part("pipelineInfo").string("name")
    unique = tuple(dict.fromkeys(warnings))
    return ir.Pipeline(name, root, components, unique, workspace, workspace_settings, deadline)


def _parse_component(
    name: str, part: Part, known: dict[str, Part], settings: Part, warnings: list[str]
) -> ir.Component:
    part.allow_only(
        "inputDefinitions", "outputDefinitions", "executorLabel", "dag", "taskConfigPassthroughs"
    )
    if part.get("taskConfigPassthroughs"):
        warnings.append(NO_POD_WARNING)
    outputs = _parse_slots(part.part("outputDefinitions"))
    slots = _parse_slots(part.part("inputDefinitions"))
    if "dag" in part:
        return ir.Component(name, slots, outputs, _parse_dag(part.part("dag")))
    label = part.string("executorLabel")
    if label not in known:
        raise part.error("executorLabel", f"there is no executor {label}")
    container = known[label].part("container")
    return ir.Component(
        name,
        slots,
        outputs,
        kubernetes_platform.parse_volume_claim(container)
        or executors.parse_executor(known[label], outputs, warnings),
        resources.parse_resources(container.part("resources")),
        kubernetes_platform.parse_platform(settings.part(label), warnings),
    )


def _parse_slots(part: Part) -> ir.Slots:
    part.allow_only("parameters", "artifacts")
    return ir.Slots(
        {name: _parse_parameter(found) for name, found in part.parts("parameters")},
        {name: _parse_artifact(found) for name, found in part.parts("artifacts")},
    )


def _parse_parameter(part: Part) -> ir.Parameter:
    part.allow_only("parameterType", "isOptional", "defaultValue", "description", "literals")
    kind = part.string("parameterType")
    if kind not in TYPES:
        raise part.error("parameterType", f"{kind} is not supported")
    try:
        literals = tuple(convert(one, kind) for one in part.get("literals") or ())
    except (TypeError, WrongType) as error:
        raise part.error("literals", str(error)) from error
    try:
        default = convert(part.get("defaultValue"), kind, literals)
    except WrongType as error:
        raise part.error("defaultValue", str(error)) from error
    optional = bool(part.get("isOptional")) or default is not None
    return ir.Parameter(kind, optional, default, literals)


def _parse_artifact(part: Part) -> ir.ArtifactSlot:
    part.allow_only("artifactType", "isArtifactList", "isOptional", "description")
    kind = part.part("artifactType")
    return ir.ArtifactSlot(
        title=str(kind.get("schemaTitle") or kind.get("instanceSchema") or "system.Artifact"),
        version=str(kind.get("schemaVersion") or "0.0.1"),
        many=bool(part.get("isArtifactList")),
        optional=bool(part.get("isOptional")),
    )


def _parse_dag(part: Part) -> ir.Dag:
    part.allow_only("tasks", "outputs")
    outputs = part.part("outputs")
    outputs.allow_only("parameters", "artifacts")
    return ir.Dag(
        {name: task_parser.parse_task(name, found) for name, found in part.parts("tasks")},
        {name: _parse_sources(found) for name, found in outputs.parts("parameters")},
        {name: _parse_artifact_sources(found) for name, found in outputs.parts("artifacts")},
    )


def _parse_sources(part: Part) -> tuple[ir.FromTask, ...]:
    part.allow_only("valueFromParameter", "valueFromOneof")
    if "valueFromParameter" in part:
        return (_parse_source(part.part("valueFromParameter"), "outputParameterKey"),)
    several = part.part("valueFromOneof")
    return _parse_selectors(several, "parameterSelectors", "outputParameterKey")


def _parse_artifact_sources(part: Part) -> tuple[ir.FromTask, ...]:
    part.allow_only("artifactSelectors")
    return _parse_selectors(part, "artifactSelectors", "outputArtifactKey")


def _parse_selectors(part: Part, name: str, key: str) -> tuple[ir.FromTask, ...]:
    found = part.get(name) or []
    if not isinstance(found, list) or not found:
        raise part.error(name, "names no source")
    return tuple(
        _parse_source(Part(one, f"{part.location}.{name}[{number}]"), key)
        for number, one in enumerate(found)
    )


def _parse_source(part: Part, key: str) -> ir.FromTask:
    part.allow_only("producerSubtask", key)
    return ir.FromTask(part.string("producerSubtask"), part.string(key))


def _check(component: ir.Component, components: dict[str, ir.Component]) -> None:
    """Refuse unknown names, and tasks that wait for each other."""
    dag = component.body
    if not isinstance(dag, ir.Dag):
        return
    place = "root.dag" if component.name == "root" else f"components.{component.name}.dag"
    for task in dag.tasks.values():
        where = f"{place}.tasks.{task.name}"
        if task.component not in components:
            raise InvalidPipeline(
                f"{where}: there is no component {task.component}", hint="recompile it"
            )
        if missing := sorted(task.after - dag.tasks.keys()):
            raise InvalidPipeline(f"{where}: there is no task {missing[0]}", hint="recompile it")
        inner = isinstance(components[task.component].body, ir.Dag)
        if task.loop and not inner:
            raise InvalidPipeline(
                f"{where}: a loop needs a component with tasks", hint="recompile it"
            )
    for sources in (*dag.parameters.values(), *dag.artifacts.values()):
        for source in sources:
            if source.task not in dag.tasks:
                raise InvalidPipeline(
                    f"{place}.outputs: no task {source.task}", hint="recompile it"
                )
    try:
        TopologicalSorter({task.name: task.after for task in dag.tasks.values()}).prepare()
    except CycleError as error:
        first, *others = error.args[1]
        why = f"waits for itself: {' > '.join([first, *others])}"
        raise InvalidPipeline(f"{place}.tasks.{first}: {why}", hint="recompile it") from error
