"""The stock `kfp.Client`, unmodified, against a server that really runs."""

import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.driver import Project
from tests.local.server import Server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import kfp
    import kfp_server_api
    from kfp.compiler import Compiler
    from kfp.kubeflow_client import KubernetesBackendConfig, PipelinesClient
    from tests.local.programs import asked
from tests.wait import wait_until

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
PATIENCE = 120
ENDS = {"SUCCEEDED", "FAILED"}


@pytest.fixture(scope="module")
def client(server: Server) -> kfp.Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kfp.Client(host=server.address, existing_token=server.token)


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A package of it, for what is not about packages."""
    target = tmp_path_factory.mktemp("compiled") / "adding.yaml"
    Compiler().compile(asked.adding, str(target))
    return str(target)


@pytest.fixture
def package(tmp_path: Path) -> Callable[[Any], str]:
    def compile_(pipeline: Any) -> str:
        target = tmp_path / f"{pipeline.name}.yaml"
        Compiler().compile(pipeline, str(target))
        return str(target)

    return compile_


def ended(client: kfp.Client, run_id: str) -> Any:
    """The client's own waiting, as often as a test can bear."""
    return client.wait_for_run_completion(run_id, timeout=PATIENCE, sleep_duration=0.1)


def refused(action: Callable[[], Any]) -> tuple[int, str]:
    """The status with which the server refuses, and what it says."""
    with pytest.raises(kfp_server_api.ApiException) as error:
        action()
    return error.value.status, str(error.value.body)


def test_a_run_of_a_function_is_waited_for(client: kfp.Client) -> None:
    made = client.create_run_from_pipeline_func(
        asked.adding, arguments={"a": 40}, run_name="forty", experiment_name="sums"
    )
    found = ended(client, made.run_id)
    assert (found.state, found.display_name, found.error) == ("SUCCEEDED", "forty", None)
    assert found.runtime_config.parameters == {"a": 40}
    assert found.pipeline_spec["pipelineInfo"]["name"] == "adding"
    assert [one.state for one in found.state_history] == ["PENDING", "RUNNING", "SUCCEEDED"]
    assert found.created_at <= found.finished_at
    assert client.get_experiment(experiment_id=found.experiment_id).display_name == "sums"
    tasks = {one.task_id.partition("/")[2]: one for one in found.run_details.task_details}
    assert set(tasks) == {
        "add", "for-loop-2", "for-loop-2/0", "for-loop-2/0/add-2", "for-loop-2/1",
        "for-loop-2/1/add-2",
    }  # fmt: skip
    assert {one.state for one in tasks.values()} == {"SUCCEEDED"}
    assert tasks["for-loop-2/1/add-2"].display_name == "add-2"
    assert tasks["for-loop-2/1/add-2"].parent_task_id == tasks["for-loop-2/1"].task_id
    assert sorted(one.task_id for one in tasks["for-loop-2"].child_tasks) == [
        tasks["for-loop-2/0"].task_id, tasks["for-loop-2/1"].task_id,
    ]  # fmt: skip
    first = tasks["add"]
    assert (first.display_name, first.parent_task_id) == ("add", None)
    assert (first.state, first.run_id) == ("SUCCEEDED", made.run_id)
    assert first.start_time <= first.end_time
    (told,) = first.outputs["told"].artifact_ids
    assert told == f"{first.task_id}:told"
    assert client.terminate_run(made.run_id) == {}
    assert client.get_run(made.run_id) == found  # it is over, and nothing changes


