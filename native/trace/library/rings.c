/* The rings: shared memory in which the injected library records calls, one slot per process.
 *
 * The tracer drains a ring at every stop of its process, before every change by any process, and at every
 * tick. Processes can write anything into this memory, so nothing in it is trusted. */
#include "library/library.h"
#include "memory.h"
#include "records/records.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t local_sequence; /* the sequence counter when there is no shared file */
uint64_t *sequence = &local_sequence;

static char path[64];
static int file = -1;
static pid_t holder; /* through whose /proc `path` leads */
static struct clew_facts file_facts;
static uint8_t *base;
/* The process of each slot; slots of processes that ended are used again. */
static struct proc *owners[CLEW_SLOTS];
static uint32_t highest, free_slots[CLEW_SLOTS], free_count;

/* Atomic: the libraries of all processes count with the same counter. */
uint64_t next_seq(void) { return __atomic_add_fetch(sequence, 1, __ATOMIC_SEQ_CST); }

/* The file is a memfd without a name: processes open it through /proc, and it disappears with the tracer,
 * however that ends. Its size is sealed: a process that truncated it would kill the tracer with SIGBUS. Where
 * memory cannot be shared, every process is traced by stops: slower, and nothing is lost. */
void rings_open(void)
{
	size_t size = (size_t)CLEW_SLOTS * CLEW_SLOT_SIZE;
	int fd = memfd_create("clew", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return;
	base = memory;
	struct clew_head *head = memory;
	head->magic = CLEW_MAGIC;
	sequence = &head->seq;
	file = fd;
	struct stat st;
	if (!fstat(fd, &st))
		facts_from(&st, &file_facts);
	rings_set_holder(getpid());
}

int rings_file(void) { return file; }

/* Names the process through whose /proc the file is opened: the tracer or the holder (tracer_protection.c). */
void rings_set_holder(pid_t pid)
{
	holder = pid;
	if (file >= 0)
		snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
}

pid_t rings_holder(void) { return holder; }

const char *rings_path(void) { return path; }
bool is_ring_path(const char *other) { return path[0] && !strcmp(path, other); }
bool is_ring_file(const struct clew_facts *facts) { return facts->dev == file_facts.dev && facts->ino == file_facts.ino; }

static struct clew_ring *ring_at(uint32_t slot) { return (struct clew_ring *)(base + (size_t)slot * CLEW_SLOT_SIZE); }

/* Gives a process a slot. When all are taken it has none and is traced by stops. */
void ring_assign(struct proc *proc)
{
	if (!base || proc->slot)
		return;
	if (free_count)
		proc->slot = free_slots[--free_count];
	else if (highest + 1 < CLEW_SLOTS)
		proc->slot = ++highest;
	if (proc->slot)
		owners[proc->slot] = proc;
}

/* A record that a thread began and never finished must not reach the next owner. All else was cleared when it
 * was read, and touching it again would cost a page fault per page. */
static void ring_clear(struct clew_ring *ring)
{
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED), at = tail % CLEW_DATA;
	uint64_t left = __atomic_load_n(&ring->head, __ATOMIC_RELAXED) - tail;
	if (left > CLEW_DATA) { /* no library wrote that: clear everything */
		left = CLEW_DATA;
		at = 0;
	}
	uint64_t first = left < CLEW_DATA - at ? left : CLEW_DATA - at;
	memset(ring->data + at, 0, first);
	memset(ring->data, 0, left - first);
	ring->head = ring->tail = 0;
}

static void release_slot(uint32_t *slot)
{
	if (!*slot)
		return;
	ring_clear(ring_at(*slot));
	owners[*slot] = NULL;
	free_slots[free_count++] = *slot;
	*slot = 0;
}

/* Drains first: the last records of the process are still in there. */
void ring_release(struct proc *proc)
{
	ring_drain(proc);
	release_slot(&proc->slot);
	release_slot(&proc->second_slot);
}

/* Writes the slot into the page of the process; false: the library is not set up there. */
static bool write_slot(const struct proc *proc, uint32_t slot)
{
	struct clew_local local;
	return peek(proc->pid, CLEW_LOCAL, &local, sizeof local) == sizeof local && local.magic == CLEW_MAGIC &&
	       poke(proc->pid, CLEW_LOCAL + offsetof(struct clew_local, slot), &slot, sizeof slot);
}

/* A forked child has a copy of the page of its parent, with the slot of the parent: it gets one of its own. It
 * is stopped, so it cannot have recorded anything into the wrong ring. */
void ring_set_up_child(struct proc *proc)
{
	struct clew_local local;
	if (proc->memory || peek(proc->pid, CLEW_LOCAL, &local, sizeof local) != sizeof local || local.magic != CLEW_MAGIC)
		return;
	if (!proc->other_root)
		ring_assign(proc);
	write_slot(proc, proc->sharers ? 0 : proc->slot);
}

/* A child that shares the memory of its parent (vfork) shares the page as well. If the parent waits, with its only
 * thread, all calls are of the child, and the page gets the slot of the child: it may look for a program in every
 * directory of the PATH. Else the page cannot say who makes a call: all get slot 0 and are traced by stops. */
