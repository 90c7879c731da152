"""What a hostile command tries inside a repeat; prints what it found as JSON.

Run as `python -c SOURCE`, with the names that `ATTACK` stands for filled in: in the sandbox there
is no file of the tests. Every attack is harmless where it succeeds.
"""

IMPORTS = "import ctypes, errno, fcntl, glob, json, os, signal, socket, stat, sys, termios, time"

ATTACK = r"""
import ctypes, errno, fcntl, glob, json, os, signal, socket, stat, sys, termios, time
secret, written = SECRET, WRITTEN
libc = ctypes.CDLL(None, use_errno=True)
said = {"read": [], "wrote": [], "writable": [], "calls": {}}

def attempt(name, do):
    try:
        said["calls"][name] = do()
    except OSError as error:
        said["calls"][name] = errno.errorcode[error.errno]

def call(number, *words):
    if libc.syscall(number, *words) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "allowed"

own = str(os.getpid())
doors = ["/proc/%s/%s" % (pid, name) for pid in os.listdir("/proc") if pid.isdigit()
         for name in ("cwd", "root", "task/%s/root" % pid)]
doors += glob.glob("/proc/[0-9]*/fd/*") + ["/"]
for door in doors:
    for up in range(12):
        place = door + "/.." * up
        try:
            said["read"].append([place, open(place + secret).read()])
        except OSError:
            pass
        try:
            os.close(os.open(place + written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            said["wrote"].append(place)
        except OSError:
            pass
    try:  # the tracer, its library: opened for writing, and not written to
        file = os.open(door, os.O_WRONLY | os.O_NONBLOCK)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode):
            said["writable"].append([door, found.st_dev, found.st_ino])
        os.close(file)
    except OSError:
        pass

status = dict(line.split(":", 1) for line in open("/proc/self/status"))
said["status"] = {name: status[name].strip() for name in
                  ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")}
said["tracer"] = int(status["TracerPid"])
listed = os.listdir("/proc/self/fd")
said["fds"] = sorted(int(fd) for fd in listed if os.path.exists("/proc/self/fd/" + fd))
said["processes"] = {pid: open("/proc/%s/comm" % pid).read().strip()
                     for pid in os.listdir("/proc") if pid.isdigit()}
tracer = said["tracer"]
for name in ("environ", "mem", "maps", "auxv", "exe"):
    attempt("tracer " + name, lambda: open("/proc/%d/%s" % (tracer, name), "rb") and "allowed")
for door in glob.glob("/proc/%d/fd/*" % tracer):
    attempt("tracer " + door, lambda: os.readlink(door) and "allowed")
attempt("ptrace", lambda: call(101, 16, tracer, 0, 0))
handle = os.pidfd_open(tracer)
for fd in range(3, 40):
    attempt("pidfd_getfd", lambda: call(438, handle, fd, 0))
    if said["calls"]["pidfd_getfd"] == "allowed":
        break
data = ctypes.create_string_buffer(8)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(data), 8)
there = (ctypes.c_size_t * 2)(0x400000, 8)
attempt("process_vm_writev", lambda: call(311, tracer, vector, 1, there, 1, 0))
attempt("unshare", lambda: call(272, 0x10000000))
attempt("mount", lambda: call(165, b"proc", b"/tmp", b"proc", 0, 0))
attempt("open_by_handle_at", lambda: call(304, -100, b"\x08\0\0\0\x01\0\0\0" + bytes(8), 0))
attempt("io_uring", lambda: call(425, 8, ctypes.create_string_buffer(120)))
attempt("core_pattern", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY) and "allowed")
attempt("sysrq", lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY) and "allowed")
attempt("mode of a device", lambda: os.chmod("/dev/full", 0o666) or "allowed")
said["stdin"] = stat.S_ISCHR(os.fstat(0).st_mode)
attempt("mode of stdin", lambda: os.fchmod(0, 0o666) or "allowed")
open("/dev/null", "w").write("devices can still be used")
attempt("terminal", lambda: os.open("/dev/tty", os.O_RDWR) and "allowed")
for fd in (0, 1, 2):
    attempt("TIOCSTI %d" % fd, lambda: fcntl.ioctl(fd, termios.TIOCSTI, b"x") and 0 or "allowed")
attempt("keyring", lambda: call(250, 11, -3, data, 8) and data.raw.hex())
abstract = socket.socket(socket.AF_UNIX)
attempt("abstract socket", lambda: abstract.connect("\0" + ABSTRACT) or "allowed")
print(json.dumps(said))
"""
