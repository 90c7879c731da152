/* Isolation (`--isolated`): keeps a command that is not trusted away from the tracer, which runs beside it
 * in the sandbox.
 *
 * The tracer makes itself undumpable: then no process without capabilities can open its descriptors, memory
 * or directories through /proc, or trace it. But programs must open the library and the ring through some
 * process. That is the holder, which has nothing else. Seccomp's strict mode lets it do nothing but wait for
 * the end of the tracer, so an attacker gains nothing by taking it over. */
#include "library/library.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void close_range_of(unsigned first, unsigned last) { syscall(SYS_close_range, first, last, 0); }

/* Sorts `kept` and closes the ranges between its descriptors; negative ones are skipped. */
void close_all_but(int *kept, unsigned count)
{
	unsigned from = 0;
	qsort(kept, count, sizeof *kept, ascending);
	for (unsigned i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned)kept[i] > from)
			close_range_of(from, (unsigned)kept[i] - 1);
		from = (unsigned)kept[i] + 1;
	}
	close_range_of(from, ~0u);
}

/* The holder. It blocks signals first, and ends when the socket to the tracer is closed. */
static void hold(int tracer, int library, int ring)
{
	char byte = 0;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	close_all_but((int[]){tracer, library, ring}, 3);
	prctl(PR_SET_NAME, "clew-files");
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); /* read, write, exit and sigreturn only */
	(void)!write(tracer, &byte, 1);
	(void)!read(tracer, &byte, 1);
	syscall(SYS_exit, 0); /* the C library would call exit_group, which is not allowed */
}

/* Starts the holder. When this returns it has closed all other descriptors: it wrote its byte after that. */
pid_t holder_start(int library, int ring)
{
	int pair[2];
	char byte;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		fail("socketpair");
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid)
		hold(pair[1], library, ring);
	close(pair[1]);
	if (read(pair[0], &byte, 1) != 1)
		fail("cannot isolate the command");
	return pid;
}
