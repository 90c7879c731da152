/* Sets the library up before the program begins: maps the two pages and the ring, and removes the two
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
_Static_assert(sizeof(struct clew_early) <= CLEW_EARLY && CLEW_EARLY % 16 == 0, "room on the stack");
_Static_assert(offsetof(struct clew_early, return_to) == 0, "where early_entry goes back by");

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

/* Maps the two pages; false: the program uses these addresses itself (NOREPLACE), and the library stays inactive. */
static int map_pages(void)
{
	const long prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	return traced_call(SYS_mmap, CLEW_CODE, 0x2000, prot, flags, -1, 0) == (long)CLEW_CODE;
}

/* Makes the first page what the filter knows. Never writable and executable at once: some systems forbid it. */
static int finish_code(void)
{
	static const unsigned char code[] = {0x0f, 0x05, 0xc3}; /* syscall; ret */
	copy((char *)CLEW_CODE, (const char *)code, sizeof code);
	return !traced_call(SYS_mprotect, CLEW_CODE, 0x1000, PROT_READ | PROT_EXEC, 0, 0, 0);
}

/* Maps the shared file through the first page, where this call does not stop, and closes it. Size and magic
 * number are checked: in another process namespace its name means another file. */
static void map_ring(long fd, unsigned slot)
{
	struct stat st;
	const long size = (long)CLEW_SLOTS * CLEW_SLOT_SIZE;
	if (fd < 0)
		return;
	long base = traced_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) || st.st_size != size
			    ? -1
			    : untraced_call6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	traced_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if ((base < 0 && base > -4096) || ((struct clew_head *)base)->magic != CLEW_MAGIC)
		return;
	LOCAL->base = (uint64_t)base;
	LOCAL->slot = slot;
	LOCAL->handler = (uint64_t)detour_entry;
	LOCAL->magic = CLEW_MAGIC; /* last: from now on the tracer trusts this page */
	ring_ready = 1;
}

static long open_ring(const char *path) { return traced_call(SYS_open, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0, 0); }

/* A copy of the descriptor of the process that has the file open: unlike an open this does not stop. It may be
 * forbidden where the open is not; the result is negative then. */
static long copy_ring(const struct clew_early *early)
{
	long process = traced_call(SYS_pidfd_open, early->holder, 0, 0, 0, 0, 0);
	long fd = process < 0 ? process : traced_call(SYS_pidfd_getfd, process, early->file, 0, 0, 0, 0);
	if (process >= 0)
		traced_call(SYS_close, process, 0, 0, 0, 0, 0);
	return fd;
}

/* The tracer sent the loader here. The library is not relocated yet. */
__attribute__((used)) static void set_up_early(const struct clew_early *early)
{
	if (!map_pages()) {
		traced_call(SYS_access, 0, CLEW_UNDO, 0, 0, 0, 0);
		return;
	}
	copy((char *)CLEW_DETOURS, (const char *)early->detours, early->count * sizeof *early->detours);
	LOCAL->handler = (uint64_t)detour_entry;
	if (!finish_code()) {
		traced_call(SYS_access, 0, CLEW_UNDO, 0, 0, 0, 0);
		return;
	}
	long fd = copy_ring(early);
	map_ring(fd >= 0 ? fd : open_ring(early->path), early->slot);
}

/* What the constructor does when `early_entry` was not run. */
static void set_up_late(const char *path, unsigned slot)
{
	if (map_pages() && finish_code())
		map_ring(open_ring(path), slot);
}

/* Below the red zone lies what the tracer wrote (struct clew_early). Keeps all registers, except rcx and r11, which
 * the system call that follows overwrites anyway. Then jumps back to the call. */
__asm__(".text\n"
	".hidden early_entry\n"
	".globl early_entry\n"
	".type early_entry, @function\n"
	"early_entry:\n"
	"	lea -(128 + " NUMBER(CLEW_EARLY) ")(%rsp), %rsp\n"
	"	mov %rsp, %rcx\n"
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
	"	mov %rcx, %rdi\n"
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
	"	mov (%rsp), %rcx\n" /* return_to */
	"	lea 128 + " NUMBER(CLEW_EARLY) "(%rsp), %rsp\n"
	"	jmp *%rcx\n"
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
		set_up_late(where + 1, slot);
	find_libc_exec();
	if (ring_ready && __errno_location && dl_iterate_phdr)
		dl_iterate_phdr(find_libc, NULL);
}
