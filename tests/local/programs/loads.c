/* What is asked of the loader while a program runs. loads HOW NAME…: loads each NAME as a library, and
 * prints how often it had to wait meanwhile, which is how often it was stopped.
 * alone: as is; beside: while a second thread sleeps; child: all but the first in a forked child;
 * catalogs: alone, and as message catalogs, which the C library opens by itself. */
#include <dlfcn.h>
#include <nl_types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *sleeper(void *nothing)
{
	pause();
	return nothing;
}

static long waits(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void load(char **names, bool catalogs)
{
	long before = waits();
	for (; *names; names++)
		if (catalogs)
			catopen(*names, 0);
		else
			dlopen(*names, RTLD_LAZY);
	printf("%ld\n", waits() - before);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "beside"))
		pthread_create(&thread, NULL, sleeper, NULL);
	if (strcmp(argv[1], "child")) {
		load(argv + 2, !strcmp(argv[1], "catalogs"));
		return 0;
	}
	dlopen(argv[2], RTLD_LAZY);
	if (!fork()) {
		load(argv + 3, false);
		_exit(0);
	}
	return wait(NULL) < 0;
}
