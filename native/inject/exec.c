/* The functions of the C library that start a program.
 *
 * A program is looked for in one directory of the PATH after the other, and an exec in each of them would stop for
 * the tracer. So whether a file is there is asked first, by a call that does not stop; that it is absent is
 * recorded as the failed exec that it would have been. An exec of a file that is there always stops.
 *
 * These functions run between fork and exec, where other threads may have held any lock: they take none. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject.h"

extern char **environ __attribute__((weak));
static int (*libc_execvp)(const char *, char *const[]);
static int (*libc_execvpe)(const char *, char *const[], char *const[]);

/* Before the program begins: after a fork the loader must not be called. RTLD_NEXT is -1. */
void find_libc_exec(void)
{
	if (!dlsym)
		return;
	libc_execvp = (int (*)(const char *, char *const[]))dlsym((void *)-1l, "execvp");
	libc_execvpe = (int (*)(const char *, char *const[], char *const[]))dlsym((void *)-1l, "execvpe");
}

enum presence { ABSENT, PRESENT, UNKNOWN };

/* Records an absent file. */
static enum presence find(const char *path)
{
	struct fact f = {.kind = CLEW_ACCESS, .path = path, .flags = X_OK, .result = -ENOENT};
	struct clew_ring *r = ring_with_room();
	long result = r ? untraced_call(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0) : -EAGAIN;
	if (!result)
		return PRESENT;
	return result == -ENOENT && record_call(r, &f, AT_FDCWD, result) ? ABSENT : UNKNOWN;
}

static const char *search_path(void)
{
	for (char **entry = environ; entry && *entry; entry++) {
		const char *at = *entry;
		if (at[0] == 'P' && at[1] == 'A' && at[2] == 'T' && at[3] == 'H' && at[4] == '=')
			return at + 5;
	}
	return NULL;
}

/* The first file of this name on the PATH, if nothing before it needs a closer look. */
static int find_on_path(const char *file, char *path)
{
	const char *at = search_path();
	size_t name = length(file);
	for (const char *p = file; *p; p++)
		if (*p == '/')
			return 0;
	while (at && name) {
		size_t size = 0;
		while (at[size] && at[size] != ':')
			size++;
		if (size + name + 2 > PATH_LIMIT)
			return 0;
		copy(path, at, size);
		if (size) /* an empty entry is the working directory */
			path[size] = '/';
		copy(path + size + (size > 0), file, name + 1);
		enum presence found = find(path);
		if (found != ABSENT)
			return found == PRESENT;
		at = at[size] ? at + size + 1 : NULL;
	}
	return 0;
}

static long traced_exec(const char *path, char *const argv[], char *const envp[])
{
	return traced_call(SYS_execve, (long)path, (long)argv, (long)envp, 0, 0, 0);
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	return (int)libc_result(find(path) == ABSENT ? -ENOENT : traced_exec(path, argv, envp));
}

/* When the exec fails, or nothing was found, the C library searches again: it knows what else to try. */
EXPORT int execvp(const char *file, char *const argv[])
{
	char path[PATH_LIMIT];
	if (find_on_path(file, path))
		traced_exec(path, argv, environ);
	if (!libc_execvp)
		find_libc_exec();
	return libc_execvp ? libc_execvp(file, argv) : (int)libc_result(-ENOSYS);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	char path[PATH_LIMIT];
	if (find_on_path(file, path))
		traced_exec(path, argv, envp);
	if (!libc_execvpe)
		find_libc_exec();
	return libc_execvpe ? libc_execvpe(file, argv, envp) : (int)libc_result(-ENOSYS);
}
