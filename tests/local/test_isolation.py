"""What a repeat sees: the record, and nothing else of the machine; and what it cannot touch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import CLEW, Project
from tests.local.test_cmd_repeat import content, repeated


def test_what_the_record_has_not_is_not_there(project: Project) -> None:
    (project / "known").write_text("x")
    (project / "unknown").write_text("y")
    project.sh("cat known; [ -e unmentioned ] || echo none")
    look = "import os; print(sorted(os.listdir('/')), os.path.exists('unknown'), os.listdir('.'))"
    project.exec(sys.executable, "-c", "pass")
    document = repeated(project, "e2", "--set", f"2={look}", status=3)
    said = content(project, f"{document['execution']['id']}:stdout").decode()
    assert " False " in said
    assert "'boot'" not in said and "'media'" not in said
    assert "unknown" not in said


def test_times_modes_links_and_listings(project: Project) -> None:
    (project / "d").mkdir()
    for name in ("b", "a", "never-read"):
        (project / "d" / name).write_text(name)
    os.utime(project / "d/a", ns=(0, 1_234_567_890_123_456_789))
    (project / "d/a").chmod(0o640)
    (project / "d/link").symlink_to("a")
    ran = project.sh("ls d; cat d/link d/b; stat -c '%n %a %s %Y %F' d/*; readlink d/link")
    assert b"never-read" in ran.out
    document = repeated(project, "e1")
    assert document["verdict"] == "identical", document["differences"]


def test_reading_a_stub_is_reported(project: Project) -> None:
    (project / "only-listed").write_text("bytes")
    project.sh("cat $1; ls > names; cat /dev/null", options=())
    document = repeated(project, "e1", "--set", "2=ls > names; cat < only-listed")
    [warning] = document["warnings"]
    assert "only-listed" in warning and "not recorded" in warning


def test_processes_network_and_host_name(project: Project) -> None:
    project.exec("hostname")
    assert repeated(project, "e1")["verdict"] == "identical"
    program = (
        "import os, socket\n"
        "print(len([p for p in os.listdir('/proc') if p.isdigit()]) < 10)\n"
        "s = socket.socket(); s.settimeout(2)\n"
        "try: s.connect(('192.0.2.1', 9)); print('connected')\n"
        "except OSError as e: print(e.errno)\n"
    )
    project.exec(sys.executable, "-c", "import os, socket")
    document = repeated(project, "e3", "--set", f"2={program}", status=3)
    said = content(project, f"{document['execution']['id']}:stdout").split()
    assert said == [b"True", b"101"]  # ENETUNREACH


def test_the_network_when_it_was_used_and_is_allowed(project: Project) -> None:
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        program = f"import urllib.request; print(urllib.request.urlopen({url!r}).read())"
        assert project.exec(sys.executable, "-c", program).status == 0
        assert repeated(project, "e1", "--network")["verdict"] == "identical"
        document = repeated(project, "e1", status=3)
        assert document["execution"]["status"] == 1
        assert any("network" in warning for warning in document["warnings"])
    finally:
        server.shutdown()
        server.server_close()


def test_a_repeat_cannot_damage_the_cache_or_the_store(project: Project) -> None:
    (project / "in").write_text("precious\n")
    project.sh("cat in > out; chmod 600 in; echo spoilt > in; rm in; echo new > in; mv in moved")
    for _ in range(2):
        assert repeated(project, "e1")["verdict"] == "identical"
    cached = [p for p in (project / ".clew/cache/files").rglob("*") if p.is_file()]
    assert any(p.read_bytes() == b"precious\n" for p in cached)
    assert json.loads(project.command("fsck", "--json").stdout)["ok"]


def test_a_spoilt_cache_is_made_again(project: Project) -> None:
    (project / "in").write_text("right\n")
    project.exec("cat", "in")
    assert repeated(project, "e1")["verdict"] == "identical"
    for file in (project / ".clew/cache/files").rglob("*"):
        if file.is_file() and file.read_bytes() == b"right\n":
            file.write_bytes(b"wrong!\n")
    assert repeated(project, "e1")["verdict"] == "identical"


def test_gc_empties_the_cache_and_a_repeat_fills_it_again(project: Project) -> None:
    project.exec("true")
    repeated(project, "e1")
    cache = project / ".clew/cache"
    assert (cache / "files").exists()
    assert project.command("gc", "--yes").returncode == 0
    assert not (cache / "files").exists()
    assert not (cache / "roots").exists()
    assert repeated(project, "e1")["verdict"] == "identical"


def test_nothing_is_left_behind(project: Project) -> None:
    project.exec("true")
    repeated(project, "e1")
    assert list((project / ".clew/spool").iterdir()) == []
    assert "overlay" not in "".join(
        line
        for line in Path("/proc/self/mounts").read_text().splitlines()
        if str(project.folder) in line
    )


def test_two_repeats_run_at_the_same_time(project: Project) -> None:
    (project / "in").write_text("x" * 1000)
    project.sh("sort in > out; echo done")
    settings = {"cwd": project.folder, "env": project.environment, "stdout": subprocess.PIPE}
    both = [subprocess.Popen([*CLEW, "repeat", "e1", "--json"], **settings) for _ in range(3)]
    verdicts = [json.loads(one.communicate(timeout=120)[0])["verdict"] for one in both]
    assert verdicts == ["identical"] * 3
    assert len({e["uid"] for e in json.loads(project.command("list", "--json").stdout)}) == 4


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_process_ids_as_in_a_container(project: Project) -> None:
    """In a pid namespace where the first ids are not in use any more."""
    project.sh("echo 1 > out")
    line = 'for n in 1 2 3 4 5 6 7 8; do /bin/true; done; "$@"; exit $?'
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    ran = subprocess.run(
        [*inside, "sh", "-c", line, "sh", *CLEW, "repeat", "e1"],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_an_unprivileged_user(tmp_path: Path) -> None:
    """Recorded by root, repeated by nobody's account; and both by it."""
    somebody = 61234
    folder = tmp_path / "theirs"
    project = Project(folder)
    (project / "in").write_text("data\n")
    project.sh("id -u; cat in > out; stat -c %U in > owner")
    for path in [folder, *folder.rglob("*")]:
        os.lchown(path, somebody, somebody)
    for path in [*tmp_path.parents, tmp_path]:
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)

    def clew(*words: str) -> subprocess.CompletedProcess[bytes]:
        """As that user; the one capability lets it reach a Python that lies in root's home."""
        become = ["setpriv", f"--reuid={somebody}", f"--regid={somebody}", "--clear-groups"]
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        settings = {"cwd": project.folder, "env": project.environment, "capture_output": True}
        return subprocess.run([*become, *CLEW, *words], timeout=120, **settings)

    ran = clew("repeat", "e1")
    assert (ran.returncode, ran.stdout) == (0, b"0\n"), ran.stderr
    ran = clew("exec", "--", "sh", "-c", "id -u; cat in")
    assert ran.stdout == b"61234\ndata\n", ran.stderr
    ran = clew("repeat", "e3")
    assert (ran.returncode, ran.stdout) == (0, b"61234\ndata\n"), ran.stderr
    ran = project.command("repeat", "e3")
    assert (ran.returncode, ran.stdout) == (4, b"")
    assert b"belongs to 61234" in ran.stderr
