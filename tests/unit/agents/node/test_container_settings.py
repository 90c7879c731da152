"""What a container will run as, from the runtime's files and the kernel's tables."""

import pytest

from clew.agents.node.containers.container_settings import (
    find_bundle,
    parse_config,
    parse_ipv4,
    parse_ipv6,
)

IPV4 = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.244.1.0/24 2 0 2
        |-- 10.244.1.0
           /24 link UNICAST
        |-- 10.244.1.7
           /32 host LOCAL
        |-- 10.244.1.255
           /32 link BROADCAST
Local:
     |-- 127.0.0.1
        /32 host LOCAL
"""
IPV6 = """fd000000000000000000000000000007 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
"""


@pytest.mark.parametrize(
    ("command", "bundle"),
    [
        ("runc --root /r create --bundle /run/x/abc --pid-file /p abc", b"/run/x/abc"),
        ("crun create --bundle=/run/x/abc abc", b"/run/x/abc"),
        ("conmon -b /run/x/userdata -c abc", b"/run/x/userdata"),
        ("containerd-shim-runc-v2 -namespace k8s.io -id abc", None),
        ("runc create --bundle", None),
    ],
)
def test_the_command_of_the_runtime_names_the_bundle(command: str, bundle: bytes | None) -> None:
    assert find_bundle(command.encode().split()) == bundle


def test_the_configuration_has_the_user_and_the_labels() -> None:
    found = parse_config(
        b'{"ociVersion": "1.2.0", "root": {"path": "rootfs"}, "process": {"user": {"uid": 1000,'
        b' "gid": 7, "additionalGids": [1]}, "args": ["x"], "apparmorProfile": "cri-default",'
        b' "selinuxLabel": "system_u:system_r:container_t:s0"}}'
    )
    assert found == (1000, 7, ("cri-default", "system_u:system_r:container_t:s0"))
    assert parse_config(b'{"process": {}}') == (0, 0, ())
    for document in (b"", b"{}", b'{"process": 1}', b'{"process": {"user": {"uid": "x"}}}'):
        with pytest.raises(ValueError, match=r".+"):
            parse_config(document)


def test_the_addresses_are_those_of_the_interfaces() -> None:
    assert parse_ipv4(IPV4) == ["10.244.1.7", "127.0.0.1"]
    assert parse_ipv6(IPV6) == ["fd00::7", "::1"]
    assert parse_ipv4("") == parse_ipv6("") == []
