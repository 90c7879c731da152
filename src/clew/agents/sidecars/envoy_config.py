"""The configuration of Envoy in a sidecar, as JSON.

Every outbound TCP connection of the Pod is redirected here. Requests that are readable are logged,
and everything goes on to where the client wanted it, unmodified: no rewritten host or path, which
would break signatures, no timeouts, no retries, no limits on how many connections there are. What
is not HTTP, or is TLS, passes as bytes.

The configuration is built as a document, never as text: a host name from an annotation is a value
in it, whatever it contains.
"""

import json
from typing import Any, NamedTuple

from clew.agents.sidecars.access_log_format import connection_loggers, http_loggers, metadata_filter

PORT = 15001
FLUSH_MILLISECONDS = 500
SERVER_FIRST_PORTS = (21, 22, 25, 110, 143, 587, 3306)
"""Here the server speaks first: waiting for the client would delay every connection."""

_HTTP_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = "envoy.extensions.filters.http.router.v3.Router"
_DETECTION_SECONDS = 1
_BUFFER_BYTES = 65536
_NO_LIMIT = 2**32 - 1
_MAX_HEADERS_KB = 8192
_MAX_REGEX = 5000
_CA_FILE = "/etc/ssl/certs/ca-certificates.crt"


class Upstream(NamedTuple):
    """A host to which the sidecar opens TLS for clients that speak HTTP to it."""

    host: str
    port: int = 443


class EnvoyOptions(NamedTuple):
    log: str
    """The path of the access log."""
    tls_hosts: tuple[Upstream, ...] = ()
    ca_file: str = _CA_FILE
    port: int = PORT
    forward_to: tuple[str, int] | None = None
    """Where all connections go, instead of to where the client wanted them: for clients that are
    configured to connect to the sidecar itself."""
    addresses: tuple[str, ...] = ("127.0.0.1",)


def write_config(options: EnvoyOptions) -> str:
    return json.dumps(build_config(options), separators=(",", ":"), sort_keys=True)


def build_config(options: EnvoyOptions) -> dict[str, Any]:
    return {
        "layered_runtime": {
            "layers": [
                {
                    "name": "static",
                    "static_layer": {"re2": {"max_program_size": {"error_level": _MAX_REGEX}}},
                }
            ]
        },
        "static_resources": {
            "listeners": [
                _listener(f"outbound-{number}", address, options)
                for number, address in enumerate(options.addresses)
            ],
            "clusters": [
                _plain_cluster(options),
                *(_tls_cluster(number, options) for number in range(len(options.tls_hosts))),
            ],
        },
    }


def _listener(name: str, address: str, options: EnvoyOptions) -> dict[str, Any]:
    return {
        "name": name,
        "address": {"socket_address": {"address": address, "port_value": options.port}},
        "per_connection_buffer_limit_bytes": _BUFFER_BYTES,
        "listener_filters": [
            _listener_filter("original_dst", "OriginalDst", detects=False),
            _listener_filter("tls_inspector", "TlsInspector", detects=True),
            _listener_filter("http_inspector", "HttpInspector", detects=True),
        ],
        "listener_filters_timeout": f"{_DETECTION_SECONDS}s",
        "continue_on_listener_filters_timeout": True,
        "filter_chains": [
            {
                "filter_chain_match": {"transport_protocol": "tls"},
                "filters": [_tcp_proxy(options, tls=True)],
            },
            {
                "filter_chain_match": {"application_protocols": ["http/1.0", "http/1.1", "h2c"]},
                "filters": [_http_manager(options)],
            },
        ],
        "default_filter_chain": {"filters": [_tcp_proxy(options, tls=False)]},
    }


def _listener_filter(name: str, kind: str, *, detects: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": f"envoy.filters.listener.{name}",
        "typed_config": {
            "@type": f"type.googleapis.com/envoy.extensions.filters.listener.{name}.v3.{kind}"
        },
    }
    if detects:
        ports = [
            {"destination_port_range": {"start": port, "end": port + 1}}
            for port in SERVER_FIRST_PORTS
        ]
        found["filter_disabled"] = {"or_match": {"rules": ports}}
    return found


def _tcp_proxy(options: EnvoyOptions, *, tls: bool) -> dict[str, Any]:
    kind = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
    return {
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": f"type.googleapis.com/{kind}",
            "stat_prefix": "tls" if tls else "tcp",
            "cluster": "outbound",
            "idle_timeout": "0s",
            "access_log": connection_loggers(options.log, tls=tls),
            "access_log_options": {"flush_access_log_on_connected": True},
        },
    }


