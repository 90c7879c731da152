/* Keeping a command that is not trusted (`--isolated`) away from the tracer, which runs beside it in the sandbox.
 *
 * The tracer makes itself undumpable: then no process without capabilities can open its descriptors, memory or
 * folders through /proc, or trace it. But programs have to open the library and the ring, and do so through
 * the /proc of a process that has nothing else: the holder. It can do nothing but wait for the tracer's end
 * (seccomp's strict mode), so it is of no use to an attacker who takes it over either. */
#include "trace.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

void close_all_but(int *kept, unsigned count)
{
	unsigned from = 0;
	qsort(kept, count, sizeof *kept, ascending);
	for (unsigned i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned)kept[i] > from)
			close_range(from, (unsigned)kept[i] - 1, 0);
		from = (unsigned)kept[i] + 1;
	}
	close_range(from, ~0u, 0);
}

static void hold(int tracer, int library, int ring)
{
	char byte = 0;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	close_all_but((int[]){tracer, library, ring}, 3);
	prctl(PR_SET_NAME, "clew-files");
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	(void)!write(tracer, &byte, 1);
	(void)!read(tracer, &byte, 1);
	syscall(SYS_exit, 0);
}

/* When this returns the holder has no other descriptors any more. */
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
