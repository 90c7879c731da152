"""What Envoy writes into the access log, and what never gets there.

A line has the path without its query, and of the query the few parameters that say which version
or part is meant. The header `authorization` and the query are read by expressions that keep the id
of the access key alone: a password, a signature and a token never reach the disk. Of a request that
is not one of S3, the line has the host and not the path: a path may itself be a secret.

The fields are those of `clew.witness.object_stores.access_log`.
"""

from typing import Any, Final

NAMESPACE: Final = "clew"
"""Of the metadata that the expressions below fill."""

_KEY_ID = "([A-Za-z0-9._-]+)"
_SIGNED_HEADER = (
    rf"(?s)^(?:AWS4-[A-Z0-9-]+ +Credential={_KEY_ID}/.*|AWS {_KEY_ID}:.*|.*)$",
    r"\1\2",
)
_SIGNED_QUERY = (
    rf"(?s)^(?:[^?]*\?(?:.*&)?(?:X-Amz-Credential|AWSAccessKeyId)={_KEY_ID}(?:(?:%2F|/|&).*)?|.*)$",
    r"\1",
)
_SUBRESOURCES = (
    *("accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption"),
    *("intelligent-tiering", "inventory", "legal-hold", "lifecycle", "location", "logging"),
    *("metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus"),
    *("publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select"),
    *("session", "tagging", "torrent", "uploads", "versioning", "versions", "website"),
)
_SUBRESOURCE = (
    rf"(?s)^(?:[^?]*\?(?:.*&)?({'|'.join(_SUBRESOURCES)})(?:[&=].*)?|.*)$",
    r"\1",
)

_IS_S3 = (
    "('authorization' in request.headers && ("
    "request.headers['authorization'].contains('/s3/aws4_request')"
    " || request.headers['authorization'].contains('/s3express/aws4_request')"
    " || request.headers['authorization'].startsWith('AWS ')))"
    " || request.path.contains('X-Amz-Signature=')"
    " || (request.path.contains('AWSAccessKeyId=') && request.path.contains('Signature='))"
    " || 'x-amz-request-id' in response.headers"
)

_CONNECTION = {
    "start": "%START_TIME(%s.%9f)%",
    "flags": "%RESPONSE_FLAGS%",
    "received": "%BYTES_RECEIVED%",
    "sent": "%BYTES_SENT%",
    "peer": "%DOWNSTREAM_LOCAL_ADDRESS%",
}
_TCP = {**_CONNECTION, "kind": "tcp"}
_TLS = {**_CONNECTION, "kind": "tls", "sni": "%REQUESTED_SERVER_NAME%"}
_HTTP = {
    **_CONNECTION,
    "kind": "http",
    "all_us": "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%",
    "host": "%REQ(:AUTHORITY):1024%",
    "method": "%REQ(:METHOD):32%",
    "status": "%RESPONSE_CODE%",
}
_S3 = {
    **_HTTP,
    "kind": "s3",
    "read_us": "%COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%",
    "answer_us": "%COMMON_DURATION(DS_RX_BEG:US_RX_BEG:us)%",
    "path": "%PATH(NQ:PATH)%",
    "subresource": f"%DYNAMIC_METADATA({NAMESPACE}:subresource)%",
    "version": "%QUERY_PARAM(versionId)%",
    "upload": "%QUERY_PARAM(uploadId)%",
    "part": "%QUERY_PARAM(partNumber)%",
    "prefix": "%QUERY_PARAM(prefix)%",
    "caller": f"%DYNAMIC_METADATA({NAMESPACE}:caller)%",
    "signed_by": f"%DYNAMIC_METADATA({NAMESPACE}:signed_by)%",
    "range": "%REQ(RANGE):1024%",
    "length": "%RESP(CONTENT-LENGTH):32%",
    "content_range": "%RESP(CONTENT-RANGE):128%",
    "etag": "%RESP(ETAG):256%",
    "answer_version": "%RESP(X-AMZ-VERSION-ID):1024%",
    "copy_source": "%REQ_WITHOUT_QUERY(X-AMZ-COPY-SOURCE):4096%",
    "copy_version": "%RESP(X-AMZ-COPY-SOURCE-VERSION-ID):1024%",
    "decoded_length": "%REQ(X-AMZ-DECODED-CONTENT-LENGTH):32%",
    "sha256": "%REQ(X-AMZ-CONTENT-SHA256):64%",
}


def http_loggers(path: str) -> list[dict[str, Any]]:
    """One logger for requests of S3, at their end; one for all others, every minute too."""
    s3 = _all_of(_expression(_IS_S3), _log_types("DownstreamEnd"))
    at_times = _log_types("DownstreamEnd", "DownstreamPeriodic")
    others = _all_of(_expression(f"!({_IS_S3})"), at_times)
    return [_logger(path, _S3, s3), _logger(path, _HTTP, others)]


def connection_loggers(path: str, *, tls: bool) -> list[dict[str, Any]]:
    return [_logger(path, _TLS if tls else _TCP)]


def metadata_filter() -> dict[str, Any]:
    """The filter that extracts loggable values from headers and queries that must not be logged."""
    rules = [
        _rule("authorization", "caller", _SIGNED_HEADER),
        _rule(":path", "signed_by", _SIGNED_QUERY),
        _rule(":path", "subresource", _SUBRESOURCE),
    ]
    return {
        "name": "envoy.filters.http.header_to_metadata",
        "typed_config": {
            "@type": "type.googleapis.com/"
            "envoy.extensions.filters.http.header_to_metadata.v3.Config",
            "request_rules": rules,
        },
    }


def _rule(header: str, key: str, rewrite: tuple[str, str]) -> dict[str, Any]:
    """The expression matches every value as a whole, so nothing else of it is left."""
    regex, substitution = rewrite
    return {
        "header": header,
        "on_header_present": {
            "metadata_namespace": NAMESPACE,
            "key": key,
            "type": "STRING",
            "regex_value_rewrite": {"pattern": {"regex": regex}, "substitution": substitution},
        },
        "remove": False,
    }


def _logger(
    path: str, fields: dict[str, str], filters: dict[str, Any] | None = None
) -> dict[str, Any]:
    without_query = {
        "name": "envoy.formatter.req_without_query",
        "typed_config": {
            "@type": "type.googleapis.com/"
            "envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery"
        },
    }
    logger: dict[str, Any] = {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": {
                "json_format": fields,
                "omit_empty_values": True,
                "formatters": [without_query],
            },
        },
    }
    return {**logger, "filter": filters} if filters else logger


def _all_of(*filters: dict[str, Any]) -> dict[str, Any]:
    return {"and_filter": {"filters": list(filters)}}


def _log_types(*types: str) -> dict[str, Any]:
    return {"log_type_filter": {"types": list(types)}}


def _expression(expression: str) -> dict[str, Any]:
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": {
                "@type": "type.googleapis.com/"
                "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
                "expression": expression,
            },
        }
    }