def test_every_kind_of_package_is_uploaded_and_one_is_run(
    client: kfp.Client, adding: str, tmp_path: Path
) -> None:
    plain = Path(adding)
    for kind in ("yaml", "yml", "zip", "tar.gz", "tgz"):
        target = tmp_path / f"packed.{kind}"
        if kind == "zip":
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(plain, "adding.yaml")
        elif kind in ("tar.gz", "tgz"):
            with tarfile.open(target, "w:gz") as archive:
                archive.add(plain, "pipeline.yaml")
        else:
            target.write_bytes(plain.read_bytes())
        made = client.upload_pipeline(str(target), pipeline_name=f"by {kind}", description="why")
        assert (made.name, made.display_name, made.description) == (*[f"by {kind}"] * 2, "why")
        (version,) = client.list_pipeline_versions(made.pipeline_id).pipeline_versions
        assert version.pipeline_spec["root"]["dag"]["tasks"].keys() == {"add", "for-loop-2"}
    which = {"pipeline_id": made.pipeline_id, "version_id": version.pipeline_version_id}
    experiment = client.create_experiment("packages").experiment_id
    run = client.run_pipeline(experiment, "of a package", **which)
    assert run.pipeline_version_reference.pipeline_id == which["pipeline_id"]
    assert run.pipeline_version_reference.pipeline_version_id == which["version_id"]
    assert ended(client, run.run_id).state == "SUCCEEDED"


def test_pipelines_and_versions(client: kfp.Client, package: Callable[[Any], str]) -> None:
    made = client.upload_pipeline(package(asked.adding), pipeline_name="book")
    assert refused(lambda: client.upload_pipeline(package(asked.adding), "book"))[0] == 409
    assert client.get_pipeline_id("book") == made.pipeline_id
    assert client.get_pipeline_id("no such book") is None
    assert client.get_pipeline(made.pipeline_id).display_name == "book"
    second = client.upload_pipeline_version(
        package(asked.refusing), "second edition", pipeline_name="book", description="worse"
    )
    assert (second.pipeline_id, second.display_name) == (made.pipeline_id, "second edition")
    again = client.upload_pipeline_version_from_pipeline_func(
        asked.adding, "third edition", pipeline_id=made.pipeline_id
    )
    found = client.list_pipeline_versions(made.pipeline_id, sort_by="created_at desc")
    assert [one.display_name for one in found.pipeline_versions] == [
        "third edition", "second edition", "book",
    ]  # fmt: skip
    assert found.total_size == 3
    got = client.get_pipeline_version(made.pipeline_id, second.pipeline_version_id)
    assert got.pipeline_spec["pipelineInfo"]["name"] == "refusing"
    status, said = refused(lambda: client.delete_pipeline(made.pipeline_id))
    assert (status, "versions" in said) == (400, True)
    for version in (*found.pipeline_versions[1:], again):
        client.delete_pipeline_version(made.pipeline_id, version.pipeline_version_id)
    assert client.list_pipeline_versions(made.pipeline_id).pipeline_versions is None
    client.delete_pipeline(made.pipeline_id)
    assert refused(lambda: client.get_pipeline(made.pipeline_id))[0] == 404
    assert client.get_pipeline_id("book") is None


def test_pages_are_followed_to_their_end(client: kfp.Client) -> None:
    names = [f"page {number}" for number in range(5)]
    for name in names:
        client.create_experiment(name)
    wanted = '{"predicates": [{"operation": 9, "key": "display_name", "stringValue": "page "}]}'
    seen, token = [], ""
    while True:
        page = client.list_experiments(token, 2, "display_name desc", filter=wanted)
        seen += [one.display_name for one in page.experiments]
        assert page.total_size == 5
        if not (token := page.next_page_token):
            break
    assert seen == names[::-1]


def test_a_run_that_fails_says_why(client: kfp.Client) -> None:
    made = client.create_run_from_pipeline_func(asked.refusing, arguments={"text": "no, never"})
    found = ended(client, made.run_id)
    assert found.state == "FAILED"
    assert "refuse" in found.error.message
    (task,) = found.run_details.task_details
    assert (task.state, "no, never" in task.error.message) == ("FAILED", True)


def test_a_pipeline_that_cannot_run_here_fails_as_a_run(client: kfp.Client) -> None:
    found = ended(client, client.create_run_from_pipeline_func(asked.far_away, {}).run_id)
    assert found.state == "FAILED"
    assert "image" in found.error.message


