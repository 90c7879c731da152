/* small COUNT [SLICES TURN DONE]: that many reads and writes of one byte; in so many slices, each
 * when a byte comes from the pipe TURN, and said to the pipe DONE. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int do_some(int from, int to, long count)
{
	char byte;
	for (long i = 0; i < count; i++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);
	if (argc < 5)
		return do_some(from, to, count);
	long slices = atol(argv[2]);
	int turn = open(argv[3], O_RDONLY), done = open(argv[4], O_WRONLY);
	char byte;
	for (long i = 0; i < slices; i++)
		if (read(turn, &byte, 1) != 1 || do_some(from, to, count / slices) || write(done, &byte, 1) != 1)
			return 1;
	return 0;
}
