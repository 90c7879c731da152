/* Ways to open a file. opens HOW NAME…: prints what it read; 0 when all went well. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

static int show(int fd)
{
	char text[4096];
	ssize_t n;
	if (fd < 0) {
		perror("open");
		return 1;
	}
	while ((n = read(fd, text, sizeof text)) > 0)
		if (write(1, text, (size_t)n) != n)
			return 1;
	return n < 0;
}

static int fill(int fd, const char *text)
{
	if (fd < 0) {
		perror("open");
		return 1;
	}
	return write(fd, text, strlen(text)) != (ssize_t)strlen(text);
}

static int how_open2(int dir, const char *name, uint64_t flags, uint64_t mode)
{
	struct open_how how = {.flags = flags, .mode = mode};
	return (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

/* Threads that open their own files, all at once. */
static char **thread_names;
static int thread_count;
static void *opener(void *number)
{
	for (int i = (int)(long)number; i < thread_count; i += 8) {
		int fd = open(thread_names[i], O_RDONLY);
		struct stat st;
		if (fd < 0 || fstat(fd, &st) || close(fd))
			return (void *)1;
	}
	return NULL;
}

static int threads(int count, char **names)
{
	pthread_t all[8];
	int bad = 0;
	thread_names = names;
	thread_count = count;
	for (long i = 0; i < 8; i++)
		pthread_create(&all[i], NULL, opener, (void *)i);
	for (int i = 0; i < 8; i++) {
		void *result;
		pthread_join(all[i], &result);
		bad |= result != NULL;
	}
	return bad;
}

/* A signal handler that opens files while the program does. */
static const char *signal_name;
static volatile int signals_done, signal_errors;
static void on_signal(int n)
{
	(void)n;
	int fd = open(signal_name, O_RDONLY);
	if (fd < 0 || close(fd))
		signal_errors = 1;
	signals_done++;
}

static int interrupted(const char *name, const char *other)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct timespec period = {0, 50000};
	struct itimerspec every = {period, period};
	timer_t timer;
	signal_name = other;
	sigaction(SIGALRM, &act, NULL);
	if (timer_create(CLOCK_MONOTONIC, NULL, &timer) || timer_settime(timer, 0, &every, NULL))
		return 1;
	for (int i = 0; i < 20000 || signals_done < 50; i++) {
		struct stat st;
		int fd = open(name, O_RDONLY);
		if (fd < 0 || stat(name, &st) || close(fd))
			return 1;
	}
	return signal_errors;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : NULL, *other = argc > 3 ? argv[3] : NULL;
	if (!strcmp(how, "open"))
		return show(open(name, O_RDONLY));
	if (!strcmp(how, "openat")) /* FOLDER NAME */
		return show(openat(open(name, O_RDONLY | O_DIRECTORY), other, O_RDONLY));
	if (!strcmp(how, "openat-path")) /* the same, with a descriptor that cannot be read */
		return show(openat(open(name, O_PATH), other, O_RDONLY));
	if (!strcmp(how, "openat-write"))
		return fill(openat(open(name, O_PATH), other, O_WRONLY | O_CREAT | O_TRUNC, 0644), "new\n");
	if (!strcmp(how, "raw"))
		return show((int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY));
	if (!strcmp(how, "raw-write"))
		return fill((int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT, 0644), "new\n");
#ifdef SYS_open
	if (!strcmp(how, "raw-open"))
		return show((int)syscall(SYS_open, name, O_RDONLY));
