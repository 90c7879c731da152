"""The Kubernetes API, as the caller of a command may use it."""

import contextlib
import ssl
import time
from collections.abc import Sequence
from typing import Self
from urllib.parse import urlencode, urlsplit, urlunsplit

import httpx2
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from clew.errors import NotFound, Unavailable
from clew.kube.backend.api_errors import explain_failure, explain_refusal
from clew.kube.backend.rest_client import RestClient, resource_path
from clew.kube.objects import Json, Key, Object, name_of, namespace_of

_MAX_MESSAGE = 16 << 20
_OPEN_SECONDS = 30.0
_OPEN_TRIES = 3
"""A kubelet that is busy closes connections before they are open."""
_RETRY_SECONDS = 1.0
_METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}


class ScratchClient(RestClient):
    """Use it in a `with`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find(self, key: Key) -> Json | None:
        """None if there is none."""
        try:
            return self.get(key)
        except NotFound:
            return None

    def find_metadata(self, key: Key) -> Json | None:
        """An object without its content; None if there is none."""
        path = resource_path(key.kind, key.namespace, key.name)
        try:
            return self._send("GET", path, key.kind, key.name, headers=_METADATA)
        except NotFound:
            return None

    def await_change(self, found: Object, seconds: float) -> None:
        """Return when an object may have changed since it was read, or after some seconds."""
        params = {
            "watch": "true",
            "fieldSelector": f"metadata.name={name_of(found)}",
            "resourceVersion": found["metadata"]["resourceVersion"],
            "timeoutSeconds": str(max(int(seconds), 1)),
        }
        path = resource_path(str(found["kind"]), namespace_of(found))
        limit = httpx2.Timeout(10.0, read=seconds + 10.0)
        with (
            contextlib.suppress(httpx2.HTTPError, StopIteration),
            self._http.stream("GET", path, params=params, timeout=limit) as answer,
        ):
            next(answer.iter_lines())

    def connect_websocket(
        self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> ClientConnection:
        request = self._http.build_request("GET", f"{path}?{urlencode(query)}")
        if self._http.auth is not None:
            request = next(self._http.auth.sync_auth_flow(request))
        address = urlsplit(str(request.url))
        scheme = {"https": "wss", "http": "ws"}[address.scheme]
        token = request.headers.get("authorization")
        for tries_left in reversed(range(_OPEN_TRIES)):
            try:
                return connect(
                    urlunsplit(address._replace(scheme=scheme)),
                    ssl=self._ssl_context() if scheme == "wss" else None,
                    subprotocols=[Subprotocol(one) for one in protocols],
                    additional_headers={"Authorization": token} if token else None,
                    user_agent_header=None,
                    compression=None,
                    max_size=_MAX_MESSAGE,
                    open_timeout=_OPEN_SECONDS,
                    ping_interval=None,  # the API server answers none
                )
            except InvalidStatus as error:
                body = {"message": error.response.body.decode(errors="replace")[:500]}
                raise explain_refusal(error.response.status_code, body, "Pod") from error
            except (OSError, WebSocketException) as error:
                if not tries_left:
                    raise Unavailable(
                        f"the Kubernetes API does not open a connection to a Pod: {error}",
                        hint="run the command again",
                    ) from error
                time.sleep(_RETRY_SECONDS)
        raise AssertionError("unreachable")

    def _ssl_context(self) -> ssl.SSLContext:
        user = self._config.user or User()
        try:
            return verify_cluster(self._config.cluster, user, self._config.abs_file)
        except ConfigError as error:
            raise explain_failure(error) from error
