/* One process after the other: who starts a process goes on only when that one, and all it started,
 * has ended. So processes that would race run in the order in which they were started.
 *
 * Some need each other: the ends of a pipe, a server and its clients, a child and the parent that feeds
 * it. When nobody moves any more, the one that was held last_held goes on; and when nobody does anything but sleep
 * for long, or all takes too long, for then somebody may be waiting by asking again and again. */
#include "trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

/* In ticks, ten a second. */
#define MAX_ASLEEP 100
#define MAX_WAIT 600

static bool serial;
static struct task *last_held; /* held last_held; the one held before it follows */
static unsigned asleep, waited;
static uint64_t switches_before;

void serial_start(void) { serial = true; }

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

static void release(struct task **held)
{
	struct task *task = *held;
	*held = task->next_held;
	task->waits_for = NULL;
	asleep = waited = 0;
	resume(task, PTRACE_CONT, 0);
}

void serial_ended(const struct proc *proc)
{
	for (struct task **at = &last_held; *at; at = &(*at)->next_held)
		if ((*at)->waits_for == proc) {
			release(at);
			return;
		}
}

void serial_gone(struct task *task)
{
	for (struct task **at = &last_held; *at; at = &(*at)->next_held)
		if (*at == task) {
			*at = task->next_held;
			return;
		}
}

/* ---- whether anybody moves ---- */

static uint64_t switches;
static bool moving, sleeping;

static bool sleeps(const struct task *task)
{
	char name[64];
	int call = -1;
	snprintf(name, sizeof name, "/proc/%d/syscall", task->tid);
	FILE *file = fopen(name, "re");
	if (file && fscanf(file, "%d", &call) != 1)
		call = -1;
	if (file)
		fclose(file);
	return call == 35 || call == 230 || call == 162 || call == 267 || call == 407; /* nanosleep, clock_nanosleep */
}

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
