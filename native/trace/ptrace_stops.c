/* What each ptrace stop means, and how the task goes on.
 *
 * The kernel stops a task at calls that the filter selects, when it starts a thread or process, when it executes
 * a program, when it ends, and for signals. Each stop ends with `resume`: a task that is left stopped would hang
 * the command. Two tasks stay stopped on purpose: one in a group stop (SIGSTOP), and a parent that waits for its
 * child (process_order.c). */
#include "tracer.h"
#include "exec/exec.h"
#include "library/library.h"
#include "pinning/pinning.h"
#include "records/records.h"
#include "syscalls/syscalls.h"

#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
			ring_share(parent->proc, proc, event == PTRACE_EVENT_VFORK);
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
	ring_take_back(proc);
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
void handle_end(struct task *task, int status, const struct rusage *usage)
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
		run.ended = run.ended || proc->pid == run.root;
		if (proc->pid == run.root)
			run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		/* The reader wants to know of each child as soon as it has ended. */
		if (run.prompt && proc->parent && proc->parent->pid == run.root)
			out_flush();
	}
	task_drop(task);
}

/* One ptrace stop. Which kind it is follows from the signal and the event number in the upper bits. */
void handle_stop(struct task *task, int status)
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

