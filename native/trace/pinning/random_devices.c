/* /dev/random and /dev/urandom while randomness is pinned.
 *
 * A process that has one of them open is stopped at every call until it closes it, and its reads from the
 * device are answered from its stream. That is slow but rare: programs use getrandom. The device is
 * recognized by its number, so it does not matter by what name it was opened or how it was inherited. */
#include "arch.h"
#include "memory.h"
#include "pinning/pinning.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

enum use { NOTHING, READ, READ_PARTS, CARRY, CARRY_FIRST, CLOSE };

/* Calls that read from a descriptor, by number. CARRY moves data between descriptors: the second
 * argument is the source, of CARRY_FIRST the first. */
static const struct { int nr, nr32; enum use use; } uses[] = {
	{NUMBERS(0, 3, 63), READ},		 /* read */
	{NUMBERS(17, 180, 67), READ},	 /* pread64 */
	{NUMBERS(19, 145, 65), READ_PARTS},	 /* readv */
	{NUMBERS(295, 333, 69), READ_PARTS},	 /* preadv */
	{NUMBERS(327, 378, 286), READ_PARTS},	 /* preadv2 */
	{NUMBERS(40, 187, 71), CARRY},	 /* sendfile */
	{NUMBERS(-1, 239, -1), CARRY},	 /* sendfile64 */
	{NUMBERS(275, 313, 76), CARRY_FIRST}, /* splice */
	{NUMBERS(326, 377, 285), CARRY_FIRST}, /* copy_file_range */
	{NUMBERS(3, 6, 57), CLOSE},		 /* close */
};

/* Character devices 1:8 (random) and 1:9 (urandom). */
static bool is_device(pid_t pid, int fd)
{
	char link[64];
	struct stat st;
	snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, fd);
	return !stat(link, &st) && S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 && (minor(st.st_rdev) == 8 || minor(st.st_rdev) == 9);
}

/* Whether the process has such a device open by any descriptor. */
static bool holds_device(pid_t pid)
{
	char folder[64];
	bool found = false;
	snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
	DIR *list = opendir(folder);
	for (struct dirent *entry; list && !found && (entry = readdir(list));)
		found = entry->d_name[0] != '.' && is_device(pid, atoi(entry->d_name));
	if (list)
		closedir(list);
	return found;
}

/* Another thread of the process may read what this one opened: stop it now, so that it is resumed call by
 * call. */
static void interrupt(struct task *task, const void *but)
{
	if (task != but && task->proc == ((const struct task *)but)->proc)
		ptrace(PTRACE_INTERRUPT, task->tid, NULL, NULL);
}

void device_opened(struct task *task, int fd)
{
	if (!pins.random || task->proc->has_random_device || !is_device(task->proc->pid, fd))
		return;
	task->proc->has_random_device = true;
	tasks_visit(interrupt, task);
}

/* Checks again whether a device is open: after exec, and after a close. */
void devices_inherited(struct proc *proc) { proc->has_random_device = pins.random && holds_device(proc->pid); }

/* readv: the buffers are filled one after the other, as the kernel would. */
static int64_t read_parts(struct task *task, uint64_t address, uint64_t count)
{
	bool wide = is_native(task);
	int64_t done = 0;
	if (count > UIO_MAXIOV)
		return -EINVAL;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t part[2];
		uint32_t narrow[2];
		if (wide ? peek(task->tid, address + i * sizeof part, part, sizeof part) != sizeof part
			 : peek(task->tid, address + i * sizeof narrow, narrow, sizeof narrow) != sizeof narrow)
			return done ? done : -EFAULT;
		int64_t more = random_fill(task, wide ? part[0] : narrow[0], wide ? part[1] : narrow[1]);
		if (more < 0)
			return done ? done : more;
		done += more;
	}
	return done;
}

static enum use use_of(uint32_t arch, uint64_t nr)
{
	for (unsigned i = 0; i < sizeof uses / sizeof *uses; i++)
		if ((arch == ARCH_NATIVE ? uses[i].nr : uses[i].nr32) == (int)nr)
			return uses[i].use;
	return NOTHING;
}

/* Answers the call if it reads from a device; notes a close, whose outcome matters. */
static void enter(struct task *task, const struct __ptrace_syscall_info *info)
{
	const uint64_t *given = (const uint64_t *)info->entry.args;
	enum use use = use_of(info->arch, info->entry.nr);
	if (use == NOTHING || !is_device(task->proc->pid, (int)given[use == CARRY ? 1 : 0]))
		return;
	task->device = use == CLOSE ? DEVICE_CLOSED : DEVICE_READ;
	if (use == CLOSE)
		return;
	/* read_parts and random_fill look at the architecture of this call. */
	task->info.arch = info->arch;
	task->answer = use == READ ? random_fill(task, given[1], given[2])
		     : use == READ_PARTS ? read_parts(task, given[1], given[2]) : -EINVAL; /* EINVAL for splice and its like: programs then fall back to read and write */
	call_skip(task, task->answer);
}

/* A call of such a process begins or returns. */
void device_stop(struct task *task, const struct __ptrace_syscall_info *info)
{
	if (info->op == PTRACE_SYSCALL_INFO_ENTRY) {
		enter(task, info);
		return;
	}
	if (task->device == DEVICE_READ)
		/* The filter answers ENOSYS to number -1: set the result again. */
		call_set_result(task, task->answer);
	else if (task->device == DEVICE_CLOSED)
		devices_inherited(task->proc);
	task->device = DEVICE_NONE;
}
