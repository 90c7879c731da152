/* Sets the injected library up before its constructor runs.
 *
 * The loader opens all libraries of a program before any constructor: nine files in each run of a compiler,
 * and each open would stop twice. Two stops remain: the open of the injected library, and the next call
 * after it. The tracer replaces that call by an mmap of the two pages (inject_layout.h). Then it sends the
 * loader through the entry point of the library, which opens the ring, and back to make its call again. Where
 * anything is not as expected, the call is made as it was, and the constructor does the set-up later. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

struct early {
	struct user_regs_struct registers; /* at the call that is replaced */
	/* Where the instructions of the call begin; the entry point of the library. */
	uint64_t site, entry;
};

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

/* Replaces the stopped call by an mmap of the two pages; early_finish runs when that returns. False: the call
 * goes on as it was. */
bool early_replace_call(struct task *task)
{
	struct proc *proc = task->proc;
	uint64_t site = detour_site(task), base;
	if (proc->early != LIBRARY_OPENED || !site || !entry_offset || proc->has_random_device)
		return false;
	proc->early = EARLY_DONE; /* one attempt: if it fails, the constructor does it */
	struct early *early = must(calloc(1, sizeof *early));
	if (!(base = library_base(proc->pid)) || ptrace(PTRACE_GETREGS, task->tid, NULL, &early->registers)) {
		free(early);
		return false;
	}
	struct user_regs_struct call = early->registers;
	call.orig_rax = SYS_mmap;
	call.rdi = CLEW_CODE;
	call.rsi = 0x2000;
	call.rdx = PROT_READ | PROT_WRITE;
	/* NOREPLACE: a program that uses this address itself must not lose its memory. */
	call.r10 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	call.r8 = (uint64_t)-1;
	call.r9 = 0;
	if (ptrace(PTRACE_SETREGS, task->tid, NULL, &call)) {
		free(early);
		return false;
	}
	early->site = site;
	early->entry = base + entry_offset;
	task->early = early;
	return true;
}

/* The mmap has returned. All registers go back to what they were at the replaced call. */
void early_finish(struct task *task, int64_t result)
{
	struct early *early = task->early;
	struct user_regs_struct next = early->registers;
	struct clew_local local = {.slot = task->proc->slot, .return_to = early->site};
	snprintf(local.path, sizeof local.path, "%s", rings_path());
	next.rip = early->site;
	next.rax = next.orig_rax;	   /* the number of the call, for when it is made again */
	next.orig_rax = (uint64_t)-1; /* the kernel must not restart the mmap */
	if (result == (int64_t)CLEW_CODE && poke(task->tid, CLEW_LOCAL, &local, sizeof local)) {
		next.rip = early->entry; /* it returns to the site (local.return_to) */
		detours_install_known(task);
	}
	ptrace(PTRACE_SETREGS, task->tid, NULL, &next);
	free(early);
	task->early = NULL;
}
