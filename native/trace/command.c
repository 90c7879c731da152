/* Starts the command: its variables, standard streams and signals, and the tracer's hold on it.
 *
 * The command must not run an instruction untraced, and must not notice the tracer: it gets the signal actions
 * and descriptors that it would have without one. */
#include "tracer.h"
#include "library/library.h"
#include "pinning/pinning.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

/* TRACEEXIT stops a process while its descriptors can still be read. TRACESYSGOOD sets bit 7 in the signal of
 * a system call stop, so that it cannot be taken for a real SIGTRAP. */
#define OPTIONS                                                                                                      \
	(PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)

/* The tracer ignores these, so that Ctrl-C in a terminal ends the command and not its record. The command gets
 * the actions back that were set when the tracer was started. */
static const int ignored_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
#define IGNORED_COUNT (sizeof ignored_signals / sizeof *ignored_signals)
static struct sigaction saved_actions[IGNORED_COUNT];

/* With --init these go on to the command instead. They are blocked until it has been started, so that none is
 * lost. */
static const int forwarded_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define FORWARDED_COUNT (sizeof forwarded_signals / sizeof *forwarded_signals)
static sigset_t forwarded, saved_mask;

static void forward_signal(int signal) { kill(run.root, signal); }

static void block_forwarded(void)
{
	sigemptyset(&forwarded);
	for (unsigned i = 0; i < FORWARDED_COUNT; i++)
		sigaddset(&forwarded, forwarded_signals[i]);
	sigprocmask(SIG_BLOCK, &forwarded, &saved_mask);
}

void forward_signals(void)
{
	struct sigaction forward = {.sa_handler = forward_signal, .sa_flags = SA_RESTART};
	if (!run.init)
		return;
	for (unsigned i = 0; i < FORWARDED_COUNT; i++)
		sigaction(forwarded_signals[i], &forward, NULL);
	sigprocmask(SIG_UNBLOCK, &forwarded, NULL);
}

void ignore_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	/* wait4 reports stops: a signal for each of them would only cost time. */
	struct sigaction no_stops = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	sigaction(SIGCHLD, &no_stops, NULL);
	if (run.init)
		block_forwarded();
	for (unsigned i = 0; i < IGNORED_COUNT; i++)
		sigaction(ignored_signals[i], &ignore, &saved_actions[i]);
}

static void restore_signals(void)
{
	for (unsigned i = 0; i < IGNORED_COUNT; i++)
		sigaction(ignored_signals[i], &saved_actions[i], NULL);
	if (run.init)
		sigprocmask(SIG_SETMASK, &saved_mask, NULL);
}

/* Replaces `environ` by the variables in the file: execvp passes them on to the command. */
void environment_read(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		fail("cannot read the environment");
	char *text = must(calloc(1, (size_t)st.st_size + 1));
	char **entries = must(calloc((size_t)st.st_size / 2 + 2, sizeof *entries));
	if (read(fd, text, (size_t)st.st_size) != st.st_size)
		fail("cannot read the environment");
	close(fd);
	unsigned count = 0;
	for (char *at = text; at < text + st.st_size; at += strlen(at) + 1)
		if (*at)
			entries[count++] = at;
	environ = entries;
}

/* The --open options: at most descriptors 0, 1 and 2. */
static char *open_options[3];
static unsigned open_count;

bool command_open(char *option)
{
	if (open_count == sizeof open_options / sizeof *open_options)
		return false;
	open_options[open_count++] = option;
	return true;
}

/* Opens in the child, not in the tracer: the open may block (a named pipe), and belongs to the command. */
static void open_files(void)
{
	for (unsigned i = 0; i < open_count; i++) {
		char *flags, *path;
		int number = (int)strtol(open_options[i], &flags, 10), how = (int)strtol(flags + 1, &path, 10);
		int fd = open(path + 1, how, 0666);
		if (fd < 0 || dup2(fd, number) < 0)
			fail(path + 1);
		if (fd != number)
			close(fd);
	}
}

/* Runs the command. A file that is no program is a script for the shell, as glibc's execvp decides itself, and
 * musl's does not. */
static void execute(char **command)
{
	execvp(command[0], command);
	if (errno != ENOEXEC)
		return;
	unsigned count = 0;
	while (command[count])
		count++;
	char **words = must(calloc(count + 2, sizeof *words));
	words[0] = "/bin/sh";
	memcpy(words + 1, command, count * sizeof *words);
	execv(words[0], words);
}

/* In the child. It waits for a byte: the tracer must have attached before the filter is installed, because a
 * call that the filter stops fails with ENOSYS while there is no tracer. */
static void run_command(char **command, int go)
{
	char byte;
	if (run.isolated)
		close_all_but((int[]){0, 1, 2, go}, 4);
	restore_signals();
	if (read(go, &byte, 1) != 1)
		_exit(125);
	/* After the byte, so after the tracer made itself undumpable: an isolated command chose these paths. */
	open_files();
	if (filter_install())
		_exit(125);
	close(go);
	/* Last, right before exec: it takes effect with the next program. */
	pin_addresses();
	execute(command);
	if (run.init) /* nobody else says why it did not start */
		fprintf(stderr, "clew-step: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT || errno == ENOTDIR ? 127 : 126);
}

/* Forks the command. PTRACE_SEIZE, not TRACEME: it makes group stops and PTRACE_INTERRUPT work. */
void start_command(char **command)
{
	int go[2];
	if (pipe2(go, O_CLOEXEC))
		fail("pipe");
	run.root = fork();
	if (run.root < 0)
		fail("fork");
	if (!run.root) {
		close(go[1]);
		run_command(command, go[0]);
	}
	close(go[0]);
	/* Attach before the byte is written: the child must not run the command untraced. */
	if (ptrace(PTRACE_SEIZE, run.root, NULL, OPTIONS))
		fail("cannot trace (is ptrace allowed here?)");
	/* Only now: the forked child would have inherited it, and then could not be attached to. */
	if (run.isolated && prctl(PR_SET_DUMPABLE, 0))
		fail("cannot isolate the command");
	random_root(&task_new(run.root, proc_new(run.root, NULL, next_seq()))->random);
	if (write(go[1], "", 1) != 1)
		fail("pipe");
	close(go[1]);
}

