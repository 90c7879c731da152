/* Writes the trace: MessagePack arrays, each preceded by its length as four bytes, little-endian.
 *
 * The trace is a file, which serves as the buffer between tracer and reader: a slow reader never slows the
 * command. A byte on the notify pipe tells the reader that there is more. No byte is sent if the only new
 * records say who made observations that are already known (R_SEEN): these can wait. */
#include "records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (1u << 18)
#define LARGEST (4u << 20) /* an argument list may be 2 MiB */

static uint8_t *buffer;
static size_t used, record_at, capacity;
static int file = -1, notify_fd = -1;
static bool unannounced; /* there are records that the reader was not notified of */
static bool lost; /* the disk is full: the file ends, perhaps within a record, and the command goes on */
static uint64_t room = UINT64_MAX; /* bytes that the trace may still grow by */

void out_limit(uint64_t bytes) { room = bytes; }

void out_open(const char *path, int notify)
{
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (file < 0)
		fail("cannot write the trace");
	notify_fd = notify;
	capacity = BUFFER + LARGEST;
	/* Static: the pages exist only once they are used. */
	static uint8_t space[BUFFER + LARGEST];
	buffer = space;
}

static void put(const void *data, size_t size)
{
	if (used + size > capacity)
		fail("a record is too large");
	memcpy(buffer + used, data, size);
	used += size;
}

/* MessagePack numbers are big-endian. */
static void put_big(uint8_t tag, uint64_t value, unsigned bytes)
{
	uint8_t out[9] = {tag};
	for (unsigned i = 0; i < bytes; i++)
		out[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	put(out, 1 + bytes);
}

void out_int(int64_t value)
{
	if (value >= 0 && value < 128)
		put_big((uint8_t)value, 0, 0);
	else if (value >= 0 && value <= UINT16_MAX)
		put_big(0xcd, (uint64_t)value, 2);
	else if (value >= 0 && value <= UINT32_MAX)
		put_big(0xce, (uint64_t)value, 4);
	else if (value >= 0)
		put_big(0xcf, (uint64_t)value, 8);
	else
		put_big(0xd3, (uint64_t)value, 8);
}

void out_array(unsigned count)
{
	if (count < 16)
		put_big((uint8_t)(0x90 | count), 0, 0);
	else
		put_big(0xdd, count, 4);
}

/* Always binary, also for text: paths need not be UTF-8. */
void out_bytes(const void *data, size_t size)
{
	if (size < 256)
		put_big(0xc4, size, 1);
	else
		put_big(0xc6, size, 4);
	put(data, size);
}

void out_text(const char *text)
{
	if (text)
		out_bytes(text, strlen(text));
	else
		put_big(0xc0, 0, 0);
}

void out_facts(const struct clew_facts *f)
{
	if (!f) {
		put_big(0xc0, 0, 0);
		return;
	}
	out_array(6);
	out_int((int64_t)f->dev);
	out_int((int64_t)f->ino);
	out_int((int64_t)f->size);
	out_int(f->mtime);
	out_int(f->ctime);
	out_int(f->mode);
}

/* Begins a record of 4 + `fields` values; image 0: it belongs to none. */
void out_begin(enum record type, uint64_t seq, uint32_t image, unsigned fields)
{
	struct timespec now;
	if (image && type != R_SEEN)
		observations_flush(); /* what an image saw must stand before what it does next */
	clock_gettime(CLOCK_REALTIME, &now);
	if (used > BUFFER)
		out_flush();
	unannounced = unannounced || type != R_SEEN;
	record_at = used;
	used += 4; /* the length, known at out_end */
	out_array(4 + fields);
	out_int(type);
	out_int((int64_t)seq);
	out_int(now.tv_sec * 1000000000l + now.tv_nsec);
	out_int(image);
}

void out_end(void)
{
	uint32_t size = (uint32_t)(used - record_at - 4);
	memcpy(buffer + record_at, &size, 4);
}

/* For a question to another process (reuse.c): it has the form of a record, but is no part of the trace. */
const void *out_withdraw(size_t *size)
{
	out_end();
	*size = used - record_at;
	used = record_at;
	return buffer + record_at;
}

void out_flush(void)
{
	size_t done = 0;
	observations_flush();
	if (used > room)
		lost = true;
	room -= lost ? 0 : used;
	while (done < used && !lost) {
		ssize_t n = write(file, buffer + done, used - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EINTR)
			lost = true;
	}
	if (used && unannounced && notify_fd >= 0)
		(void)!write(notify_fd, "", 1);
	unannounced = false;
	used = 0;
}
