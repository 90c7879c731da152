/* What differs between architectures: the numbers of system calls and the registers of a stopped task.
 *
 * x86_64/ and aarch64/ implement it, and build.py compiles one of them. A call is native, with words of 8
 * bytes, or it comes from an i386 program on x86-64, with words of 4. On aarch64, 32-bit programs are not
 * started (images.c). */
#ifndef CLEW_ARCH_H
#define CLEW_ARCH_H

#include "exec/exec.h"

#include <elf.h>
#include <linux/audit.h>

/* NUMBERS gives a call its number on the native architecture and the one of 32-bit programs; -1: none. */
#if defined __x86_64__
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#define ARCH_NARROW AUDIT_ARCH_I386
#define ARCH_MACHINE EM_X86_64
#define NUMBERS(x86_64, i386, aarch64) x86_64, i386
#elif defined __aarch64__
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#define ARCH_NARROW 0 /* no program has this architecture */
#define ARCH_MACHINE EM_AARCH64
#define NUMBERS(x86_64, i386, aarch64) aarch64, -1
#else
#error "the tracer knows the system calls of x86-64 and aarch64 only"
#endif

static inline bool is_native(const struct task *task) { return task->info.arch == ARCH_NATIVE; }

/* registers.c. The task is stopped before or after a call. */
void call_skip(struct task *task, int64_t result);	 /* before: the kernel does not run it */
void call_set_result(struct task *task, int64_t result); /* what the program finds as its result */
bool call_become_exit(struct task *task, uint32_t status); /* before: turns it into exit_group(status) */
void argument_set(struct task *task, int n, uint64_t value);
/* A program that has not run an instruction yet. */
bool stack_pointer_read(struct stack *stack, pid_t pid); /* also the registers and the size of a word */
bool stack_pointer_move(struct stack *stack, pid_t pid, uint64_t at);

#endif
