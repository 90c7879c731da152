/* Writes records into the ring of this process (inject_layout.h).
 *
 * Several threads write at once, and signal handlers interrupt them, so there are no locks: a writer
 * reserves its place by moving `head`, fills it, and publishes it by writing `size` last. The tracer reads up
 * to the first record without a size. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "inject.h"

int ring_ready;

/* The slot is read each time: the tracer changes it after a fork, and sets it to 0 while memory is shared. */
static struct clew_ring *ring(void)
{
	if (!ring_ready || !LOCAL->slot)
		return NULL;
	return (struct clew_ring *)(LOCAL->base + (uint64_t)LOCAL->slot * CLEW_SLOT_SIZE);
}

/* Both counters only grow, so their difference is what the tracer has not read yet. */
static int half_full(const struct clew_ring *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_RELAXED) - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) > CLEW_HALF;
}

/* The tracer drains a ring whenever it stops its process. So when the ring is half full, this makes a call
 * that stops and does nothing: access of a NULL path. If the call of the caller stopped instead, it would stop
 * twice. */
struct clew_ring *ring_with_room(void)
{
	struct clew_ring *r = ring();
	if (r && half_full(r)) {
		traced_call(SYS_access, 0, 0, 0, 0, 0, 0);
		if (half_full(r))
			return NULL;
	}
	return r;
}

/* Reserves room for a record, without locks. A record never wraps: when it does not fit before the end, a
 * filler takes the rest. NULL: the ring is full. */
static struct clew_record *reserve(struct clew_ring *r, uint32_t size)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
	uint32_t pad, at;
	do {
		at = (uint32_t)(head % CLEW_DATA);
		pad = at + size > CLEW_DATA ? CLEW_DATA - at : 0;
		if (head + pad + size - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) > CLEW_DATA)
			return NULL;
	} while (!__atomic_compare_exchange_n(&r->head, &head, head + pad + size, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	if (pad) {
		struct clew_record *filler = (struct clew_record *)(r->data + at);
		/* A filler too small for a kind is recognized by its size. */
		if (pad >= offsetof(struct clew_record, seq))
			filler->kind = CLEW_PAD;
		__atomic_store_n(&filler->size, pad, __ATOMIC_RELEASE);
		at = 0;
	}
	return (struct clew_record *)(r->data + at);
}

/* Returns 0 when there is no room: then the caller makes a plain call, which the tracer sees. */
int append(struct clew_ring *r, const struct fact *f)
{
	size_t path_size = length(f->path), full = path_size + f->base_size;
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
	copy(text, f->base, f->base_size);
	text += f->base_size;
	copy(text, f->path, path_size);
	copy(text + path_size, f->real, f->real_size);
	/* The sequence number is taken after the call was made, and the size written last: see inject_layout.h. */
	record->seq = __atomic_add_fetch((uint64_t *)LOCAL->base, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&record->size, size, __ATOMIC_RELEASE);
	return 1;
}

/* A URL that cannot be recorded is dropped: the connection is seen by the tracer anyway. */
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

/* The kernel knows the path of a descriptor, with all links resolved: /proc/self/fd/N. */
size_t descriptor_path(int fd, char *buffer)
{
	char link[32] = "/proc/self/fd/", digits[12];
	int n = 0, at = 14;
	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		link[at++] = digits[--n];
	link[at] = 0;
	long size = untraced_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)buffer, PATH_LIMIT);
	return size > 0 && size < PATH_LIMIT && buffer[0] == '/' ? (size_t)size : 0;
}

/* Fills in the directory that a relative path starts from, with a slash at its end, when that is not the working directory. */
static int set_base(struct fact *f, int dirfd, char *buffer)
{
	if (dirfd == AT_FDCWD || f->path[0] == '/')
		return 1;
	if (dirfd < 0)
		return 0;
	f->base = buffer;
	f->base_size = descriptor_path(dirfd, buffer);
	if (f->base_size > 1) /* "/" itself ends with a slash already */
		buffer[f->base_size++] = '/';
	return f->base_size > 0;
}

/* Records a call that was made; 0: it could not be recorded. The call comes first, so that only a path that
 * the kernel could read is read here: a bad pointer must give EFAULT, not a crash. */
int record_call(struct clew_ring *r, struct fact *f, int dirfd, long result)
{
	char base[PATH_LIMIT];
	if (result == -EFAULT || !f->path[0])
		return 1;
	return set_base(f, dirfd, base) && append(r, f);
}
