/* Arguments and variables of a program, as lists of strings.
 *
 * They are read from the process that calls exec, or from the stack of the new program (initial_stack.c). A few
 * hundred strings are common, so they are read in batches. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"
#include "records/records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define LONGEST_LIST (2u << 20) /* bytes of all arguments, or of all variables: above what the kernel accepts */
#define BATCH 64   /* strings read with one process_vm_readv */
#define SHORT 128u /* bytes read of each: most arguments are shorter */

/* Reads the strings at these addresses in one call; NULL for each that is longer or unreadable. */
static void read_strings(pid_t tid, const uint64_t *addresses, unsigned count, char *texts[])
{
	static char room[BATCH][SHORT];
	struct iovec here[BATCH], there[BATCH];
	for (unsigned i = 0; i < count; i++) {
		/* Do not read into the next page: it may not be mapped, and the whole read would end there. */
		size_t page = 4096 - addresses[i] % 4096;
		there[i] = (struct iovec){(void *)addresses[i], page < SHORT ? page : SHORT};
		here[i] = (struct iovec){room[i], there[i].iov_len};
	}
	ssize_t left = process_vm_readv(tid, here, count, there, count, 0);
	for (unsigned i = 0; i < count; i++) {
		/* A short count means that the rest of the list was not read. */
		bool read = left >= (ssize_t)here[i].iov_len;
		texts[i] = read && memchr(room[i], 0, here[i].iov_len) ? must(strdup(room[i])) : NULL;
		left = read ? left - (ssize_t)here[i].iov_len : 0;
	}
}

/* Takes ownership of `text`. The array doubles when the count is a power of two. */
static bool list_add(struct list *list, char *text)
{
	if (!text)
		return false;
	if (!(list->count & (list->count - 1)))
		list->items = must(realloc(list->items, (list->count ? list->count * 2 : 1) * sizeof *list->items));
	list->items[list->count++] = text;
	list->bytes += strlen(text) + 1;
	return true;
}

/* Reads a NULL-terminated array of string pointers. `word` is the pointer size: 8, or 4 in a 32-bit program. */
void list_read(struct list *list, pid_t tid, uint64_t address, size_t word)
{
	while (address && list->bytes < LONGEST_LIST) {
		uint8_t pointers[BATCH * 8];
		uint64_t items[BATCH] = {0};
		char *texts[BATCH];
		size_t page = 4096 - address % 4096, want = page < BATCH * word ? page : BATCH * word;
		ssize_t size = peek(tid, address, pointers, want < word ? word : want);
		unsigned count = 0, all = size > 0 ? (unsigned)((size_t)size / word) : 0;
		for (; count < all; count++) {
			memcpy(&items[count], pointers + count * word, word);
			if (!items[count])
				break;
		}
		read_strings(tid, items, count, texts);
		for (unsigned i = 0; i < count; i++)
			if (!list_add(list, texts[i] ? texts[i] : peek_text(tid, items[i]))) {
				while (++i < count)
					free(texts[i]);
				return;
			}
		if (count < all || !all)
			return;
		address += count * word;
	}
}

void list_free(struct list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

void list_out(const struct list *list)
{
	out_array(list->count);
	for (unsigned i = 0; i < list->count; i++)
		out_text(list->items[i]);
}

/* Each distinct environment is written once (R_ENV) and referred to by number: most programs of a run have the
 * same. */
int64_t variables_number(const struct list *list)
{
	static uint64_t *known;
	static unsigned count;
	uint64_t hash = 7;
	for (unsigned i = 0; i < list->count; i++)
		hash = hash_bytes(hash, list->items[i], strlen(list->items[i]) + 1);
	for (unsigned i = 0; i < count; i++)
		if (known[i] == hash)
			return i + 1;
	known = must(realloc(known, (count + 1) * sizeof *known));
	known[count++] = hash;
	out_begin(R_ENV, next_seq(), 0, 2);
	out_int(count);
	list_out(list);
	out_end();
	return count;
}
