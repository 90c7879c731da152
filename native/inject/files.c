/* The functions of the C library that open and query files, replaced by functions that record the call.
 *
 * Frequent and harmless calls are recorded in-process: read-only opens, existence checks, stat, readlink.
 * What cannot be recorded (no ring, a full one, unknown flags) is done by a plain `syscall` instruction, which
 * the filter stops for the tracer: slower, never unseen. The library links against nothing, so that it loads
 * under glibc and musl alike; what it needs of the C library it declares as weak symbols. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "inject.h"

/* The same flags as in the filter (trace/syscalls/filter.c), which stops these opens even when they come from here. */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

extern void *malloc(size_t) __attribute__((weak));
typedef struct opaque_file FILE_;
typedef struct opaque_dir DIR_;
extern FILE_ *fdopen(int, const char *) __attribute__((weak));
extern DIR_ *fdopendir(int) __attribute__((weak));

/* /dev/random and /dev/urandom: when randomness is pinned the tracer must see who opens them. */
static int random_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && (st->st_rdev == 0x108 || st->st_rdev == 0x109);
}

/* Makes the call first and records it afterwards: the record needs the result and the state of the file. */
long recorded_open(int dirfd, const char *path, int flags, mode_t mode)
{
	char real[PATH_LIMIT];
	struct fact f = {.kind = CLEW_OPEN, .path = path, .flags = (uint32_t)flags};
	struct clew_ring *r = flags & WRITES ? NULL : ring_with_room();
	if (!r)
		return traced_call(SYS_openat, dirfd, (long)path, flags, mode, 0, 0);
	long fd = untraced_call(SYS_openat, dirfd, (long)path, flags, 0);
	struct stat st;
	if (fd >= 0 && untraced_call(SYS_fstat, fd, (long)&st, 0, 0) == 0) {
		f.stat = &st;
		f.real = real;
		f.real_size = descriptor_path((int)fd, real);
	}
	f.result = fd < 0 ? (int)fd : 0;
	if (!(f.stat && random_device(&st)) && record_call(r, &f, dirfd, fd))
		return fd;
	/* It could not be recorded: open it again in a way that the tracer sees. */
	if (fd >= 0)
		untraced_call(SYS_close, fd, 0, 0, 0);
	return traced_call(SYS_openat, dirfd, (long)path, flags, mode, 0, 0);
}

/* An empty path with AT_EMPTY_PATH, and flags of newer kernels, are left to the tracer. */
long recorded_stat(int dirfd, const char *path, struct stat *st, int flags)
{
	struct fact f = {.kind = CLEW_STAT, .path = path, .flags = flags & AT_SYMLINK_NOFOLLOW ? 1 : 0};
	struct clew_ring *r = ring_with_room();
	if (!r || flags & ~AT_SYMLINK_NOFOLLOW)
		return traced_call(SYS_newfstatat, dirfd, (long)path, (long)st, flags, 0, 0);
	long result = untraced_call(SYS_newfstatat, dirfd, (long)path, (long)st, flags);
	f.result = (int)result;
	f.stat = result == 0 ? st : NULL;
	if (record_call(r, &f, dirfd, result))
		return result;
	return traced_call(SYS_newfstatat, dirfd, (long)path, (long)st, flags, 0, 0);
}

long recorded_access(int dirfd, const char *path, int mode)
{
	struct fact f = {.kind = CLEW_ACCESS, .path = path, .flags = (uint32_t)mode};
	struct clew_ring *r = ring_with_room();
	if (!r)
		return traced_call(SYS_faccessat, dirfd, (long)path, mode, 0, 0, 0);
	f.result = (int)untraced_call(SYS_faccessat, dirfd, (long)path, mode, 0);
	if (record_call(r, &f, dirfd, f.result))
		return f.result;
	return traced_call(SYS_faccessat, dirfd, (long)path, mode, 0, 0, 0);
}

/* The target is recorded, too: a link that leads elsewhere in a repeat matters. */
static long recorded_readlink(int dirfd, const char *path, char *buffer, size_t size)
{
	struct fact f = {.kind = CLEW_READLINK, .path = path};
	struct clew_ring *r = ring_with_room();
	if (!r)
		return traced_call(SYS_readlinkat, dirfd, (long)path, (long)buffer, (long)size, 0, 0);
	long result = untraced_call(SYS_readlinkat, dirfd, (long)path, (long)buffer, (long)size);
	f.result = result < 0 ? (int)result : 0;
	f.real = buffer;
	f.real_size = result > 0 && result <= PATH_LIMIT ? (size_t)result : 0;
	if (record_call(r, &f, dirfd, result))
		return result;
	return traced_call(SYS_readlinkat, dirfd, (long)path, (long)buffer, (long)size, 0, 0);
}

