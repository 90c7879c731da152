/* Ways to change a file or its name. changes HOW NAME…: 0 when all went well. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *a = argc > 2 ? argv[2] : NULL, *b = argc > 3 ? argv[3] : NULL;
	if (!strcmp(how, "truncate"))
		return truncate(a, 3) != 0;
	if (!strcmp(how, "ftruncate"))
		return ftruncate(open(a, O_WRONLY), 3) != 0;
	if (!strcmp(how, "fallocate"))
		return fallocate(open(a, O_WRONLY), FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 3) != 0;
	if (!strcmp(how, "rename"))
		return rename(a, b) != 0;
	if (!strcmp(how, "renameat")) /* FOLDER NAME NEW */
		return renameat(open(a, O_PATH), b, open(a, O_PATH), argv[4]) != 0;
	if (!strcmp(how, "exchange"))
		return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) != 0;
	if (!strcmp(how, "noreplace"))
		return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE) != 0;
	if (!strcmp(how, "noreplace-there"))
		return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE) != -1 || errno != EEXIST;
	if (!strcmp(how, "link"))
		return link(a, b) != 0;
	if (!strcmp(how, "linkat")) /* FOLDER NAME NEW */
		return linkat(open(a, O_PATH), b, open(a, O_PATH), argv[4], 0) != 0;
	if (!strcmp(how, "symlink"))
		return symlink(a, b) != 0;
	if (!strcmp(how, "symlinkat")) /* FOLDER NAME TARGET */
		return symlinkat(argv[4], open(a, O_PATH), b) != 0;
	if (!strcmp(how, "unlink"))
		return unlink(a) != 0;
	if (!strcmp(how, "unlinkat"))
		return unlinkat(open(a, O_PATH), b, 0) != 0;
	if (!strcmp(how, "raw-unlink"))
		return syscall(SYS_unlinkat, AT_FDCWD, a, 0) != 0;
	if (!strcmp(how, "chmod"))
		return chmod(a, 0600) != 0;
	return 2;
}
