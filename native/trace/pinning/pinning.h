/* Pinned clock and randomness: the tracer answers in place of the kernel. */
#ifndef CLEW_PINNING_H
#define CLEW_PINNING_H

#include "exec/exec.h"
#include "syscalls/syscalls.h"

#define SEED 16
#define SECOND 1000000000ll /* clocks count nanoseconds */

/* pinning.c */
struct pins {
	bool clock, random;
	int64_t start; /* nanoseconds since the epoch */
	uint8_t seed[SEED];
};
extern struct pins pins;
bool pin_clock(const char *nanoseconds);
bool pin_random(const char *hex);
bool pin_includes(const struct call *call);
void pin_addresses(void);
void pin_task(struct task *maker, struct task *born);
void pin_exec(struct task *task, struct stack *stack); /* a new program; NULL: its stack could not be read */
bool pin_enter(struct task *task);

/* clocks.c, pinned_waits.c */
bool write_time(struct task *task, uint64_t address, int64_t seconds, int64_t rest);
bool read_time(struct task *task, uint64_t address, int64_t unit, int64_t *nanoseconds); /* unit: nanoseconds of the second field */
bool wait_enter(struct task *task);
void wait_leave(struct task *task, int64_t result);
bool clock_enter(struct task *task);
void clock_leave(struct task *task, int64_t result);
void clock_child_ended(struct task *leader);
void clock_free_children(struct proc *proc);

/* random.c, random_devices.c */
void random_root(struct random_stream *stream);
void random_child(struct random_stream *maker, struct random_stream *born);
void random_exec(struct random_stream *stream);
void random_bytes(struct random_stream *stream, void *to, size_t size);
int64_t random_fill(struct task *task, uint64_t address, uint64_t size);
bool getrandom_enter(struct task *task);
void device_opened(struct task *task, int fd);
void devices_inherited(struct proc *proc);
void device_stop(struct task *task, const struct __ptrace_syscall_info *info);

#endif
