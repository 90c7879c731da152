/* Calls that the loader makes by itself: the tracer turned the instruction into a jump that ends here.
 *
 * What a system call leaves alone is left alone: all registers but three, the flags, and the bytes below
 * the stack's end, which a function that calls nobody may be using. The library uses no other registers
 * than these; it is compiled so. */
#include <fcntl.h>
#include <sys/syscall.h>

#include "inject.h"

__attribute__((used)) static long taken_over(long nr, long a, long b, long c, long d)
{
	switch (nr) {
	case SYS_open:
		return open_(AT_FDCWD, (const char *)a, (int)b, (mode_t)c);
	case SYS_openat:
		return open_((int)a, (const char *)b, (int)c, (mode_t)d);
	case SYS_stat:
		return stat_(AT_FDCWD, (const char *)a, (struct stat *)b, 0);
	case SYS_newfstatat:
		return stat_((int)a, (const char *)b, (struct stat *)c, (int)d);
	case SYS_access:
		return access_(AT_FDCWD, (const char *)a, (int)b);
	default:
		return ordinary(nr, a, b, c, d, 0, 0);
	}
}

__asm__(".text\n"
	".hidden take_over\n"
	".globl take_over\n"
	".type take_over, @function\n"
	"take_over:\n"
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
	"	call taken_over\n"
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
	".size take_over, .-take_over\n");

_Static_assert(offsetof(struct clew_detour, back) == 16, "where take_over goes back by");
