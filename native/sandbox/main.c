/* clew-sandbox prepares a sandbox and runs COMMAND (bwrap) in it. `clew repeat` starts it as the root user of a
 * new user and mount namespace (`unshare -Urm`).
 *
 *   clew-sandbox --starter PID --tell FD --go FD --folder DIR --umask OCTAL [--keep FD]…
 *                [--tree FD=PATH]… [--read-only FD=PATH]… -- COMMAND…
 *
 * It closes every descriptor that is not listed, mounts the overlay of DIR (lower, upper, work) on DIR/root,
 * writes the process id of its child to `--tell`, and waits for a byte on `--go`.
 *
 * `--tree` replaces the descriptor by one of PATH on a detached mount of its own; `--read-only` does the same
 * with a read-only mount. On such a mount `..` of PATH is PATH: nothing else of the file system can be reached
 * through the descriptor.
 *
 * COMMAND runs below a process that is the first of a new pid namespace (`init`). The kernel kills a pid
 * namespace as a whole with its first process, so nothing of the sandbox survives the end of any process:
 *
 *   our parent is killed    PR_SET_PDEATHSIG kills us
 *   we are killed           PR_SET_PDEATHSIG kills `init`, and the namespace with it
 *   `init` is killed        the kernel kills the namespace; we see it and end
 *   COMMAND is killed       `init` sees it and ends, and the namespace with it
 *
 * When we end, no process of the sandbox is left, unless we were killed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64
/* The exit status of our own failures, as of other programs that run commands (env, timeout). */
#define FAILED 125

/* The descriptors that stay open. */
static int kept[MOST] = {0, 1, 2};
static unsigned kept_count = 3;

static void fail(const char *what)
{
	fprintf(stderr, "clew-sandbox: %s: %s\n", what, strerror(errno));
	exit(FAILED);
}

static int number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);
	if (end == text || value < 0 || value > 1 << 20) {
		errno = EINVAL;
		fail(text);
	}
	return (int)value;
}

static void keep(int fd)
{
	if (kept_count == MOST) {
		errno = EMFILE;
		fail("too many descriptors");
	}
	kept[kept_count++] = fd;
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void close_range_of(unsigned first, unsigned last) { syscall(SYS_close_range, first, last, 0); }

/* A descriptor of the caller that leaked into the sandbox would be a way out of it. */
static void close_others(void)
{
	unsigned from = 0;
	qsort(kept, kept_count, sizeof *kept, ascending);
	for (unsigned i = 0; i < kept_count; i++) {
		if ((unsigned)kept[i] > from)
			close_range_of(from, (unsigned)kept[i] - 1);
		from = (unsigned)kept[i] + 1;
	}
	close_range_of(from, ~0u);
}

/* The word is FD=PATH: replaces descriptor FD by one of PATH on a detached clone of its mount. */
static void mount_apart(const char *word, unsigned long attributes)
{
	const char *path = strchr(word, '=');
	struct mount_attr wanted = {.attr_set = attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	if (!path++) {
		errno = EINVAL;
		fail(word);
	}
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &wanted, sizeof wanted))
		fail(path);
	if (dup2(tree, number(word)) < 0)
		fail("dup2");
	close(tree);
}

/* bwrap binds the device nodes of the machine, and root of the namespace could change their modes and owners
 * for everyone. A node on a read-only mount can be read and written, but not changed. */
static void protect_devices(void)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	if (syscall(SYS_mount, "/dev", "/dev", NULL, MS_BIND | MS_REC, NULL) ||
	    syscall(SYS_mount_setattr, AT_FDCWD, "/dev", AT_RECURSIVE, &read_only, sizeof read_only))
		fail("cannot protect /dev");
	/* /dev/null that was opened outside would still be on the other mount: open it again. */
	for (int fd = 0; fd < 3; fd++) {
		struct stat status;
		if (fstat(fd, &status) || !S_ISCHR(status.st_mode) || isatty(fd))
			continue;
		int null = open("/dev/null", fcntl(fd, F_GETFL) & O_ACCMODE);
		if (null < 0 || dup2(null, fd) < 0)
			fail("/dev/null");
		close(null);
	}
}

/* Ends `init`, and with it every process of the namespace. */
static void end(int signal)
{
	(void)signal;
	_exit(FAILED);
}

