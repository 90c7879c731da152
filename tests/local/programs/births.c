/* How processes come to be. births HOW PROGRAM ARGUMENT…: starts PROGRAM in the way HOW says and
 * waits for it; exits with its status. */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

extern char **environ;
static char **words;

static int status_of(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, __WALL) < 0)
		return 99;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run(void)
{
	execv(words[0], words);
	_exit(98);
}

static int run_clone(void *nothing)
{
	(void)nothing;
	run();
	return 97;
}

static void *run_thread(void *nothing)
{
	(void)nothing;
	run();
	return NULL;
}

static int with_clone(int flags)
{
	char *stack = malloc(1 << 20);
	return status_of(clone(run_clone, stack + (1 << 20), flags, NULL));
}

static int with_clone3(uint64_t flags)
{
	struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
	if (!pid)
		run();
	return status_of((pid_t)pid);
}

/* Memory shared with a child that is no thread: what the parent opens meanwhile is its own doing. */
static volatile int shared_turn;

static int reads_shared(void *name)
{
	while (shared_turn != 1)
		sched_yield();
	int fd = open(name, O_RDONLY);
	shared_turn = 2;
	return fd < 0;
}

static int shared(void)
{
	char *stack = malloc(1 << 20);
	pid_t pid = clone(reads_shared, stack + (1 << 20), CLONE_VM | SIGCHLD, words[0]);
	int fd = open(words[1], O_RDONLY);
	shared_turn = 1;
	while (shared_turn != 2)
		sched_yield();
	int other = open(words[2], O_RDONLY);
	int status = status_of(pid);
	int last = open(words[3], O_RDONLY);
	return fd < 0 || other < 0 || last < 0 ? 96 : status;
}

static void *does_nothing(void *nothing) { return nothing; }

__attribute__((noreturn)) static void *starts_threads(void *nothing)
{
	pthread_t thread;
	for (;;)
		if (!pthread_create(&thread, NULL, does_nothing, nothing))
			pthread_detach(thread);
}

/* Processes that exit while their threads start threads. */
static int exit_while_starting(int processes)
{
	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();
		if (!pid) {
			pthread_t thread;
			for (int n = 0; n < 3; n++)
				pthread_create(&thread, NULL, starts_threads, NULL);
			usleep(1000);
			_exit(0);
		}
		if (status_of(pid))
			return 95;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *how = argv[1];
	words = argv + 2;
	if (!strcmp(how, "fork")) {
		pid_t pid = fork();
		if (!pid)
			run();
		return status_of(pid);
	}
	if (!strcmp(how, "vfork")) {
		pid_t pid = vfork();
		if (!pid) {
			execv(words[0], words);
			_exit(98);
		}
		return status_of(pid);
	}
	if (!strcmp(how, "vfork-reads") && argc > 5) { /* mine, the child's, mine again, a program */
		int fd = open(words[0], O_RDONLY | O_CLOEXEC);
		pid_t pid = vfork();
		if (!pid) {
			if (open(words[1], O_RDONLY | O_CLOEXEC) < 0 || !access("nowhere", F_OK))
				_exit(97);
			execv(words[3], words + 3);
			_exit(98);
		}
		int last = open(words[2], O_RDONLY);
		return fd < 0 || last < 0 ? 96 : status_of(pid);
	}
	if (!strcmp(how, "vfork-searches") && argc > 3) { /* a file of mine, a program on the PATH */
		pid_t pid = vfork();
		if (!pid) {
			execvp(words[1], words + 1);
			_exit(98);
		}
		int fd = open(words[0], O_RDONLY);
		return fd < 0 ? 96 : status_of(pid);
	}
	if (!strcmp(how, "vfork-killed") && argc > 3) { /* the child's, mine */
		pid_t pid = vfork();
		if (!pid) {
			if (open(words[0], O_RDONLY) >= 0)
				kill(getpid(), SIGKILL);
			_exit(98);
		}
		int fd = open(words[1], O_RDONLY), status;
		waitpid(pid, &status, 0);
		return fd < 0 ? 96 : WIFSIGNALED(status) ? 0 : 97;
	}
	if (!strcmp(how, "vfork-fails")) {
		char *before = getenv("WITNESS");
		pid_t pid = vfork();
		if (!pid) {
			execv("/does/not/exist", words);
			_exit(errno == ENOENT ? 0 : 1);
		}
		int status = status_of(pid);
		char *no[] = {words[0], NULL};
		if (execve("/not/there/either", no, environ) != -1 || errno != ENOENT)
			return 95;
		if (getenv("WITNESS") != before || (before && strcmp(before, "seen")))
			return 94;
		return status ? status : (execv(words[0], words), 93);
	}
	if (!strcmp(how, "spawn")) {
		pid_t pid;
		if (posix_spawn(&pid, words[0], NULL, NULL, words, environ))
			return 92;
		return status_of(pid);
	}
	if (!strcmp(how, "clone"))
		return with_clone(SIGCHLD);
	if (!strcmp(how, "clone-silent"))
		return with_clone(0);
	if (!strcmp(how, "clone-vm"))
		return with_clone(CLONE_VM | CLONE_VFORK | SIGCHLD);
	if (!strcmp(how, "clone3"))
		return with_clone3(0);
	if (!strcmp(how, "exit-while-starting"))
		return exit_while_starting(atoi(words[0]));
	if (!strcmp(how, "shared"))
		return shared();
	if (!strcmp(how, "thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, run_thread, NULL);
		pthread_join(thread, NULL);
		return 91;
	}
	if (!strcmp(how, "thread-alone")) {
		pthread_t thread;
		pthread_create(&thread, NULL, run_thread, NULL);
		pthread_exit(NULL);
	}
	if (!strcmp(how, "execveat")) {
		int fd = open(words[0], O_PATH | O_CLOEXEC);
		syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
		return 90;
	}
	if (!strcmp(how, "chain")) {
		/* births chain N PROGRAM…: becomes itself N times, then PROGRAM. */
		int left = atoi(argv[2]);
		if (!left) {
			words = argv + 3;
			run();
		}
		char count[16];
		snprintf(count, sizeof count, "%d", left - 1);
		argv[2] = count;
		execv("/proc/self/exe", argv);
		return 89;
	}
	return 2;
}
