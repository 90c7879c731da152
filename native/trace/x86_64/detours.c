/* Detours: system calls of the loader and the C library, redirected through the injected library.
 *
 * Programs that load modules, as Python does, keep the loader busy: it opens hundreds of files with
 * `syscall` instructions of its own, and each would stop twice. The C library does the same for locales and
 * message catalogs, a dozen files in each short-lived compiler. So the first time such a call stops, the
 * instruction and the one before it are overwritten by a jump (inject_layout.h). The tracer does that only
 * where it is certain to be harmless:
 *
 * - in the loader or the C library, which compilers made from C, and only in this process's copy;
 * - behind `mov $constant, register` with the constant that the register holds now: so these bytes are an
 *   instruction and not the end of a longer one;
 * - where no jump nearby leads between the two instructions;
 * - while no second thread can be about to run them.
 *
 * Everywhere else nothing changes, and the call stops. */
#include "arch.h"
#include "library/library.h"
#include "memory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define LOADER (1u << 20) /* bytes: larger than any loader */
#define NEARBY 2048 /* bytes before and after that are searched for jumps: about a function */
#define MOVE 5	    /* bytes of `mov $constant, register` */
#define LEAD 0xb9   /* mov $address, %ecx: a system call overwrites rcx anyway */
#define SIZE (MOVE + 2) /* with the 2 bytes of `syscall`: room for `mov $address, %ecx; jmp *%rcx` */

/* The calls that the library can record. */
static bool can_detour(uint64_t nr)
{
	return nr == SYS_openat || nr == SYS_newfstatat || nr == SYS_access || nr == SYS_open || nr == SYS_stat;
}

/* Whether the code is `mov $constant, register; syscall`, with the constant that the register holds now. */
static bool matches_call(const uint8_t *code, const struct __ptrace_syscall_info *info)
{
	uint32_t constant;
	uint64_t now;
	memcpy(&constant, code + 1, sizeof constant);
	switch (code[0]) {
	case 0xb8: /* eax */
		now = info->seccomp.nr;
		break;
	case 0xbf: /* edi */
		now = info->seccomp.args[0];
		break;
	case 0xbe: /* esi */
		now = info->seccomp.args[1];
		break;
	case 0xba: /* edx */
		now = info->seccomp.args[2];
		break;
	default:
		return false;
	}
	return now == constant && code[MOVE] == 0x0f && code[MOVE + 1] == 0x05;
}

/* Whether anything that may be a jump (short, near, conditional, loop, call) leads behind the first of the two
 * instructions but not behind both. Every byte is taken for the start of an instruction: that finds too many
 * jumps, never too few. */
static bool has_jump_into(const uint8_t *code, size_t size, size_t site)
{
	for (size_t at = 0; at + 6 <= size; at++) {
		size_t to = 0;
		int32_t far;
		if (code[at] == 0xeb || (code[at] & 0xf0) == 0x70 || (code[at] & 0xfc) == 0xe0) {
			to = at + 2 + (size_t)(int8_t)code[at + 1];
		} else if ((code[at] & 0xfe) == 0xe8) {
			memcpy(&far, code + at + 1, sizeof far);
			to = at + 5 + (size_t)far;
		} else if (code[at] == 0x0f && (code[at + 1] & 0xf0) == 0x80) {
			memcpy(&far, code + at + 2, sizeof far);
			to = at + 6 + (size_t)far;
		}
		if (to > site && to < site + SIZE)
			return true;
	}
	return false;
}

/* Through ptrace: it may also write to read-only pages, and makes a private copy of them. */
static bool write_code(pid_t pid, uint64_t address, const void *from, size_t size)
{
	long word;
	for (size_t at = 0; at < size; at += sizeof word) {
		memcpy(&word, (const char *)from + at, sizeof word);
		if (ptrace(PTRACE_POKETEXT, pid, (void *)(address + at), word))
			return false;
	}
	return true;
}

/* The code of a detour: the overwritten mov, then a jump to the library. */
static struct clew_detour make_detour(const uint8_t *move, uint64_t return_to)
{
	static const uint8_t jump[] = {0xff, 0x24, 0x25}; /* jmp *address */
	const uint32_t handler = CLEW_LOCAL + offsetof(struct clew_local, handler);
	struct clew_detour detour = {.return_to = return_to};
	memcpy(detour.code, move, MOVE);
	memcpy(detour.code + MOVE, jump, sizeof jump);
	memcpy(detour.code + MOVE + sizeof jump, &handler, sizeof handler);
	return detour;
}

/* rcx is free: a system call overwrites it anyway. One byte more is written, because ptrace writes whole
 * words. */
static bool write_jump(struct task *task, uint64_t site, uint8_t code[SIZE + 1], uint32_t address)
{
	code[0] = LEAD;
	memcpy(code + 1, &address, sizeof address);
	code[MOVE] = 0xff; /* jmp *%rcx */
	code[MOVE + 1] = 0xe1;
	return write_code(task->tid, site, code, SIZE + 1);
}

/* Sites in loaders that were detoured before. The same loader file has the same code in every process, so they
 * can be installed at once. */
static struct known {
	uint64_t loader, offset;
	uint8_t code[SIZE];
} known[CLEW_MAX_DETOURS];
static unsigned known_count;

