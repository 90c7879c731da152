/* clew-trace --out FILE [--spool DIR] [--notify FD] [--library FILE] [--starter PID] [--session 1]
 *            [--environment FILE] [--open N:FLAGS:PATH]… [--streams FD] [--ask FD] [--exclude GLOB]…
 *            [--pin-clock NANOSECONDS] [--pin-random HEX] [--serial 1] [--prompt 1] [--isolated 1] -- COMMAND…
 *
 * A FILE or DIR may be /proc/self/fd/N: then it is the tracer's alone, and the command never has it.
 * `--environment` holds the command's variables, each ended by a zero byte; else it has the tracer's.
 * `--streams FD` is memory shared with whoever reads the output, `--ask FD` a socket to whoever knows what
 * need not run.
 * `--open N:FLAGS:PATH` is a file that the command has open as its descriptor N.
 * `--isolated 1`: the command is not trusted, and must not reach the tracer, nor any descriptor but 0 to 2.
 * `--prompt 1`: what a child of the command did is written when it ends, not at the next tick.
 *
 * Runs the command to its end and that of all it started, and exits with its status: 128+n
 * when signal n ended it, 126 or 127 when it could not be run, 125 for the tracer's own failure.
 * Tracer and command end together: the kernel kills one when the other, or whoever started
 * the tracer, is killed. `--starter` names that one. */
#include "trace.h"

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

#define TICK 100000 /* microseconds between looks at what the library recorded */
#define OPTIONS                                                                                                      \
	(PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)

static pid_t root;
static int root_status = 125;
static bool prompt, isolated;
static pid_t holder; /* see isolation.c; 0: none */

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

/* Comes ten times a second, and when whoever started us is gone: then what was seen is written
 * down and all ends; should something long be under access_mode, it ends without. */
static void tick(int signal)
{
	(void)signal;
	ticked = 1;
	if (starter && getppid() != starter && ++orphaned > 3)
		_exit(125);
}

/* The command finds every signal as it was when the tracer was started. */
static const int ignored_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
#define IGNORED_COUNT (sizeof ignored_signals / sizeof *ignored_signals)
static struct sigaction saved_actions[IGNORED_COUNT];

static void ignore_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	for (unsigned i = 0; i < IGNORED_COUNT; i++)
		sigaction(ignored_signals[i], &ignore, &saved_actions[i]);
}

static void restore_signals(void)
{
	for (unsigned i = 0; i < IGNORED_COUNT; i++)
		sigaction(ignored_signals[i], &saved_actions[i], NULL);
}

/* The descriptor that was handed over by name; -1: it is the path of a file. */
static int held_descriptor(const char *value)
{
	static const char self[] = "/proc/self/fd/";
	return strncmp(value, self, sizeof self - 1) ? -1 : atoi(value + sizeof self - 1);
}

/* A descriptor that was handed over by name: the same file, as others find it through `pid`. */
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

static char *open_options[3];
static unsigned open_count;

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

static void run_command(char **command, int go)
{
	char byte;
	if (isolated)
		close_all_but((int[]){0, 1, 2, go}, 4);
	restore_signals();
	if (read(go, &byte, 1) != 1)
		_exit(125);
	open_files(); /* the paths are the command's: not before the tracer is out of its reach */
	if (filter_install())
		_exit(125);
	close(go);
	pin_addresses();
	execvp(command[0], command);
	_exit(errno == ENOENT || errno == ENOTDIR ? 127 : 126);
}

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
	if (ptrace(PTRACE_SEIZE, root, NULL, OPTIONS))
		fail("cannot trace (is ptrace allowed here?)");
	if (isolated && prctl(PR_SET_DUMPABLE, 0))
		fail("cannot isolate the command");
	random_root(&task_new(root, proc_new(root, NULL, next_seq()))->random);
	if (write(go[1], "", 1) != 1)
		fail("pipe");
	close(go[1]);
}

void resume(struct task *task, int request, int signal)
{
	if (request == PTRACE_CONT && task->proc && task->proc->has_random_device)
		request = PTRACE_SYSCALL;
	ptrace(request, task->tid, NULL, (long)signal); /* a failure means it was killed: its end is reported */
}

/* The kind of the event does not tell: a plain clone may share memory, or not. */
static bool same_memory(pid_t a, pid_t b, int event)
{
	long order = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);
	return order < 0 ? event != PTRACE_EVENT_FORK : order == 0;
}

