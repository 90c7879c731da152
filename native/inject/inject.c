/* The library that clew-trace injects into dynamically linked programs.
 *
 * It records in-process what is frequent and harmless: read-only opens, existence checks,
 * stat, readlink. It links against nothing, so that it loads under glibc and musl alike; what it needs of
 * the C library it names as weak symbols. Whatever it cannot record (no ring, a full one,
 * flags it does not know) it does by the ordinary `syscall` instruction, which the filter
 * stops for the tracer: slower, never unseen.
 */
#include <fcntl.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "inject.h"
#include "wire.h"

#define PATH_LIMIT 1024 /* kept small for programs with small stacks; longer paths are left to the tracer */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

typedef long call_fn(long, long, long, long, long, long, long);

extern int *__errno_location(void) __attribute__((weak));
extern void *malloc(size_t) __attribute__((weak));
typedef struct opaque_file FILE_;
typedef struct opaque_dir DIR_;
extern FILE_ *fdopen(int, const char *) __attribute__((weak));
extern DIR_ *fdopendir(int) __attribute__((weak));

static volatile struct clew_local *const local = (struct clew_local *)CLEW_LOCAL;
static int ready; /* the two pages are mapped and are ours */

static long ordinary(long n, long a, long b, long c, long d, long e, long f)
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
static long passing(long n, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("call *%[code]"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), [code] "r"(CLEW_CODE)
			 : "rcx", "r11", "memory");
	return result;
}

static long answer(long result)
{
	if (result < 0 && result > -4096) {
		if (__errno_location)
			*__errno_location() = (int)-result;
		return -1;
	}
	return result;
}

static size_t length(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	return n;
}

static void copy(char *to, const char *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static struct clew_ring *ring(void)
{
	if (!ready || !local->slot)
		return NULL;
	return (struct clew_ring *)(local->base + (uint64_t)local->slot * CLEW_SLOT_SIZE);
}

/* A ring that is half full lets one call be stopped, and the tracer drains it then. */
static struct clew_ring *room(void)
{
	struct clew_ring *r = ring();
	if (r && __atomic_load_n(&r->head, __ATOMIC_RELAXED) - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) > CLEW_HALF)
		return NULL;
	return r;
}

