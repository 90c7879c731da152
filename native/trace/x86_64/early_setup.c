/* Sets the injected library up before its constructor runs.
 *
 * The loader opens all libraries of a program before any constructor: nine files in each run of a compiler,
 * and each open would stop twice. Two stops remain: the open of the injected library, and the next call after it.
 * There the tracer sends the loader through the entry point of the library, which maps the two pages
 * (inject_layout.h) and the ring, and back to make its call again. Where anything is not as expected, the call is
 * made as it was, and the constructor does the set-up later. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t entry_offset; /* offset of the entry point in the library; 0: unknown */

/* Reads the entry point from the ELF header, once per run. */
void early_set_library(const char *path)
{
	Elf64_Ehdr head;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0 && read(file, &head, sizeof head) == sizeof head)
		entry_offset = head.e_entry;
	if (file >= 0)
		close(file);
}

/* The address at which the library is mapped, from /proc/PID/maps; 0: not mapped. */
static uint64_t library_base(pid_t pid)
{
	char path[64], text[8192], *line;
	ssize_t size = 0, more = 0;
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	while (file >= 0 && size < (ssize_t)sizeof text - 1 && (more = read(file, text + size, sizeof text - 1 - (size_t)size)) > 0)
		size += more;
	if (file >= 0)
		close(file);
	text[size] = 0;
	if (!(line = stack_find_library(text)))
		return 0;
	while (line > text && line[-1] != '\n')
		line--;
	return strtoull(line, NULL, 16);
}

static void remove_detours(struct task *task)
{
	detours_remove_known(task);
	task->proc->detours = NO_LIBRARY;
}

/* Writes what early_entry needs to the stack of the loader. */
static bool write_early(struct task *task, const struct user_regs_struct *registers, uint64_t site)
{
	struct clew_early early = {.return_to = site, .slot = task->proc->slot, .holder = rings_holder(), .file = rings_file()};
	snprintf(early.path, sizeof early.path, "%s", rings_path());
	uint64_t at = registers->rsp - 128 - CLEW_EARLY;
	early.count = detours_install_known(task, early.detours);
	task->proc->detours = early.count;
	if (poke(task->tid, at, &early, sizeof early))
		return true;
	remove_detours(task);
	return false;
}

/* The library is mapped, and the loader makes a call. The kernel skips it, and the loader goes to the library,
 * from where it returns to make the call again. False: the call goes on as it was, and the constructor does the
 * set-up later. */
static bool send_to_library(struct task *task)
{
	uint64_t site = detour_site(task), base;
	struct user_regs_struct registers;
	if (!site || !entry_offset || task->proc->has_random_device || !(base = library_base(task->proc->pid)) ||
	    ptrace(PTRACE_GETREGS, task->tid, NULL, &registers) || !write_early(task, &registers, site))
		return false;
	registers.rip = base + entry_offset;
	registers.rax = registers.orig_rax; /* the number of the call, for when it is made again */
	registers.orig_rax = (uint64_t)-1;
	return !ptrace(PTRACE_SETREGS, task->tid, NULL, &registers);
}

/* Whether the call that stopped is part of the set-up, so that there is nothing to record. */
bool early_enter(struct task *task)
{
	struct proc *proc = task->proc;
	if (proc->early == LIBRARY_OPENED) {
		/* One attempt. */
		proc->early = send_to_library(task) ? LIBRARY_ENTERED : EARLY_DONE;
		return proc->early == LIBRARY_ENTERED;
	}
	const uint64_t *given = task->info.seccomp.args;
	if (proc->early != LIBRARY_ENTERED || task->info.seccomp.nr != SYS_access || given[0] || given[1] != CLEW_UNDO)
		return false;
	remove_detours(task);
	proc->early = EARLY_DONE;
	return true;
}
