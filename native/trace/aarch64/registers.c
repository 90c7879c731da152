/* Registers of aarch64. x0 holds the first argument of a call and, when it returns, the result. */
#include "arch.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

static bool set_register(pid_t tid, int n, uint64_t value)
{
	struct user_regs_struct registers;
	struct iovec all = {&registers, sizeof registers};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all))
		return false;
	registers.regs[n] = value;
	return !ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &all);
}

/* The number is no general register here: the kernel keeps it apart. */
static bool set_number(pid_t tid, int number)
{
	struct iovec all = {&number, sizeof number};
	return !ptrace(PTRACE_SETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &all);
}

/* The number -1 makes the kernel skip the call. */
void call_skip(struct task *task, int64_t result)
{
	set_number(task->tid, -1);
	call_set_result(task, result);
}

void call_set_result(struct task *task, int64_t result) { set_register(task->tid, 0, (uint64_t)result); }
void argument_set(struct task *task, int n, uint64_t value) { set_register(task->tid, n, value); }

bool call_become_exit(struct task *task, uint32_t status)
{
	return set_register(task->tid, 0, status) && set_number(task->tid, SYS_exit_group);
}

bool stack_pointer_read(struct stack *stack, pid_t pid)
{
	struct iovec registers = {&stack->registers, sizeof stack->registers};
	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &registers))
		return false;
	stack->word = 8;
	stack->at = stack->registers.sp;
	return true;
}

bool stack_pointer_move(struct stack *stack, pid_t pid, uint64_t at)
{
	struct iovec registers = {&stack->registers, sizeof stack->registers};
	stack->registers.sp = at;
	return !ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &registers);
}