static struct clew_record *reserve(struct clew_ring *r, uint32_t size)
{
	uint32_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED), pad, at;
	do {
		at = head % CLEW_DATA;
		pad = at + size > CLEW_DATA ? CLEW_DATA - at : 0;
		if (head + pad + size - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) > CLEW_DATA)
			return NULL;
	} while (!__atomic_compare_exchange_n(&r->head, &head, head + pad + size, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	if (pad) {
		struct clew_record *filler = (struct clew_record *)(r->data + at);
		/* A gap too small for a kind is known by its size alone. */
		if (pad >= offsetof(struct clew_record, seq))
			filler->kind = CLEW_PAD;
		__atomic_store_n(&filler->size, pad, __ATOMIC_RELEASE);
		at = 0;
	}
	return (struct clew_record *)(r->data + at);
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

/* Returns 0 when there was no room: then the caller makes an ordinary call that is seen. */
static int append(struct clew_ring *r, const struct fact *f)
{
	size_t path_size = length(f->path), full = path_size + (f->base_size ? f->base_size + 1 : 0);
	uint32_t size = (uint32_t)((sizeof(struct clew_record) + full + f->real_size + 7) & ~7ul);
	if (full > PATH_LIMIT)
		return 0;
	struct clew_record *record = reserve(r, size);
	if (!record)
		return 0;
	record->kind = f->kind;
	record->result = f->result;
	record->flags = f->flags;
	record->path_size = (uint16_t)full;
	record->real_size = (uint16_t)f->real_size;
	if (f->stat) {
		record->facts.dev = f->stat->st_dev;
		record->facts.ino = f->stat->st_ino;
		record->facts.size = (uint64_t)f->stat->st_size;
		record->facts.mode = f->stat->st_mode;
		record->facts.mtime = f->stat->st_mtim.tv_sec * 1000000000l + f->stat->st_mtim.tv_nsec;
		record->facts.ctime = f->stat->st_ctim.tv_sec * 1000000000l + f->stat->st_ctim.tv_nsec;
	}
	char *text = (char *)(record + 1);
	if (f->base_size) {
		copy(text, f->base, f->base_size);
		text[f->base_size] = '/';
		text += f->base_size + 1;
	}
	copy(text, f->path, path_size);
	copy(text + path_size, f->real, f->real_size);
	record->seq = __atomic_add_fetch((uint64_t *)local->base, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&record->size, size, __ATOMIC_RELEASE);
	return 1;
}

void record_fetch(const char *url, size_t size)
{
	char text[PATH_LIMIT];
	struct fact f = {.kind = CLEW_FETCH, .path = text};
	struct clew_ring *r = ring();
	if (!r || size >= sizeof text)
		return;
	copy(text, url, size);
	text[size] = 0;
	append(r, &f);
}

static size_t name_of(int fd, char *buffer)
{
	char link[32] = "/proc/self/fd/", digits[12];
	int n = 0, at = 14;
	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		link[at++] = digits[--n];
	link[at] = 0;
	long size = passing(SYS_readlinkat, AT_FDCWD, (long)link, (long)buffer, PATH_LIMIT);
	return size > 0 && size < PATH_LIMIT && buffer[0] == '/' ? (size_t)size : 0;
}

/* Fills in where a relative path starts, when that is not the working directory. */
static int place(struct fact *f, int dirfd, char *buffer)
{
	if (dirfd == AT_FDCWD || f->path[0] == '/')
		return 1;
	if (dirfd < 0)
		return 0;
	f->base = buffer;
	f->base_size = name_of(dirfd, buffer);
	return f->base_size > 0;
}

/* The call comes first: only a path that the kernel could read is looked at here. Returns 0 when it
 * could not be recorded. */
static int tell(struct clew_ring *r, struct fact *f, int dirfd, long result)
{
	char base[PATH_LIMIT];
	if (result == -EFAULT || !f->path[0])
		return 1;
	return place(f, dirfd, base) && append(r, f);
}

static long open_(int dirfd, const char *path, int flags, mode_t mode)
{
	char real[PATH_LIMIT];
	struct fact f = {.kind = CLEW_OPEN, .path = path, .flags = (uint32_t)flags};
	struct clew_ring *r = flags & WRITES ? NULL : room();
	if (!r)
		return ordinary(SYS_openat, dirfd, (long)path, flags, mode, 0, 0);
	long fd = passing(SYS_openat, dirfd, (long)path, flags, 0);
	struct stat st;
	if (fd >= 0 && passing(SYS_fstat, fd, (long)&st, 0, 0) == 0) {
		f.stat = &st;
		f.real = real;
		f.real_size = name_of((int)fd, real);
	}
	f.result = fd < 0 ? (int)fd : 0;
	if (tell(r, &f, dirfd, fd))
		return fd;
	if (fd >= 0)
		passing(SYS_close, fd, 0, 0, 0);
	return ordinary(SYS_openat, dirfd, (long)path, flags, mode, 0, 0);
}

static long stat_(int dirfd, const char *path, struct stat *st, int flags)
{
	struct fact f = {.kind = CLEW_STAT, .path = path, .flags = flags & AT_SYMLINK_NOFOLLOW ? 1 : 0};
	struct clew_ring *r = room();
	if (!r || flags & ~AT_SYMLINK_NOFOLLOW)
		return ordinary(SYS_newfstatat, dirfd, (long)path, (long)st, flags, 0, 0);
	long result = passing(SYS_newfstatat, dirfd, (long)path, (long)st, flags);
	f.result = (int)result;
	f.stat = result == 0 ? st : NULL;
	if (tell(r, &f, dirfd, result))
		return result;
	return ordinary(SYS_newfstatat, dirfd, (long)path, (long)st, flags, 0, 0);
}

static long access_(int dirfd, const char *path, int mode)
{
	struct fact f = {.kind = CLEW_ACCESS, .path = path, .flags = (uint32_t)mode};
	struct clew_ring *r = room();
	if (!r)
		return ordinary(SYS_faccessat, dirfd, (long)path, mode, 0, 0, 0);
	f.result = (int)passing(SYS_faccessat, dirfd, (long)path, mode, 0);
	if (tell(r, &f, dirfd, f.result))
		return f.result;
	return ordinary(SYS_faccessat, dirfd, (long)path, mode, 0, 0, 0);
}

static long readlink_(int dirfd, const char *path, char *buffer, size_t size)
{
	struct fact f = {.kind = CLEW_READLINK, .path = path};
	struct clew_ring *r = room();
	if (!r)
		return ordinary(SYS_readlinkat, dirfd, (long)path, (long)buffer, (long)size, 0, 0);
	long result = passing(SYS_readlinkat, dirfd, (long)path, (long)buffer, (long)size);
	f.result = result < 0 ? (int)result : 0;
	f.real = buffer;
	f.real_size = result > 0 && result <= PATH_LIMIT ? (size_t)result : 0;
	if (tell(r, &f, dirfd, result))
		return result;
	return ordinary(SYS_readlinkat, dirfd, (long)path, (long)buffer, (long)size, 0, 0);
}

static long statx_(int dirfd, const char *path, int flags, unsigned mask, struct statx *buffer)
{
	/* A plain stat beside it says the same in the one form that is recorded. */
	struct stat st;
	int known = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_SYNC_TYPE;
	struct fact f = {.kind = CLEW_STAT, .path = path, .flags = flags & AT_SYMLINK_NOFOLLOW ? 1 : 0};
	struct clew_ring *r = room();
	if (!r || flags & ~known)
		return ordinary(SYS_statx, dirfd, (long)path, flags, mask, (long)buffer, 0);
	long result = passing(SYS_newfstatat, dirfd, (long)path, (long)&st, flags & AT_SYMLINK_NOFOLLOW);
	f.result = (int)result;
	f.stat = result == 0 ? &st : NULL;
	if (result != 0 || !tell(r, &f, dirfd, result))
		return ordinary(SYS_statx, dirfd, (long)path, flags, mask, (long)buffer, 0);
	register long r8 __asm__("r8") = (long)buffer;
	register long r10 __asm__("r10") = mask;
	__asm__ volatile("call *%[code]"
			 : "=a"(result)
			 : "a"((long)SYS_statx), "D"((long)dirfd), "S"(path), "d"((long)flags), "r"(r10), "r"(r8), [code] "r"(CLEW_CODE)
			 : "rcx", "r11", "memory");
	return result;
}

/* ---- what programs call ---- */

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
		return (int)answer(open_(AT_FDCWD, path, flags, (mode_t)mode));         \
	}
#define OPENAT(name)                                                                    \
	EXPORT int name(int dirfd, const char *path, int flags, ...)                    \
	{                                                                               \
		va_list more;                                                           \
		va_start(more, flags);                                                  \
		int mode = open_mode(flags, more);                                      \
		va_end(more);                                                           \
		return (int)answer(open_(dirfd, path, flags, (mode_t)mode));            \
	}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

EXPORT int __open_2(const char *path, int flags) { return (int)answer(open_(AT_FDCWD, path, flags, 0)); }
EXPORT int __open64_2(const char *path, int flags) { return (int)answer(open_(AT_FDCWD, path, flags, 0)); }
EXPORT int __openat_2(int fd, const char *path, int flags) { return (int)answer(open_(fd, path, flags, 0)); }
EXPORT int __openat64_2(int fd, const char *path, int flags) { return (int)answer(open_(fd, path, flags, 0)); }

/* Reading streams and folders: the C library would open these by calls of its own. */
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

extern void *dlsym(void *, const char *) __attribute__((weak));

static FILE_ *fopen_(const char *path, const char *mode, const char *name)
{
	int flags = read_mode(mode);
	if (flags >= 0 && fdopen) {
		long fd = answer(open_(AT_FDCWD, path, flags, 0));
		return fd < 0 ? NULL : fdopen((int)fd, mode);
	}
	FILE_ *(*next)(const char *, const char *) = dlsym ? dlsym((void *)-1l, name) : NULL;
	if (next)
		return next(path, mode);
	answer(-ENOSYS);
	return NULL;
}
EXPORT FILE_ *fopen(const char *path, const char *mode) { return fopen_(path, mode, "fopen"); }
EXPORT FILE_ *fopen64(const char *path, const char *mode) { return fopen_(path, mode, "fopen64"); }

EXPORT DIR_ *opendir(const char *path)
{
	if (!fdopendir) {
		answer(-ENOSYS);
		return NULL;
	}
	long fd = answer(open_(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0));
	return fd < 0 ? NULL : fdopendir((int)fd);
}

#define STAT(name, at, flags) \
	EXPORT int name(const char *path, struct stat *st) { return (int)answer(stat_(at, path, st, flags)); }
STAT(stat, AT_FDCWD, 0)
STAT(lstat, AT_FDCWD, AT_SYMLINK_NOFOLLOW)

EXPORT int fstatat(int fd, const char *path, struct stat *st, int flags) { return (int)answer(stat_(fd, path, st, flags)); }

/* On x86-64 the names that end in 64 mean the same structure; the headers give it another type. */
int stat64_(const char *path, struct stat *st) __asm__("stat64");
int lstat64_(const char *path, struct stat *st) __asm__("lstat64");
int fstatat64_(int fd, const char *path, struct stat *st, int flags) __asm__("fstatat64");
STAT(stat64_, AT_FDCWD, 0)
STAT(lstat64_, AT_FDCWD, AT_SYMLINK_NOFOLLOW)
EXPORT int fstatat64_(int fd, const char *path, struct stat *st, int flags) { return (int)answer(stat_(fd, path, st, flags)); }

/* The names that programs built against an older C library call. */
#define XSTAT(name, flags) \
	EXPORT int name(int version, const char *path, struct stat *st) { (void)version; return (int)answer(stat_(AT_FDCWD, path, st, flags)); }
XSTAT(__xstat, 0)
XSTAT(__xstat64, 0)
XSTAT(__lxstat, AT_SYMLINK_NOFOLLOW)
XSTAT(__lxstat64, AT_SYMLINK_NOFOLLOW)

EXPORT int __fxstatat(int version, int fd, const char *path, struct stat *st, int flags) { (void)version; return (int)answer(stat_(fd, path, st, flags)); }
EXPORT int __fxstatat64(int version, int fd, const char *path, struct stat *st, int flags) { (void)version; return (int)answer(stat_(fd, path, st, flags)); }

EXPORT int statx(int fd, const char *path, int flags, unsigned mask, struct statx *st) { return (int)answer(statx_(fd, path, flags, mask, st)); }

EXPORT int access(const char *path, int mode) { return (int)answer(access_(AT_FDCWD, path, mode)); }
EXPORT int faccessat(int fd, const char *path, int mode, int flags)
{
	if (flags)
		return (int)answer(ordinary(SYS_faccessat2, fd, (long)path, mode, flags, 0, 0));
	return (int)answer(access_(fd, path, mode));
}

EXPORT ssize_t readlink(const char *path, char *buffer, size_t size) { return answer(readlink_(AT_FDCWD, path, buffer, size)); }
EXPORT ssize_t readlinkat(int fd, const char *path, char *buffer, size_t size) { return answer(readlink_(fd, path, buffer, size)); }

/* The kernel resolves a path in three calls where the C library asks for every component. */
EXPORT char *realpath(const char *path, char *resolved)
{
	char *(*next)(const char *, char *) = dlsym ? dlsym((void *)-1l, "realpath") : NULL;
	struct fact f = {.kind = CLEW_REALPATH, .path = path};
	struct clew_ring *r = room();
	char real[PATH_LIMIT];
	if (!path || !path[0] || !r)
		return next ? next(path, resolved) : (answer(-EINVAL), NULL);
	long fd = passing(SYS_openat, AT_FDCWD, (long)path, O_PATH | O_CLOEXEC, 0);
	f.result = fd < 0 ? (int)fd : 0;
	if (fd >= 0) {
		struct stat there, here;
		f.real = real;
		f.real_size = name_of((int)fd, real);
		long same = passing(SYS_fstat, fd, (long)&there, 0, 0);
		passing(SYS_close, fd, 0, 0, 0);
		if (!f.real_size || f.real_size >= PATH_LIMIT)
			return next ? next(path, resolved) : (answer(-ENOENT), NULL);
		real[f.real_size] = 0;
		if (same || passing(SYS_newfstatat, AT_FDCWD, (long)real, (long)&here, AT_SYMLINK_NOFOLLOW) ||
		    here.st_ino != there.st_ino || here.st_dev != there.st_dev)
			return next ? next(path, resolved) : (answer(-ENOENT), NULL);
	}
	if (f.result == -EMFILE || f.result == -ENFILE || !append(r, &f))
		return next ? next(path, resolved) : (answer(-ENOENT), NULL);
	if (fd < 0) {
		answer(fd);
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

/* ---- setting up ---- */

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

static void map(const char *ring_path, unsigned slot)
{
	static const unsigned char code[] = {0x0f, 0x05, 0xc3}; /* syscall; ret */
	const long prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	if (ordinary(SYS_mmap, CLEW_CODE, 0x2000, prot, flags, -1, 0) != (long)CLEW_CODE)
		return;
	long fd = ordinary(SYS_open, (long)ring_path, O_RDWR | O_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return;
	long base = ordinary(SYS_mmap, 0, (long)CLEW_SLOTS * CLEW_SLOT_SIZE, prot, MAP_SHARED, fd, 0);
	ordinary(SYS_close, fd, 0, 0, 0, 0, 0);
	if (base < 0 && base > -4096)
		return;
	if (((struct clew_head *)base)->magic != CLEW_MAGIC)
		return;
	copy((char *)CLEW_CODE, (const char *)code, sizeof code);
	if (ordinary(SYS_mprotect, CLEW_CODE, 0x1000, PROT_READ | PROT_EXEC, 0, 0, 0))
		return;
	local->base = (uint64_t)base;
	local->slot = slot;
	local->magic = CLEW_MAGIC;
	ready = 1;
}

/* The program is not to see what was added to its environment: take it out again. */
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
	/* All that is left over is empty: who looks behind the variables finds an end, not a stray pointer. */
	while (*keep)
		*keep++ = NULL;
	unsigned slot = number(&where);
	if (*where == ':' && slot && slot < CLEW_SLOTS)
		map(where + 1, slot);
}
