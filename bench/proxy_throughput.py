"""A large file through the server's proxy, to a viewer and back, beside nginx in the same run.

    python bench/proxy_throughput.py [--size GB] [--rounds 5] [--folder DIR] [--json FILE]

One viewer shows a folder in memory, so that disks do not matter; before it stand `clew server`,
which asks for the token, and nginx, which asks nobody. nginx has one worker, large buffers, and
does not put aside what it is sent: so both stream. curl sends and fetches; rounds alternate between
the two, so that noise on the machine meets both alike. Printed are medians, their ratio, and how
much memory the server and the viewer needed beyond what they had before. `direct` is the viewer
alone.
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

PREFIX = "/pvcviewer/me/data/"
CLEW = (sys.executable, "-m", "clew")
LEAST = 0.5
"""Of nginx's speed."""
MOST = 64 << 20
"""Bytes of memory that may be needed."""

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_max_body_size 0; client_body_buffer_size 512k;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_request_buffering off; proxy_max_temp_file_size 0;
      proxy_buffer_size 64k; proxy_buffers 16 64k; proxy_busy_buffers_size 256k;
    }}
  }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def started(*words: str | Path, cwd: Path, pipe: bool = True) -> Iterator[tuple[str, int]]:
    """A program that runs until the end of the block: the first line it prints, and its pid."""
    with (
        (cwd / "said").open("a") as said,
        subprocess.Popen(
            words, cwd=cwd, text=True, stderr=said, stdout=subprocess.PIPE if pipe else said
        ) as process,
    ):
        try:
            yield process.stdout.readline().strip() if process.stdout else "", process.pid
        finally:
            process.terminate()


def listens(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)


def curl(way: str, address: str, file: Path, token: str) -> float:
    """Bytes in a second."""
    send = ["-T", str(file)] if way == "upload" else []
    command = ["curl", "-sf", "-o", "/dev/null", "-H", f"Authorization: Bearer {token}", *send]
    measured = ["-w", f"%{{speed_{way}}}", address]
    answer = subprocess.run([*command, *measured], check=True, capture_output=True, text=True)
    return float(answer.stdout)


def memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10


def make(path: Path, size: int) -> None:
    piece = os.urandom(1 << 20)
    with path.open("wb") as file:
        for _ in range(size >> 20):
            file.write(piece)


def measure(folder: Path, size: int, rounds: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    volume, home, other = folder / "volume", folder / "home", folder / "nginx"
    for one in (volume, home, other):
        one.mkdir()
    make(folder / "sent", size)
    make(volume / "small", 16 << 20)
    with ExitStack() as stack:
        words = ("viewer", volume, "--prefix", PREFIX, "--port", "0")
        shown, viewer = stack.enter_context(started(*CLEW, *words, cwd=home))
        behind = urlsplit(shown).port
        table = folder / "targets.toml"
        table.write_text(f'["pvcviewer/me/data"]\naddress = "127.0.0.1:{behind}"\n')
        words = ("server", "--port", "0", "--json", "--targets", table)
        said, server = stack.enter_context(started(*CLEW, *words, cwd=home))
        port = free_port()
        (other / "conf").write_text(NGINX.format(folder=other, port=port, behind=behind))
        words = ("/usr/sbin/nginx", "-c", other / "conf")
        stack.enter_context(started(*words, cwd=other, pipe=False))
        listens(port)
        token = json.loads(said)["token"]
        ways = {
            "clew": json.loads(said)["apps"],
            "nginx": f"http://127.0.0.1:{port}",
            "direct": f"http://127.0.0.1:{behind}",
        }
        for address in ways.values():
            curl("download", f"{address}{PREFIX}files/small", volume, token)
        before = {"server": memory(server), "viewer": memory(viewer)}
        speeds: dict[str, list[float]] = {}
        for turn in range(rounds):
            order = list(ways) if turn % 2 else list(reversed(ways))
            for way in ("upload", "download"):
                for name in order:
                    address = f"{ways[name]}{PREFIX}files/large"
                    found = curl(way, address, folder / "sent", token)
                    speeds.setdefault(f"{way} {name}", []).append(found)
        after = {"server": memory(server), "viewer": memory(viewer)}
    return speeds, {name: after[name] - before[name] for name in before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=float, default=2.0, help="GB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin"):
        sys.exit("nginx is not installed (Debian: nginx-light)")
    load = os.getloadavg()[0]
    print(f"{given.size} GB, {given.rounds} rounds, {os.cpu_count()} cores, load {load:.1f}\n")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        speeds, grown = measure(Path(folder), int(given.size * (1 << 30)), given.rounds)
    medians = {name: statistics.median(found) for name, found in speeds.items()}
    print("| | clew, MB/s | nginx, MB/s | direct, MB/s | clew / nginx | target | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for way in ("upload", "download"):
        shown = [f"{medians[f'{way} {name}'] / 1e6:.0f}" for name in ("clew", "nginx", "direct")]
        ratio = medians[f"{way} clew"] / medians[f"{way} nginx"]
        verdict = "ok" if ratio >= LEAST else "MISSED"
        print(f"| {way} | {' | '.join(shown)} | {ratio:.2f} | ≥ {LEAST} | {verdict} |")
    for name, more in grown.items():
        verdict = "ok" if more <= MOST else "MISSED"
        print(f"\nmemory of the {name}: +{more / 1e6:.0f} MB ({verdict}: at most {MOST >> 20})")
    if given.json:
        given.json.write_text(json.dumps({"speeds": speeds, "grown": grown}, indent=1))


if __name__ == "__main__":
    main()
