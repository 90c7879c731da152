/* Where the calls of the loader and the C library arrive that the tracer turned into jumps.
 *
 * The code around the jump expects a system call: all registers but rax, rcx and r11 must stay as they were,
 * and so must the flags and the 128 bytes below the stack pointer (the red zone), which a leaf function may
 * be using. The library is compiled to use no vector registers, so the general ones are all there is to save. */
#include <fcntl.h>
#include <sys/syscall.h>

#include "inject.h"

/* `used`: only the assembly below calls it. Other calls are made as they were: the tracer sees them. */
__attribute__((used)) static long run_detoured_call(long nr, long a, long b, long c, long d)
{
	switch (nr) {
	case SYS_open:
		return recorded_open(AT_FDCWD, (const char *)a, (int)b, (mode_t)c);
	case SYS_openat:
		return recorded_open((int)a, (const char *)b, (int)c, (mode_t)d);
	case SYS_stat:
		return recorded_stat(AT_FDCWD, (const char *)a, (struct stat *)b, 0);
	case SYS_newfstatat:
		return recorded_stat((int)a, (const char *)b, (struct stat *)c, (int)d);
	case SYS_access:
		return recorded_access(AT_FDCWD, (const char *)a, (int)b);
	default:
		return traced_call(nr, a, b, c, d, 0, 0);
	}
}

/* rcx holds the address of the clew_detour. The arguments move from the registers of a system call to those of
 * a C function; the stack is aligned to 16 bytes, as the ABI wants. The last jump goes to return_to. */
__asm__(".text\n"
	".hidden detour_entry\n"
	".globl detour_entry\n"
	".type detour_entry, @function\n"
	"detour_entry:\n"
	"	lea -128(%rsp), %rsp\n"
	"	pushfq\n"
	"	cld\n"
	"	push %rcx\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	push %rdx\n"
	"	push %r10\n"
	"	push %r8\n"
	"	push %r9\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	mov %r10, %r8\n"
	"	mov %rdx, %rcx\n"
	"	mov %rsi, %rdx\n"
	"	mov %rdi, %rsi\n"
	"	mov %rax, %rdi\n"
	"	call run_detoured_call\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	pop %r9\n"
	"	pop %r8\n"
	"	pop %r10\n"
	"	pop %rdx\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	pop %rcx\n"
	"	popfq\n"
	"	lea 128(%rsp), %rsp\n"
	"	jmp *16(%rcx)\n"
	".size detour_entry, .-detour_entry\n");

_Static_assert(offsetof(struct clew_detour, return_to) == 16, "where detour_entry goes back by");
