/* Sets the library up before the program begins: maps the two pages, opens the ring, and removes the two
 * variables that the tracer added to the environment.
 *
 * This happens in `early_entry`, where the tracer could arrange it, or else in the constructor. */
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inject.h"

#define TEXT(x) #x
#define NUMBER(x) TEXT(x)
#define CLEW_RETURN_TO 0x111028 /* the address of LOCAL->return_to, as a number for the assembly below */
_Static_assert(CLEW_LOCAL + offsetof(struct clew_local, return_to) == CLEW_RETURN_TO, "where early_entry goes back by");

/* No strncmp: there is no C library. */
static int starts(const char *text, const char *with)
{
	while (*with)
		if (*text++ != *with++)
			return 0;
	return 1;
}

static unsigned number(const char **text)
{
	unsigned n = 0;
	while (**text >= '0' && **text <= '9')
		n = n * 10 + (unsigned)(*(*text)++ - '0');
	return n;
}

extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) __attribute__((weak));

/* Tells the tracer where the code of the C library is: in the object that contains `__errno_location`. */
static int find_libc(struct dl_phdr_info *object, size_t size, void *unused)
{
	uint64_t known = (uint64_t)__errno_location;
	(void)size, (void)unused;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uint64_t start = object->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && known - start < segment->p_filesz) {
			LOCAL->libc = start;
			LOCAL->libc_end = start + segment->p_filesz;
			return 1;
		}
	}
	return 0;
}

/* By plain calls: there is no page to go through yet. The magic number of the file is checked, because the
 * path comes from the environment. */
static void open_ring(const char *path, unsigned slot)
{
	static const unsigned char code[] = {0x0f, 0x05, 0xc3}; /* syscall; ret */
	long fd = traced_call(SYS_open, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return;
	long base = traced_call(SYS_mmap, 0, (long)CLEW_SLOTS * CLEW_SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	traced_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (base < 0 && base > -4096)
		return;
	if (((struct clew_head *)base)->magic != CLEW_MAGIC)
		return;
	/* Never writable and executable at once: some systems forbid it. */
	copy((char *)CLEW_CODE, (const char *)code, sizeof code);
	if (traced_call(SYS_mprotect, CLEW_CODE, 0x1000, PROT_READ | PROT_EXEC, 0, 0, 0))
		return;
	LOCAL->base = (uint64_t)base;
	LOCAL->slot = slot;
	LOCAL->handler = (uint64_t)detour_entry;
	LOCAL->magic = CLEW_MAGIC; /* last: from now on the tracer trusts this page */
	ring_ready = 1;
}

/* NOREPLACE: if the program uses this address itself, the library stays inactive. */
static void map(const char *path, unsigned slot)
{
	const long prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	if (traced_call(SYS_mmap, CLEW_CODE, 0x2000, prot, flags, -1, 0) == (long)CLEW_CODE)
		open_ring(path, slot);
}

/* The tracer mapped the two pages and sent the loader here. The library is not relocated yet. */
__attribute__((used)) static void set_up_early(void) { open_ring((const char *)LOCAL->path, LOCAL->slot); }

/* Keeps all registers and the red zone, except rcx and r11, which the system call that follows overwrites
 * anyway. Then jumps back to the call. */
__asm__(".text\n"
	".hidden early_entry\n"
	".globl early_entry\n"
	".type early_entry, @function\n"
	"early_entry:\n"
	"	lea -128(%rsp), %rsp\n"
	"	pushfq\n"
	"	cld\n"
	"	push %rax\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	push %rdx\n"
	"	push %r10\n"
	"	push %r8\n"
	"	push %r9\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	call set_up_early\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	pop %r9\n"
	"	pop %r8\n"
	"	pop %r10\n"
	"	pop %rdx\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	pop %rax\n"
	"	popfq\n"
	"	lea 128(%rsp), %rsp\n"
	"	mov $" NUMBER(CLEW_RETURN_TO) ", %ecx\n"
	"	jmp *(%rcx)\n"
	".size early_entry, .-early_entry\n");

/* Removes what was added to the environment, so that the program and its children do not see it. Only the part
 * of LD_PRELOAD before the first colon is ours. */
__attribute__((constructor)) static void begin(int argc, char **argv, char **envp)
{
	const char *where = NULL; /* SLOT:PATH */
	(void)argc, (void)argv;
	for (char **entry = envp; *entry; entry++)
		if (starts(*entry, CLEW_ENV_RING))
			where = *entry + sizeof CLEW_ENV_RING - 1;
	if (!where)
		return;
	char **keep = envp;
	for (char **entry = envp; *entry; entry++) {
		if (starts(*entry, CLEW_ENV_RING))
			continue;
		if (starts(*entry, CLEW_ENV_PRELOAD)) {
			char *value = *entry + sizeof CLEW_ENV_PRELOAD - 1, *rest = value;
			while (*rest && *rest != ':')
				rest++;
			if (!*rest)
				continue;
			copy(value, rest + 1, length(rest + 1) + 1);
		}
		*keep++ = *entry;
	}
	/* Clears the rest: a program that reads behind the variables finds NULL, not a stray pointer. */
	while (*keep)
		*keep++ = NULL;
	unsigned slot = number(&where);
	/* early_entry may have done it already. */
	if (!ring_ready && *where == ':' && slot && slot < CLEW_SLOTS)
		map(where + 1, slot);
	if (ring_ready && __errno_location && dl_iterate_phdr)
		dl_iterate_phdr(find_libc, NULL);
}