static long recorded_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *buffer)
{
	/* Records a plain stat made beside the statx: the record has one form. */
	struct stat st;
	int known = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_SYNC_TYPE;
	struct fact f = {.kind = CLEW_STAT, .path = path, .flags = flags & AT_SYMLINK_NOFOLLOW ? 1 : 0};
	struct clew_ring *r = ring_with_room();
	if (!r || flags & ~known)
		return traced_call(SYS_statx, dirfd, (long)path, flags, mask, (long)buffer, 0);
	long result = untraced_call(SYS_newfstatat, dirfd, (long)path, (long)&st, flags & AT_SYMLINK_NOFOLLOW);
	f.result = (int)result;
	f.stat = result == 0 ? &st : NULL;
	if (result != 0 || !record_call(r, &f, dirfd, result))
		return traced_call(SYS_statx, dirfd, (long)path, flags, mask, (long)buffer, 0);
	register long r8 __asm__("r8") = (long)buffer;
	register long r10 __asm__("r10") = mask;
	__asm__ volatile("call *%[code]"
			 : "=a"(result)
			 : "a"((long)SYS_statx), "D"((long)dirfd), "S"(path), "d"((long)flags), "r"(r10), "r"(r8), [code] "r"(CLEW_CODE)
			 : "rcx", "r11", "memory");
	return result;
}

/* ---- the functions that programs call ---- */

/* The mode is passed only with these flags. */
static int open_mode(int flags, va_list more)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, int) : 0;
}

#define OPEN(name)                                                                      \
	EXPORT int name(const char *path, int flags, ...)                               \
	{                                                                               \
		va_list more;                                                           \
		va_start(more, flags);                                                  \
		int mode = open_mode(flags, more);                                      \
		va_end(more);                                                           \
		return (int)libc_result(recorded_open(AT_FDCWD, path, flags, (mode_t)mode));         \
	}
#define OPENAT(name)                                                                    \
	EXPORT int name(int dirfd, const char *path, int flags, ...)                    \
	{                                                                               \
		va_list more;                                                           \
		va_start(more, flags);                                                  \
		int mode = open_mode(flags, more);                                      \
		va_end(more);                                                           \
		return (int)libc_result(recorded_open(dirfd, path, flags, (mode_t)mode));            \
	}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

EXPORT int __open_2(const char *path, int flags) { return (int)libc_result(recorded_open(AT_FDCWD, path, flags, 0)); }
EXPORT int __open64_2(const char *path, int flags) { return (int)libc_result(recorded_open(AT_FDCWD, path, flags, 0)); }
EXPORT int __openat_2(int fd, const char *path, int flags) { return (int)libc_result(recorded_open(fd, path, flags, 0)); }
EXPORT int __openat64_2(int fd, const char *path, int flags) { return (int)libc_result(recorded_open(fd, path, flags, 0)); }

/* Streams and directories for reading: the C library would open them by system calls of its own, which stop. */
static int read_mode(const char *mode)
{
	int flags = O_RDONLY;
	if (*mode++ != 'r')
		return -1;
	for (; *mode; mode++)
		if (*mode == 'e')
			flags |= O_CLOEXEC;
		else if (*mode != 'b')
			return -1;
	return flags;
}

/* Other modes go to the next fopen: RTLD_NEXT is -1. */
static FILE_ *recorded_fopen(const char *path, const char *mode, const char *name)
{
	int flags = read_mode(mode);
	if (flags >= 0 && fdopen) {
		long fd = libc_result(recorded_open(AT_FDCWD, path, flags, 0));
		return fd < 0 ? NULL : fdopen((int)fd, mode);
	}
	FILE_ *(*next)(const char *, const char *) = dlsym ? dlsym((void *)-1l, name) : NULL;
	if (next)
		return next(path, mode);
	libc_result(-ENOSYS);
	return NULL;
}
EXPORT FILE_ *fopen(const char *path, const char *mode) { return recorded_fopen(path, mode, "fopen"); }
EXPORT FILE_ *fopen64(const char *path, const char *mode) { return recorded_fopen(path, mode, "fopen64"); }

EXPORT DIR_ *opendir(const char *path)
{
	if (!fdopendir) {
		libc_result(-ENOSYS);
		return NULL;
	}
	long fd = libc_result(recorded_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0));
	return fd < 0 ? NULL : fdopendir((int)fd);
}

#define STAT(name, at, flags) \
	EXPORT int name(const char *path, struct stat *st) { return (int)libc_result(recorded_stat(at, path, st, flags)); }
STAT(stat, AT_FDCWD, 0)
STAT(lstat, AT_FDCWD, AT_SYMLINK_NOFOLLOW)

