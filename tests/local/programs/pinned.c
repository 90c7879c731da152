/* Asks for the time and for random bytes in every way there is, and says what it was told, a line
 * each. Whether it waited as long as it asked to is told by a clock that is never pinned. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define THREADS 6

static void moment(const char *what, time_t seconds, long rest) { printf("%s %lld %ld\n", what, (long long)seconds, rest); }

static void bytes(const char *what, const void *from, size_t size)
{
	printf("%s ", what);
	for (size_t i = 0; i < size; i++)
		printf("%02x", ((const unsigned char *)from)[i]);
	puts("");
}

static void clocks(void)
{
	static const struct { const char *name; clockid_t clock; } all[] = {
		{"realtime", CLOCK_REALTIME}, {"coarse", CLOCK_REALTIME_COARSE}, {"tai", CLOCK_TAI}};
	struct timespec now;
	struct timeval today;
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		clock_gettime(all[i].clock, &now);
		moment(all[i].name, now.tv_sec, now.tv_nsec);
	}
	gettimeofday(&today, NULL);
	moment("gettimeofday", today.tv_sec, (long)today.tv_usec);
	moment("time", time(NULL), 0);
}

static void devices(void)
{
	unsigned char some[8];
	struct iovec parts[2] = {{some, 3}, {some + 3, 5}};
	int fd = open("/dev/urandom", O_RDONLY);
	if (read(fd, some, sizeof some) == sizeof some)
		bytes("read", some, sizeof some);
	if (readv(fd, parts, 2) == sizeof some)
		bytes("readv", some, sizeof some);
	if (pread(fd, some, sizeof some, 0) == sizeof some)
		bytes("pread", some, sizeof some);
	close(fd);
}

static void *in_thread(void *to)
{
	if (getrandom(to, 8, 0) != 8)
		abort();
	return NULL;
}

static void threads(void)
{
	static unsigned char drawn[THREADS][8];
	pthread_t all[THREADS];
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, in_thread, drawn[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(all[i], NULL);
		bytes("thread", drawn[i], sizeof drawn[i]);
	}
}

static double real_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct timespec in_a_while(void)
{
	struct timespec then;
	clock_gettime(CLOCK_REALTIME, &then);
	then.tv_nsec += 300000000;
	then.tv_sec += then.tv_nsec / 1000000000;
	then.tv_nsec %= 1000000000;
	return then;
}

static void waits(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec now, then = in_a_while();
	double began = real_now();
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &then, NULL);
	clock_gettime(CLOCK_REALTIME, &now);
	printf("slept %d past %d\n", real_now() - began > 0.28,
	       now.tv_sec > then.tv_sec || (now.tv_sec == then.tv_sec && now.tv_nsec >= then.tv_nsec));
	pthread_mutex_lock(&mutex);
	then = in_a_while();
	began = real_now();
	int error = pthread_cond_timedwait(&never, &mutex, &then);
	printf("waited %d error %d\n", real_now() - began > 0.28, error);
}

int main(void)
{
	unsigned char some[8];
	clocks();
	if (getrandom(some, sizeof some, 0) == sizeof some)
		bytes("getrandom", some, sizeof some);
	bytes("at-random", (const void *)(uintptr_t)getauxval(AT_RANDOM), 16);
	devices();
	threads();
	waits();
	return 0;
}