#endif
	if (!strcmp(how, "openat2"))
		return show(how_open2(AT_FDCWD, name, O_RDONLY, 0));
	if (!strcmp(how, "openat2-write"))
		return fill(how_open2(open(name, O_PATH), other, O_WRONLY | O_CREAT, 0644), "new\n");
	if (!strcmp(how, "creat"))
		return fill(creat(name, 0644), "new\n");
	if (!strcmp(how, "fopen")) {
		FILE *file = fopen(name, "re");
		return file ? show(fileno(file)) : 1;
	}
	if (!strcmp(how, "reopen")) { /* through /proc/self/fd */
		char link[64];
		snprintf(link, sizeof link, "/proc/self/fd/%d", open(name, O_PATH));
		return show(open(link, O_RDONLY));
	}
	if (!strcmp(how, "reopen-write")) {
		char link[64];
		snprintf(link, sizeof link, "/proc/self/fd/%d", open(name, O_RDONLY));
		return fill(open(link, O_WRONLY | O_TRUNC), "new\n");
	}
	if (!strcmp(how, "dev-fd-write")) {
		char link[64];
		snprintf(link, sizeof link, "/dev/fd/%d", open(name, O_RDONLY));
		return fill(open(link, O_WRONLY | O_TRUNC), "new\n");
	}
	if (!strcmp(how, "append"))
		return fill(open(name, O_WRONLY | O_APPEND), "more\n");
	if (!strcmp(how, "tmpfile")) { /* FOLDER NAME: a file that gets its name last */
		char link[64];
		int fd = open(name, O_TMPFILE | O_RDWR, 0644);
		if (fill(fd, "new\n"))
			return 1;
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		return linkat(AT_FDCWD, link, AT_FDCWD, other, AT_SYMLINK_FOLLOW) != 0;
	}
	if (!strcmp(how, "tmpfile-empty")) {
		int fd = open(name, O_TMPFILE | O_RDWR, 0644);
		return fill(fd, "new\n") || linkat(fd, "", AT_FDCWD, other, AT_EMPTY_PATH) != 0;
	}
	if (!strcmp(how, "tmpfile-nameless"))
		return fill(open(name, O_TMPFILE | O_RDWR, 0644), "new\n");
	if (!strcmp(how, "mmap-write")) {
		int fd = open(name, O_RDWR);
		char *map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (fd < 0 || map == MAP_FAILED || close(fd))
			return 1;
		memcpy(map, "NEW\n", 4);
		return munmap(map, 4) != 0;
	}
	if (!strcmp(how, "mmap-slowly")) { /* maps, and says a word after each of two changes */
		char word[2];
		int fd = open(name, O_RDWR);
		char *map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (fd < 0 || map == MAP_FAILED || close(fd))
			return 1;
		memcpy(map, "one\n", 4);
		if (write(1, ".", 1) != 1 || read(0, word, 1) != 1)
			return 1;
		memcpy(map, "two\n", 4);
		return 0;
	}
	if (!strcmp(how, "copy-range")) {
		int from = open(name, O_RDONLY), to = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		return copy_file_range(from, NULL, to, NULL, 1 << 20, 0) <= 0;
	}
	if (!strcmp(how, "sendfile")) {
		int from = open(name, O_RDONLY), to = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		return sendfile(to, from, NULL, 1 << 20) <= 0;
	}
	if (!strcmp(how, "twice")) { /* reads, lets somebody change it, reads again */
		char word[2];
		return show(open(name, O_RDONLY)) || read(0, word, 1) != 1 || show(open(name, O_RDONLY));
	}
	if (!strcmp(how, "later")) { /* opens, lets somebody change it, and only then reads */
		char word[2];
		int fd = open(name, O_RDONLY);
		return fd < 0 || write(1, ".", 1) != 1 || read(0, word, 1) != 1 || show(fd);
	}
	if (!strcmp(how, "slowly")) { /* writes half, waits for a word, writes the rest */
		char word[2];
		int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		return fill(fd, "first\n") || write(1, ".", 1) != 1 || read(0, word, 1) != 1 || fill(fd, "second\n");
	}
	if (!strcmp(how, "threads"))
		return threads(argc - 2, argv + 2);
	if (!strcmp(how, "interrupted"))
		return interrupted(name, other);
	if (!strcmp(how, "deep")) { /* N: goes down N folders with long names and leaves a file there */
		char folder[201];
		memset(folder, 'd', 200);
		folder[200] = 0;
		for (int i = atoi(name); i > 0; i--)
			if ((mkdir(folder, 0755) && errno != EEXIST) || chdir(folder))
				return 1;
		return fill(open("bottom", O_WRONLY | O_CREAT, 0644), "new\n") || show(open("bottom", O_RDONLY));
	}
	if (!strcmp(how, "uring"))
		return syscall(425, 1, NULL) != -1 || errno != ENOSYS;
	return 2;
}
