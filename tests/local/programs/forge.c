/* A program that lies to the tracer through the memory it shares with it (native/inject_layout.h).
 *
 * claim =PATH says that it opened PATH for writing
 * race PATH   changes the sizes of its records while the tracer reads them
 * noise PATH  fills the ring, and the numbers that say where to read, with random bytes
 * cut PATH    cuts the shared file short, if it can
 * calls PATH  makes every call that the tracer stops, with pointers to nowhere
 * wrap PATH   lets the positions pass 2^32, and looks for PATH0, PATH1, … meanwhile */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../native/inject_layout.h"

static struct clew_ring *ring;
static atomic_int over;

static struct clew_record *put(uint32_t at, const char *path)
{
	struct clew_record *record = (struct clew_record *)(ring->data + at);
	size_t size = strlen(path);
	record->kind = CLEW_OPEN;
	record->seq = 1u << 30;
	record->flags = O_WRONLY | O_CREAT;
	record->facts.mode = S_IFREG | 0644;
	record->facts.ino = 77;
	record->path_size = record->real_size = (uint16_t)size;
	memcpy((char *)(record + 1), path, size);
	memcpy((char *)(record + 1) + size, path, size);
	record->size = (uint32_t)((sizeof *record + 2 * size + 7) & ~7ul);
	return record;
}

static void drained(void) { close(open("/dev/null", O_WRONLY)); } /* a call that stops: the ring is read */

static void *flip(void *with)
{
	struct clew_record *record = with;
	while (!over) {
		record->path_size = 60000;
		record->real_size = 60000;
		record->path_size = 8;
		record->real_size = 8;
	}
	return NULL;
}

static void race(const char *path)
{
	pthread_t thread;
	pthread_create(&thread, NULL, flip, ring->data);
	for (int i = 0; i < 3000; i++) {
		ring->tail = 0;
		put(0, path)->size = CLEW_DATA - 8;
		drained();
	}
	over = 1;
	pthread_join(thread, NULL);
}

static void noise(void)
{
	uint32_t *words = (uint32_t *)ring;
	srandom(7);
	for (int i = 0; i < 2000; i++) {
		uint32_t at = (uint32_t)random() % (CLEW_DATA - 4);
		for (unsigned n = 0; n < 64; n++)
			words[16 + (uint32_t)random() % (CLEW_DATA / 4)] = (uint32_t)random() % 3 ? (uint32_t)random() % CLEW_DATA : ~0u;
		uint32_t size = (uint32_t)(random() % CLEW_DATA) & ~7u;
		memcpy(ring->data + at, &size, 4);
		ring->tail = random() % 2 ? at : (uint64_t)random() << 8;
		ring->head = (uint32_t)random();
		drained();
	}
	memset(ring, 0, sizeof *ring);
}

static void cut(void)
{
	char line[256], name[64], path[96];
	struct stat found;
	int tracer = 0;
	FILE *status = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, status))
		sscanf(line, "TracerPid: %d", &tracer);
	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", tracer, fd);
		ssize_t size = readlink(path, name, sizeof name - 1);
		name[size > 0 ? size : 0] = 0;
		if (!strncmp(name, "/memfd:clew", 11) && !stat(path, &found) && found.st_size)
			(void)!truncate(path, 0);
	}
}

/* As after 4 GiB of records, and with half of the records at the beginning of the ring not yet read. */
static void wrap(const char *path)
{
	char name[256];
	ring->head = ring->tail = (1ull << 32) - 4096;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "%s%d", path, i);
		access(name, F_OK);
	}
}

static void calls(void)
{
	static const int numbers[] = {
		SYS_open, SYS_creat, SYS_openat, SYS_openat2, SYS_open_by_handle_at, SYS_stat, SYS_lstat, SYS_newfstatat,
		SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat, SYS_rename, SYS_renameat,
		SYS_renameat2, SYS_link, SYS_linkat, SYS_symlink, SYS_symlinkat, SYS_unlink, SYS_unlinkat, SYS_rmdir,
		SYS_mkdir, SYS_mkdirat, SYS_mknod, SYS_mknodat, SYS_truncate, SYS_ftruncate, SYS_fallocate, SYS_chmod,
		SYS_fchmod, SYS_fchmodat, SYS_chown, SYS_lchown, SYS_fchown, SYS_fchownat, SYS_utime, SYS_utimes,
		SYS_futimesat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr,
		SYS_fremovexattr, SYS_chdir, SYS_fchdir, SYS_execve, SYS_execveat, SYS_connect, SYS_bind, SYS_sendto,
		SYS_chroot, SYS_pivot_root, SYS_setns, SYS_mount, SYS_move_mount, SYS_pidfd_send_signal,
	};
	static char text[] = "nowhere";
	const long values[] = {0, 1, -1, -100, 0x1000, 0x2000, (long)text, (long)text, (long)ring, 0x7fffffff};
	/* Calls that succeed must change nothing of the machine: not its mounts, and not the device that is
	 * our standard input. */
	int output = fcntl(1, F_DUPFD, 100);
	close_range(0, 2, 0);
	if (!unshare(CLONE_NEWNS))
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	srandom(7);
	for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++)
		for (int i = 0; i < 60; i++) {
			long a[6];
			for (int k = 0; k < 6; k++)
				a[k] = values[(unsigned)random() % (sizeof values / sizeof *values)];
			syscall(numbers[n], a[0], a[1], a[2], a[3], a[4], a[5]);
		}
	dup2(output, 1);
}

int main(int argc, char **argv)
{
	struct clew_local *local = (struct clew_local *)CLEW_LOCAL;
	if (argc != 3)
		return 2;
	if (local->magic != CLEW_MAGIC || !local->slot)
		return 3; /* the library is not there */
	ring = (struct clew_ring *)(local->base + (uint64_t)local->slot * CLEW_SLOT_SIZE);
	drained();
	if (!strcmp(argv[1], "race"))
		race(argv[2]);
	else if (!strcmp(argv[1], "noise"))
		noise();
	else if (!strcmp(argv[1], "cut"))
		cut();
	else if (!strcmp(argv[1], "calls"))
		calls();
	else if (!strcmp(argv[1], "wrap"))
		wrap(argv[2]);
	else
		put(ring->tail % CLEW_DATA, argv[2] + 1);
	drained();
	puts("done");
	return 0;
}
