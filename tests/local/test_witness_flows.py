"""What processes hand each other without naming a file: descriptors, pipes, sockets."""

import socket
import sys
import threading
from pathlib import Path

import pytest
from tests.driver import Project

SHELLS = ["dash", "bash"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_process_that_holds_the_descriptor_wrote_the_file(project: Project, shell: str) -> None:
    (project / "raw").write_text("b\na\n")
    ran = project.exec(
        shell,
        "-c",
        "sort raw > mid; sort < raw > in-and-out; { cat raw; sort raw; } > both;"
        "exec 3> third; cat raw >&3; exec 3>&-; echo own > own; sort raw >> appended;"
        "(cat raw) > sub; cat raw | sort > piped; true",
    )
    assert ran.status == 0, ran.err
    assert ran.writers("mid") == {"sort"}
    assert ran.writers("in-and-out") == {"sort"}
    assert ran.writers("both") == {"cat", "sort"}
    assert ran.writers("third") == {"cat"}
    assert ran.writers("own") == {shell}
    assert ran.writers("appended") == {"sort"}
    assert ran.writers("sub") == {"cat"}
    assert ran.writers("piped") == {"sort"}
    assert ran.readers("raw") - {shell} == {"sort", "cat"}  # a shell may open it for them
    assert ("cat", "sort", "pipe") in ran.informed()
    assert ("sort", "cat", "pipe") not in ran.informed()
    assert ran.cat("both") == b"b\na\na\nb\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_writes_beside_its_children(project: Project, shell: str) -> None:
    ran = project.exec(shell, "-c", "{ echo first; ls /dev/null; echo last; } > out")
    assert ran.writers("out") == {shell, "ls"}


def test_a_file_as_standard_input(project: Project) -> None:
    (project / "in").write_text("x\n")
    with (project / "in").open("rb") as file:
        ran = project.exec("cat", stdin=file)
    assert (ran.out, ran.readers("in")) == (b"x\n", {"cat"})
    assert ran.cat("in", "@input") == b"x\n"


def test_a_file_as_standard_output(project: Project) -> None:
    import subprocess

    with (project / "out").open("wb") as file:
        ran = project.exec("echo", "x", stdout=file, stderr=subprocess.PIPE, capture_output=False)
    assert ran.writers("out") == {"echo"}
    assert ran.cat("out") == b"x\n"


def test_python_s_own_pipes(project: Project) -> None:
    code = (
        "import subprocess as s;"
        "p = s.Popen(['tr', 'a-z', 'A-Z'], stdin=s.PIPE, stdout=s.PIPE);"
        "print(p.communicate(b'abc')[0])"
    )
    ran = project.exec(sys.executable, "-c", code)
    assert ran.out == b"b'ABC'\n"
    python = Path(sys.executable).name
    assert {(python, "tr", "pipe"), ("tr", python, "pipe")} <= ran.informed()


def test_a_pool_of_workers(project: Project) -> None:
    for n in range(4):
        (project / f"in{n}").write_text(str(n))
    (project / "pool.py").write_text(
        "from multiprocessing import get_context\n"
        "def work(n):\n"
        "    with open(f'in{n}') as i, open(f'out{n}', 'w') as o:\n"
        "        o.write(i.read() * 2)\n"
        "    return n\n"
        "if __name__ == '__main__':\n"
        "    with get_context('fork').Pool(2) as pool:\n"
        "        print(pool.map(work, range(4)))\n"
    )
    ran = project.exec(sys.executable, "pool.py")
    assert ran.out == b"[0, 1, 2, 3]\n"
    assert [ran.cat(f"out{n}") for n in range(4)] == [b"00", b"11", b"22", b"33"]
    rows = ran._rows(
        """SELECT DISTINCT s.number, b.number FROM informed i
        JOIN started s ON s.id = i.activity JOIN started b ON b.id = i.source
        JOIN execution x ON x.id = s.execution WHERE x.uid = ?"""
    )
    assert {(1, 2), (2, 1), (1, 3), (3, 1)} <= set(rows)


SERVER = """
import socket, sys
s = socket.socket({family}, socket.SOCK_STREAM)
s.bind({address})
s.listen()
print(s.getsockname()[1] if {family} == socket.AF_INET else '-', flush=True)
c, _ = s.accept()
c.sendall(c.recv(100).upper())
"""
CLIENT = """
import socket, sys
s = socket.socket({family}, socket.SOCK_STREAM)
s.connect({address})
s.sendall(b'word')
print(s.recv(100))
"""


@pytest.mark.parametrize("family", ["AF_INET", "AF_UNIX"])
def test_sockets_between_two_of_its_processes(project: Project, family: str) -> None:
    ours, theirs = ("('127.0.0.1', 0)", "('127.0.0.1', int(sys.argv[1]))")
    if family == "AF_UNIX":
        ours = theirs = "'talk'"
    names = {"family": f"socket.{family}"}
    (project / "server.py").write_text(SERVER.format(address=ours, **names))
    (project / "client.py").write_text(CLIENT.format(address=theirs, **names))
    (project / "both.py").write_text(
        "import subprocess as s, sys, shutil\n"
        "server = s.Popen(['./server', 'server.py'], stdout=s.PIPE)\n"
        "port = server.stdout.readline().decode().strip()\n"
        "s.run(['./client', 'client.py', port], check=True)\n"
        "sys.exit(server.wait())\n"
    )
    for name in ("server", "client"):
        (project / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (project / name).chmod(0o755)
    ran = project.exec(sys.executable, "both.py")
    assert (ran.status, ran.out) == (0, b"b'WORD'\n"), ran.err
    rows = ran._rows(
        """SELECT b.command, s.command, i.via FROM informed i
        JOIN started s ON s.id = i.activity JOIN started b ON b.id = i.source
        JOIN execution x ON x.id = s.execution WHERE x.uid = ? AND i.via = 'socket'"""
    )
    pairs = {("server.py" in by, "client.py" in learnt) for by, learnt, _ in rows}
    assert (True, True) in pairs and (False, False) in pairs


def test_a_peer_outside(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"hello")

        thread = threading.Thread(target=answer)
        thread.start()
        (project / "client.py").write_text(
            CLIENT.format(family="socket.AF_INET", address=f"('127.0.0.1', {port})")
        )
        ran = project.exec(sys.executable, "client.py")
        thread.join()
    assert ran.out == b"b'hello'\n"
    peers = {(peer["address"], peer["port"], peer["by"]) for peer in ran.show["network"]}
    assert ("127.0.0.1", port, f"{ran.id}.p1") in peers


def test_a_here_document(project: Project) -> None:
    text = "x" * 100_000
    ran = project.exec("bash", "-c", f"cat <<end > out\n{text}\nend")
    assert ran.cat("out") == text.encode() + b"\n"
    assert {name for name, role in ran.roles().items() if role == "output"} == {"out"}
    assert not [path for path in ran.files if "(deleted)" in path]
    assert ran.gaps == []
