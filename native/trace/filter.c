/* The seccomp filter: which system calls stop.
 *
 * The call's number is compared first and the instruction pointer loaded only for the calls
 * listed, so that the kernel's cache of always-allowed calls stays in force for all others:
 * reads and writes run at the speed of any filtered process. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define X32 0x40000000u
#define OFFSET(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define ARGUMENT(n) (OFFSET(args) + 8 * (uint32_t)(n))

static struct sock_filter program[1024];
static unsigned size;

static unsigned add(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	program[size] = (struct sock_filter){code, yes, no, k};
	return size++;
}

static void load(uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void ret(uint32_t action) { add(BPF_RET | BPF_K, action, 0, 0); }

/* Let it pass when it comes from the library's page. */
static void pass_from_library(void)
{
	load(OFFSET(instruction_pointer));
	add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)CLEW_PASS, 0, 3);
	load(OFFSET(instruction_pointer) + 4);
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
	ret(SECCOMP_RET_ALLOW);
	ret(SECCOMP_RET_TRACE);
}

/* Stop it when this argument is not 0. */
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
	case PASS_FLAGS: /* an open: only one for reading may pass */
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JSET | BPF_K, WRITES, 0, 1);
		ret(SECCOMP_RET_TRACE);
		pass_from_library();
		break;
	case PASS_NAMED: /* a stat of a descriptor asks nothing of the file system */
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1);
		ret(SECCOMP_RET_ALLOW);
		pass_from_library();
		break;
	case STOP_SHARED: /* a mapping of a file, through which it may be written */
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 2, 0);
		add(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 1);
		ret(SECCOMP_RET_TRACE);
		ret(SECCOMP_RET_ALLOW);
		break;
	case STOP_ADDRESSED: /* a send that names its peer */
		stop_if_set(call->flags);
		break;
	case CLOCK:
	case RANDOM:
		ret(SECCOMP_RET_TRACE);
		break;
	case CLOCK_WALL: /* the others are real */
		load(ARGUMENT(call->flags));
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 4, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_COARSE, 3, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_ALARM, 2, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_TAI, 1, 0);
		ret(SECCOMP_RET_ALLOW);
		ret(SECCOMP_RET_TRACE);
		break;
	case CLOCK_FUTEX: /* of its many uses, waits */
		load(ARGUMENT(1));
		add(BPF_ALU | BPF_AND | BPF_K, (uint32_t)FUTEX_CMD_MASK, 0, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT, 2, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT_BITSET, 1, 0);
		ret(SECCOMP_RET_ALLOW);
		stop_if_set(call->flags);
		break;
	case CLOCK_TIMED: /* only a wait that may end in vain */
		stop_if_set(call->flags);
		break;
	}
}

static void add_rules(bool native)
{
	for (unsigned i = 0; i < call_count; i++) {
		int nr = native ? calls[i].nr : calls[i].nr32;
		if (nr < 0 || !pin_includes(&calls[i]))
			continue;
		unsigned jump = add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 0);
		if (native || calls[i].rule == REFUSE || calls[i].rule == STOP_SHARED || calls[i].rule >= CLOCK)
			add_rule(&calls[i]);
		else
			ret(SECCOMP_RET_TRACE);
		program[jump].jf = (uint8_t)(size - jump - 1);
	}
	ret(SECCOMP_RET_ALLOW);
}

int filter_install(void)
{
	size = 0;
	load(OFFSET(arch));
	unsigned native = add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	unsigned other = add(BPF_JMP | BPF_JA, 0, 0, 0);
	load(OFFSET(nr));
	add(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	ret(SECCOMP_RET_ERRNO | ENOSYS);
	add_rules(true);
	program[other].k = size - other - 1;
	(void)native;
	add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 1, 0);
	ret(SECCOMP_RET_ERRNO | ENOSYS);
	load(OFFSET(nr));
	add_rules(false);
	struct sock_fprog filter = {(unsigned short)size, program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}
