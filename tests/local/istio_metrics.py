"""Counters of traffic that Prometheus reads, as the proxies of Istio write them."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

COUNTERS = ("istio_requests_total", "istio_tcp_received_bytes_total")
GATEWAY = {
    "reporter": "source",
    "source_workload": "istio-ingressgateway",
    "source_workload_namespace": "istio-system",
    "source_principal": "unknown",
    "source_app": "istio-ingressgateway",
    "source_version": "unknown",
    "source_cluster": "Kubernetes",
    "connection_security_policy": "unknown",
    "response_flags": "-",
}
HTTP = {"request_protocol": "http", "response_code": "200", "grpc_response_status": ""}
TCP = {"request_protocol": "tcp"}


class IstioMetrics:
    """Traffic counters that a Prometheus scrapes; scraping fails unless `samples`."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.samples = True
        self._series: dict[str, int] = {}

    def count(
        self, namespace: str, name: str, value: int, counter: str = COUNTERS[0], **labels: str
    ) -> None:
        given = {
            **GATEWAY,
            **(HTTP if counter == COUNTERS[0] else TCP),
            "destination_service": f"{name}.{namespace}.svc.cluster.local",
            "destination_service_name": name,
            "destination_service_namespace": namespace,
            "destination_workload": name,
            "destination_workload_namespace": namespace,
            **labels,
        }
        written = ",".join(f"{label}={json.dumps(said)}" for label, said in given.items())
        self._series = {**self._series, f"{counter}{{{written}}}": value}

    def page(self) -> str:
        lines = [f"# TYPE {counter} counter" for counter in COUNTERS]
        return "".join(f"{x}\n" for x in [*lines, *(f"{k} {v}" for k, v in self._series.items())])


@contextmanager
def serve_metrics() -> Iterator[IstioMetrics]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = istio.page().encode()
            self.send_response(200 if istio.samples else 503)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        istio = IstioMetrics(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield istio
        finally:
            server.shutdown()
            thread.join()
