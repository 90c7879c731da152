/* The pinned wall clock: each thread has its own.
 *
 * It moves by a microsecond when it is read, and by the requested time when the thread sleeps or a wait
 * times out (pinned_waits.c). A new thread or child begins with the clock of its maker, and after waiting
 * for a child a thread is at least as late as the child was. So the clock depends on what is done and not on
 * how long it takes, never goes back, and loops that wait for a time end. The other clocks are real. */
#include "arch.h"
#include "memory.h"
#include "pinning/pinning.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#define READ_COST 1000 /* nanoseconds by which a read moves the clock */

/* The clock of a child that has ended and was not waited for yet. */
struct child_clock {
	pid_t pid;
	int64_t clock;
	struct child_clock *next;
};

/* Every read returns a later time: a loop that waits for time to pass ends. */
static int64_t advance_clock(struct task *task) { return pins.start + (task->clock += READ_COST); }

/* Whether the call uses 64-bit times: all native ones do, and those of i386 that have no native number. */
static bool wide(const struct task *task) { return is_native(task) || task->call->nr < 0; }

/* Writes seconds and the rest in the form that the call uses. */
bool write_time(struct task *task, uint64_t address, int64_t seconds, int64_t rest)
{
	int64_t both[2] = {seconds, rest};
	int32_t narrow[2] = {(int32_t)seconds, (int32_t)rest};
	return wide(task) ? poke(task->tid, address, both, sizeof both) : poke(task->tid, address, narrow, sizeof narrow);
}

/* Reads a time; false: none was given, it is unreadable or not valid, and the kernel will say so. */
bool read_time(struct task *task, uint64_t address, int64_t unit, int64_t *nanoseconds)
{
	int64_t both[2];
	int32_t narrow[2];
	if (!address)
		return false;
	if (wide(task)) {
		if (peek(task->tid, address, both, sizeof both) != sizeof both)
			return false;
	} else {
		if (peek(task->tid, address, narrow, sizeof narrow) != sizeof narrow)
			return false;
		both[0] = narrow[0], both[1] = narrow[1];
	}
	*nanoseconds = both[0] * SECOND + both[1] * unit;
	return both[0] >= 0 && both[0] < INT64_MAX / SECOND && both[1] >= 0 && both[1] < SECOND / unit;
}

static void enter_time(struct task *task)
{
	int64_t seconds = advance_clock(task) / SECOND;
	uint64_t to = argument(task, 0);
	int32_t narrow = (int32_t)seconds;
	bool done = !to || (wide(task) ? poke(task->tid, to, &seconds, sizeof seconds) : poke(task->tid, to, &narrow, sizeof narrow));
	call_skip(task, done ? seconds : -EFAULT);
}

static void enter_timeofday(struct task *task)
{
	int64_t now = advance_clock(task);
	int32_t zone[2] = {0}; /* UTC: the time zone must not depend on the machine either */
	bool done = !argument(task, 0) || write_time(task, argument(task, 0), now / SECOND, now % SECOND / 1000);
	done = done && (!argument(task, 1) || poke(task->tid, argument(task, 1), zone, sizeof zone));
	call_skip(task, done ? 0 : -EFAULT);
}

static void enter_gettime(struct task *task)
{
	int64_t now = advance_clock(task);
	call_skip(task, write_time(task, argument(task, 1), now / SECOND, now % SECOND) ? 0 : -EFAULT);
}

/* ---- waiting for a child moves the clock to that of the child ---- */

/* Keeps the clock of a child until its parent waits for it. */
void clock_child_ended(struct task *leader)
{
	struct proc *parent = leader->proc->parent;
	if (!pins.clock || !parent)
		return;
	struct child_clock *ended = must(malloc(sizeof *ended));
	*ended = (struct child_clock){leader->tid, leader->clock, parent->child_clocks};
	parent->child_clocks = ended;
}

void clock_free_children(struct proc *proc)
{
	for (struct child_clock *next; proc->child_clocks; proc->child_clocks = next) {
		next = proc->child_clocks->next;
		free(proc->child_clocks);
	}
}

/* Each child is waited for once: its entry is removed. */
static void catch_up(struct task *task, pid_t child)
{
	for (struct child_clock **at = &task->proc->child_clocks; *at; at = &(*at)->next)
		if ((*at)->pid == child) {
			struct child_clock *found = *at;
			if (found->clock > task->clock)
				task->clock = found->clock;
			*at = found->next;
			free(found);
			return;
		}
}

/* The child that a wait returned. waitid writes it into siginfo_t, at another offset on i386. */
static pid_t waited_child(struct task *task, int64_t result)
{
	int32_t pid = 0;
	if (task->call->op != OP_WAITID)
		return (pid_t)result;
	uint64_t siginfo = argument(task, 2), at = siginfo + (is_native(task) ? 16 : 12);
	if (result < 0 || (siginfo && peek(task->tid, at, &pid, sizeof pid) != sizeof pid))
		return 0;
	return siginfo ? pid : argument(task, 0) == P_PID ? (pid_t)argument(task, 1) : 0;
}

/* ---- */

bool clock_enter(struct task *task)
{
	switch (task->call->op) {
	case OP_GETTIME:
		enter_gettime(task);
		return false;
	case OP_TIMEOFDAY:
		enter_timeofday(task);
		return false;
	case OP_TIME:
		enter_time(task);
		return false;
	case OP_WAIT:
	case OP_WAITID:
		return true; /* which child it was is known when the call returns */
	default:
		return wait_enter(task);
	}
}

void clock_leave(struct task *task, int64_t result)
{
	if (task->call->op != OP_WAIT && task->call->op != OP_WAITID) {
		wait_leave(task, result);
		return;
	}
	pid_t child = waited_child(task, result);
	if (child > 0)
		catch_up(task, child);
}
