/* System calls: which ones stop, and what happens when they begin and return. */
#ifndef CLEW_SYSCALLS_H
#define CLEW_SYSCALLS_H

#include "tasks.h"

enum operation {
	OP_NONE, OP_OPEN, OP_CREAT, OP_OPENAT2, OP_STAT, OP_STATX, OP_ACCESS, OP_READLINK,
	OP_RENAME, OP_LINK, OP_SYMLINK, OP_UNLINK, OP_RMDIR, OP_MKDIR, OP_MKNOD, OP_TRUNCATE,
	OP_FTRUNCATE, OP_META, OP_FMETA, OP_CHDIR, OP_EXEC, OP_CONNECT, OP_BIND, OP_SENDTO, OP_SOCKETCALL,
	OP_ROOT, OP_MOUNT, OP_MEMORY, OP_HANDLE, OP_PTRACE, OP_MAP, OP_SIGNAL,
	OP_GETTIME, OP_TIMEOFDAY, OP_TIME, OP_WAIT, OP_WAITID, OP_GETRANDOM,
	OP_NANOSLEEP, OP_CLOCK_NANOSLEEP, OP_FUTEX, OP_POLL, OP_SELECT, OP_PSELECT,
};
/* When the filter stops a call. PASS rules let it pass if it comes from the library. Rules from CLOCK on apply
 * only if the clock or randomness is pinned: the order matters. */
enum rule { STOP, PASS, PASS_FLAGS, PASS_NAMED, STOP_ADDRESSED, STOP_SHARED, REFUSE, CLOCK, CLOCK_WALL, CLOCK_TIMED, CLOCK_FUTEX, RANDOM };
struct call {
	int nr, nr32; /* native, and of 32-bit programs (arch.h); -1: does not exist */
	enum operation op;
	enum rule rule;
	int8_t dir, path, flags; /* argument numbers; -1: none */
	int8_t dir2, path2;
};
/* syscalls.c, filter.c */
extern const struct call calls[];
extern const unsigned call_count;
const struct call *call_find(uint32_t arch, uint64_t nr);
int filter_install(void);

/* syscall_entry.c, syscall_exit.c */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif
static inline uint64_t argument(const struct task *task, int n) { return n < 0 ? 0 : task->info.seccomp.args[n]; }
uint32_t open_flags(struct task *task);
bool syscall_enter(struct task *task); /* whether the tracer must stop when it returns */
void syscall_leave(struct task *task, int64_t result);

#endif
