"""The log of a container as server-sent events, from a server that listens."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.unit.server.served_project import BEARER, Served
from tests.wait import wait_until

LOG = "/api/v1/namespaces/local/notebooks/prints/containers/prints/log"
STREAM = BEARER | {"Accept": "text/event-stream"}
Event = tuple[str, str | None, dict[str, str]]


@pytest.fixture(scope="module")
def address(api: TestClient, served: Served) -> Iterator[str]:
    """Of a server that listens, with the notebook `prints`."""
    notebooks = "/jupyter/api/namespaces/local/notebooks"
    assert api.post(notebooks, json={"name": "prints"}).is_success
    details = "/api/v1/namespaces/local/notebooks/prints"
    wait_until("it runs", lambda: api.get(details).json()["phase"] == "ready")
    config = uvicorn.Config(api.app, port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until("it listens", lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@contextmanager
def follow(address: str, **more: str) -> Iterator[Iterator[Event]]:
    """The events of a stream: kind, id, data."""
    with httpx2.stream("GET", address + LOG, headers=STREAM | more, timeout=60) as answer:
        assert answer.status_code == 200

        def events() -> Iterator[Event]:
            fields: dict[str, str] = {}
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "data" in fields:
                    yield fields.get("event", ""), fields.get("id"), json.loads(fields["data"])
                    fields = {}

        yield events()


def printed(served: Served, text: str) -> None:
    """What a process prints, its log has; so has what is appended to it here."""
    from clew.kube.objects import Key

    served.backend._supervisor.log(Key("Notebook", "local", "prints")).append(text.encode())


def read_until(events: Iterator[Event], text: str) -> tuple[str, str]:
    """All text up to `text`, and the last id."""
    found, last = "", ""
    for _, id_, data in events:
        found += data.get("text", "")
        last = id_ or last
        if text in found:
            return found, last
    pytest.fail(f"the stream ended after {found!r}")


def test_a_stream_continues_where_it_broke_off(address: str, served: Served) -> None:
    printed(served, "one\ntwo ü\n")
    with follow(address) as events:
        first, position = read_until(events, "two ü\n")
        assert "Jupyter Server" in first
        printed(served, "three\n")
        second, position = read_until(events, "three\n")
        assert second == "three\n"
    printed(served, "four\n")
    with follow(address, **{"Last-Event-ID": position}) as events:
        assert read_until(events, "four\n")[0] == "four\n"
    with follow(address, **{"Last-Event-ID": "nonsense"}) as events:
        assert read_until(events, "four\n")[0].startswith(first)


def test_it_begins_with_the_last_lines(address: str, served: Served) -> None:
    printed(served, "".join(f"line {n}\n" for n in range(50)))
    answer = httpx2.get(f"{address}{LOG}", headers=BEARER)
    assert answer.text.endswith("line 49\n")
    assert answer.headers["content-disposition"] == 'attachment; filename="prints.log"'
    with httpx2.stream("GET", f"{address}{LOG}?tail=2", headers=STREAM, timeout=60) as few:
        lines = few.iter_lines()
        data = next(line for line in lines if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: ")) == {"text": "line 48\nline 49\n"}


def test_a_container_that_is_not_there(address: str) -> None:
    wrong = LOG.replace("containers/prints", "containers/other")
    for headers in (STREAM, BEARER):
        answer = httpx2.get(address + wrong, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert answer.json()["detail"] == "one of prints"


def test_it_goes_on_over_a_restart_and_ends_when_it_is_stopped(
    address: str, api: TestClient, served: Served
) -> None:
    details = "/api/v1/namespaces/local/notebooks/prints"
    with follow(address) as events:
        read_until(events, "Jupyter Server")
        assert api.patch(details, json={"environment": {"A": "1"}}).is_success
        read_until(events, "starting")
        read_until(events, "Jupyter Server")
        assert api.patch(details, json={"stopped": True}).is_success
        for kind, _, _ in events:
            if kind == "end":
                return
        pytest.fail("the stream has no end")


def test_a_quiet_stream_ends_with_the_server(address: str, api: TestClient, served: Served) -> None:
    details = "/api/v1/namespaces/local/notebooks/prints"
    assert api.patch(details, json={"stopped": False}).is_success
    wait_until("it runs", lambda: api.get(details).json()["phase"] == "ready")
    with follow(address) as events:
        read_until(events, "Jupyter Server")
        served.service.feeds.end()
        assert all(kind != "end" for kind, _, _ in events)
