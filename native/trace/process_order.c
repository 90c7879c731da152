/* Serial mode: a process that starts another goes on only when that one and all its descendants have ended.
 * So processes that would race run in the order in which they were started.
 *
 * Some processes need each other: the ends of a pipe, a server and its clients, a child and the parent that
 * feeds it. So when no process moves any more, the one that was held last goes on. It also goes on after a
 * while in which all others only sleep, or after a long time in any case: a process may be polling for it. */
#include "arch.h"
#include "syscalls/syscalls.h"
#include "tasks.h"

#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

/* In ticks, ten per second. */
#define MAX_ASLEEP 100
#define MAX_WAIT 600

static bool serial;
static struct task *last_held; /* a stack of held tasks, linked by next_held */
static unsigned asleep, waited;
/* The context switches of all tasks at the last tick. */
static uint64_t switches_before;

void serial_start(void) { serial = true; }

/* Whether the parent stays stopped until the child has ended. Threads are not ordered. */
bool serial_holds(struct task *parent, struct proc *child)
{
	if (!serial || !child || child == parent->proc)
		return false;
	parent->waits_for = child;
	parent->next_held = last_held;
	last_held = parent;
	asleep = waited = 0;
	return true;
}

/* Takes the task out of the list and lets it go on. */
static void release(struct task **held)
{
	struct task *task = *held;
	*held = task->next_held;
	task->waits_for = NULL;
	asleep = waited = 0;
	resume(task, PTRACE_CONT, 0);
}

/* This process and all its descendants have ended. */
void serial_ended(const struct proc *proc)
{
	for (struct task **at = &last_held; *at; at = &(*at)->next_held)
		if ((*at)->waits_for == proc) {
			release(at);
			return;
		}
}

/* A held task was killed. */
void serial_gone(struct task *task)
{
	for (struct task **at = &last_held; *at; at = &(*at)->next_held)
		if (*at == task) {
			*at = task->next_held;
			return;
		}
}

/* ---- whether any process moves ---- */

static uint64_t switches;
static bool moving, sleeping;

static bool is_sleep(const struct call *call) { return call && (call->op == OP_NANOSLEEP || call->op == OP_CLOCK_NANOSLEEP); }

/* Whether the task sleeps for a time, from /proc/PID/syscall, which does not tell the architecture. */
static bool sleeps(const struct task *task)
{
	char name[64];
	int number = -1;
	snprintf(name, sizeof name, "/proc/%d/syscall", task->tid);
	FILE *file = fopen(name, "re");
	if (file && fscanf(file, "%d", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number >= 0 && (is_sleep(call_find(ARCH_NATIVE, (unsigned)number)) || is_sleep(call_find(ARCH_NARROW, (unsigned)number)));
}

/* Adds one task to the picture: its state and its count of context switches. A task that is asleep at both
 * looks but switched meanwhile has moved. */
static void inspect(struct task *task, const void *nothing)
{
	char name[64], line[256], state = 'R';
	unsigned long long count;
	(void)nothing;
	if (task->waits_for)
		return;
	snprintf(name, sizeof name, "/proc/%d/status", task->tid);
	FILE *file = fopen(name, "re");
	while (file && fgets(line, sizeof line, file)) {
		sscanf(line, "State: %c", &state);
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1 || sscanf(line, "nonvoluntary_ctxt_switches: %llu", &count) == 1)
			switches += count;
	}
	if (file)
		fclose(file);
	if (state != 'S')
		moving = true;
	else if (sleeps(task))
		sleeping = true;
}

/* Still: no task runs or sleeps for a time, and none was switched since the last tick; so all wait for a held
 * one. */
void serial_tick(void)
{
	if (!last_held)
		return;
	moving = sleeping = false;
	switches = 0;
	tasks_visit(inspect, NULL);
	bool still = !moving && !sleeping && switches == switches_before && waited;
	switches_before = switches;
	waited++;
	asleep += sleeping && !moving;
	if (still || asleep >= MAX_ASLEEP || waited >= MAX_WAIT)
		release(&last_held);
}
