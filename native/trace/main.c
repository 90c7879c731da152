/* clew-trace runs a command under ptrace and records what it and all its descendants do.
 *
 *   clew-trace --out FILE [--spool DIR] [--notify FD] [--library FILE] [--starter PID] [--session 1]
 *              [--environment FILE] [--open N:FLAGS:PATH]… [--streams FD] [--ask FD] [--exclude GLOB]…
 *              [--pin-clock NANOSECONDS] [--pin-random HEX] [--serial 1] [--prompt 1] [--isolated 1]
 *              [--init 1] [--most BYTES] -- COMMAND…
 *
 *   --out FILE            the trace (docs/formats/trace.md)
 *   --spool DIR           where content is kept before it is overwritten (snapshots.c)
 *   --notify FD           gets a byte when the trace has grown
 *   --library FILE        the library to inject; without it every call of interest is stopped
 *   --starter PID         the process that started the tracer; when it is gone, the run ends
 *   --environment FILE    the command's variables, each ended by a zero byte; default: those of the tracer
 *   --open N:FLAGS:PATH   a file that the command has open as descriptor N
 *   --streams FD          memory shared with the process that reads the command's output (printed_ranges.c)
 *   --ask FD              a socket to the process that knows which programs need not run (reuse.c)
 *   --exclude GLOB        paths whose content is never kept
 *   --pin-clock, --pin-random  see pinning.c;  --serial 1  see process_order.c
 *   --prompt 1            write what a child of the command did when it ends, not at the next tick
 *   --steps 1             record where a step of the command begins and ends (syscall_entry.c)
 *   --isolated 1          the command is not trusted: keep it away from the tracer (tracer_protection.c)
 *   --init 1              as the first process of a container: signals go on to the command, and its end is the
 *                         end of all; default: the tracer ignores them, and waits for the last process
 *   --most BYTES          of the trace: it ends before the record that would exceed them
 *
 * A FILE or DIR may be /proc/self/fd/N: then only the tracer has it, and the command cannot reach it.
 *
 * The tracer runs until the command and all its descendants have ended, and exits with the command's
 * status: 128+n when signal n ended it, 126 or 127 when it could not be run, 125 when the tracer failed.
 * Tracer and command end together: the kernel kills the command when the tracer is killed
 * (PTRACE_O_EXITKILL), and signals the tracer when the starter is killed (PR_SET_PDEATHSIG).
 *
 * What is where; each directory has one header:
 *   main.c, command.c, ptrace_stops.c   options and event loop; starting the command; what each stop means
 *   tasks.c, process_order.c            threads and processes; one process after the other
 *   memory.c                            memory and paths of a traced process
 *   syscalls/    the table of calls, the seccomp filter, what happens when a call begins and returns
 *   exec/        a new program: its arguments, files, descriptors and stack; reuse instead of running it
 *   library/     the injected library: its rings, and the process that holds its files
 *   records/     the trace: its format and records, and content that is kept before it changes
 *   pinning/     clock and randomness, answered in place of the kernel
 *   x86_64/, aarch64/   what differs between architectures (arch.h); on x86-64 also the detours */
#include "tracer.h"
#include "exec/exec.h"
#include "library/library.h"
#include "pinning/pinning.h"
#include "records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK 100000 /* microseconds between two collections of what the library recorded */

struct run run = {.status = 125};
static pid_t holder; /* the process that holds library and ring for an isolated command; 0: none */

void fail(const char *what)
{
	fprintf(stderr, "clew-trace: %s: %s\n", what, strerror(errno));
	exit(125);
}

void *must(void *memory)
{
	if (!memory)
		fail("out of memory");
	return memory;
}

static pid_t starter;
static volatile sig_atomic_t ticked, orphaned;

/* Runs ten times a second, and when the starter is gone. The event loop then writes what was recorded and
 * ends. If the loop is busy for four ticks, the tracer ends without writing. */
static void tick(int signal)
{
	(void)signal;
	ticked = 1;
	if (starter && getppid() != starter && ++orphaned > 3)
		_exit(125);
}

/* The descriptor of a /proc/self/fd/N value; -1 when the value is a plain path. */
static int held_descriptor(const char *value)
{
	static const char self[] = "/proc/self/fd/";
	return strncmp(value, self, sizeof self - 1) ? -1 : atoi(value + sizeof self - 1);
}

/* A /proc/self/fd/N value as other processes can open it: through the /proc of `pid`. Closed on exec, so that
 * the command does not inherit it. */
static char *held_path_through(char *value, pid_t pid)
{
	char *name;
	int fd = held_descriptor(value);
	if (fd < 0)
		return value;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (asprintf(&name, "/proc/%d/fd/%d", pid, fd) < 0)
		fail("out of memory");
	return name;
}

static char *held_path(char *value) { return held_path_through(value, getpid()); }

/* Waits for stops and ends until no task is left. The tick interrupts wait4 (EINTR), so rings are collected
 * even while every process computes. */
