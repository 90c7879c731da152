/* Pinned randomness: a ChaCha20 stream of bytes for each thread, with its own key.
 *
 * The key is derived from the seed and from the position of the thread: the key of its maker, the number of
 * threads and children that this one made before, and the programs it has run. So threads and processes
 * that race do not take numbers from each other. */
#include "arch.h"
#include "memory.h"
#include "pinning/pinning.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

#define BLOCK 64
#define MAX_FILL (1u << 25) /* bytes of one getrandom, the limit of the kernel */

/* Part of the nonce, so that keys and output never come from the same block. */
enum purpose { STREAM, BIRTH, PROGRAM };

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void quarter_round(uint32_t *x, int a, int b, int c, int d)
{
	x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 16);
	x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 12);
	x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 8);
	x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 7);
}

/* One ChaCha20 block (RFC 8439: 20 rounds, as 10 double rounds). The counter has 64 bits. */
static void block(const uint8_t key[KEY], uint64_t counter, enum purpose purpose, uint8_t out[BLOCK])
{
	uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
	memcpy(start + 4, key, KEY);
	memcpy(start + 12, &counter, sizeof counter);
	start[14] = purpose;
	memcpy(x, start, sizeof x);
	for (int i = 0; i < 10; i++) {
		for (int column = 0; column < 4; column++)
			quarter_round(x, column, 4 + column, 8 + column, 12 + column);
		for (int row = 0; row < 4; row++)
			quarter_round(x, row, 4 + (row + 1) % 4, 8 + (row + 2) % 4, 12 + (row + 3) % 4);
	}
	for (int i = 0; i < 16; i++)
		x[i] += start[i];
	memcpy(out, x, BLOCK);
}

/* A new stream whose key is the first half of a block. */
static void derive(struct random_stream *to, const uint8_t key[KEY], uint64_t which, enum purpose purpose)
{
	uint8_t out[BLOCK];
	block(key, which, purpose, out);
	*to = (struct random_stream){0};
	memcpy(to->key, out, KEY);
}

/* The stream of the first process. The 16-byte seed is used twice: a key has 32 bytes. */
void random_root(struct random_stream *stream)
{
	uint8_t key[KEY];
	memcpy(key, pins.seed, SEED);
	memcpy(key + SEED, pins.seed, SEED);
	derive(stream, key, 0, BIRTH);
}

/* A new thread or process: the maker counts, so each child has another key. */
void random_child(struct random_stream *maker, struct random_stream *born)
{
	derive(born, maker->key, maker->births++, BIRTH);
}

/* A new program does not continue the stream of the one before, whose use of it may be chance. */
void random_exec(struct random_stream *stream)
{
	uint8_t key[KEY];
	memcpy(key, stream->key, KEY);
	derive(stream, key, 0, PROGRAM);
}

/* Any number of bytes at a time gives the same stream: a block is computed again where a read ended within it. */
void random_bytes(struct random_stream *stream, void *to, size_t size)
{
	uint8_t out[BLOCK], *at = to;
	while (size) {
		size_t from = stream->used % BLOCK, part = size < BLOCK - from ? size : BLOCK - from;
		block(stream->key, stream->used / BLOCK, STREAM, out);
		memcpy(at, out + from, part);
		stream->used += part;
		at += part;
		size -= part;
	}
}

/* Fills memory of the program; returns the result of the call: bytes written, or an error. */
int64_t random_fill(struct task *task, uint64_t address, uint64_t size)
{
	static uint8_t part[1 << 16];
	uint64_t done = 0;
	if (size > MAX_FILL)
		size = MAX_FILL;
	while (done < size) {
		size_t next = size - done < sizeof part ? size - done : sizeof part;
		random_bytes(&task->random, part, next);
		if (!poke(task->tid, address + done, part, next))
			return done ? (int64_t)done : -EFAULT;
		done += next;
	}
	return (int64_t)done;
}

bool getrandom_enter(struct task *task)
{
	uint64_t flags = argument(task, 2);
	/* Unknown flags: let the kernel refuse them. */
	if (!(flags & ~(uint64_t)(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE)))
		call_skip(task, random_fill(task, argument(task, 0), argument(task, 1)));
	return false;
}