void ring_share(struct proc *parent, struct proc *child, bool parent_waits)
{
	struct proc *owner = parent->memory ? parent->memory : parent;
	child->memory = owner;
	owner->lent_to = NULL;
	if (!owner->sharers++ && parent_waits && parent->tasks == 1) {
		ring_assign(child);
		if (child->slot && write_slot(owner, child->slot))
			owner->lent_to = child;
		else
			ring_release(child);
	}
	if (!owner->lent_to && owner->slot)
		write_slot(owner, 0);
}

/* The child is about to leave the memory of its parent, which goes on before the tracer learns of it: from now on
 * both are traced by stops. */
void ring_take_back(struct proc *child)
{
	struct proc *owner = child->memory;
	if (!owner || owner->lent_to != child)
		return;
	owner->lent_to = NULL;
	write_slot(child, 0);
	ring_drain(child);
}

/* The child has other memory now, or has ended: when it was the last, the owner gets its slot back. If the child
 * was killed, the owner went on with the ring of the child and may be writing into it even now: it keeps both. */
void ring_unshare(struct proc *child)
{
	struct proc *owner = child->memory;
	child->memory = NULL;
	if (!owner)
		return;
	if (owner->lent_to == child) {
		owner->lent_to = NULL;
		ring_drain(child);
		if (!owner->second_slot && !owner->gone) {
			owner->second_slot = child->slot;
			owners[child->slot] = owner;
			child->slot = 0;
		}
	}
	if (owner->sharers && !--owner->sharers && !owner->gone)
		write_slot(owner, owner->slot);
}

/* Writes one record to the trace. `record` is a copy that the processes cannot change; `text` points to its
 * two paths, which they can: only their sizes were checked. */
static void write_record(struct proc *proc, const struct clew_record *record, const char *text)
{
	char given[PATH_MAX_], real[PATH_MAX_], joined[2 * PATH_MAX_];
	memcpy(given, text, record->path_size);
	given[record->path_size] = 0;
	memcpy(real, text + record->path_size, record->real_size);
	real[record->real_size] = 0;
	if (record->kind == CLEW_OPEN)
		strip_deleted_mark(real);
	const char *path = given;
	/* The library records paths as they were passed: the tracer knows the working directory. */
	if (given[0] != '/' && record->kind != CLEW_FETCH) {
		snprintf(joined, sizeof joined, "%s/%s", strcmp(proc->cwd, "/") ? proc->cwd : "", given);
		path = joined;
	}
	/* No file has mode 0: it means that there are no facts. */
	const struct clew_facts *facts = record->facts.mode ? &record->facts : NULL;
	if (record->kind == CLEW_OPEN) {
		emit_open(proc, record->seq, path, record->real_size ? real : NULL, record->flags, -record->result, facts, NULL);
	} else if (record->kind == CLEW_FETCH) {
		out_begin(R_FETCH, record->seq, proc->image, 1);
		out_text(given);
		out_end();
	} else {
		emit_look(proc, record->seq, (enum clew_kind)record->kind, path, -record->result, record->flags, facts,
			  record->real_size ? real : NULL);
	}
}

/* Every size is checked before it is used: a process may have forged the record. */
static bool is_valid(const struct clew_record *record, uint32_t size)
{
	return record->kind > CLEW_PAD && record->kind <= CLEW_FETCH && record->path_size < PATH_MAX_ &&
	       record->real_size < PATH_MAX_ && sizeof *record + record->path_size + record->real_size <= size;
}

/* Reads all finished records of a ring. The processes can write to this memory at any time: every number is
 * read once, checked, and then used from a copy. At most the size of one ring is read per call, so that a
 * process that writes as fast as this reads cannot hold the tracer up. */
static void drain_slot(uint32_t slot, struct proc *proc)
{
	struct clew_ring *ring = ring_at(slot);
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
	uint32_t drained = 0;
	while (tail % 8 == 0 && drained < CLEW_DATA) {
		uint32_t at = (uint32_t)(tail % CLEW_DATA), *first = (uint32_t *)(ring->data + at);
		/* Acquire: the record was complete when its size was written. */
		uint32_t size = __atomic_load_n(first, __ATOMIC_ACQUIRE);
		/* Not written yet, or forged: stop here, and try again at the next drain. */
		if (!size || size % 8 || size > CLEW_DATA - at)
			break;
		if (size >= sizeof(struct clew_record)) {
			struct clew_record record;
			memcpy(&record, ring->data + at, sizeof record);
			/* Compiler barrier: never read the shared record again. */
			__asm__ volatile("" : : : "memory");
			if (is_valid(&record, size))
				write_record(proc, &record, (const char *)(ring->data + at + sizeof record));
		}
		memset(ring->data + at, 0, size); /* size 0 marks a free place for the next record */
		tail += size;
		drained += size;
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
}

void ring_drain(struct proc *proc)
{
	if (proc->slot)
		drain_slot(proc->slot, proc);
	if (proc->second_slot)
		drain_slot(proc->second_slot, proc);
}

/* All rings: before a change, and at every tick. */
void rings_drain(void)
{
	for (uint32_t slot = 1; slot <= highest; slot++)
		if (owners[slot])
			ring_drain(owners[slot]);
}
