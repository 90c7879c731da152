/* clew-step runs the command of a pipeline's task in the task's own container, which may have any image.
 *
 *   clew-step --install DIR/bin/clew-step     copies itself
 *   DIR/bin/clew-step -- COMMAND…             runs the command, when the file DIR/ready exists
 *
 * DIR is a directory that this container shares with another one, which fetches the inputs of the task, makes
 * `ready`, and stores the outputs when the command has ended:
 *
 *   DIR/lock     exists when we have its lock (flock), which we keep until we end
 *   DIR/status   the exit status of the command in decimal, written at once; 128 + N if signal N killed it
 *
 * If we are killed (the memory of the container is used up), the lock is free and there is no status.
 *
 * If there is a tracer in DIR/bin, the command runs under it, unless it does not work here:
 *
 *   DIR/bin/clew-trace, DIR/bin/libclew-inject.so
 *   DIR/trace/records   what it recorded
 *   DIR/trace/why-not   instead: what it said when it was tried
 *
 * As the first process of the container we also forward signals to the command, which would not arrive
 * otherwise, and reap orphans. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit statuses of our own failures, as of other programs that run commands (env, timeout). */
#define FAILED 125
#define NOT_EXECUTABLE 126
#define NOT_FOUND 127

/* How often we look whether the inputs are there. Not inotify: a user may have few instances per node. */
#define LOOK_NANOSECONDS 10000000

#define COPY_SIZE 65536

/* Bytes of a trace: the disk of the node is not ours. */
#define LARGEST_TRACE "268435456"

#define PROBE "--do-nothing"

static char shared[PATH_MAX];

static void fail(const char *what)
{
	fprintf(stderr, "clew-step: %s: %s\n", what, strerror(errno));
	exit(FAILED);
}

/* A file of the shared directory; `draft` is a name for it that nobody reads. */
static const char *path_of(const char *name, bool draft)
{
	static char path[PATH_MAX + 64];
	if (draft)
		snprintf(path, sizeof path, "%s/.%s.%d", shared, name, getpid());
	else
		snprintf(path, sizeof path, "%s/%s", shared, name);
	return path;
}

/* Creates a file that others see under its name only when it is complete. */
static int create_draft(const char *name)
{
	int fd = open(path_of(name, true), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		fail(path_of(name, true));
	return fd;
}

static void publish_draft(const char *name)
{
	char draft[PATH_MAX + 64];
	strcpy(draft, path_of(name, true));
	if (rename(draft, path_of(name, false)))
		fail(path_of(name, false));
}

/* The shared directory is two above this program. */
static void find_shared(void)
{
	ssize_t size = readlink("/proc/self/exe", shared, sizeof shared - 1);
	if (size < 0)
		fail("/proc/self/exe");
	shared[size] = 0;
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(shared, '/');
		if (slash)
			*slash = 0;
	}
}

/* The lock ends with this process: the command does not inherit it. */
static void take_lock(void)
{
	int fd = create_draft("lock");
	if (flock(fd, LOCK_EX | LOCK_NB))
		fail("flock");
	publish_draft("lock");
}

static void end(int status)
{
	char text[16];
	int size = snprintf(text, sizeof text, "%d\n", status);
	int fd = create_draft("status");
	if (write(fd, text, (size_t)size) != size)
		fail("status");
	publish_draft("status");
	exit(status);
}

static bool ends_process(int number)
{
	return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT ||
	       number == SIGUSR1 || number == SIGUSR2;
}

static void wait_until_ready(const sigset_t *all)
{
	const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
	while (access(path_of("ready", false), F_OK)) {
		int number = sigtimedwait(all, NULL, &pause);
		if (ends_process(number))
			end(128 + number);
	}
}

static const char *shared_path(const char *name)
{
	char *path = strdup(path_of(name, false));
	if (!path)
		fail("strdup");
	return path;
}

/* Whether the tracer works here: it runs a program that does nothing. What keeps it from that (a seccomp profile,
 * the kernel's ptrace_scope, a kernel in user space) cannot be told beforehand. */
static bool can_trace(const sigset_t *mask)
{
	const char *tracer = shared_path("bin/clew-trace"), *step = shared_path("bin/clew-step");
	const char *why = shared_path("trace/why-not");
	int status;
	if (access(tracer, X_OK))
		return false;
	pid_t child = fork();
	if (child < 0)
		return false;
	if (!child) {
		int said = open(why, O_WRONLY | O_CREAT | O_EXCL, 0644);
		sigprocmask(SIG_SETMASK, mask, NULL);
		if (said >= 0 && dup2(said, 2) == 2)
			execl(tracer, tracer, "--out", "/dev/null", "--", step, PROBE, NULL);
		_exit(FAILED);
	}
	if (waitpid(child, &status, 0) != child || status)
		return false;
	unlink(why);
	return true;
}

/* The command, after the tracer and its options. */
static char **under_tracer(char **command)
{
	static char starter[16];
	const char *library = shared_path("bin/libclew-inject.so");
	const char *options[] = {
		shared_path("bin/clew-trace"), "--out", shared_path("trace/records"), "--init", "1", "--starter", starter,
		"--most", LARGEST_TRACE, "--library", library, "--",
	};
	size_t count = sizeof options / sizeof *options, words = 0;
	snprintf(starter, sizeof starter, "%d", getpid());
	if (access(library, R_OK)) { /* there is none for this architecture */
		options[count - 3] = "--";
		count -= 2;
	}
	while (command[words])
		words++;
	char **all = calloc(count + words + 1, sizeof *all);
	if (!all)
		fail("calloc");
	memcpy(all, options, count * sizeof *all);
	memcpy(all + count, command, words * sizeof *all);
	return all;
}

static pid_t start(char **command, const sigset_t *mask)
{
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child)
		return child;
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(command[0], command);
	fprintf(stderr, "clew-step: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

/* Ends when the command has. */
static void reap(pid_t child)
{
	int status;
	pid_t ended;
	while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
		if (ended == child)
			end(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void run(char **command)
{
	sigset_t all, mask;
	find_shared();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	take_lock();
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* needed only where we are not the first process */
	wait_until_ready(&all);
	pid_t child = start(can_trace(&mask) ? under_tracer(command) : command, &mask);
	for (;;) {
		int number = sigwaitinfo(&all, NULL);
		if (number == SIGCHLD)
			reap(child);
		else if (number > 0)
			kill(child, number);
	}
}

static void install(const char *target)
{
	static char buffer[COPY_SIZE];
	char draft[PATH_MAX + 64], folder[PATH_MAX];
	ssize_t size;
	snprintf(folder, sizeof folder, "%s", target);
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	if (slash && mkdir(folder, 0755) && errno != EEXIST)
		fail(folder);
	snprintf(draft, sizeof draft, "%s.%d", target, getpid());
	int from = open("/proc/self/exe", O_RDONLY), to = open(draft, O_WRONLY | O_CREAT | O_EXCL, 0755);
	if (from < 0 || to < 0)
		fail(draft);
	while ((size = read(from, buffer, sizeof buffer)) > 0)
		if (write(to, buffer, (size_t)size) != size)
			fail(draft);
	if (size < 0 || close(to) || rename(draft, target))
		fail(target);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--install")) {
		install(argv[2]);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], PROBE))
		return 0;
	if (argc < 3 || strcmp(argv[1], "--")) {
		fprintf(stderr, "clew-step: is started in the Pods of pipelines\n");
		return FAILED;
	}
	run(argv + 2);
}
