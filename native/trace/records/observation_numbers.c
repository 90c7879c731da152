/* Observations: what programs see of files (an open for reading, or a query).
 *
 * Most programs of a run see the same files, so each distinct observation is described once (R_OPEN or
 * R_LOOK with a number). Who made it is written as numbers, many in one record (R_SEEN): this keeps traces
 * of large builds small. */
#include "records/records.h"

#include <stdlib.h>

#define MAX_BATCH 2048 /* written in one record */

static struct observation {
	uint64_t hash;
	uint32_t number; /* 0: an empty slot */
} *table;
static uint32_t table_size, count;

static struct {
	uint32_t image, opened, looked; /* which image, and how many of each */
	uint64_t seq;			/* of the last observation */
	struct {
		uint64_t seq;
		uint32_t number;
	} opening[MAX_BATCH];
	uint32_t look[MAX_BATCH];
} group;

/* Open addressing with linear probing; the table is at most half full. */
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

/* The number of an observation. It is identified by its 64-bit hash alone, like what one image has seen
 * (tasks.c). */
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

/* A batch belongs to one image: another image, or a full batch, writes it first. */
static void add(uint32_t image, uint64_t seq)
{
	if (group.image != image || group.opened == MAX_BATCH || group.looked == MAX_BATCH)
		observations_flush();
	group.image = image;
	group.seq = seq;
}

/* An open has its own sequence number: the state of the file at that moment counts. */
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

/* Called before any other record of an image, so that what it saw stands before what it did. */
void observations_flush(void)
{
	uint32_t opened = group.opened, looked = group.looked;
	group.opened = group.looked = 0; /* first: out_begin may call this function again */
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
