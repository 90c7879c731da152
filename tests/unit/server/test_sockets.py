"""Which ports the server listens on."""

import socket

import pytest

from clew.errors import ClewError
from clew.server.sockets import bracket_ipv6, open_sockets

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        return int(found.getsockname()[1])


def test_the_first_pair_that_is_free_is_taken() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        opened = open_sockets(HOST, [port, 0], None, has_apps=True, command="clew up")
    ports = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    assert len(set(ports)) == 2
    assert port not in ports


def test_a_port_whose_neighbour_is_taken_is_not_kept() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = free_port()
        with pytest.raises(ClewError) as raised:
            open_sockets(HOST, [port], taken.getsockname()[1], has_apps=True, command="clew server")
        assert raised.value.hint == "clew server --apps-port 0"
    socket.create_server((HOST, port)).close()


def test_without_applications_there_is_one_socket() -> None:
    (only,) = open_sockets(HOST, [0], None, has_apps=False, command="clew server")
    only.close()
    with socket.create_server((HOST, 0)) as taken, pytest.raises(ClewError) as raised:
        open_sockets(HOST, [taken.getsockname()[1]], None, has_apps=False, command="clew up")
    assert raised.value.hint == "clew up --port 0"


def test_addresses_of_ipv6_have_brackets() -> None:
    assert bracket_ipv6("::1") == "[::1]"
    assert bracket_ipv6(HOST) == HOST
