"""A spec is kept as long as something is of it, however many come and go at once."""

import threading
from pathlib import Path

from clew.db import connect
from clew.pipelines.runs import pipeline_specs, run_queue
from clew.prov.graph import Graph

WORKERS, TURNS = 6, 40


def test_deleting_one_user_of_a_spec_keeps_it_for_others(
    database: tuple[Path, str | None],
) -> None:
    path, address = database
    kept: list[str] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with connect(path, address=address) as connection:
                graph = Graph(connection, "p" * 32)
                for turn in range(TURNS):
                    made = run_queue.queue_run(
                        graph, run_queue.NewRun(experiment="x", name="r", spec="{}")
                    )
                    assert (
                        pipeline_specs.text_of(graph, run_queue.get_request(graph, made).spec)
                        == "{}"
                    )
                    if turn == TURNS - 1:
                        kept.append(made)
                    else:
                        run_queue.delete_request(graph, made)
        except BaseException as error:
            failed.append(error)

    connect(path, address=address).close()  # the tables are made once
    crowd = [threading.Thread(target=work) for _ in range(WORKERS)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert failed == []
    with connect(path, address=address) as connection:
        graph = Graph(connection, "p" * 32)
        assert {
            pipeline_specs.text_of(graph, run_queue.get_request(graph, run).spec) for run in kept
        } == {"{}"}
        for run in kept:
            run_queue.delete_request(graph, run)
        assert connection.row("SELECT COUNT(*) FROM spec") == (0,)
