/* Sights: what programs see of files. Most programs of a run see the same, so each sight is
 * described once and named by a number after that; who saw it is told by numbers, many at a time. */
#include "trace.h"

#include <stdlib.h>

#define MAX_BATCH 2048 /* told at once */

static struct observation {
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
	} opening[MAX_BATCH];
	uint32_t look[MAX_BATCH];
} group;

static uint32_t find_slot(uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 16) & (table_size - 1);
	while (table[at].number && table[at].hash != hash)
		at = (at + 1) & (table_size - 1);
	return at;
}

static void grow(void)
{
	struct observation *former = table;
	uint32_t former_size = table_size;
	table_size = table_size ? table_size * 2 : 4096;
	table = must(calloc(table_size, sizeof *table));
	for (uint32_t i = 0; i < former_size; i++)
		if (former[i].number)
			table[find_slot(former[i].hash)] = former[i];
	free(former);
}

/* Known by its hash alone, as what one image has seen is. */
uint32_t observation_number(uint64_t hash, bool *is_new)
{
	if (count * 2 >= table_size)
		grow();
	uint32_t at = find_slot(hash);
	*is_new = !table[at].number;
	if (*is_new) {
		table[at].hash = hash;
		table[at].number = ++count;
	}
	return table[at].number;
}

static void add(uint32_t image, uint64_t seq)
{
	if (group.image != image || group.opened == MAX_BATCH || group.looked == MAX_BATCH)
		observations_flush();
	group.image = image;
	group.seq = seq;
}

void observation_opened(uint32_t image, uint64_t seq, uint32_t number)
{
	add(image, seq);
	group.opening[group.opened].seq = seq;
	group.opening[group.opened++].number = number;
}

void observation_looked(uint32_t image, uint64_t seq, uint32_t number)
{
	add(image, seq);
	group.look[group.looked++] = number;
}

void observations_flush(void)
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
