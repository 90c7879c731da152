/* Registers of x86-64, and of i386 programs there. */
#include "arch.h"

#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#define AT(name) offsetof(struct user_regs_struct, name)

/* The register of the n-th argument, by architecture. */
static size_t argument_register(const struct task *task, int n)
{
	static const size_t wide[] = {AT(rdi), AT(rsi), AT(rdx), AT(r10), AT(r8), AT(r9)};
	static const size_t narrow[] = {AT(rbx), AT(rcx), AT(rdx), AT(rsi), AT(rdi), AT(rbp)};
	return (is_native(task) ? wide : narrow)[n];
}

/* The number -1 makes the kernel skip the call. */
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

bool call_become_exit(struct task *task, uint32_t status)
{
	argument_set(task, 0, status);
	return !ptrace(PTRACE_POKEUSER, task->tid, AT(orig_rax), is_native(task) ? 231l : 252l);
}

/* The kernel returns the smaller register set for a 32-bit program: its size tells which one it is. */
bool stack_pointer_read(struct stack *stack, pid_t pid)
{
	struct iovec registers = {&stack->registers, sizeof stack->registers};
	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &registers))
		return false;
	stack->word = registers.iov_len == sizeof stack->registers ? 8 : 4;
	stack->at = stack->word == 8 ? stack->registers.rsp : ((uint32_t *)&stack->registers)[15];
	return true;
}

bool stack_pointer_move(struct stack *stack, pid_t pid, uint64_t at)
{
	stack->registers.rsp = at;
	return !ptrace(PTRACE_SETREGS, pid, NULL, &stack->registers);
}
