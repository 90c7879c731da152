/* Calls what the injected library stands in for, in every way that may differ, and prints what came
 * back: a recorded run must print what an unrecorded one does. wrappers FOLDER: a folder of its own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int __xstat(int version, const char *path, struct stat *st) __attribute__((weak));
int __open_2(const char *path, int flags) __attribute__((weak));

static const char *folder;

/* Absolute names are printed without the folder, so that two runs can be compared. */
static void say(const char *what, const char *path, long result)
{
	int error = errno;
	const char *shown = path && !strncmp(path, folder, strlen(folder)) ? path + strlen(folder) : path;
	printf("%s(%.40s) = %ld %s\n", what, shown ? shown : "NULL", result, result < 0 ? strerrorname_np(error) : "");
}

static void descriptor(const char *what, const char *path, int fd)
{
	struct stat st;
	say(what, path, fd < 0 ? -1 : 0);
	if (fd < 0)
		return;
	if (!fstat(fd, &st))
		printf("  mode %o size %ld flags %x cloexec %d\n", st.st_mode, S_ISREG(st.st_mode) ? (long)st.st_size : 0,
		       (unsigned)fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
	close(fd);
}

static void status(const char *what, const char *path, int result, const struct stat *st)
{
	say(what, path, result);
	if (!result)
		printf("  mode %o links %ld size %ld\n", st->st_mode, (long)st->st_nlink, S_ISREG(st->st_mode) ? (long)st->st_size : 0);
}

static void one(const char *path, int dir)
{
	struct stat st;
	struct statx sx;
	char buffer[PATH_MAX], *made;
	ssize_t n;
	FILE *file;
	DIR *list;
	static const int flags[] = {O_RDONLY, O_RDONLY | O_CLOEXEC, O_RDONLY | O_DIRECTORY, O_RDONLY | O_NOFOLLOW, O_PATH,
				    O_PATH | O_NOFOLLOW, O_RDONLY | O_NONBLOCK, O_RDWR, O_WRONLY | O_APPEND, O_CREAT | O_EXCL | O_WRONLY};
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		int fd = open(path, flags[i], 0600);
		descriptor("open", path, fd);
		if (fd >= 0 && flags[i] & O_EXCL)
			unlink(path);
		if (!(flags[i] & O_CREAT))
			descriptor("openat", path, openat(dir, path, flags[i]));
	}
	if (__open_2)
		descriptor("__open_2", path, __open_2(path, O_RDONLY));
	status("stat", path, stat(path, &st), &st);
	status("lstat", path, lstat(path, &st), &st);
	status("fstatat", path, fstatat(dir, path, &st, 0), &st);
	status("fstatat", path, fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW), &st);
	status("fstatat", path, fstatat(dir, path, &st, 0x40000000), &st);
	if (__xstat)
		status("__xstat", path, __xstat(1, path, &st), &st);
	int r = statx(dir, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &sx);
	say("statx", path, r);
	if (!r)
		printf("  mode %o mask %x\n", sx.stx_mode, sx.stx_mask & STATX_BASIC_STATS);
	say("statx", path, statx(dir, path, 0x40000000, STATX_BASIC_STATS, &sx));
	say("access", path, access(path, F_OK));
	say("access", path, access(path, X_OK));
	say("access", path, access(path, 0x100));
	say("faccessat", path, faccessat(dir, path, R_OK, 0));
	say("faccessat", path, faccessat(dir, path, R_OK, AT_EACCESS));
	n = readlink(path, buffer, sizeof buffer);
	say("readlink", path, n);
	n = readlinkat(dir, path, buffer, 2);
	say("readlinkat", path, n);
	say("readlink", path, readlink(path, buffer, 0));
	made = realpath(path, NULL);
	say("realpath", path, made ? 0 : -1);
	if (made)
		printf("  %s\n", strncmp(made, folder, strlen(folder)) ? made : made + strlen(folder));
	free(made);
	made = realpath(path, buffer);
	say("realpath", path, made == buffer ? 0 : -1);
	made = path ? canonicalize_file_name(path) : NULL;
	say("canonicalize_file_name", path, made ? 0 : -1);
	free(made);
	static const char *const modes[] = {"r", "re", "rb", "r+", "rm", "rx", "r,ccs=UTF-8", "q", ""};
	for (unsigned i = 0; path && i < sizeof modes / sizeof *modes; i++) {
		errno = 0;
		file = fopen(path, modes[i]);
		printf("%s ", modes[i]);
		say("fopen", path, file ? 0 : -1);
		if (file) {
			int c = fgetc(file);
			printf("  first %d flags %x cloexec %d\n", c, (unsigned)fcntl(fileno(file), F_GETFL), fcntl(fileno(file), F_GETFD));
			fclose(file);
		}
	}
	list = path ? opendir(path) : NULL;
	say("opendir", path, list ? 0 : -1);
	if (list) {
		int count = 0;
		while (readdir(list))
			count++;
		printf("  %d entries cloexec %d\n", count, fcntl(dirfd(list), F_GETFD));
		closedir(list);
	}
}

