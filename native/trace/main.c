/* clew-trace runs a command under ptrace and records what it and all its descendants do.
 *
 *   clew-trace --out FILE [--spool DIR] [--notify FD] [--library FILE] [--starter PID] [--session 1]
 *              [--environment FILE] [--open N:FLAGS:PATH]… [--streams FD] [--ask FD] [--exclude GLOB]…
 *              [--pin-clock NANOSECONDS] [--pin-random HEX] [--serial 1] [--prompt 1] [--isolated 1] -- COMMAND…
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
 *   --isolated 1          the command is not trusted: keep it away from the tracer (tracer_protection.c)
 *
 * A FILE or DIR may be /proc/self/fd/N: then only the tracer has it, and the command cannot reach it.
 *
 * The tracer runs until the command and all its descendants have ended, and exits with the command's
 * status: 128+n when signal n ended it, 126 or 127 when it could not be run, 125 when the tracer failed.
 * Tracer and command end together: the kernel kills the command when the tracer is killed
 * (PTRACE_O_EXITKILL), and signals the tracer when the starter is killed (PR_SET_PDEATHSIG).
 *
 * Headers, and the modules that they declare:
 *   tasks.h     tasks.c (threads and processes), process_order.c (one process after the other), main.c (event loop)
 *   syscalls.h  syscalls.c (table), filter.c (seccomp), syscall_entry.c, syscall_exit.c
 *   records.h   trace_file.c (format), records.c, observation_numbers.c, snapshots.c, printed_ranges.c
 *   exec.h      images.c (exec), initial_stack.c (injection), inherited_state.c, reuse.c
 *   library.h   rings.c, tracer_protection.c, x86_64/detours.c, x86_64/early_setup.c
 *   pinning.h   pinning.c, clocks.c, pinned_waits.c, random.c, random_devices.c
 *   memory.h    memory.c
 *   arch.h      registers.c in x86_64/ and aarch64/ */
#include "exec.h"
#include "library.h"
#include "pinning.h"
#include "records.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK 100000 /* microseconds between two collections of what the library recorded */
/* TRACEEXIT stops a process while its descriptors can still be read. TRACESYSGOOD sets bit 7 in the signal of
 * a system call stop, so that it cannot be taken for a real SIGTRAP. */
#define OPTIONS                                                                                                      \
	(PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)

static pid_t root;
/* 125 unless the command itself ended: the tracer failed. */
static int root_status = 125;
/* Options that only this module needs. */
static bool prompt, isolated;
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

/* The tracer ignores these, so that Ctrl-C in a terminal ends the command and not its record. The command gets
 * the actions back that were set when the tracer was started. */
static const int ignored_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
#define IGNORED_COUNT (sizeof ignored_signals / sizeof *ignored_signals)
static struct sigaction saved_actions[IGNORED_COUNT];

static void ignore_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	/* wait4 reports stops: a signal for each of them would only cost time. */
	struct sigaction no_stops = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	sigaction(SIGCHLD, &no_stops, NULL);
	for (unsigned i = 0; i < IGNORED_COUNT; i++)
		sigaction(ignored_signals[i], &ignore, &saved_actions[i]);
}

static void restore_signals(void)
{
	for (unsigned i = 0; i < IGNORED_COUNT; i++)
		sigaction(ignored_signals[i], &saved_actions[i], NULL);
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

/* Replaces `environ` by the variables in the file: execvp passes them on to the command. */
static void environment_read(const char *path)
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
	if (isolated)
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
	_exit(errno == ENOENT || errno == ENOTDIR ? 127 : 126);
}

/* Forks the command. PTRACE_SEIZE, not TRACEME: it makes group stops and PTRACE_INTERRUPT work. */
static void start_command(char **command)
{
	int go[2];
	if (pipe2(go, O_CLOEXEC))
		fail("pipe");
	root = fork();
	if (root < 0)
		fail("fork");
	if (!root) {
		close(go[1]);
		run_command(command, go[0]);
	}
	close(go[0]);
	/* Attach before the byte is written: the child must not run the command untraced. */
	if (ptrace(PTRACE_SEIZE, root, NULL, OPTIONS))
		fail("cannot trace (is ptrace allowed here?)");
	/* Only now: the forked child would have inherited it, and then could not be attached to. */
	if (isolated && prctl(PR_SET_DUMPABLE, 0))
		fail("cannot isolate the command");
	random_root(&task_new(root, proc_new(root, NULL, next_seq()))->random);
	if (write(go[1], "", 1) != 1)
		fail("pipe");
	close(go[1]);
}

