/* The table of system calls that concern the tracer, by number on x86-64 and on i386.
 *
 * Columns: numbers, what the call does, when the filter stops it; then the numbers of the arguments that
 * hold directory descriptor, path and flags, and for calls with two paths the second directory and path.
 * -1: there is none. Flags -2: the call never follows a link (lstat). */
#include "syscalls.h"

#include <linux/audit.h>

const struct call calls[] = {
	/* the frequent calls first: the filter compares in this order */
	{257, 295, OP_OPEN, PASS_FLAGS, 0, 1, 2, -1, -1},	/* openat */
	{262, 300, OP_STAT, PASS_NAMED, 0, 1, 3, -1, -1},	/* newfstatat */
	{21, 33, OP_ACCESS, PASS, -1, 0, -1, -1, -1},		/* access */
	{269, 307, OP_ACCESS, PASS, 0, 1, -1, -1, -1},		/* faccessat */
	{267, 305, OP_READLINK, PASS, 0, 1, -1, -1, -1},	/* readlinkat */
	{332, 383, OP_STATX, PASS_NAMED, 0, 1, 2, -1, -1},	/* statx */
	{2, 5, OP_OPEN, PASS_FLAGS, -1, 0, 1, -1, -1},		/* open */
	{4, 195, OP_STAT, PASS, -1, 0, -1, -1, -1},		/* stat, stat64 */
	{6, 196, OP_STAT, PASS, -1, 0, -2, -1, -1},		/* lstat, lstat64 */
	{89, 85, OP_READLINK, PASS, -1, 0, -1, -1, -1},		/* readlink */
	{439, 439, OP_ACCESS, PASS, 0, 1, -1, -1, -1},		/* faccessat2 */
	{-1, 106, OP_STAT, STOP, -1, 0, -1, -1, -1},		/* stat of the first kernels */
	{-1, 107, OP_STAT, STOP, -1, 0, -2, -1, -1},		/* lstat of the first kernels */

	{85, 8, OP_CREAT, STOP, -1, 0, -1, -1, -1},		/* creat */
	{437, 437, OP_OPENAT2, STOP, 0, 1, 2, -1, -1},		/* openat2 */
	{304, 342, OP_HANDLE, STOP, -1, -1, 2, -1, -1},		/* open_by_handle_at */

	{82, 38, OP_RENAME, STOP, -1, 0, -1, -1, 1},		/* rename */
	{264, 302, OP_RENAME, STOP, 0, 1, -1, 2, 3},		/* renameat */
	{316, 353, OP_RENAME, STOP, 0, 1, 4, 2, 3},		/* renameat2 */
	{86, 9, OP_LINK, STOP, -1, 0, -1, -1, 1},		/* link */
	{265, 303, OP_LINK, STOP, 0, 1, 4, 2, 3},		/* linkat */
	{88, 83, OP_SYMLINK, STOP, -1, 1, -1, -1, 0},		/* symlink */
	{266, 304, OP_SYMLINK, STOP, 1, 2, -1, -1, 0},		/* symlinkat */
	{87, 10, OP_UNLINK, STOP, -1, 0, -1, -1, -1},		/* unlink */
	{263, 301, OP_UNLINK, STOP, 0, 1, 2, -1, -1},		/* unlinkat */
	{84, 40, OP_RMDIR, STOP, -1, 0, -1, -1, -1},		/* rmdir */
	{83, 39, OP_MKDIR, STOP, -1, 0, -1, -1, -1},		/* mkdir */
	{258, 296, OP_MKDIR, STOP, 0, 1, -1, -1, -1},		/* mkdirat */
	{133, 14, OP_MKNOD, STOP, -1, 0, -1, -1, -1},		/* mknod */
	{259, 297, OP_MKNOD, STOP, 0, 1, -1, -1, -1},		/* mknodat */
	{76, 92, OP_TRUNCATE, STOP, -1, 0, 1, -1, -1},		/* truncate */
	{-1, 193, OP_TRUNCATE, STOP, -1, 0, 1, -1, -1},		/* truncate64 */
	{77, 93, OP_FTRUNCATE, STOP, 0, -1, 1, -1, -1},		/* ftruncate */
	{-1, 194, OP_FTRUNCATE, STOP, 0, -1, 1, -1, -1},	/* ftruncate64 */
	{285, 324, OP_FTRUNCATE, STOP, 0, -1, -1, -1, -1},	/* fallocate */
	{9, 192, OP_MAP, STOP_SHARED, 4, -1, 3, -1, -1},	/* mmap, mmap2 */

	{90, 15, OP_META, STOP, -1, 0, -1, -1, -1},		/* chmod */
	{91, 94, OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fchmod */
	{268, 306, OP_META, STOP, 0, 1, -1, -1, -1},		/* fchmodat */
	{452, 452, OP_META, STOP, 0, 1, -1, -1, -1},		/* fchmodat2 */
	{92, 212, OP_META, STOP, -1, 0, -1, -1, -1},		/* chown */
	{93, 207, OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fchown */
	{260, 298, OP_META, STOP, 0, 1, -1, -1, -1},		/* fchownat */
	{132, 30, OP_META, STOP, -1, 0, -1, -1, -1},		/* utime */
	{235, 271, OP_META, STOP, -1, 0, -1, -1, -1},		/* utimes */
	{261, 299, OP_META, STOP, 0, 1, -1, -1, -1},		/* futimesat */
	{280, 320, OP_META, STOP, 0, 1, -1, -1, -1},		/* utimensat */
	{-1, 412, OP_META, STOP, 0, 1, -1, -1, -1},		/* utimensat with 64-bit times */

	{188, 226, OP_META, STOP, -1, 0, -1, -1, -1},		/* setxattr: also sets access control lists */
	{189, 227, OP_META, STOP, -1, 0, -1, -1, -1},		/* lsetxattr */
	{190, 228, OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fsetxattr */
	{197, 235, OP_META, STOP, -1, 0, -1, -1, -1},		/* removexattr */
	{198, 236, OP_META, STOP, -1, 0, -1, -1, -1},		/* lremovexattr */
	{199, 237, OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fremovexattr */

	{80, 12, OP_CHDIR, STOP, -1, 0, -1, -1, -1},		/* chdir */
	{81, 133, OP_CHDIR, STOP, -1, -1, -1, -1, -1},		/* fchdir */
	{59, 11, OP_EXEC, STOP, -1, 0, -1, -1, -1},		/* execve */
	{322, 358, OP_EXEC, STOP, 0, 1, 4, -1, -1},		/* execveat */

	{42, 362, OP_CONNECT, STOP, -1, -1, -1, -1, -1},	/* connect */
	{49, 361, OP_BIND, STOP, -1, -1, -1, -1, -1},		/* bind */
	{44, 369, OP_SENDTO, STOP_ADDRESSED, -1, -1, 4, -1, -1}, /* sendto */
	{-1, 102, OP_SOCKETCALL, STOP, -1, -1, -1, -1, -1},	/* socketcall */

	{161, 61, OP_ROOT, STOP, -1, 0, -1, -1, -1},		/* chroot */
	{155, 217, OP_ROOT, STOP, -1, 0, -1, -1, -1},		/* pivot_root */
	{308, 346, OP_ROOT, STOP, -1, -1, -1, -1, -1},		/* setns */
	{165, 21, OP_MOUNT, STOP, -1, 1, -1, -1, -1},		/* mount */
	{429, 429, OP_MOUNT, STOP, -1, -1, -1, -1, -1},		/* move_mount */
	{29, 395, OP_MEMORY, STOP, -1, -1, -1, -1, -1},		/* shmget */
	{62, 37, OP_SIGNAL, STOP, -1, -1, -1, -1, -1},		/* kill */
	{129, 178, OP_SIGNAL, STOP, -1, -1, -1, -1, -1},	/* rt_sigqueueinfo */
	{424, 424, OP_SIGNAL, STOP, -1, -1, -1, -1, -1},	/* pidfd_send_signal */
	{101, 26, OP_PTRACE, STOP, -1, -1, 0, -1, -1},		/* ptrace */

	/* io_uring opens files without system calls that could be stopped; programs that are refused it fall
	 * back to ordinary calls. */
	{425, 425, OP_NONE, REFUSE, -1, -1, -1, -1, -1},	/* io_uring_setup */
	{426, 426, OP_NONE, REFUSE, -1, -1, -1, -1, -1},	/* io_uring_enter */
	{427, 427, OP_NONE, REFUSE, -1, -1, -1, -1, -1},	/* io_uring_register */

	/* Stopped only when clock or randomness is pinned. i386 has separate calls with 64-bit times. */
	{228, 265, OP_GETTIME, CLOCK_WALL, -1, -1, 0, -1, -1},	/* clock_gettime */
	{-1, 403, OP_GETTIME, CLOCK_WALL, -1, -1, 0, -1, -1},
	{96, 78, OP_TIMEOFDAY, CLOCK, -1, -1, -1, -1, -1},	/* gettimeofday */
	{201, 13, OP_TIME, CLOCK, -1, -1, -1, -1, -1},		/* time */
	{35, 162, OP_NANOSLEEP, CLOCK, -1, -1, -1, -1, -1},	/* nanosleep */
	{230, 267, OP_CLOCK_NANOSLEEP, CLOCK, -1, -1, -1, -1, -1}, /* clock_nanosleep */
	{-1, 407, OP_CLOCK_NANOSLEEP, CLOCK, -1, -1, -1, -1, -1},
	{202, 240, OP_FUTEX, CLOCK_FUTEX, -1, -1, 3, -1, -1},	/* futex */
	{-1, 422, OP_FUTEX, CLOCK_FUTEX, -1, -1, 3, -1, -1},
	{7, 168, OP_POLL, CLOCK_TIMED, -1, -1, 2, -1, -1},	/* poll */
	{232, 256, OP_POLL, CLOCK_TIMED, -1, -1, 3, -1, -1},	/* epoll_wait */
	{281, 319, OP_POLL, CLOCK_TIMED, -1, -1, 3, -1, -1},	/* epoll_pwait */
	{23, 142, OP_SELECT, CLOCK_TIMED, -1, -1, 4, -1, -1},	/* select */
	{270, 308, OP_PSELECT, CLOCK_TIMED, -1, -1, 4, -1, -1},	/* pselect6 */
	{-1, 413, OP_PSELECT, CLOCK_TIMED, -1, -1, 4, -1, -1},
	{271, 309, OP_PSELECT, CLOCK_TIMED, -1, -1, 2, -1, -1},	/* ppoll */
	{-1, 414, OP_PSELECT, CLOCK_TIMED, -1, -1, 2, -1, -1},
	{441, -1, OP_PSELECT, CLOCK_TIMED, -1, -1, 3, -1, -1},	/* epoll_pwait2 */
	{-1, 441, OP_PSELECT, CLOCK_TIMED, -1, -1, 3, -1, -1},
	{61, 114, OP_WAIT, CLOCK, -1, -1, -1, -1, -1},		/* wait4 */
	{-1, 7, OP_WAIT, CLOCK, -1, -1, -1, -1, -1},		/* waitpid */
	{247, 284, OP_WAITID, CLOCK, -1, -1, -1, -1, -1},	/* waitid */
	{318, 355, OP_GETRANDOM, RANDOM, -1, -1, -1, -1, -1},	/* getrandom */
};
const unsigned call_count = sizeof calls / sizeof *calls;

/* By direct lookup, filled at the first use: this runs at every stop. */
const struct call *call_find(uint32_t arch, uint64_t nr)
{
	static uint8_t table[2][512];
	static bool filled;
	if (!filled) {
		for (unsigned i = 0; i < call_count; i++) {
			if (calls[i].nr >= 0)
				table[0][calls[i].nr] = (uint8_t)(i + 1);
			if (calls[i].nr32 >= 0)
				table[1][calls[i].nr32] = (uint8_t)(i + 1);
		}
		filled = true;
	}
	unsigned at = nr < 512 ? table[arch == AUDIT_ARCH_X86_64 ? 0 : 1][nr] : 0;
	return at ? &calls[at - 1] : NULL;
}
