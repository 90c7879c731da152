/* The pinned wall clock. Each process has its own, which moves by a microsecond when it is asked and
 * by the time asked for when the process sleeps; a child begins with its parent's, and who waits for a
 * child's end is from then on no earlier than that. So it depends on what the processes do and not on
 * how long they take, never goes back, and loops that wait for a time come to an end.
 *
 * The other clocks are real. A wait until a moment of the wall clock is made one until the real moment
 * that is as far away. */
#include "trace.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define SECOND 1000000000ll
#define QUESTION 1000 /* nanoseconds that a question takes */
#define RED_ZONE 128  /* below the stack pointer, still in use */

struct ended {
	pid_t pid;
	int64_t clock;
	struct ended *next;
};

static int64_t ask(struct task *task) { return pins.start + (task->proc->clock += QUESTION); }

/* Calls that only 32-bit programs have are those with wide times. */
static bool wide(const struct task *task) { return task->info.arch == AUDIT_ARCH_X86_64 || task->call->nr < 0; }

static bool moment_write(struct task *task, uint64_t address, int64_t seconds, int64_t rest)
{
	int64_t both[2] = {seconds, rest};
	int32_t narrow[2] = {(int32_t)seconds, (int32_t)rest};
	return wide(task) ? poke(task->tid, address, both, sizeof both) : poke(task->tid, address, narrow, sizeof narrow);
}

static bool moment_read(struct task *task, uint64_t address, int64_t *nanoseconds)
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
	*nanoseconds = both[0] * SECOND + both[1];
	return both[0] >= 0 && both[0] < INT64_MAX / SECOND && both[1] >= 0 && both[1] < SECOND;
}

static int64_t real_now(clockid_t clock)
{
	struct timespec now = {0};
	clock_gettime(clock, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

static void enter_time(struct task *task)
{
	int64_t seconds = ask(task) / SECOND;
	uint64_t to = argument(task, 0);
	int32_t narrow = (int32_t)seconds;
	bool done = !to || (wide(task) ? poke(task->tid, to, &seconds, sizeof seconds) : poke(task->tid, to, &narrow, sizeof narrow));
	call_skip(task, done ? seconds : -EFAULT);
}

static void enter_timeofday(struct task *task)
{
	int64_t now = ask(task);
	int32_t zone[2] = {0};
	bool done = !argument(task, 0) || moment_write(task, argument(task, 0), now / SECOND, now % SECOND / 1000);
	done = done && (!argument(task, 1) || poke(task->tid, argument(task, 1), zone, sizeof zone));
	call_skip(task, done ? 0 : -EFAULT);
}

static void enter_gettime(struct task *task)
{
	int64_t now = ask(task);
	call_skip(task, moment_write(task, argument(task, 1), now / SECOND, now % SECOND) ? 0 : -EFAULT);
}

/* The same wait on the real clock: the moment is written where no one looks, and the argument led
 * there until the call has returned. */
static bool translate(struct task *task, int n)
{
	int64_t until;
	uint64_t scratch = (task->info.stack_pointer - RED_ZONE - 16) & ~15ull;
	if (!moment_read(task, argument(task, n), &until))
		return false;
	until += real_now(CLOCK_REALTIME) - (pins.start + task->proc->clock);
	if (until < 0 || !moment_write(task, scratch, until / SECOND, until % SECOND))
		return false;
	task->replaced = n + 1;
	argument_set(task, n, scratch);
	return true;
}

/* To two digits, upwards: how much of a wait was left when the program came to wait differs a little. */
static int64_t rounded(int64_t nanoseconds)
{
	int64_t unit = 1;
	while (nanoseconds / unit >= 100)
		unit *= 10;
	return (nanoseconds + unit - 1) / unit * unit;
}

static bool wall(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_TAI;
}

static bool enter_sleep(struct task *task)
{
	bool plain = task->call->op == OP_NANOSLEEP, until = !plain && argument(task, 1) & TIMER_ABSTIME;
	clockid_t clock = plain ? CLOCK_MONOTONIC : (clockid_t)argument(task, 0);
	struct proc *proc = task->proc;
	int64_t time;
	if (!moment_read(task, argument(task, plain ? 0 : 2), &time))
		return false;
	if (!until) {
		proc->clock += time;
	} else if (wall(clock)) {
		bool replaced = translate(task, 2);
		if (time - pins.start > proc->clock)
			proc->clock = time - pins.start;
		return replaced;
	} else if (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME) {
		time -= real_now(clock);
		proc->clock += time > 0 ? rounded(time) : 0;
	}
	return false;
}

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
	case OP_NANOSLEEP:
	case OP_CLOCK_NANOSLEEP:
		return enter_sleep(task);
	case OP_FUTEX:
		return translate(task, 3);
	default:
		return true; /* a wait for a child */
	}
}

/* ---- who waits for a child's end has seen its time ---- */

void clock_ended(struct proc *proc)
{
	if (!pins.clock || !proc->parent)
		return;
	struct ended *ended = must(malloc(sizeof *ended));
	*ended = (struct ended){proc->pid, proc->clock, proc->parent->ended};
	proc->parent->ended = ended;
}

void clock_forget(struct proc *proc)
{
	for (struct ended *next; proc->ended; proc->ended = next) {
		next = proc->ended->next;
		free(proc->ended);
	}
}

static void catch_up(struct proc *proc, pid_t child)
{
	for (struct ended **at = &proc->ended; *at; at = &(*at)->next)
		if ((*at)->pid == child) {
			struct ended *found = *at;
			if (found->clock > proc->clock)
				proc->clock = found->clock;
			*at = found->next;
			free(found);
			return;
		}
}

static pid_t awaited(struct task *task, int64_t result)
{
	int32_t pid = 0;
	if (task->call->op != OP_WAITID)
		return (pid_t)result;
	uint64_t told = argument(task, 2), at = told + (task->info.arch == AUDIT_ARCH_X86_64 ? 16 : 12);
	if (result < 0 || (told && peek(task->tid, at, &pid, sizeof pid) != sizeof pid))
		return 0;
	return told ? pid : argument(task, 0) == P_PID ? (pid_t)argument(task, 1) : 0;
}

void clock_leave(struct task *task, int64_t result)
{
	if (task->replaced) {
		argument_set(task, task->replaced - 1, argument(task, task->replaced - 1));
		task->replaced = 0;
		return;
	}
	pid_t child = awaited(task, result);
	if (child > 0)
		catch_up(task->proc, child);
}
