/* Memory, paths and file states of the traced processes.
 *
 * A path means what it means to the process: relative to its working directory, its descriptors, its
 * /proc/self. The functions here turn it into a path that the tracer can use. */
#include "memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Reads memory of a process. The process may be running or gone: the result may be short or -1. */
ssize_t peek(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)address, size};
	return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

/* Writes memory of a process, where the process itself may write. */
bool poke(pid_t pid, uint64_t address, const void *from, size_t size)
{
	struct iovec here = {(void *)from, size}, there = {(void *)address, size};
	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Reads a terminated string; NULL: unreadable. A read never crosses a page before the end was looked for: the
 * next page may not be mapped. */
char *peek_text(pid_t pid, uint64_t address)
{
	size_t used = 0, room = 256, limit = 1u << 18;
	if (!address)
		return NULL;
	char *text = must(malloc(room));
	while (used < limit) {
		size_t page = 4096 - (address + used) % 4096, want = page < 256 ? page : 256;
		if (used + want > room)
			text = must(realloc(text, room *= 2));
		if (peek(pid, address + used, text + used, want) != (ssize_t)want)
			break;
		if (memchr(text + used, 0, want))
			return text;
		used += want;
	}
	free(text);
	return NULL;
}

/* The kernel appends " (deleted)" to the path of a file that was unlinked: removes it, unless a file really
 * has that name. */
void strip_deleted_mark(char *path)
{
	static const char mark[] = " (deleted)";
	size_t size = strlen(path), more = sizeof mark - 1;
	if (size > more && path[0] == '/' && !strcmp(path + size - more, mark) && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
		path[size - more] = 0;
}

bool link_path(int folder, const char *link, char *to)
{
	ssize_t size = readlinkat(folder, link, to, PATH_MAX_ - 1);
	if (size <= 0)
		return false;
	to[size] = 0;
	strip_deleted_mark(to);
	return true;
}

/* The path of a descriptor of a process; pipes and sockets have names such as pipe:[123]. */
bool descriptor_path(pid_t pid, int fd, char *to)
{
	char link[64];
	snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, fd);
	return link_path(AT_FDCWD, link, to);
}

/* These paths depend on who opens them: for the tracer they must lead through the /proc of the process. */
static const struct { const char *prefix, *instead; } own[] = {
	{"/proc/self/", ""}, {"/dev/fd/", "/fd"}, {"/dev/stdin", "/fd/0"}, {"/dev/stdout", "/fd/1"}, {"/dev/stderr", "/fd/2"},
};

static const char *through_proc(pid_t pid, const char *path, char *base)
{
	for (unsigned i = 0; i < sizeof own / sizeof *own; i++) {
		size_t size = strlen(own[i].prefix);
		bool folder = own[i].prefix[size - 1] == '/';
		if (strncmp(path, own[i].prefix, size) || (!folder && path[size]))
			continue;
		snprintf(base, PATH_MAX_, "/proc/%d%s", pid, own[i].instead);
		return path + size - (folder ? 1 : 0);
	}
	return NULL;
}

/* The path as the tracer can use it: absolute, and through /proc/PID where the process would use /proc/self. */
char *absolute(struct task *task, int dirfd, const char *path)
{
	char base[PATH_MAX_] = "", *result;
	const char *rest;
	if (!path)
		return NULL;
	if (path[0] != '/') {
		if (dirfd == AT_FDCWD)
			strcpy(base, task->proc->cwd);
		else if (!descriptor_path(task->proc->pid, dirfd, base))
			return NULL;
	} else if ((rest = through_proc(task->proc->pid, path, base))) {
		path = rest;
	} else if (!strncmp(path, "/proc/thread-self/", 18)) {
		snprintf(base, sizeof base, "/proc/%d/task/%d", task->proc->pid, task->tid);
		path += 17;
	} else if (task->proc->other_root) { /* after a chroot: prefix the root of the process */
		char link[64];
		snprintf(link, sizeof link, "/proc/%d/root", task->proc->pid);
		ssize_t size = readlink(link, base, sizeof base - 1);
		base[size > 1 ? size : 0] = 0;
	}
	const char *joint = base[0] && path[0] && path[0] != '/' && strcmp(base, "/") ? "/" : "";
	if (asprintf(&result, "%s%s%s", base, joint, path) < 0)
		fail("out of memory");
	return result;
}

/* Resolves all symbolic links; with `follow` false the last component stays as it is. A path whose directory
 * does not exist is returned unchanged. */
char *canonical(const char *path, bool follow)
{
	char *whole = follow ? realpath(path, NULL) : NULL;
	if (whole)
		return whole;
	char *copy = must(strdup(path)), *result = NULL;
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = 0;
	char *slash = strrchr(copy, '/');
	if (slash) {
		*slash = 0;
		char *folder = realpath(slash == copy ? "/" : copy, NULL);
		if (folder && asprintf(&result, "%s/%s", folder[1] ? folder : "", slash + 1) < 0)
			fail("out of memory");
		free(folder);
	}
	free(copy);
	return result ? result : must(strdup(path));
}

void facts_from(const struct stat *st, struct clew_facts *facts)
{
	facts->dev = st->st_dev;
	facts->ino = st->st_ino;
	facts->size = (uint64_t)st->st_size;
	facts->mode = st->st_mode;
	facts->mtime = st->st_mtim.tv_sec * 1000000000l + st->st_mtim.tv_nsec;
	facts->ctime = st->st_ctim.tv_sec * 1000000000l + st->st_ctim.tv_nsec;
}

/* The state of the file at a path, which may be relative to an open directory; false: there is none. */
bool facts_at(int folder, const char *path, bool follow, struct clew_facts *facts)
{
	struct stat st;
	if (fstatat(folder, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW))
		return false;
	facts_from(&st, facts);
	return true;
}

bool facts_of(const char *path, bool follow, struct clew_facts *facts) { return facts_at(AT_FDCWD, path, follow, facts); }