/* Only sites in the loader, by offset: it is mapped at another address in each process. */
static void remember_site(const struct proc *proc, uint64_t site, const uint8_t *code)
{
	struct known *place = &known[known_count];
	if (known_count == CLEW_MAX_DETOURS || site - proc->loader > LOADER)
		return;
	for (unsigned i = 0; i < known_count; i++)
		if (known[i].loader == proc->loader_file && known[i].offset == site - proc->loader)
			return;
	*place = (struct known){proc->loader_file, site - proc->loader, {0}};
	memcpy(place->code, code, SIZE);
	known_count++;
}

/* Detours lie one behind the other on the first page. */
static uint32_t detour_address(unsigned number) { return CLEW_DETOURS + number * sizeof(struct clew_detour); }

/* Leads all known sites of this loader to `detours`, which early_entry copies to the first page, and returns how
 * many there are. The bytes are compared again: another tool may have changed them. */
unsigned detours_install_known(struct task *task, struct clew_detour *detours)
{
	struct proc *proc = task->proc;
	unsigned number = 0;
	for (unsigned i = 0; i < known_count; i++) {
		uint8_t code[SIZE + 1];
		uint64_t site = proc->loader + known[i].offset;
		if (known[i].loader != proc->loader_file || peek(task->tid, site, code, sizeof code) != sizeof code ||
		    memcmp(code, known[i].code, SIZE))
			continue;
		detours[number] = make_detour(code, site + SIZE);
		if (write_jump(task, site, code, detour_address(number)))
			number++;
	}
	return number;
}

/* Puts the code of the loader back: there is no first page in this process. */
void detours_remove_known(struct task *task)
{
	for (unsigned i = 0; i < known_count; i++) {
		uint8_t code[SIZE + 1];
		uint64_t site = task->proc->loader + known[i].offset;
		if (known[i].loader != task->proc->loader_file || peek(task->tid, site, code, sizeof code) != sizeof code ||
		    code[0] != LEAD || code[MOVE] != 0xff)
			continue;
		memcpy(code, known[i].code, SIZE);
		write_code(task->tid, site, code, sizeof code);
	}
}

static bool install_detour(struct task *task, uint64_t site, unsigned number)
{
	uint8_t near[2 * NEARBY], *code = near + NEARBY;
	if (peek(task->tid, site - NEARBY, near, sizeof near) != sizeof near || !matches_call(code, &task->info) ||
	    has_jump_into(near, sizeof near, NEARBY))
		return false;
	struct clew_detour detour = make_detour(code, site + SIZE);
	remember_site(task->proc, site, code);
	/* The detour first: the jump must never lead to an empty one. */
	return write_code(task->tid, detour_address(number), &detour, sizeof detour) &&
	       write_jump(task, site, code, detour_address(number));
}

/* An open for writing stops even when it comes from the library (filter.c): a detour would gain nothing. */
static bool opens_for_writing(const struct task *task)
{
	uint64_t nr = task->info.seccomp.nr;
	return (nr == SYS_openat || nr == SYS_open) &&
	       task->info.seccomp.args[nr == SYS_open ? 1 : 2] & (O_ACCMODE | O_CREAT | O_TRUNC);
}

/* One thread, and memory that is not shared: else another could be running the instructions being changed. */
static bool may_change(const struct task *task)
{
	const struct proc *proc = task->proc;
	return proc->loader && proc->slot && can_detour(task->info.seccomp.nr) && proc->tasks == 1 && !proc->memory &&
	       !proc->sharers && is_native(task) && !opens_for_writing(task);
}

/* The site of the call that just stopped, if it is in the loader and could be detoured; 0: no. */
uint64_t detour_site(const struct task *task)
{
	uint8_t code[SIZE];
	uint64_t site = task->info.instruction_pointer - SIZE;
	bool there = may_change(task) && site - task->proc->loader <= LOADER &&
		     peek(task->tid, site, code, sizeof code) == sizeof code && matches_call(code, &task->info);
	return there ? site : 0;
}

/* Lets the process make the stopped call again from the start of its instructions, which lead to the library
 * now. That saves the stop at the end of the call. */
static bool make_again(struct task *task, uint64_t site)
{
	struct user_regs_struct registers;
	if (ptrace(PTRACE_GETREGS, task->tid, NULL, &registers))
		return false;
	registers.rip = site;
	registers.rax = registers.orig_rax; /* the number of the call, which the kernel has replaced by a result */
	registers.orig_rax = (uint64_t)-1;  /* no call now */
	return !ptrace(PTRACE_SETREGS, task->tid, NULL, &registers);
}

/* Detours the call that just stopped, if that is safe and the library is set up. Returns whether the process
 * makes the call again, through the library: then there is nothing to record here. */
bool detour_try(struct task *task)
{
	struct proc *proc = task->proc;
	struct clew_local local;
	uint64_t site = task->info.instruction_pointer - SIZE;
	if (proc->detours >= CLEW_MAX_DETOURS || !may_change(task))
		return false;
	if (peek(task->tid, CLEW_LOCAL, &local, sizeof local) != sizeof local || local.magic != CLEW_MAGIC || !local.handler)
		return false;
	if (site - proc->loader > LOADER && !(local.libc && site - local.libc < local.libc_end - local.libc))
		return false;
	/* Counted also when it fails, so that it is not tried for ever. */
	return install_detour(task, site, proc->detours++) && make_again(task, site);
}
