/* small COUNT: that many reads and writes of one byte. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);
	char byte;
	for (long i = 0; i < count; i++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			return 1;
	return 0;
}
