/* What is pinned: the wall clock, randomness, or both. A run with the same pins is told the same
 * times and draws the same numbers, in static and Go programs too, for it is the tracer who answers:
 * the filter stops these calls in a pinned run, and only there. */
#include "trace.h"

#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/ptrace.h>

struct pins pins;

bool pin_clock(const char *nanoseconds)
{
	char *end;
	pins.start = strtoll(nanoseconds, &end, 10);
	pins.clock = end != nanoseconds && !*end && pins.start >= 0;
	return pins.clock;
}

bool pin_random(const char *hex)
{
	pins.random = strlen(hex) == 2 * SEED;
	for (unsigned i = 0; i < SEED && pins.random; i++)
		pins.random = sscanf(hex + 2 * i, "%2hhx", &pins.seed[i]) == 1;
	return pins.random;
}

bool pin_includes(const struct call *call)
{
	return call->rule < CLOCK ? true : call->rule == RANDOM ? pins.random : pins.clock;
}

/* In the first process, before it runs the command. Where memory lies is drawn too: programs that
 * order things by their addresses are many. A system that forbids this leaves that one unpinned. */
void pin_addresses(void)
{
	int now = personality(0xffffffff);
	if (pins.random && now >= 0)
		personality((unsigned long)now | ADDR_NO_RANDOMIZE);
}

/* A thread, or the first one of a process. */
void pin_task(struct task *maker, struct task *born)
{
	born->clock = maker->clock;
	if (pins.random)
		random_child(&maker->random, &born->random);
}

/* A new program, before its first instruction: without the kernel's page of fast calls it asks
 * by real ones. */
void pin_exec(struct task *task, struct stack *stack)
{
	uint8_t bytes[16];
	uint64_t at;
	if (pins.random) {
		random_exec(&task->random);
		devices_inherited(task->proc);
	}
	if (!stack || !(pins.clock || pins.random))
		return;
	stack_hide_auxv(stack, task->tid, AT_SYSINFO_EHDR);
	if (pins.random && (at = stack_auxv(stack, AT_RANDOM))) {
		random_bytes(&task->random, bytes, sizeof bytes);
		poke(task->tid, at, bytes, sizeof bytes);
	}
}

bool pin_enter(struct task *task)
{
	return task->call->rule == RANDOM ? getrandom_enter(task) : clock_enter(task);
}

/* ---- answering for the kernel ---- */

static size_t argument_register(const struct task *task, int n)
{
#define AT(name) offsetof(struct user_regs_struct, name)
	static const size_t wide[] = {AT(rdi), AT(rsi), AT(rdx), AT(r10), AT(r8), AT(r9)};
	static const size_t narrow[] = {AT(rbx), AT(rcx), AT(rdx), AT(rsi), AT(rdi), AT(rbp)};
	return (task->info.arch == AUDIT_ARCH_X86_64 ? wide : narrow)[n];
}

/* The call is not made, and this is its answer. */
void call_skip(struct task *task, int64_t result)
{
	ptrace(PTRACE_POKEUSER, task->tid, AT(orig_rax), -1l);
	call_set_result(task, result);
}

void call_set_result(struct task *task, int64_t result) { ptrace(PTRACE_POKEUSER, task->tid, AT(rax), result); }

void argument_set(struct task *task, int n, uint64_t value)
{
	ptrace(PTRACE_POKEUSER, task->tid, argument_register(task, n), value);
}
