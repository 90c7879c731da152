"""Every way a process comes to be is followed, and none is disturbed by it."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.programs.compiling import compiled, go_program


@pytest.mark.parametrize(
    "how",
    ["fork", "vfork", "spawn", "clone", "clone-silent", "clone-vm", "clone3"],
)
def test_a_child_is_a_process_of_its_own(project: Project, built: Path, how: str) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec(compiled("births", built), how, "/bin/cat", "in")
    assert (ran.status, ran.out) == (0, b"x\n")
    assert ran.programs() == ["births", "cat"]
    assert ran.show["tree"][1]["parent"] == f"{ran.id}.p1"
    assert ran.readers("in") == {"cat"}
    assert [process["status"] for process in ran.show["tree"]] == [0, 0]


@pytest.mark.parametrize("how", ["thread", "thread-alone", "execveat"])
def test_an_exec_takes_the_process_over(project: Project, built: Path, how: str) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec(compiled("births", built), how, "/bin/cat", "in")
    assert (ran.status, ran.out) == (0, b"x\n")
    assert ran.programs() == ["births", "cat"]
    assert ran.readers("in") == {"cat"}
    assert len({process["pid"] for process in ran.show["tree"]}) == 1


def test_a_chain_of_execs_is_a_process_each(project: Project, built: Path) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec(compiled("births", built), "chain", "5", "/bin/cat", "in")
    assert (ran.status, ran.out) == (0, b"x\n")
    assert ran.programs() == ["births"] * 6 + ["cat"]
    assert ran.readers("in") == {"cat"}
    assert ran.show["tree"][-1]["status"] == 0


def test_a_failed_exec_leaves_the_caller_intact(project: Project, built: Path) -> None:
    project.environment["WITNESS"] = "seen"
    ran = project.exec(compiled("births", built), "vfork-fails", "/bin/echo", "on")
    assert (ran.status, ran.out) == (0, b"on\n")
    assert ran.programs() == ["births", "births", "echo"]
    assert ("births", "absent", "ENOENT") in ran.looked("/does/not/exist")


def test_what_a_child_reads_while_its_parent_waits_is_its_own(
    project: Project, built: Path
) -> None:
    for name in ("mine", "child's", "mine again"):
        (project / name).write_text(name)
    names = ("mine", "child's", "mine again")
    ran = project.exec(compiled("births", built), "vfork-reads", *names, "/bin/echo", "on")
    assert (ran.status, ran.out) == (0, b"on\n")
    assert [ran.readers(name) for name in names] == [{"births"}, {"echo"}, {"births"}]
    assert ("echo", "absent", "ENOENT") in ran.looked("nowhere")


def test_a_child_looks_for_its_program_on_the_path(project: Project, built: Path) -> None:
    for name in ("unusable", "script"):
        (project / name).mkdir()
        (project / name / "tool").write_text("echo from $0\n")  # no #!: the shell runs it
    (project / "script" / "tool").chmod(0o755)
    (project / "mine").write_text("mine")
    folder = project.folder
    path = ":".join(f"{folder}/{name}" for name in ("absent", "unusable", "script"))
    project.environment["PATH"] = path
    ran = project.exec(compiled("births", built), "vfork-searches", "mine", "tool")
    assert (ran.status, ran.out) == (0, f"from {folder}/script/tool\n".encode())
    assert [who for who, *_ in ran.looked("absent/tool")] == ["sh"]
    assert ran.readers("mine") == {"births"}


def test_a_parent_whose_child_is_killed_is_still_seen(project: Project, built: Path) -> None:
    for name in ("child's", "mine"):
        (project / name).write_text(name)
    ran = project.exec(compiled("births", built), "vfork-killed", "child's", "mine")
    assert ran.status == 0
    assert ran.readers("child's") == ran.readers("mine") == {"births"}


def test_a_process_that_exits_while_its_threads_start_others(project: Project, built: Path) -> None:
    ran = project.exec(compiled("births", built), "exit-while-starting", "20")
    assert (ran.status, ran.programs()) == (0, ["births"] * 21)


def test_memory_shared_with_a_child_process(project: Project, built: Path) -> None:
    for name in ("child's", "mine", "mine too", "mine last"):
        (project / name).write_text(name)
    names = ("child's", "mine", "mine too", "mine last")
    ran = project.exec(compiled("births", built), "shared", *names)
    assert ran.status == 0
    rows = ran._rows(
        """SELECT s.number, l.locator FROM used u JOIN version v ON v.id = u.version
        JOIN location l ON l.id = v.location JOIN started s ON s.id = u.activity
        JOIN execution x ON x.id = s.execution WHERE x.uid = ?"""
    )
    seen = {os.path.basename(locator): number for number, locator in rows}
    assert [seen[name] for name in names] == [2, 1, 1, 1]


def test_threads_belong_to_their_process(project: Project, built: Path) -> None:
    names = [f"f{n}" for n in range(400)]
    for name in names:
        (project / name).write_text(name)
    ran = project.exec(compiled("opens", built), "threads", *names)
    assert ran.status == 0
    assert ran.programs() == ["opens"]
    assert {name for name in names if ran.file(name)["role"] == "input"} == set(names)
    assert ran.gaps == []


@pytest.mark.parametrize("flags", [("-static",), ("-m32",), ("-m32", "-static"), ("-static-pie",)])
def test_programs_without_the_library_are_seen(
    project: Project, built: Path, flags: tuple[str, ...]
) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec(compiled("peers", built, *flags), "in", "out")
    assert ran.status == 0
    assert ran.roles() == {"in": "input", "out": "output"}
    assert ran.cat("in", "@input") == b"x\n"
    assert ran.cat("out") == b"x\none more\n"
    assert (f"peers{''.join(flags)}", "absent", "ENOENT") in ran.looked("not-there")


def test_a_32_bit_program_starts_any_other(project: Project, built: Path) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec(compiled("births", built, "-m32"), "fork", "/bin/cat", "in")
    assert (ran.status, ran.out) == (0, b"x\n")
    assert ran.readers("in") == {"cat"}


def test_a_static_go_program(project: Project, built: Path) -> None:
    (project / "in").write_text("x\n")
    program = go_program("goes", built)
    ran = project.exec(program, "in", "out", "40", "/bin/cmp", "in", "out")
    assert (ran.status, ran.out) == (0, b"")
    assert ran.roles() == {"in": "input", "out": "output"}
    assert ran.programs().count("cmp") == 40
    assert ran.writers("out") == {"goes"}


def test_a_go_program_with_the_c_library(project: Project, built: Path) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec(go_program("walks", built, cgo=True), "in")
    assert (ran.status, ran.out) == (0, b"x\n")
    assert ran.readers("in") == {"walks-cgo"}


def test_scripts_name_their_interpreters(project: Project) -> None:
    script = project / "tool"
    (project / "way").symlink_to("/bin/sh")
    script.write_text("#! ./way -e\ncat in\n")
    script.chmod(0o755)
    nested = project / "nested"
    nested.write_text("#!./tool\nnot read by anybody\n")
    nested.chmod(0o755)
    (project / "in").write_text("x\n")
    ran = project.exec("./nested", "word")
    assert ran.out == b"x\n"
    assert ran.commands()[0] == ["./nested", "word"]
    assert ran.file("nested")["read"] and ran.file("tool")["read"]
    assert ran.roles() == {"nested": "input", "tool": "input", "in": "input"}
    shell = os.path.realpath("/bin/sh")
    assert ran.files[shell]["read"]
    assert ran.show["tree"][0]["exe"] == shell
    assert any(kind == "link" for _, kind, _ in ran.looked("way"))


def test_a_link_that_leads_to_another_name_of_the_same_program(project: Project) -> None:
    """Both names are one inode, and the path that is called is the same."""
    for folder in ("v1", "v2"):
        (project / folder).mkdir()
    shutil.copy2("/bin/true", project / "v1/tool")
    (project / "v2/tool").hardlink_to(project / "v1/tool")
    (project / "now").symlink_to("v1")
    ran = project.sh("now/tool; ln -sfn v2 now; now/tool")
    assert ran.status == 0
    assert ran.file("v1/tool")["read"] and ran.file("v2/tool")["read"]


def test_a_fresh_environment_is_followed(project: Project) -> None:
    (project / "in").write_text("x\n")
    ran = project.exec("env", "-i", "/bin/cat", "in")
    assert (ran.out, ran.readers("in")) == (b"x\n", {"cat"})


def test_the_environment_is_as_it_was(project: Project) -> None:
    project.environment = {"PATH": os.environ["PATH"], "ONE": "1", "EMPTY": "", "TWO": "a=b"}
    alone = {f"{name}={value}".encode() for name, value in project.environment.items()}
    assert set(project.exec("/usr/bin/env").out.splitlines()) == alone
    seen = "import os; print(sorted(os.environb.items())); print(open('/proc/self/environ').read())"
    alone_out, recorded = (
        run.splitlines()[0]
        for run in (
            project.command("--version") and _plain(project, seen),
            project.exec(sys.executable, "-c", seen).out,
        )
    )
    assert recorded == alone_out
    own = project.exec(sys.executable, "-c", seen).out
    assert b"LD_PRELOAD" not in own and b"CLEW" not in own


def _plain(project: Project, code: str) -> bytes:
    import subprocess

    return subprocess.run(
        [sys.executable, "-c", code], env=project.environment, capture_output=True, check=True
    ).stdout


def test_the_order_of_the_environment_is_kept(project: Project) -> None:
    project.environment = {f"NAME_{n}": str(n) for n in (3, 1, 2)} | {"PATH": os.environ["PATH"]}
    lines = project.exec("/usr/bin/env").out.decode().splitlines()
    assert lines == [f"{name}={value}" for name, value in project.environment.items()]


def test_the_user_s_preloaded_library_stays(project: Project, built: Path) -> None:
    library = built / "own.so"
    if not library.exists():
        import subprocess

        source = built / "own.c"
        source.write_text("int getppid(void) { return 4711; }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    (project / "in").write_text("x\n")
    code = "import os; print(os.getppid(), os.environ['LD_PRELOAD'], open('in').read())"
    project.environment["LD_PRELOAD"] = str(library)
    ran = project.exec(sys.executable, "-c", code)
    assert ran.out.decode() == f"4711 {library} x\n\n"
    assert ran.file("in")["role"] == "input"
    assert ran.files[str(library)]["read"]


def test_arguments_that_are_not_text(project: Project) -> None:
    ran = project.exec("printf", "%s", b"a\xffb\n")
    assert ran.out == b"a\xffb\n"
    assert ran.commands()[0] == ["printf", "%s", "a\ufffdb\n"]


def test_thousands_of_arguments_and_variables(project: Project) -> None:
    project.environment |= {f"V{n}": "v" * 40 for n in range(6000)}
    words = [f"word{n}" for n in range(20000)]
    ran = project.exec("sh", "-c", "env | grep -c '^V[0-9]'; echo $#", "sh", *words)
    assert ran.out == b"6000\n20000\n"
    assert ran.commands()[0][4:] == words


def test_a_small_stack_is_enough(project: Project) -> None:
    (project / "in").write_text("x\n")
    ran = project.sh("ulimit -s 256; cat in; env -i /bin/cat in")
    assert (ran.status, ran.out) == (0, b"x\nx\n")
    assert ran.readers("in") == {"cat"}


def test_a_library_folder_with_a_space(project: Project, tmp_path: Path) -> None:
    """Clew may be installed anywhere: the loader splits its list at spaces and colons."""
    from clew.witness import tracer_binary

    odd = tmp_path / "a b:c"
    odd.mkdir()
    for part in (tracer_binary.TRACER, tracer_binary.LIBRARY):
        (odd / part.name).write_bytes(part.read_bytes())
        (odd / part.name).chmod(0o755)
    code = (
        "import sys; from pathlib import Path;"
        "from clew.witness import tracer_binary;"
        f"tracer_binary.TRACER, tracer_binary.LIBRARY = (Path({str(odd)!r}, n) for n in"
        " ('clew-trace', 'libclew-inject.so'));"
        "from clew.cli.main import main; sys.argv = ['clew', 'exec', '--json', '--', 'cat', 'in'];"
        "sys.exit(main())"
    )
    import subprocess

    (project / "in").write_text("x\n")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    ran = project.recording(done.returncode, done.stdout, done.stderr)
    assert (ran.out, ran.err) == (b"x\n", b"")
    assert ran.readers("in") == {"cat"}


def test_the_command_s_status_is_clew_s(project: Project) -> None:
    assert project.sh("exit 7").status == 7
    killed = project.sh("kill -KILL $$")
    assert killed.status == 128 + signal.SIGKILL
    assert killed.show["signal"] == signal.SIGKILL


def test_background_children_are_waited_for(project: Project) -> None:
    ran = project.sh("(sleep 0.3; echo late > late) & echo now > now", timeout=60)
    assert ran.roles() == {"late": "output", "now": "output"}
    assert ran.cat("late") == b"late\n"


def test_exec_inside_exec_joins(project: Project) -> None:
    inner = f"{sys.executable} -m clew exec --json -- sh -c 'echo x > inner; exit 3'"
    ran = project.sh(f"{inner}; echo $?")
    assert ran.out == b"3\n"
    assert ran.cat("inner") == b"x\n"
    listed = project.command("list", "--json").stdout
    import json

    assert [execution["id"] for execution in json.loads(listed)] == [ran.id]
