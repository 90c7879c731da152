/* Sights: what programs see of files. Most programs of a run see the same, so each sight is
 * described once and named by a number after that; who saw it is told by numbers, many at a time. */
#include "trace.h"

#include <stdlib.h>

#define MOST 2048 /* told at once */

static struct sight {
	uint64_t hash;
	uint32_t number; /* 0: an empty place */
} *table;
static uint32_t table_size, count;

static struct {
	uint32_t image, opened, looked; /* who, and how many of each */
	uint64_t seq;			/* of the last */
	struct {
		uint64_t seq;
		uint32_t number;
	} opening[MOST];
	uint32_t look[MOST];
} group;

static uint32_t place(uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 16) & (table_size - 1);
	while (table[at].number && table[at].hash != hash)
		at = (at + 1) & (table_size - 1);
	return at;
}

static void grow(void)
{
	struct sight *former = table;
	uint32_t former_size = table_size;
	table_size = table_size ? table_size * 2 : 4096;
	table = must(calloc(table_size, sizeof *table));
	for (uint32_t i = 0; i < former_size; i++)
		if (former[i].number)
			table[place(former[i].hash)] = former[i];
	free(former);
}

/* Known by its hash alone, as what one image has seen is. */
uint32_t sight_number(uint64_t hash, bool *news)
{
	if (count * 2 >= table_size)
		grow();
	uint32_t at = place(hash);
	*news = !table[at].number;
	if (*news) {
		table[at].hash = hash;
		table[at].number = ++count;
	}
	return table[at].number;
}

static void add(uint32_t image, uint64_t seq)
{
	if (group.image != image || group.opened == MOST || group.looked == MOST)
		sights_write();
	group.image = image;
	group.seq = seq;
}

void sight_opened(uint32_t image, uint64_t seq, uint32_t number)
{
	add(image, seq);
	group.opening[group.opened].seq = seq;
	group.opening[group.opened++].number = number;
}

void sight_looked(uint32_t image, uint64_t seq, uint32_t number)
{
	add(image, seq);
	group.look[group.looked++] = number;
}

void sights_write(void)
{
	uint32_t opened = group.opened, looked = group.looked;
	group.opened = group.looked = 0; /* writing may ask for them again */
	if (!opened && !looked)
		return;
	out_begin(R_SEEN, group.seq, group.image, 2);
	out_array(2 * opened);
	for (uint32_t i = 0; i < opened; i++) {
		out_int((int64_t)group.opening[i].seq);
		out_int(group.opening[i].number);
	}
	out_array(looked);
	for (uint32_t i = 0; i < looked; i++)
		out_int(group.look[i]);
	out_end();
}
