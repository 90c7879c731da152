"""What `workload.py` records: threads, forks, and every kind of change of a file."""

import mmap
import os
import subprocess
import threading
from pathlib import Path


def write(name: str) -> None:
    Path(name).write_text(f"written by {name}\n")


threads = [threading.Thread(target=write, args=(f"thread{n}",)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for n in range(3):
    if os.fork() == 0:
        write(f"fork{n}")
        os._exit(n)
for _ in range(3):
    os.wait()

Path("dir").mkdir()
Path("thread0").rename("dir/moved")
Path("symbolic").symlink_to("thread1")
Path("thread2").unlink()
os.truncate("thread3", 3)
Path("thread3").chmod(0o600)
os.utime("thread3", (1, 1))
with open("mapped", "w+b") as file:
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[:5] = b"hello"
assert os.path.exists("in") and not os.path.exists("absent")
before = Path("rewritten").read_text()  # read, then changed: the old content is kept
Path("rewritten").write_text(before.upper())
with open("appended", "a") as file:
    file.write("more\n")
subprocess.run(["busybox", "cp", "in", "copied"], check=True)  # a static program
subprocess.run(["sh", "-c", "cat in | tr a-z A-Z > upper"], check=True)
subprocess.run(["sh", "-c", "exit 7"])
subprocess.run(["sh", "-c", "kill -TERM $$"])
os.chdir("dir")
Path("here").write_text(Path("../in").read_text())