/* Each of these ends the sandbox. They are handled explicitly, because the first process of a pid namespace
 * gets no signal that it does not handle. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void handle_signals(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler}, now;
	for (unsigned i = 0; i < sizeof ending / sizeof *ending; i++)
		if (!sigaction(ending[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

/* The first process of the namespace. It writes a byte after PR_SET_PDEATHSIG, so that its parent knows it
 * will end with it, and waits for one: if the parent died before, the read fails.
 *
 * It mounts a /proc of the namespace: COMMAND looks up its children there, by the process ids that it knows. */
static void init(int starter, char **command)
{
	char byte = 0;
	int status;
	handle_signals(end);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || write(starter, &byte, 1) != 1 || read(starter, &byte, 1) != 1)
		_exit(FAILED);
	if (syscall(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		fail("cannot mount /proc (does a container hide parts of it?)");
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		execv(command[0], command);
		fail(command[0]);
	}
	/* Keep only stderr: an open pipe here would hide the end of the command from its reader. */
	close_range_of(0, 1);
	close_range_of(3, ~0u);
	for (;;) { /* also reaps orphans of the namespace */
		pid_t ended = wait(&status);
		if (ended == child)
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : FAILED);
		if (ended < 0 && errno != EINTR)
			_exit(FAILED);
	}
}

/* The starter waits for this line. */
static void report(int tell, pid_t pid)
{
	char text[32];
	int size = snprintf(text, sizeof text, "%d\n", pid);
	if (write(tell, text, (size_t)size) != size)
		fail("tell");
	close(tell);
}

/* Starts `init` and returns the exit status of the command. */
static int run(int tell, int go, char **command)
{
	int pair[2], status;
	char byte;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) || unshare(CLONE_NEWPID))
		fail("cannot make a pid namespace");
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		close(pair[0]);
		close(tell);
		close(go);
		init(pair[1], command);
	}
	close(pair[1]);
	/* From here on `init` decides when the sandbox ends. */
	handle_signals(SIG_IGN);
	if (read(pair[0], &byte, 1) != 1)
		return FAILED;
	report(tell, child);
	if (read(go, &byte, 1) != 1 || write(pair[0], &byte, 1) != 1)
		return FAILED; /* our socket closes, so the read in `init` fails, and it ends */
	close_range_of(0, 1);
	close_range_of(3, ~0u);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

int main(int argc, char **argv)
{
	int tell = -1, go = -1, at = 1;
	pid_t starter = -1;
	mode_t mask = 022;
	const char *folder = NULL, *apart[MOST];
	unsigned long attributes[MOST];
	unsigned count = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* first: see the check of the parent below */
	for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
		char *value = argv[at + 1];
		bool tree = !strcmp(argv[at], "--tree");
		if (!strcmp(argv[at], "--starter"))
			starter = number(value);
		else if (!strcmp(argv[at], "--tell"))
			keep(tell = number(value));
		else if (!strcmp(argv[at], "--go"))
			keep(go = number(value));
		else if (!strcmp(argv[at], "--keep"))
			keep(number(value));
		else if (!strcmp(argv[at], "--folder"))
			folder = value;
		else if (!strcmp(argv[at], "--umask"))
			mask = (mode_t)strtol(value, NULL, 8) & 0777;
		else if ((tree || !strcmp(argv[at], "--read-only")) && count < MOST) {
			attributes[count] = tree ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_RDONLY;
			apart[count++] = value;
		} else
			break;
	}
	if (at + 1 >= argc || strcmp(argv[at], "--") || tell < 0 || go < 0 || !folder) {
		fprintf(stderr, "clew-sandbox: is started by clew repeat\n");
		return FAILED;
	}
	if (getppid() != starter)
		return FAILED; /* the starter was killed before PR_SET_PDEATHSIG took effect */
	/* These descriptors are replaced below, so they must not be closed. */
	for (unsigned i = 0; i < count; i++)
		keep(number(apart[i]));
	/* Before anything else is opened or mounted. */
	close_others();
	fcntl(tell, F_SETFD, FD_CLOEXEC);
	fcntl(go, F_SETFD, FD_CLOEXEC);
	for (unsigned i = 0; i < count; i++)
		mount_apart(apart[i], attributes[i]);
	protect_devices();
	/* A new keyring: the keys of the user stay outside. */
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("cannot give up privileges");
	/* Relative paths, so that DIR may hold characters that mount options cannot (comma, colon). volatile: the
	 * overlay is thrown away, so nothing needs to be synced. */
	if (chdir(folder) ||
	    syscall(SYS_mount, "overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work,userxattr,volatile"))
		fail("cannot mount the overlay");
	umask(mask);
	return run(tell, go, argv + at + 1);
}
