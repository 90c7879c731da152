/* What the parts of the injected library share.
 *
 * recording.c  the ring, and what is written into it
 * files.c      the C library's functions that ask for files
 * detours.c    calls that the loader makes by itself
 * fetches.c    the functions that ask for URLs
 * starting.c   setting up, before the program begins
 */
#ifndef CLEW_INJECT_H
#define CLEW_INJECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wire.h"

#define EXPORT __attribute__((visibility("default")))
#define PATH_LIMIT 1024 /* kept small for programs with small stacks; longer paths are left to the tracer */

extern int *__errno_location(void) __attribute__((weak));
extern void *dlsym(void *, const char *) __attribute__((weak));

/* Which ring of the shared file is this process's own; see wire.h. */
#define LOCAL ((volatile struct clew_local *)CLEW_LOCAL)

/* A system call as any other: the filter stops it where it is of interest. */
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

/* The same through the page that the filter knows. */
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

static inline void copy(char *to, const char *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

struct fact {
	enum clew_kind kind;
	int result;
	uint32_t flags;
	const struct stat *stat;
	const char *base; /* a folder that a relative path starts from, or NULL */
	size_t base_size;
	const char *path;
	const char *real;
	size_t real_size;
};

/* Hidden: what is used before the library is relocated must be found without that. */
#pragma GCC visibility push(hidden)
extern int ring_ready;		 /* the two pages are mapped and are ours */
struct clew_ring *ring_with_room(void);	 /* the ring, if there is room in it */
size_t descriptor_path(int fd, char *to); /* the path behind a descriptor, not terminated; 0: it has none */
/* Both return 0 when nothing could be written: then the caller makes an traced_call call that is seen. */
int append(struct clew_ring *ring, const struct fact *fact);
int record_call(struct clew_ring *ring, struct fact *fact, int dirfd, long result);
/* As the system calls; each is recorded, or made in a way that is seen. */
long recorded_open(int dirfd, const char *path, int flags, mode_t mode);
long recorded_stat(int dirfd, const char *path, struct stat *st, int flags);
long recorded_access(int dirfd, const char *path, int mode);
void detour_entry(void); /* where detours lead to; no function to call */
/* Records that a URL was asked for; the text need not be terminated. */
void record_fetch(const char *url, size_t size);
#pragma GCC visibility pop

#endif