def _http_manager(options: EnvoyOptions) -> dict[str, Any]:
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": f"type.googleapis.com/{_HTTP_MANAGER}",
            "stat_prefix": "http",
            "codec_type": "AUTO",
            "generate_request_id": False,
            "server_header_transformation": "PASS_THROUGH",
            "skip_xff_append": True,
            "proxy_100_continue": True,
            "stream_idle_timeout": "0s",
            "request_timeout": "0s",
            "normalize_path": False,
            "merge_slashes": False,
            "path_with_escaped_slashes_action": "KEEP_UNCHANGED",
            "max_request_headers_kb": _MAX_HEADERS_KB,
            "common_http_protocol_options": {"idle_timeout": "0s", "max_headers_count": 10000},
            "http_protocol_options": {
                "accept_http_10": True,
                "default_host_for_http_10": "unknown.invalid",
                "enable_trailers": True,
                **_keep_header_case(),
            },
            "upgrade_configs": [{"upgrade_type": "websocket"}],
            "access_log": http_loggers(options.log),
            "access_log_options": {"access_log_flush_interval": "60s"},
            "http_filters": [
                metadata_filter(),
                {
                    "name": "envoy.filters.http.router",
                    "typed_config": {
                        "@type": f"type.googleapis.com/{_ROUTER}",
                        "suppress_envoy_headers": True,
                    },
                },
            ],
            "route_config": _routes(options),
        },
    }


def _routes(options: EnvoyOptions) -> dict[str, Any]:
    def route(cluster: str) -> list[dict[str, Any]]:
        return [{"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}]

    hosts = [
        {
            "name": f"tls-{number}",
            "domains": [upstream.host, f"*.{upstream.host}"],
            "routes": route(f"tls-{number}"),
        }
        for number, upstream in enumerate(options.tls_hosts)
    ]
    return {
        "name": "outbound",
        "ignore_port_in_host_matching": True,
        "virtual_hosts": [
            *hosts,
            {"name": "others", "domains": ["*"], "routes": route("outbound")},
        ],
    }


def _plain_cluster(options: EnvoyOptions) -> dict[str, Any]:
    protocols = {"use_downstream_protocol_config": {"http_protocol_options": _upstream_http()}}
    return {**_cluster("outbound", options, None), **_protocol_options(protocols)}


def _tls_cluster(number: int, options: EnvoyOptions) -> dict[str, Any]:
    upstream = options.tls_hosts[number]
    kind = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    protocols = {
        "explicit_http_config": {"http_protocol_options": _upstream_http()},
        "upstream_http_protocol_options": {"auto_sni": True, "auto_san_validation": True},
    }
    return {
        **_cluster(f"tls-{number}", options, upstream.port),
        **_protocol_options(protocols),
        "transport_socket": {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": f"type.googleapis.com/{kind}",
                "common_tls_context": {
                    "validation_context": {"trusted_ca": {"filename": options.ca_file}}
                },
            },
        },
    }


def _cluster(name: str, options: EnvoyOptions, port: int | None) -> dict[str, Any]:
    limits = dict.fromkeys(
        ("max_connections", "max_pending_requests", "max_requests", "max_retries"), _NO_LIMIT
    )
    cluster: dict[str, Any] = {
        "name": name,
        "connect_timeout": "300s",
        "per_connection_buffer_limit_bytes": _BUFFER_BYTES,
        "circuit_breakers": {"thresholds": [limits]},
        # A connection of the client is one connection to the server, as without the sidecar.
        "connection_pool_per_downstream_connection": True,
    }
    if options.forward_to is None:
        cluster |= {"type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED"}
        if port is not None:
            cluster["original_dst_lb_config"] = {"upstream_port_override": port}
        return cluster
    host, forwarded = options.forward_to
    address = {"socket_address": {"address": host, "port_value": forwarded}}
    cluster["load_assignment"] = {
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
    }
    return cluster


def _protocol_options(options: dict[str, Any]) -> dict[str, Any]:
    kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    common = {"common_http_protocol_options": {"idle_timeout": "0s", "max_headers_count": 10000}}
    typed = {"@type": f"type.googleapis.com/{kind}", **common, **options}
    return {"typed_extension_protocol_options": {kind: typed}}


def _upstream_http() -> dict[str, Any]:
    return {"enable_trailers": True, **_keep_header_case()}


def _keep_header_case() -> dict[str, Any]:
    kind = "envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig"
    return {
        "header_key_format": {
            "stateful_formatter": {
                "name": "preserve_case",
                "typed_config": {"@type": f"type.googleapis.com/{kind}"},
            }
        }
    }
