/* The seccomp filter: decides in the kernel which system calls stop for the tracer.
 *
 * It is a BPF program made from the table in syscalls.c. The number of the call is compared first, and
 * arguments or the instruction pointer are loaded only for the calls in the table. So the kernel's cache
 * of always-allowed calls stays in force for all others: reads and writes run at full speed.
 *
 *   SECCOMP_RET_ALLOW   the call runs; the tracer never knows of it
 *   SECCOMP_RET_TRACE   the call stops (PTRACE_EVENT_SECCOMP) before it runs
 *   SECCOMP_RET_ERRNO   the call fails; used for calls that would bypass the tracer */
#include "arch.h"
#include "pinning/pinning.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The same flags as in the library (inject/files.c). O_TMPFILE includes O_DIRECTORY, which alone is harmless. */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
/* The bit that marks calls of the x32 ABI: they have numbers of their own, which the table does not list. */
#define X32 0x40000000u
#define OFFSET(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define ARGUMENT(n) (OFFSET(args) + 8 * (uint32_t)(n))

/* Larger than the filter ever gets; the kernel allows 4096 instructions. */
static struct sock_filter program[1024];
static unsigned size;

/* Adds an instruction and returns its index. `yes` and `no` count the instructions to skip. */
static unsigned add(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	program[size] = (struct sock_filter){code, yes, no, k};
	return size++;
}

static void load(uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void ret(uint32_t action) { add(BPF_RET | BPF_K, action, 0, 0); }

/* Allows the call when it comes from the page of the library, else stops it. BPF compares 32 bits at a time. */
static void pass_from_library(void)
{
	load(OFFSET(instruction_pointer));
	add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)CLEW_PASS, 0, 3);
	load(OFFSET(instruction_pointer) + 4);
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
	ret(SECCOMP_RET_ALLOW);
	ret(SECCOMP_RET_TRACE);
}

/* Stops the call when this 64-bit argument is not 0, else allows it. */
static void stop_if_set(int n)
{
	load(ARGUMENT(n));
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
	ret(SECCOMP_RET_TRACE);
	load(ARGUMENT(n) + 4);
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
	ret(SECCOMP_RET_TRACE);
	ret(SECCOMP_RET_ALLOW);
}

/* Allows a mapping that is private or of no file. */
static void allow_unshared(const struct call *call)
{
	load(ARGUMENT(call->flags));
	add(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0);
	add(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 1, 0);
	ret(SECCOMP_RET_ALLOW);
}

static void add_rule(const struct call *call)
{
	switch (call->rule) {
	case STOP:
		ret(SECCOMP_RET_TRACE);
		break;
	case REFUSE:
		ret(SECCOMP_RET_ERRNO | ENOSYS);
		break;
	case PASS:
		pass_from_library();
		break;
	/* An open: only one for reading may pass, because the tracer must hold a write-open while it keeps the
	 * old content. */
	case PASS_FLAGS:
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JSET | BPF_K, WRITES, 0, 1);
		ret(SECCOMP_RET_TRACE);
		pass_from_library();
		break;
	case PASS_NAMED: /* a stat of a descriptor by an empty path looks nothing up */
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1);
		ret(SECCOMP_RET_ALLOW);
		pass_from_library();
		break;
	case STOP_SHARED: /* a shared mapping of a file, through which it may be written unseen; the library maps its ring */
		allow_unshared(call);
		pass_from_library();
		break;
	case STOP_ADDRESSED: /* a send that names its peer */
		stop_if_set(call->flags);
		break;
	case CLOCK: /* the tracer answers in place of the kernel */
	case RANDOM:
		ret(SECCOMP_RET_TRACE);
		break;
	case CLOCK_WALL: /* only wall clocks are pinned */
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 4, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_COARSE, 3, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_ALARM, 2, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_TAI, 1, 0);
		ret(SECCOMP_RET_ALLOW);
		ret(SECCOMP_RET_TRACE);
		break;
	case CLOCK_FUTEX: /* only waits with a timeout matter */
		load(ARGUMENT(1));
		add(BPF_ALU | BPF_AND | BPF_K, (uint32_t)FUTEX_CMD_MASK, 0, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT, 2, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT_BITSET, 1, 0);
		ret(SECCOMP_RET_ALLOW);
		stop_if_set(call->flags);
		break;
	case CLOCK_TIMED: /* only a wait with a timeout can move the clock */
		stop_if_set(call->flags);
		break;
	}
}

/* The rules of one architecture. In 32-bit programs no library is injected, so nothing of them may pass: rules
 * that depend on the library become plain stops. */
static void add_rules(bool native)
{
	for (unsigned i = 0; i < call_count; i++) {
		int nr = native ? calls[i].nr : calls[i].nr32;
		if (nr < 0 || !pin_includes(&calls[i]))
			continue;
		/* The distance to the next rule is known only after this one was added. */
		unsigned jump = add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 0);
		if (native || calls[i].rule == REFUSE || calls[i].rule >= CLOCK) {
			add_rule(&calls[i]);
		} else {
			if (calls[i].rule == STOP_SHARED)
				allow_unshared(&calls[i]);
			ret(SECCOMP_RET_TRACE);
		}
		program[jump].jf = (uint8_t)(size - jump - 1);
	}
	ret(SECCOMP_RET_ALLOW);
}

/* In the child, before exec; the filter stays for all its descendants. The first check is the architecture:
 * the same number means different calls on x86-64 and i386. Calls of any other architecture are refused. */
int filter_install(void)
{
	size = 0;
	load(OFFSET(arch));
	unsigned native = add(BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 1, 0);
	/* An unconditional jump: a conditional one reaches only 255 instructions. */
	unsigned other = add(BPF_JMP | BPF_JA, 0, 0, 0);
	load(OFFSET(nr));
	add(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	ret(SECCOMP_RET_ERRNO | ENOSYS);
	add_rules(true);
	program[other].k = size - other - 1;
	(void)native;
	add(BPF_JMP | BPF_JEQ | BPF_K, ARCH_NARROW, 1, 0);
	ret(SECCOMP_RET_ERRNO | ENOSYS);
	load(OFFSET(nr));
	add_rules(false);
	struct sock_fprog filter = {(unsigned short)size, program};
	/* The kernel demands it of a process without privileges: else a filter could mislead a set-uid
	 * program. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}
