/* The table of system calls that concern the tracer.
 *
 * Columns: numbers on x86-64, i386 and aarch64, what the call does, when the filter stops it; then the numbers of the arguments that
 * hold directory descriptor, path and flags, and for calls with two paths the second directory and path.
 * -1: there is none. Flags -2: the call never follows a link (lstat). */
#include "syscalls/syscalls.h"
#include "arch.h"

const struct call calls[] = {
	/* the frequent calls first: the filter compares in this order */
	{NUMBERS(257, 295, 56), OP_OPEN, PASS_FLAGS, 0, 1, 2, -1, -1},	/* openat */
	{NUMBERS(262, 300, 79), OP_STAT, PASS_NAMED, 0, 1, 3, -1, -1},	/* newfstatat */
	{NUMBERS(21, 33, -1), OP_ACCESS, PASS, -1, 0, -1, -1, -1},		/* access */
	{NUMBERS(269, 307, 48), OP_ACCESS, PASS, 0, 1, -1, -1, -1},		/* faccessat */
	{NUMBERS(267, 305, 78), OP_READLINK, PASS, 0, 1, -1, -1, -1},	/* readlinkat */
	{NUMBERS(332, 383, 291), OP_STATX, PASS_NAMED, 0, 1, 2, -1, -1},	/* statx */
	{NUMBERS(2, 5, -1), OP_OPEN, PASS_FLAGS, -1, 0, 1, -1, -1},		/* open */
	{NUMBERS(4, 195, -1), OP_STAT, PASS, -1, 0, -1, -1, -1},		/* stat, stat64 */
	{NUMBERS(6, 196, -1), OP_STAT, PASS, -1, 0, -2, -1, -1},		/* lstat, lstat64 */
	{NUMBERS(89, 85, -1), OP_READLINK, PASS, -1, 0, -1, -1, -1},		/* readlink */
	{NUMBERS(439, 439, 439), OP_ACCESS, PASS, 0, 1, -1, -1, -1},		/* faccessat2 */
	{NUMBERS(-1, 106, -1), OP_STAT, STOP, -1, 0, -1, -1, -1},		/* stat of the first kernels */
	{NUMBERS(-1, 107, -1), OP_STAT, STOP, -1, 0, -2, -1, -1},		/* lstat of the first kernels */

	{NUMBERS(85, 8, -1), OP_CREAT, STOP, -1, 0, -1, -1, -1},		/* creat */
	{NUMBERS(437, 437, 437), OP_OPENAT2, STOP, 0, 1, 2, -1, -1},		/* openat2 */
	{NUMBERS(304, 342, 265), OP_HANDLE, STOP, -1, -1, 2, -1, -1},		/* open_by_handle_at */

	{NUMBERS(82, 38, -1), OP_RENAME, STOP, -1, 0, -1, -1, 1},		/* rename */
	{NUMBERS(264, 302, 38), OP_RENAME, STOP, 0, 1, -1, 2, 3},		/* renameat */
	{NUMBERS(316, 353, 276), OP_RENAME, STOP, 0, 1, 4, 2, 3},		/* renameat2 */
	{NUMBERS(86, 9, -1), OP_LINK, STOP, -1, 0, -1, -1, 1},		/* link */
	{NUMBERS(265, 303, 37), OP_LINK, STOP, 0, 1, 4, 2, 3},		/* linkat */
	{NUMBERS(88, 83, -1), OP_SYMLINK, STOP, -1, 1, -1, -1, 0},		/* symlink */
	{NUMBERS(266, 304, 36), OP_SYMLINK, STOP, 1, 2, -1, -1, 0},		/* symlinkat */
	{NUMBERS(87, 10, -1), OP_UNLINK, STOP, -1, 0, -1, -1, -1},		/* unlink */
	{NUMBERS(263, 301, 35), OP_UNLINK, STOP, 0, 1, 2, -1, -1},		/* unlinkat */
	{NUMBERS(84, 40, -1), OP_RMDIR, STOP, -1, 0, -1, -1, -1},		/* rmdir */
	{NUMBERS(83, 39, -1), OP_MKDIR, STOP, -1, 0, -1, -1, -1},		/* mkdir */
	{NUMBERS(258, 296, 34), OP_MKDIR, STOP, 0, 1, -1, -1, -1},		/* mkdirat */
	{NUMBERS(133, 14, -1), OP_MKNOD, STOP, -1, 0, -1, -1, -1},		/* mknod */
	{NUMBERS(259, 297, 33), OP_MKNOD, STOP, 0, 1, -1, -1, -1},		/* mknodat */
	{NUMBERS(76, 92, 45), OP_TRUNCATE, STOP, -1, 0, 1, -1, -1},		/* truncate */
	{NUMBERS(-1, 193, -1), OP_TRUNCATE, STOP, -1, 0, 1, -1, -1},		/* truncate64 */
	{NUMBERS(77, 93, 46), OP_FTRUNCATE, STOP, 0, -1, 1, -1, -1},		/* ftruncate */
	{NUMBERS(-1, 194, -1), OP_FTRUNCATE, STOP, 0, -1, 1, -1, -1},	/* ftruncate64 */
	{NUMBERS(285, 324, 47), OP_FTRUNCATE, STOP, 0, -1, -1, -1, -1},	/* fallocate */
	{NUMBERS(9, 192, 222), OP_MAP, STOP_SHARED, 4, -1, 3, -1, -1},	/* mmap, mmap2 */

	{NUMBERS(90, 15, -1), OP_META, STOP, -1, 0, -1, -1, -1},		/* chmod */
	{NUMBERS(91, 94, 52), OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fchmod */
	{NUMBERS(268, 306, 53), OP_META, STOP, 0, 1, -1, -1, -1},		/* fchmodat */
	{NUMBERS(452, 452, 452), OP_META, STOP, 0, 1, -1, -1, -1},		/* fchmodat2 */
	{NUMBERS(92, 212, -1), OP_META, STOP, -1, 0, -1, -1, -1},		/* chown */
	{NUMBERS(93, 207, 55), OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fchown */
	{NUMBERS(260, 298, 54), OP_META, STOP, 0, 1, -1, -1, -1},		/* fchownat */
	{NUMBERS(132, 30, -1), OP_META, STOP, -1, 0, -1, -1, -1},		/* utime */
	{NUMBERS(235, 271, -1), OP_META, STOP, -1, 0, -1, -1, -1},		/* utimes */
	{NUMBERS(261, 299, -1), OP_META, STOP, 0, 1, -1, -1, -1},		/* futimesat */
	{NUMBERS(280, 320, 88), OP_META, STOP, 0, 1, -1, -1, -1},		/* utimensat */
	{NUMBERS(-1, 412, -1), OP_META, STOP, 0, 1, -1, -1, -1},		/* utimensat with 64-bit times */

	{NUMBERS(188, 226, 5), OP_META, STOP, -1, 0, -1, -1, -1},		/* setxattr: also sets access control lists */
	{NUMBERS(189, 227, 6), OP_META, STOP, -1, 0, -1, -1, -1},		/* lsetxattr */
	{NUMBERS(190, 228, 7), OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fsetxattr */
	{NUMBERS(197, 235, 14), OP_META, STOP, -1, 0, -1, -1, -1},		/* removexattr */
	{NUMBERS(198, 236, 15), OP_META, STOP, -1, 0, -1, -1, -1},		/* lremovexattr */
	{NUMBERS(199, 237, 16), OP_FMETA, STOP, 0, -1, -1, -1, -1},		/* fremovexattr */

	{NUMBERS(80, 12, 49), OP_CHDIR, STOP, -1, 0, -1, -1, -1},		/* chdir */
	{NUMBERS(81, 133, 50), OP_CHDIR, STOP, -1, -1, -1, -1, -1},		/* fchdir */
	{NUMBERS(59, 11, 221), OP_EXEC, STOP, -1, 0, -1, -1, -1},		/* execve */
	{NUMBERS(322, 358, 281), OP_EXEC, STOP, 0, 1, 4, -1, -1},		/* execveat */

	{NUMBERS(42, 362, 203), OP_CONNECT, STOP, -1, -1, -1, -1, -1},	/* connect */
	{NUMBERS(49, 361, 200), OP_BIND, STOP, -1, -1, -1, -1, -1},		/* bind */
	{NUMBERS(44, 369, 206), OP_SENDTO, STOP_ADDRESSED, -1, -1, 4, -1, -1}, /* sendto */
	{NUMBERS(-1, 102, -1), OP_SOCKETCALL, STOP, -1, -1, -1, -1, -1},	/* socketcall */

	{NUMBERS(161, 61, 51), OP_ROOT, STOP, -1, 0, -1, -1, -1},		/* chroot */
	{NUMBERS(155, 217, 41), OP_ROOT, STOP, -1, 0, -1, -1, -1},		/* pivot_root */
	{NUMBERS(308, 346, 268), OP_ROOT, STOP, -1, -1, -1, -1, -1},		/* setns */
	{NUMBERS(165, 21, 40), OP_MOUNT, STOP, -1, 1, -1, -1, -1},		/* mount */
	{NUMBERS(429, 429, 429), OP_MOUNT, STOP, -1, -1, -1, -1, -1},		/* move_mount */
	{NUMBERS(29, 395, 194), OP_MEMORY, STOP, -1, -1, -1, -1, -1},		/* shmget */
	{NUMBERS(62, 37, 129), OP_SIGNAL, STOP, -1, -1, -1, -1, -1},		/* kill */
	{NUMBERS(129, 178, 138), OP_SIGNAL, STOP, -1, -1, -1, -1, -1},	/* rt_sigqueueinfo */
	{NUMBERS(424, 424, 424), OP_SIGNAL, STOP, -1, -1, -1, -1, -1},	/* pidfd_send_signal */
	{NUMBERS(101, 26, 117), OP_PTRACE, STOP, -1, -1, 0, -1, -1},		/* ptrace */

	/* io_uring opens files without system calls that could be stopped; programs that are refused it fall
	 * back to ordinary calls. */
	{NUMBERS(425, 425, 425), OP_NONE, REFUSE, -1, -1, -1, -1, -1},	/* io_uring_setup */
	{NUMBERS(426, 426, 426), OP_NONE, REFUSE, -1, -1, -1, -1, -1},	/* io_uring_enter */
	{NUMBERS(427, 427, 427), OP_NONE, REFUSE, -1, -1, -1, -1, -1},	/* io_uring_register */

	/* Stopped only when clock or randomness is pinned. i386 has separate calls with 64-bit times. */
	{NUMBERS(228, 265, 113), OP_GETTIME, CLOCK_WALL, -1, -1, 0, -1, -1},	/* clock_gettime */
	{NUMBERS(-1, 403, -1), OP_GETTIME, CLOCK_WALL, -1, -1, 0, -1, -1},
	{NUMBERS(96, 78, 169), OP_TIMEOFDAY, CLOCK, -1, -1, -1, -1, -1},	/* gettimeofday */
	{NUMBERS(201, 13, -1), OP_TIME, CLOCK, -1, -1, -1, -1, -1},		/* time */
	{NUMBERS(35, 162, 101), OP_NANOSLEEP, CLOCK, -1, -1, -1, -1, -1},	/* nanosleep */
	{NUMBERS(230, 267, 115), OP_CLOCK_NANOSLEEP, CLOCK, -1, -1, -1, -1, -1}, /* clock_nanosleep */
	{NUMBERS(-1, 407, -1), OP_CLOCK_NANOSLEEP, CLOCK, -1, -1, -1, -1, -1},
	{NUMBERS(202, 240, 98), OP_FUTEX, CLOCK_FUTEX, -1, -1, 3, -1, -1},	/* futex */
	{NUMBERS(-1, 422, -1), OP_FUTEX, CLOCK_FUTEX, -1, -1, 3, -1, -1},
	{NUMBERS(7, 168, -1), OP_POLL, CLOCK_TIMED, -1, -1, 2, -1, -1},	/* poll */
	{NUMBERS(232, 256, -1), OP_POLL, CLOCK_TIMED, -1, -1, 3, -1, -1},	/* epoll_wait */
	{NUMBERS(281, 319, 22), OP_POLL, CLOCK_TIMED, -1, -1, 3, -1, -1},	/* epoll_pwait */
	{NUMBERS(23, 142, -1), OP_SELECT, CLOCK_TIMED, -1, -1, 4, -1, -1},	/* select */
	{NUMBERS(270, 308, 72), OP_PSELECT, CLOCK_TIMED, -1, -1, 4, -1, -1},	/* pselect6 */
	{NUMBERS(-1, 413, -1), OP_PSELECT, CLOCK_TIMED, -1, -1, 4, -1, -1},
	{NUMBERS(271, 309, 73), OP_PSELECT, CLOCK_TIMED, -1, -1, 2, -1, -1},	/* ppoll */
	{NUMBERS(-1, 414, -1), OP_PSELECT, CLOCK_TIMED, -1, -1, 2, -1, -1},
	{NUMBERS(441, -1, 441), OP_PSELECT, CLOCK_TIMED, -1, -1, 3, -1, -1},	/* epoll_pwait2 */
	{NUMBERS(-1, 441, -1), OP_PSELECT, CLOCK_TIMED, -1, -1, 3, -1, -1},
	{NUMBERS(61, 114, 260), OP_WAIT, CLOCK, -1, -1, -1, -1, -1},		/* wait4 */
	{NUMBERS(-1, 7, -1), OP_WAIT, CLOCK, -1, -1, -1, -1, -1},		/* waitpid */
	{NUMBERS(247, 284, 95), OP_WAITID, CLOCK, -1, -1, -1, -1, -1},	/* waitid */
	{NUMBERS(318, 355, 278), OP_GETRANDOM, RANDOM, -1, -1, -1, -1, -1},	/* getrandom */
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
	unsigned at = nr < 512 ? table[arch == ARCH_NATIVE ? 0 : 1][nr] : 0;
	return at ? &calls[at - 1] : NULL;
}