int main(int argc, char **argv)
{
	static char longest[6000], component[400];
	if (argc < 2 || chdir(argv[1]))
		return 2;
	folder = argv[1];
	mkdir("d", 0755);
	mkdir("closed", 0000);
	mkfifo("fifo", 0600);
	int fd = open("f", O_WRONLY | O_CREAT, 0640);
	if (write(fd, "text\n", 5) != 5 || close(fd))
		return 3;
	if (symlink("f", "link") || symlink("nowhere", "broken") || symlink("loop", "loop") || symlink("d", "dlink"))
		return 4;
	memset(longest, 'x', sizeof longest - 1);
	for (size_t i = 200; i < sizeof longest - 1; i += 200)
		longest[i] = '/';
	memset(component, 'y', sizeof component - 1);
	char middle[1500] = "";
	for (int i = 0; i < 700; i++)
		strcat(middle, "./");
	strcat(middle, "f");
	char absolute[PATH_MAX];
	snprintf(absolute, sizeof absolute, "%s/f", folder);
	char slash[PATH_MAX];
	snprintf(slash, sizeof slash, "%s//d/..//link", folder);
	int here = open(".", O_RDONLY | O_DIRECTORY), sub = open("d", O_PATH);
	const char *const names[] = {"f", "d", "link", "broken", "loop", "dlink", "nothing", "f/under", "f/", "d/", "link/", "dlink/", "", ".", "..",
				     "closed/x", absolute, slash, middle, longest, component, "/dev/null", "/proc/self/cwd"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		one(names[i], AT_FDCWD);
		one(names[i], here);
	}
	one("../f", sub);
	one("f", sub);
	one("f", -1);
	one("f", 9999);
	one(absolute, -1);
	int unreadable = open("f", O_RDONLY);
	one("x", unreadable);
	struct stat st;
	status("fstatat", "", fstatat(unreadable, "", &st, AT_EMPTY_PATH), &st);
	say("stat", "f", stat("f", (struct stat *)8));
	say("open", "bad pointer", open((const char *)8, O_RDONLY));
	say("access", "bad pointer", access((const char *)8, F_OK));
	say("open", "fifo", open("fifo", O_WRONLY | O_NONBLOCK));
	/* No descriptor left. */
	int last, most = -1;
	while ((last = dup(0)) >= 0)
		most = last;
	descriptor("open", "f", open("f", O_RDONLY));
	say("realpath", "f", realpath("f", NULL) ? 0 : -1);
	say("fopen", "f", fopen("f", "r") ? 0 : -1);
	say("opendir", "d", opendir("d") ? 0 : -1);
	close(most);
	descriptor("open", "f", open("f", O_RDONLY));
	say("realpath", "f", realpath("f", NULL) ? 0 : -1);
	return 0;
}
