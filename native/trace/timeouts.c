/* Sleeps and waits, where the wall clock is pinned: a sleep moves it by the time asked for, and so does
 * a wait whose time has run out. A wait until a moment of the wall clock is made one until the real
 * moment that is as far away. */
#include "trace.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#define RED_ZONE 128 /* below the stack pointer, still in use */
/* Interpreters hand locks around in shorter waits than this; how often these are in vain is chance. */
#define SHORTEST (SECOND / 20)

static int64_t real_now(clockid_t clock)
{
	struct timespec now = {0};
	clock_gettime(clock, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/* To a round number, upwards: of a wait whose end alone is known, how much was left when the program
 * came to wait differs a little. */
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

static bool is_wall_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_TAI;
}

/* How far away that moment is. The same moment of the real clock is written where no one looks, and
 * the argument led there until the call has returned. */
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

void wait_leave(struct task *task, int64_t result)
{
	if (task->replaced_argument)
		argument_set(task, task->replaced_argument - 1, argument(task, task->replaced_argument - 1));
	if (result == (task->call->op == OP_FUTEX ? -ETIMEDOUT : 0))
		task->clock += task->timeout;
	task->replaced_argument = 0;
	task->timeout = 0;
}