/* The new one's process, which for a thread is its maker's. */
static struct proc *handle_fork(struct task *parent, int event)
{
	unsigned long tid;
	char thread[64];
	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid))
		return NULL;
	struct task *task = task_find((pid_t)tid);
	snprintf(thread, sizeof thread, "/proc/%d/task/%lu", parent->proc->pid, tid);
	struct proc *proc = parent->proc;
	if (event != PTRACE_EVENT_CLONE || access(thread, F_OK)) {
		ring_drain(proc);
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
	if (task->awaits_parent) {
		task->awaits_parent = false;
		if (proc->pid == task->tid)
			ring_set_up_child(proc);
		resume(task, PTRACE_CONT, 0);
	}
	return proc;
}

/* A thread's exec takes its process over: the other threads are gone and it has the leader's id. */
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

static void handle_exit_stop(struct task *task)
{
	struct proc *proc = task->proc;
	if (task->tid != proc->pid)
		return;
	ring_drain(proc);
	/* While its descriptors are still open: whom did it pass data to? */
	image_ending(proc);
	output_exiting(proc);
	if (proc->pipes || !proc->execed) {
		image_record_descriptors(proc, false);
		if (proc->pipes && proc->parent && !proc->parent->gone)
			image_record_descriptors(proc->parent, false);
	}
}

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
		if (prompt && proc->parent && proc->parent->pid == root)
			out_flush();
	}
	task_drop(task);
}

static void handle_stop(struct task *task, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;
	if (event != PTRACE_EVENT_EXEC && image_outcome_pending(task))
		image_failed(task);
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
	case PTRACE_EVENT_SECCOMP:
		task->call = NULL;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof task->info, &task->info) > 0 && syscall_enter(task)) {
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
			return;
		break;
	case PTRACE_EVENT_EXEC:
		task = handle_thread_exec(task);
		ring_drain(task->proc);
		image_started(task);
		task->call = NULL;
		break;
	case PTRACE_EVENT_EXIT:
		handle_exit_stop(task);
		break;
	case PTRACE_EVENT_STOP:
		if (signal != SIGTRAP) { /* a stop of the whole group: leave it stopped */
			resume(task, PTRACE_LISTEN, 0);
			return;
		}
		if (task->proc->pid == task->tid && !task->proc->execed)
			ring_set_up_child(task->proc);
		break;
	default:
		resume(task, PTRACE_CONT, signal);
		return;
	}
	resume(task, PTRACE_CONT, 0);
}

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
		if (tid == holder) {
			out_flush();
			errno = ESRCH;
			fail("the holder of the library was killed");
		}
		struct task *task = task_find(tid);
		if (!WIFSTOPPED(status)) {
			if (task)
				handle_end(task, status, &usage);
		} else if (!task) {
			task_new(tid, NULL)->awaits_parent = true; /* its parent's word is still to come */
		} else if (task->proc) {
			handle_stop(task, status);
		}
	}
}

int main(int argc, char **argv)
{
	const char *out = NULL, *exclude[256];
	char *library = NULL;
	struct snapshot_options saving = {.exclude = exclude};
	int notify = -1, at = 1;
	bool session = false;
	struct itimerval timer = {{0, TICK}, {0, TICK}};
	struct sigaction on_tick = {.sa_handler = tick}; /* without SA_RESTART: it ends the wait */
	for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
		char *value = argv[at + 1];
		if (!strcmp(argv[at], "--out"))
			out = held_path(value);
		else if (!strcmp(argv[at], "--spool"))
			saving.folder = held_path(value);
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
		else if (!strcmp(argv[at], "--exclude") && saving.exclude_count < 256)
			exclude[saving.exclude_count++] = value;
		else
			break;
	}
	if (!out || at + 1 >= argc || strcmp(argv[at], "--")) {
		fprintf(stderr, "usage: clew-trace --out FILE [--spool DIR] [--notify FD] [--library FILE] [--starter PID] [--session 1] [--environment FILE] [--open N:FLAGS:PATH]… [--streams FD] [--ask FD] [--exclude GLOB]… [--pin-clock NANOSECONDS] [--pin-random HEX] [--serial 1] [--prompt 1] [--isolated 1] -- COMMAND…\n");
		return 125;
	}
	held_path(argv[0]);
	prctl(PR_SET_PDEATHSIG, SIGALRM);
	if (starter && getppid() != starter)
		return 125; /* killed before we could ask to be told */
	if (session && (setsid() < 0 || ioctl(0, TIOCSCTTY, 0)))
		fail("cannot give the command its terminal");
	if (notify >= 0)
		fcntl(notify, F_SETFD, FD_CLOEXEC);
	out_open(out, notify);
	rings_open();
	snapshots_start(&saving);
	if (isolated) {
		holder = holder_start(library ? held_descriptor(library) : -1, rings_file());
		rings_set_holder(holder);
	}
	if (library)
		stack_set_library(held_path_through(library, holder ? holder : getpid()));
	ignore_signals();
	start_command(argv + at + 1);
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
