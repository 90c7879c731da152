/* clew-sandbox --starter PID --tell FD --go FD --folder DIR --umask OCTAL [--keep FD]…
 *              [--tree FD=PATH]… [--read-only FD=PATH]… -- COMMAND…
 *
 * Prepares a sandbox and runs COMMAND (bwrap) in it. Run as the root user of a new user and mount
 * namespace (`unshare -Urm`).
 *
 * It closes every descriptor that is not listed, mounts the overlay of DIR (lower, upper, work) on DIR/root,
 * writes the process id of its child to `--tell`, and waits for a byte on `--go`.
 *
 * `--tree` replaces the descriptor by one of PATH on a detached mount of its own, `--read-only` does the same
 * with a mount that nobody can write to. On such a mount `..` of PATH is PATH: nothing else of the file
 * system can be reached through the descriptor.
 *
 * COMMAND runs below a process that is the first of a new pid namespace (`init`). The kernel kills a pid
 * namespace as a whole with its first process, so nothing of the sandbox survives the end of any process:
 *
 *   our parent is killed             we are, by PR_SET_PDEATHSIG
 *   we are killed                    `init` is, by PR_SET_PDEATHSIG, and the namespace with it
 *   `init` is killed                 the namespace is; we see it and end
 *   COMMAND is killed                `init` sees it and ends, and the namespace with it
 *
 * Our own end therefore means that no process is left, unless we were killed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64
#define FAILED 125

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

static void close_others(void)
{
	unsigned from = 0;
	qsort(kept, kept_count, sizeof *kept, ascending);
	for (unsigned i = 0; i < kept_count; i++) {
		if ((unsigned)kept[i] > from)
			close_range(from, (unsigned)kept[i] - 1, 0);
		from = (unsigned)kept[i] + 1;
	}
	close_range(from, ~0u, 0);
}

/* FD=PATH */
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

/* bwrap binds the machine's own device nodes, and root could change their modes and owners for all.
 * A node on a read-only mount can still be read and written, but not changed. */
static void protect_devices(void)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	if (mount("/dev", "/dev", NULL, MS_BIND | MS_REC, NULL) ||
	    syscall(SYS_mount_setattr, AT_FDCWD, "/dev", AT_RECURSIVE, &read_only, sizeof read_only))
		fail("cannot protect /dev");
	for (int fd = 0; fd < 3; fd++) { /* /dev/null, opened outside, would still be on the other mount */
		struct stat status;
		if (fstat(fd, &status) || !S_ISCHR(status.st_mode) || isatty(fd))
			continue;
		int null = open("/dev/null", fcntl(fd, F_GETFL) & O_ACCMODE);
		if (null < 0 || dup2(null, fd) < 0)
			fail("/dev/null");
		close(null);
	}
}

static void end(int signal)
{
	(void)signal;
	_exit(FAILED);
}

/* Any of these ends the sandbox. The first process of a namespace gets only signals that it handles. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void handle_signals(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler}, now;
	for (unsigned i = 0; i < sizeof ending / sizeof *ending; i++)
		if (!sigaction(ending[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

/* The first process of the namespace. Its word to `starter` says that it ends with that one; the
 * answer, that `starter` lived to hear it. */
static void init(int starter, char **command)
{
	char byte = 0;
	int status;
	handle_signals(end);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || write(starter, &byte, 1) != 1 || read(starter, &byte, 1) != 1)
		_exit(FAILED);
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		execv(command[0], command);
		fail(command[0]);
	}
	close_range(0, 1, 0);
	close_range(3, ~0u, 0);
	for (;;) {
		pid_t ended = wait(&status);
		if (ended == child)
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : FAILED);
		if (ended < 0 && errno != EINTR)
			_exit(FAILED);
	}
}

static void report(int tell, pid_t pid)
{
	char text[32];
	int size = snprintf(text, sizeof text, "%d\n", pid);
	if (write(tell, text, (size_t)size) != size)
		fail("tell");
	close(tell);
}

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
	handle_signals(SIG_IGN);
	if (read(pair[0], &byte, 1) != 1)
		return FAILED;
	report(tell, child);
	if (read(go, &byte, 1) != 1 || write(pair[0], &byte, 1) != 1)
		return FAILED; /* the child reads the end of our socket, and ends */
	close_range(0, 1, 0);
	close_range(3, ~0u, 0);
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
	prctl(PR_SET_PDEATHSIG, SIGKILL);
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
		return FAILED; /* it was killed before PR_SET_PDEATHSIG */
	for (unsigned i = 0; i < count; i++)
		keep(number(apart[i]));
	close_others();
	fcntl(tell, F_SETFD, FD_CLOEXEC);
	fcntl(go, F_SETFD, FD_CLOEXEC);
	for (unsigned i = 0; i < count; i++)
		mount_apart(apart[i], attributes[i]);
	protect_devices();
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); /* the user's keys stay outside */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("cannot give up privileges");
	if (chdir(folder) ||
	    mount("overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work,userxattr,volatile"))
		fail("cannot mount the overlay");
	umask(mask);
	return run(tell, go, argv + at + 1);
}
