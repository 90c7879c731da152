/* Pinning: answers clock and randomness in place of the kernel, so that a repeat sees the same values.
 *
 * The filter stops the calls that read them, only in a pinned run, and the tracer answers. So it works in
 * static and Go programs, too. clocks.c has the clock, pinned_waits.c the waits, random.c the random numbers,
 * random_devices.c /dev/urandom. */
#include "exec/exec.h"
#include "memory.h"
#include "pinning/pinning.h"
#include "syscalls/syscalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>

struct pins pins;

bool pin_clock(const char *nanoseconds)
{
	char *end;
	pins.start = strtoll(nanoseconds, &end, 10);
	pins.clock = end != nanoseconds && !*end && pins.start >= 0;
	return pins.clock;
}

/* The seed: 32 hexadecimal digits. */
bool pin_random(const char *hex)
{
	pins.random = strlen(hex) == 2 * SEED;
	for (unsigned i = 0; i < SEED && pins.random; i++)
		pins.random = sscanf(hex + 2 * i, "%2hhx", &pins.seed[i]) == 1;
	return pins.random;
}

/* Whether a call of the table is stopped in this run: some only when clock or randomness is pinned. */
bool pin_includes(const struct call *call)
{
	return call->rule < CLOCK ? true : call->rule == RANDOM ? pins.random : pins.clock;
}

/* In the first process, before it runs the command: turns address space randomization off for all its
 * descendants, because many programs order things by address. Where the system forbids that, addresses stay
 * random. */
void pin_addresses(void)
{
	int now = personality(0xffffffff);
	if (pins.random && now >= 0)
		personality((unsigned long)now | ADDR_NO_RANDOMIZE);
}

/* A new thread, or the first thread of a new process, continues from the state of its maker. */
void pin_task(struct task *maker, struct task *born)
{
	born->clock = maker->clock;
	if (pins.random)
		random_child(&maker->random, &born->random);
}

/* A new program, before its first instruction. Hides the vDSO: it would answer clock reads without a system
 * call. Replaces the 16 random bytes that the kernel gives each program. */
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