/* Continues a stopped task. A process with a random device open is stopped at every call (random_devices.c). */
void resume(struct task *task, int request, int signal)
{
	if (request == PTRACE_CONT && task->proc && task->proc->has_random_device)
		request = PTRACE_SYSCALL;
	/* Fails when the task was killed meanwhile: wait4 reports that. */
	ptrace(request, task->tid, NULL, (long)signal);
}

/* Whether two processes share their memory. The event does not say: a plain clone may share memory or not.
 * Without kcmp only a fork is known not to. */
static bool same_memory(pid_t a, pid_t b, int event)
{
	long order = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);
	return order < 0 ? event != PTRACE_EVENT_FORK : order == 0;
}

/* Registers a new thread or process and returns its process. The child's first stop may be reported before
 * this event or after it: both orders end here or in the event loop. */
static struct proc *handle_fork(struct task *parent, int event)
{
	unsigned long tid;
	char thread[64];
	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid))
		return NULL;
	struct task *task = task_find((pid_t)tid);
	snprintf(thread, sizeof thread, "/proc/%d/task/%lu", parent->proc->pid, tid);
	struct proc *proc = parent->proc;
	/* A clone made a thread if the new id is listed among the threads of the parent. */
	if (event != PTRACE_EVENT_CLONE || access(thread, F_OK)) {
		ring_drain(proc); /* what the parent did before the fork must come before the child */
		proc = proc_new((pid_t)tid, parent->proc, next_seq());
		output_fork(proc);
		if (same_memory(parent->tid, (pid_t)tid, event))
			ring_share(parent->proc, proc);
	}
	if (!task) {
		pin_task(parent, task_new((pid_t)tid, proc));
		return proc;
	}
	pin_task(parent, task);
	task->proc = proc;
	proc->tasks++;
	if (task->awaits_parent) { /* it stopped before this event and has been waiting for it */
		task->awaits_parent = false;
		if (proc->pid == task->tid)
			ring_set_up_child(proc);
		resume(task, PTRACE_CONT, 0);
	}
	return proc;
}

/* When a thread calls exec, the kernel ends all other threads and gives it the leader's id. The state of its
 * call moves to the leader's entry, and its own entry goes. */
static struct task *handle_thread_exec(struct task *leader)
{
	unsigned long former;
	if (ptrace(PTRACE_GETEVENTMSG, leader->tid, NULL, &former) || (pid_t)former == leader->tid)
		return leader;
	struct task *thread = task_find((pid_t)former);
	if (!thread)
		return leader;
	leader->image = thread->image;
	leader->call = thread->call;
	leader->seq = thread->seq;
	leader->random = thread->random;
	leader->clock = thread->clock;
	free(leader->path);
	leader->path = thread->path;
	thread->image = NULL;
	thread->path = NULL;
	task_drop(thread);
	return leader;
}

/* PTRACE_EVENT_EXIT: the process is about to end, but its descriptors and /proc entries still exist. Only the
 * leader stands for the process. */
static void handle_exit_stop(struct task *task)
{
	struct proc *proc = task->proc;
	if (task->tid != proc->pid)
		return;
	ring_drain(proc);
	/* Before the descriptors are closed: the pipes it held say which processes it exchanged data with. */
	image_ending(proc);
	output_exiting(proc);
	if (proc->pipes || !proc->execed) {
		image_record_descriptors(proc, false);
		if (proc->pipes && proc->parent && !proc->parent->gone)
			image_record_descriptors(proc->parent, false);
	}
}