def test_a_platform_spec_is_kept(client: kfp.Client, tmp_path: Path) -> None:
    package = str(tmp_path / "secretive.yaml")
    Compiler().compile(asked.secretive, package)
    made = client.create_run_from_pipeline_package(package, {})
    spec = client.get_run(made.run_id).pipeline_spec
    assert spec["pipeline_spec"]["pipelineInfo"]["name"] == "secretive"
    (asks,) = spec["platform_spec"]["platforms"]["kubernetes"]["deploymentSpec"][
        "executors"
    ].values()
    assert asks["secretAsEnv"][0]["secretName"] == "keys"
    uploaded = client.upload_pipeline(package)
    (version,) = client.list_pipeline_versions(uploaded.pipeline_id).pipeline_versions
    assert version.pipeline_spec == spec
    assert ended(client, made.run_id).state in ENDS


def test_a_run_is_terminated_and_retried(client: kfp.Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    made = client.create_run_from_pipeline_func(asked.waiting, {"gate": str(gate)})
    wait_until("the start of the task", lambda: gate.with_name("gate.begun").exists())
    client.terminate_run(made.run_id)
    assert client.get_run(made.run_id).state in ("CANCELING", "FAILED")
    found = ended(client, made.run_id)
    assert (found.state, "terminated" in found.error.message) == ("FAILED", True)
    assert client.terminate_run(made.run_id) == {}
    gate.touch()
    client._run_api.run_service_retry_run(made.run_id)
    assert ended(client, made.run_id).state == "SUCCEEDED"
    client.delete_run(made.run_id)
    assert refused(lambda: client.get_run(made.run_id))[0] == 404


def test_deleting_a_running_run_terminates_it(
    client: kfp.Client, served: Project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    made = client.create_run_from_pipeline_func(asked.waiting, {"gate": str(gate)})
    wait_until("the start of the task", lambda: gate.with_name("gate.begun").exists())
    assert client.delete_run(made.run_id) == {}
    assert refused(lambda: client.get_run(made.run_id))[0] == 404
    assert made.run_id not in [one.run_id for one in client.list_runs().runs or ()]
    with served.opened() as opened:
        wait_until(
            "the end of the run", lambda: opened.pipelines.show(made.run_id).state == "canceled"
        )


def test_an_archived_experiment_takes_its_runs_along(client: kfp.Client, adding: str) -> None:
    experiment = client.create_experiment("old", description="what was").experiment_id
    assert client.create_experiment("old").experiment_id == experiment
    run = client.run_pipeline(experiment, "one", pipeline_package_path=adding)
    assert ended(client, run.run_id).state == "SUCCEEDED"
    often = client.create_recurring_run(
        experiment, "often", cron_expression="0 0 0 1 1 *", pipeline_package_path=adding
    )
    client.archive_experiment(experiment)
    assert client.get_experiment(experiment).storage_state == "ARCHIVED"
    assert client.get_run(run.run_id).storage_state == "ARCHIVED"
    assert client.get_recurring_run(often.recurring_run_id).status == "DISABLED"
    more = {"pipeline_package_path": adding}
    assert refused(lambda: client.run_pipeline(experiment, "two", **more))[0] == 400
    assert refused(lambda: client.enable_recurring_run(often.recurring_run_id))[0] == 400
    assert refused(lambda: client.unarchive_run(run.run_id))[0] == 400
    client.unarchive_experiment(experiment)
    assert client.get_run(run.run_id).storage_state == "ARCHIVED"
    client.unarchive_run(run.run_id)
    assert client.get_run(run.run_id).storage_state == "AVAILABLE"
    client.archive_run(run.run_id)
    assert client.get_run(run.run_id).storage_state == "ARCHIVED"
    client.delete_experiment(experiment)
    assert refused(lambda: client.get_experiment(experiment))[0] == 404
    assert client.get_run(run.run_id).state == "SUCCEEDED"


def test_runs_without_an_experiment_are_in_the_default_one(client: kfp.Client, adding: str) -> None:
    spec = yaml.safe_load(Path(adding).read_text())
    made = client._run_api.run_service_create_run(
        kfp_server_api.V2beta1Run(display_name="alone", pipeline_spec=spec)
    )
    default = client.get_experiment(experiment_name="Default")
    assert made.experiment_id == default.experiment_id
    found = client.list_runs(experiment_id=default.experiment_id, sort_by="created_at desc")
    assert made.run_id in [one.run_id for one in found.runs]
    assert ended(client, made.run_id).state == "SUCCEEDED"
    assert client.get_experiment(default.experiment_id).last_run_created_at >= made.created_at


def test_a_recurring_run_runs_until_it_is_disabled(client: kfp.Client, adding: str) -> None:
    experiment = client.create_experiment("ticking").experiment_id
    made = client.create_recurring_run(
        experiment,
        "every second",
        description="it ticks",
        interval_second=1,
        max_concurrency=2,
        no_catchup=True,
        params={"a": 7},
        pipeline_package_path=adding,
    )
    assert (made.status, made.mode, made.max_concurrency) == ("ENABLED", "ENABLE", "2")
    assert made.trigger.periodic_schedule.interval_second == "1"
    runs = wait_until(
        "a run",
        lambda: [
            one
            for one in client.list_runs(experiment_id=experiment).runs or []
            if one.state == "SUCCEEDED"
        ],
    )
    assert runs[0].recurring_run_id == made.recurring_run_id
    assert runs[0].runtime_config.parameters == {"a": 7}
    assert (runs[0].scheduled_at - made.created_at).total_seconds() > 0
    client.disable_recurring_run(made.recurring_run_id)
    found = client.get_recurring_run(made.recurring_run_id)
    assert (found.status, found.mode, found.no_catchup) == ("DISABLED", "DISABLE", True)
    (listed,) = client.list_recurring_runs(experiment_id=experiment).recurring_runs
    assert listed.display_name == "every second"
    client.enable_recurring_run(made.recurring_run_id)
    assert client.get_recurring_run(made.recurring_run_id).status == "ENABLED"
    client.delete_recurring_run(made.recurring_run_id)
    assert refused(lambda: client.get_recurring_run(made.recurring_run_id))[0] == 404
    assert client.list_recurring_runs(experiment_id=experiment).recurring_runs is None


def test_a_recurring_run_of_a_version(client: kfp.Client, package: Callable[[Any], str]) -> None:
    pipeline = client.upload_pipeline(package(asked.adding), pipeline_name="by the clock")
    (version,) = client.list_pipeline_versions(pipeline.pipeline_id).pipeline_versions
    which = {"pipeline_id": pipeline.pipeline_id, "version_id": version.pipeline_version_id}
    experiment = client.create_experiment("clock").experiment_id
    made = client.create_recurring_run(
        experiment, "each second", cron_expression="* * * * * ?", params={"a": 1}, **which
    )
    assert made.trigger.cron_schedule.cron == "* * * * * ?"
    assert made.pipeline_version_reference.pipeline_version_id == version.pipeline_version_id
    (run, *_) = wait_until("a run", lambda: client.list_runs(experiment_id=experiment).runs)
    client.delete_recurring_run(made.recurring_run_id)
    found = ended(client, run.run_id)
    assert found.state == "SUCCEEDED"
    assert found.scheduled_at.microsecond == 0
    assert found.pipeline_version_reference == made.pipeline_version_reference


def test_the_api_answers_below_pipeline_too(server: Server) -> None:
    client = kfp.Client(host=f"{server.address}/pipeline", existing_token=server.token)
    assert client.get_kfp_healthz().multi_user is False
    assert client.list_pipelines().total_size is not None


def test_the_client_of_the_kubeflow_sdk(server: Server, package: Callable[[Any], str]) -> None:
    config = KubernetesBackendConfig(base_url=server.address, user_token=server.token)
    client = PipelinesClient(config)
    version = client.upload_pipeline(package(asked.adding), name="sdk", version="v1")
    assert version.display_name == "v1"
    client.upload_pipeline(package(asked.adding), name="sdk", version="v2")
    assert client.get_pipeline_version("sdk", "v1").display_name == "v1"
    client.create_experiment("sdk")
    run = client.run("sdk", params={"a": 3}, experiment="sdk")
    found = client.wait_for_run_status(run.run_id, timeout=PATIENCE, polling_interval=1)
    assert found.state == "SUCCEEDED"
    assert run.run_id in [
        one.run_id for one in client.list_runs(experiment="sdk", status="succeeded").runs
    ]
    client.delete_pipeline("sdk", force=True)
    assert client.get_run(run.run_id).state == "SUCCEEDED"