static void event_loop(void)
{
	while (task_count() && !(run.init && run.ended)) {
		if (ticked) {
			ticked = 0;
			rings_drain();
			out_flush();
			serial_tick();
			if (orphaned)
				exit(125);
		}
		struct rusage usage;
		int status;
		pid_t tid = wait4(-1, &status, __WALL, &usage);
		if (tid < 0) {
			if (errno != EINTR)
				return;
			continue;
		}
		/* Without the holder no program can open the library: the trace would be slow and isolation is
		 * in doubt. */
		if (tid == holder) {
			out_flush();
			/* errno for the message: no system call has failed. */
			errno = ESRCH;
			fail("the holder of the library was killed");
		}
		struct task *task = task_find(tid);
		if (!WIFSTOPPED(status)) {
			if (task)
				handle_end(task, status, &usage);
		} else if (task && task->proc) {
			handle_stop(task, status);
		} else if (status >> 16 == PTRACE_EVENT_EXIT) {
			/* Killed before the event of its parent. The event never comes if the parent was killed,
			 * too: an exit_group while a thread starts another. */
			resume(task ? task : task_new(tid, NULL), PTRACE_CONT, 0);
		} else if (!task) {
			/* Stopped before the event of its parent: keep it stopped until handle_fork. */
			task_new(tid, NULL)->awaits_parent = true;
		}
	}
}

int main(int argc, char **argv)
{
	const char *out = NULL, *exclude[256];
	char *library = NULL;
	struct snapshot_options snapshots = {.exclude = exclude};
	int notify = -1, at = 1;
	bool session = false;
	/* The timer starts last, once everything it collects from is set up. */
	struct itimerval timer = {{0, TICK}, {0, TICK}};
	struct sigaction on_tick = {.sa_handler = tick}; /* without SA_RESTART: the tick must interrupt wait4 */
	for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
		char *value = argv[at + 1];
		if (!strcmp(argv[at], "--out"))
			out = held_path(value);
		else if (!strcmp(argv[at], "--spool"))
			snapshots.folder = held_path(value);
		else if (!strcmp(argv[at], "--environment"))
			environment_read(held_path(value));
		else if (!strcmp(argv[at], "--notify"))
			notify = atoi(value);
		else if (!strcmp(argv[at], "--library"))
			library = value;
		else if (!strcmp(argv[at], "--starter"))
			starter = atoi(value);
		else if (!strcmp(argv[at], "--streams"))
			output_open(atoi(value));
		else if (!strcmp(argv[at], "--ask"))
			reuse_open(atoi(value));
		else if (!strcmp(argv[at], "--session"))
			session = true;
		else if (!strcmp(argv[at], "--open") && command_open(value))
			continue;
		else if (!strcmp(argv[at], "--serial"))
			serial_start();
		else if (!strcmp(argv[at], "--prompt"))
			run.prompt = true;
		else if (!strcmp(argv[at], "--steps"))
			run.steps = true;
		else if (!strcmp(argv[at], "--isolated"))
			run.isolated = true;
		else if (!strcmp(argv[at], "--init"))
			run.init = true;
		else if (!strcmp(argv[at], "--most"))
			out_limit(strtoull(value, NULL, 10));
		else if (!strcmp(argv[at], "--pin-clock") ? pin_clock(value) : !strcmp(argv[at], "--pin-random") && pin_random(value))
			continue;
		else if (!strcmp(argv[at], "--exclude") && snapshots.exclude_count < 256)
			exclude[snapshots.exclude_count++] = value;
		else
			break;
	}
	if (!out || at + 1 >= argc || strcmp(argv[at], "--")) {
		fprintf(stderr, "usage: clew-trace --out FILE [--spool DIR] [--notify FD] [--library FILE] [--starter PID] [--session 1] [--environment FILE] [--open N:FLAGS:PATH]… [--streams FD] [--ask FD] [--exclude GLOB]… [--pin-clock NANOSECONDS] [--pin-random HEX] [--serial 1] [--prompt 1] [--steps 1] [--isolated 1] [--init 1] [--most BYTES] -- COMMAND…\n");
		return 125;
	}
	/* The tracer itself may have been started through a descriptor: close that on exec as well. */
	held_path(argv[0]);
	/* SIGALRM, not SIGKILL: the tick writes what was recorded before the tracer ends. */
	prctl(PR_SET_PDEATHSIG, SIGALRM);
	if (starter && getppid() != starter)
		return 125; /* it was killed before the prctl: its signal will never come */
	if (session && (setsid() < 0 || ioctl(0, TIOCSCTTY, 0)))
		fail("cannot give the command its terminal");
	if (notify >= 0)
		fcntl(notify, F_SETFD, FD_CLOEXEC);
	out_open(out, notify);
	/* The rings before the first process: its number in the sequence comes from there. */
	rings_open();
	snapshots_start(&snapshots);
	if (run.isolated) {
		holder = holder_start(library ? held_descriptor(library) : -1, rings_file());
		rings_set_holder(holder);
	}
	if (library)
		stack_set_library(held_path_through(library, holder ? holder : getpid()));
	/* Before the fork: a Ctrl-C between the two must not end the tracer alone. */
	ignore_signals();
	start_command(argv + at + 1);
	/* The starter may have blocked SIGALRM, and a blocked tick would never collect anything. */
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigaction(SIGALRM, &on_tick, NULL);
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	forward_signals();
	event_loop();
	rings_drain(); /* of processes that outlive the command (--init): they end with the tracer */
	out_flush();
	return run.status;
}