/* The task has ended. Its ring is drained and released first, so that its last records come before R_EXIT. */
static void handle_end(struct task *task, int status, const struct rusage *usage)
{
	struct proc *proc = task->proc;
	if (proc && task->tid == proc->pid) {
		ring_unshare(proc);
		ring_release(proc);
		proc->gone = true;
		output_exited(proc);
		clock_child_ended(task);
		out_begin(R_EXIT, next_seq(), proc->image, 5);
		out_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		out_int(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		out_int(usage->ru_utime.tv_sec * 1000000l + usage->ru_utime.tv_usec);
		out_int(usage->ru_stime.tv_sec * 1000000l + usage->ru_stime.tv_usec);
		out_int(usage->ru_maxrss);
		out_end();
		if (proc->pid == root)
			root_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		/* The reader wants to know of each child as soon as it has ended. */
		if (prompt && proc->parent && proc->parent->pid == root)
			out_flush();
	}
	task_drop(task);
}

/* One ptrace stop. Which kind it is follows from the signal and the event number in the upper bits. */
static void handle_stop(struct task *task, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;
	/* An exec of an absent file is not followed to its end (images.c): any other stop means that it
	 * failed. */
	if (event != PTRACE_EVENT_EXEC && image_outcome_pending(task))
		image_failed(task);
	/* System call stop: the end of a call that syscall_enter asked for, or any call of a process with a
	 * random device. */
	if (signal == (SIGTRAP | 0x80)) {
		struct __ptrace_syscall_info info;
		if (task->early && ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof info, &info) > 0) {
			early_finish(task, info.exit.rval);
			resume(task, PTRACE_CONT, 0);
			return;
		}
		if ((task->call || task->proc->has_random_device) && ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof info, &info) > 0) {
			if (task->call && info.op == PTRACE_SYSCALL_INFO_EXIT)
				syscall_leave(task, info.exit.rval);
			if (task->proc->has_random_device)
				device_stop(task, &info);
		}
		resume(task, PTRACE_CONT, 0);
		return;
	}
	switch (event) {
	case PTRACE_EVENT_SECCOMP: /* the filter stopped a call before it was made */
		task->call = NULL;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof task->info, &task->info) > 0 && syscall_enter(task)) {
			/* PTRACE_SYSCALL: stop again when the call returns. */
			resume(task, PTRACE_SYSCALL, 0);
		} else {
			task->call = NULL;
			resume(task, PTRACE_CONT, 0);
		}
		return;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		if (serial_holds(task, handle_fork(task, event)))
			return; /* the parent stays stopped until the child has ended */
		break;
	case PTRACE_EVENT_EXEC:
		task = handle_thread_exec(task); /* the new program has not run an instruction yet */
		ring_drain(task->proc);
		image_started(task);
		task->call = NULL;
		break;
	case PTRACE_EVENT_EXIT:
		handle_exit_stop(task);
		break;
	case PTRACE_EVENT_STOP:
		if (signal != SIGTRAP) { /* group stop (SIGSTOP): it stays stopped, but the tracer sees SIGCONT */
			resume(task, PTRACE_LISTEN, 0);
			return;
		}
		/* The first stop of a new process: its copy of the page still names the slot of its parent. */
		if (task->proc->pid == task->tid && !task->proc->execed)
			ring_set_up_child(task->proc);
		break;
	default: /* a signal: deliver it */
		resume(task, PTRACE_CONT, signal);
		return;
	}
	resume(task, PTRACE_CONT, 0);
}

/* Waits for stops and ends until no task is left. The tick interrupts wait4 (EINTR), so rings are collected
 * even while every process computes. */
static void event_loop(void)
{
	while (task_count()) {
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
		else if (!strcmp(argv[at], "--open") && open_count < 3)
			open_options[open_count++] = value;
		else if (!strcmp(argv[at], "--serial"))
			serial_start();
		else if (!strcmp(argv[at], "--prompt"))
			prompt = true;
		else if (!strcmp(argv[at], "--isolated"))
			isolated = true;
		else if (!strcmp(argv[at], "--pin-clock") ? pin_clock(value) : !strcmp(argv[at], "--pin-random") && pin_random(value))
			continue;
		else if (!strcmp(argv[at], "--exclude") && snapshots.exclude_count < 256)
			exclude[snapshots.exclude_count++] = value;
		else
			break;
	}
	if (!out || at + 1 >= argc || strcmp(argv[at], "--")) {
		fprintf(stderr, "usage: clew-trace --out FILE [--spool DIR] [--notify FD] [--library FILE] [--starter PID] [--session 1] [--environment FILE] [--open N:FLAGS:PATH]… [--streams FD] [--ask FD] [--exclude GLOB]… [--pin-clock NANOSECONDS] [--pin-random HEX] [--serial 1] [--prompt 1] [--isolated 1] -- COMMAND…\n");
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
	if (isolated) {
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
	event_loop();
	out_flush();
	return root_status;
}
