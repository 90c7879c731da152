/* What the parts of the injected library share.
 *
 *   setup.c    opens the ring before the program begins, and cleans the environment
 *   ring.c     writes records into the ring
 *   files.c    the functions of the C library that open and query files
 *   exec.c     the functions that start a program
 *   detours.c  calls that the loader and the C library make by themselves
 *   urls.c     which URLs a program requests
 *
 * The library has no C library of its own and must not depend on that of the program: it is loaded into
 * programs built against any. */
#ifndef CLEW_INJECT_H
#define CLEW_INJECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "inject_layout.h"

#define EXPORT __attribute__((visibility("default")))
#define PATH_LIMIT 1024 /* buffers lie on the stack, which may be small; calls with longer paths are left to the tracer */

/* Weak: the C library of the program may not have them, and then they are NULL. */
extern int *__errno_location(void) __attribute__((weak));
extern void *dlsym(void *, const char *) __attribute__((weak));

/* The page that says which ring belongs to this process (inject_layout.h). Volatile: the tracer changes it. */
#define LOCAL ((volatile struct clew_local *)CLEW_LOCAL)

/* A plain system call: the filter stops it if it is of interest, so the tracer sees it. */
static inline long traced_call(long n, long a, long b, long c, long d, long e, long f)
{
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* A system call through the page that the filter knows: it is not stopped, so the caller must record it. */
static inline long untraced_call(long n, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("call *%[code]"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), [code] "r"(CLEW_CODE)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long untraced_call6(long n, long a, long b, long c, long d, long e, long f)
{
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("call *%[code]"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9), [code] "r"(CLEW_CODE)
			 : "rcx", "r11", "memory");
	return result;
}

/* Turns the result of a system call into that of a C library function: -1 and errno on error. */
static inline long libc_result(long result)
{
	if (result < 0 && result > -4096) {
		if (__errno_location)
			*__errno_location() = (int)-result;
		return -1;
	}
	return result;
}

static inline size_t length(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	return n;
}

/* Not memcpy: there is no C library to link against. */
static inline void copy(char *to, const char *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* What is recorded about one call. */
struct fact {
	enum clew_kind kind;
	int result;
	uint32_t flags;
	const struct stat *stat;
	const char *base; /* the directory that a relative path starts from; NULL: the working directory */
	size_t base_size;
	const char *path;
	const char *real;
	size_t real_size;
};

/* Hidden: these are used before the library is relocated, and a hidden symbol needs no relocation. */
#pragma GCC visibility push(hidden)
extern int ring_ready;		 /* the two pages are mapped, and the ring is open */
struct clew_ring *ring_with_room(void);	 /* NULL: none, or it stays half full */
size_t descriptor_path(int fd, char *to); /* not terminated; 0: it has no path */
/* Both return 0 when nothing could be written: then the caller makes a plain call, which the tracer sees. */
int append(struct clew_ring *ring, const struct fact *fact);
int record_call(struct clew_ring *ring, struct fact *fact, int dirfd, long result);
/* Like the system calls. Each call is either recorded or made in a way that the tracer sees. */
long recorded_open(int dirfd, const char *path, int flags, mode_t mode);
long recorded_stat(int dirfd, const char *path, struct stat *st, int flags);
long recorded_access(int dirfd, const char *path, int mode);
void find_libc_exec(void);
void detour_entry(void); /* detours jump here; not callable from C */
/* Records that a URL was requested; the text need not be terminated. */
void record_fetch(const char *url, size_t size);
#pragma GCC visibility pop

#endif
