/* Sleeps and waits while the wall clock is pinned.
 *
 * A sleep moves the clock by the requested time, and so does a wait that times out. They take real time. A
 * wait until a moment of the pinned clock is turned into one until the real moment that is as far away. */
#include "arch.h"
#include "pinning/pinning.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#define RED_ZONE 128 /* bytes below the stack pointer that the program may still be using */
/* Interpreters pass locks around with shorter timeouts than this, and which of them time out is chance: these
 * do not move the clock. */
#define SHORTEST (SECOND / 20)

/* The real clock, for waits that the kernel performs. */
static int64_t real_now(clockid_t clock)
{
	struct timespec now = {0};
	clock_gettime(clock, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/* Rounds up to a round number. For a wait until a moment, the time left when the program begins to wait
 * differs a little from run to run. */
static int64_t round_up(int64_t nanoseconds)
{
	static const int round[] = {10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100};
	int64_t unit = 1;
	unsigned at = 0;
	while (nanoseconds / unit >= 100)
		unit *= 10;
	while (round[at] * unit < nanoseconds && round[at] < 100)
		at++;
	return nanoseconds > 0 ? round[at] * unit : 0;
}

/* The clocks that are pinned; the filter lists the same (filter.c). */
static bool is_wall_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_TAI;
}

/* How far away a moment of the pinned clock is. Writes the real moment below the stack, where the program has
 * nothing, and points the argument to it until the call returns. */
static int64_t translate(struct task *task, int n, int64_t until)
{
	uint64_t scratch = (task->info.stack_pointer - RED_ZONE - 16) & ~15ull;
	int64_t left = until - (pins.start + task->clock), real = left + real_now(CLOCK_REALTIME);
	if (real >= 0 && write_time(task, scratch, real / SECOND, real % SECOND)) {
		task->replaced_argument = n + 1;
		argument_set(task, n, scratch);
	}
	return left > 0 ? left : 0;
}

/* A sleep always runs to its end or is repeated: so the clock moves here, and the end is of no interest unless
 * an argument must be put back. */
static bool enter_sleep(struct task *task)
{
	bool plain = task->call->op == OP_NANOSLEEP;
	clockid_t clock = plain ? CLOCK_MONOTONIC : (clockid_t)argument(task, 0);
	int64_t time;
	if (!read_time(task, argument(task, plain ? 0 : 2), 1, &time))
		return false;
	if (plain || !(argument(task, 1) & TIMER_ABSTIME))
		task->clock += time;
	else if (is_wall_clock(clock))
		task->clock += translate(task, 2, time);
	else if (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME)
		task->clock += round_up(time - real_now(clock));
	return task->replaced_argument;
}

/* FUTEX_WAIT has a relative timeout, FUTEX_WAIT_BITSET an absolute one. */
static bool enter_futex(struct task *task)
{
	int64_t time;
	if (!read_time(task, argument(task, 3), 1, &time))
		return false;
	if (argument(task, 1) & FUTEX_CLOCK_REALTIME)
		task->timeout = translate(task, 3, time);
	else
		task->timeout = ((uint32_t)argument(task, 1) & FUTEX_CMD_MASK) == FUTEX_WAIT ? time : round_up(time - real_now(CLOCK_MONOTONIC));
	if (task->timeout < SHORTEST)
		task->timeout = 0;
	return task->timeout || task->replaced_argument;
}

bool wait_enter(struct task *task)
{
	uint64_t given = argument(task, task->call->flags);
	task->replaced_argument = 0;
	task->timeout = 0;
	switch (task->call->op) {
	case OP_POLL: /* milliseconds */
		task->timeout = (int32_t)given > 0 ? (int32_t)given * (SECOND / 1000) : 0;
		return task->timeout;
	case OP_SELECT:
		return read_time(task, given, 1000, &task->timeout);
	case OP_PSELECT:
		return read_time(task, given, 1, &task->timeout);
	case OP_FUTEX:
		return enter_futex(task);
	default:
		return enter_sleep(task);
	}
}

/* Puts the argument back, and moves the clock only if the wait timed out: an event ended the others. */
void wait_leave(struct task *task, int64_t result)
{
	if (task->replaced_argument)
		argument_set(task, task->replaced_argument - 1, argument(task, task->replaced_argument - 1));
	if (result == (task->call->op == OP_FUTEX ? -ETIMEDOUT : 0))
		task->clock += task->timeout;
	task->replaced_argument = 0;
	task->timeout = 0;
}