EXPORT int fstatat(int fd, const char *path, struct stat *st, int flags) { return (int)libc_result(recorded_stat(fd, path, st, flags)); }

/* On x86-64 the names with 64 mean the same structure, but the headers give it another type. */
int stat64_(const char *path, struct stat *st) __asm__("stat64");
int lstat64_(const char *path, struct stat *st) __asm__("lstat64");
int fstatat64_(int fd, const char *path, struct stat *st, int flags) __asm__("fstatat64");
STAT(stat64_, AT_FDCWD, 0)
STAT(lstat64_, AT_FDCWD, AT_SYMLINK_NOFOLLOW)
EXPORT int fstatat64_(int fd, const char *path, struct stat *st, int flags) { return (int)libc_result(recorded_stat(fd, path, st, flags)); }

/* What programs built against glibc before 2.33 call instead of stat. */
#define XSTAT(name, flags) \
	EXPORT int name(int version, const char *path, struct stat *st) { (void)version; return (int)libc_result(recorded_stat(AT_FDCWD, path, st, flags)); }
XSTAT(__xstat, 0)
XSTAT(__xstat64, 0)
XSTAT(__lxstat, AT_SYMLINK_NOFOLLOW)
XSTAT(__lxstat64, AT_SYMLINK_NOFOLLOW)

EXPORT int __fxstatat(int version, int fd, const char *path, struct stat *st, int flags) { (void)version; return (int)libc_result(recorded_stat(fd, path, st, flags)); }
EXPORT int __fxstatat64(int version, int fd, const char *path, struct stat *st, int flags) { (void)version; return (int)libc_result(recorded_stat(fd, path, st, flags)); }

EXPORT int statx(int fd, const char *path, int flags, unsigned mask, struct statx *st) { return (int)libc_result(recorded_statx(fd, path, flags, mask, st)); }

EXPORT int access(const char *path, int mode) { return (int)libc_result(recorded_access(AT_FDCWD, path, mode)); }
EXPORT int faccessat(int fd, const char *path, int mode, int flags)
{
	if (flags)
		return (int)libc_result(traced_call(SYS_faccessat2, fd, (long)path, mode, flags, 0, 0));
	return (int)libc_result(recorded_access(fd, path, mode));
}

EXPORT ssize_t readlink(const char *path, char *buffer, size_t size) { return libc_result(recorded_readlink(AT_FDCWD, path, buffer, size)); }
EXPORT ssize_t readlinkat(int fd, const char *path, char *buffer, size_t size) { return libc_result(recorded_readlink(fd, path, buffer, size)); }

static char *libc_realpath(const char *path, char *resolved)
{
	char *(*next)(const char *, char *) = dlsym ? dlsym((void *)-1l, "realpath") : NULL;
	return next ? next(path, resolved) : (libc_result(-ENOENT), NULL);
}

/* The kernel resolves a path in three calls, where the C library queries every component. The result is
 * believed only if it leads to the same file: /proc may show a name that is gone. */
EXPORT char *realpath(const char *path, char *resolved)
{
	struct fact f = {.kind = CLEW_REALPATH, .path = path};
	struct clew_ring *r = ring_with_room();
	char real[PATH_LIMIT];
	if (!path || !path[0] || !r)
		return libc_realpath(path, resolved);
	long fd = untraced_call(SYS_openat, AT_FDCWD, (long)path, O_PATH | O_CLOEXEC, 0);
	f.result = fd < 0 ? (int)fd : 0;
	if (fd >= 0) {
		struct stat there, here;
		f.real = real;
		f.real_size = descriptor_path((int)fd, real);
		long same = untraced_call(SYS_fstat, fd, (long)&there, 0, 0);
		untraced_call(SYS_close, fd, 0, 0, 0);
		if (!f.real_size || f.real_size >= PATH_LIMIT)
			return libc_realpath(path, resolved);
		real[f.real_size] = 0;
		if (same || untraced_call(SYS_newfstatat, AT_FDCWD, (long)real, (long)&here, AT_SYMLINK_NOFOLLOW) ||
		    here.st_ino != there.st_ino || here.st_dev != there.st_dev)
			return libc_realpath(path, resolved);
	}
	if (f.result == -EMFILE || f.result == -ENFILE || !append(r, &f))
		return libc_realpath(path, resolved);
	if (fd < 0) {
		libc_result(fd);
		return NULL;
	}
	if (!resolved)
		resolved = malloc ? malloc(f.real_size + 1) : NULL;
	if (resolved)
		copy(resolved, real, f.real_size + 1);
	return resolved;
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	(void)size;
	return realpath(path, resolved);
}
EXPORT char *canonicalize_file_name(const char *path) { return realpath(path, NULL); }
