/* Threads (tasks) and processes (procs), and what each image is known to have seen.
 *
 * ptrace reports thread ids, records name images: a task belongs to a proc, and a proc runs one image at a
 * time. A proc outlives its last task while it has children, because they refer to it as their parent. */
#include "exec/exec.h"
#include "pinning/pinning.h"
#include "records/records.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A hash table by thread id; ids are handed out in sequence, so the modulo spreads them well. */
#define BUCKETS 4096

static struct task *table[BUCKETS];
static unsigned live;
static uint32_t images;

struct task *task_find(pid_t tid)
{
	struct task *task = table[(unsigned)tid % BUCKETS];
	while (task && task->tid != tid)
		task = task->next;
	return task;
}

struct task *task_new(pid_t tid, struct proc *proc)
{
	struct task *task = must(calloc(1, sizeof *task));
	task->tid = tid;
	task->proc = proc;
	if (proc)
		proc->tasks++;
	task->next = table[(unsigned)tid % BUCKETS];
	table[(unsigned)tid % BUCKETS] = task;
	live++;
	return task;
}

/* The task has ended. An exec or a serial wait that it was in ends with it. */
void task_drop(struct task *task)
{
	struct task **at = &table[(unsigned)task->tid % BUCKETS];
	while (*at != task)
		at = &(*at)->next;
	*at = task->next;
	if (task->image)
		image_failed(task);
	if (task->waits_for)
		serial_gone(task);
	free(task->path);
	free(task->path2);
	if (task->proc) {
		task->proc->tasks--;
		proc_put(task->proc);
	}
	free(task);
	live--;
}

void tasks_visit(void (*visit)(struct task *task, const void *with), const void *with)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct task *task = table[i], *next; task; task = next) {
			next = task->next; /* visit may drop the task */
			visit(task, with);
		}
}

uint32_t image_number(void) { return ++images; }

unsigned task_count(void) { return live; }

/* Each live process once: by the task of its leader. */
void procs_each(void (*each)(struct proc *proc, void *with), void *with)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct task *task = table[i]; task; task = task->next)
			if (task->proc && task->proc->pid == task->tid && !task->proc->gone)
				each(task->proc, with);
}

static void count_other(struct proc *proc, void *with)
{
	(void)proc;
	unsigned *count = with;
	++*count;
}

/* How many live processes there are besides this one and its ancestors. */
unsigned proc_count_others(const struct proc *proc)
{
	unsigned count = 0;
	procs_each(count_other, &count);
	for (; proc; proc = proc->parent)
		if (!proc->gone)
			count--;
	return count;
}

struct proc *proc_new(pid_t pid, struct proc *parent, uint64_t seq)
{
	struct proc *proc = must(calloc(1, sizeof *proc));
	struct timespec boot;
	/* With the pid it names a process for good: the kernel counts start times on the same clock. */
	clock_gettime(CLOCK_BOOTTIME, &boot);
	proc->pid = pid;
	proc->image = image_number();
	proc->parent = parent;
	if (parent) {
		parent->children++;
		proc->parent_image = parent->image;
		proc->other_root = parent->other_root;
		proc->has_random_device = parent->has_random_device;
		proc->loader = parent->loader;
		proc->loader_file = parent->loader_file;
		proc->detours = parent->detours;
		proc->early = EARLY_DONE; /* it has the set-up of its parent, until it execs */
		memcpy(proc->cwd, parent->cwd, sizeof proc->cwd);
	} else if (!getcwd(proc->cwd, sizeof proc->cwd)) {
		strcpy(proc->cwd, "/");
	}
	out_begin(R_SPAWN, seq, proc->image, 3);
	out_int(proc->parent_image);
	out_int(pid);
	out_int(boot.tv_sec * 1000000000l + boot.tv_nsec);
	out_end();
	return proc;
}

/* Frees a process, and its ancestors, once neither a task nor a child refers to it. */
void proc_put(struct proc *proc)
{
	while (proc && !proc->tasks && !proc->children && proc->gone) {
		struct proc *parent = proc->parent;
		proc_clear_seen(proc);
		clock_free_children(proc);
		serial_ended(proc);
		free(proc);
		if (parent)
			parent->children--;
		proc = parent;
	}
}

void proc_clear_seen(struct proc *proc)
{
	free(proc->seen);
	proc->seen = NULL;
	proc->seen_count = proc->seen_size = 0;
}

/* Fast, not cryptographic: chance collisions of 64 bits are too rare to matter. Eight bytes at a time, because
 * paths are hashed at every call. */
uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *at = data;
	for (; size >= 8; size -= 8, at += 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	while (size--)
		hash = (hash ^ *at++) * 0x100000001b3ull;
	hash ^= hash >> 32;
	return hash * 0xd6e8feb86659fd93ull;
}

/* Adds a hash to what this image has seen; false: it was there. Open addressing with linear probing, at most
 * half full. */
bool proc_first_time(struct proc *proc, uint64_t hash)
{
	hash |= 1; /* 0 marks an empty slot */
	if (proc->seen_count * 2 >= proc->seen_size) {
		uint32_t size = proc->seen_size ? proc->seen_size * 2 : 256;
		uint64_t *larger = must(calloc(size, sizeof *larger));
		for (uint32_t i = 0; i < proc->seen_size; i++)
			if (proc->seen[i]) {
				uint32_t at = (uint32_t)(proc->seen[i] >> 16) & (size - 1);
				while (larger[at])
					at = (at + 1) & (size - 1);
				larger[at] = proc->seen[i];
			}
		free(proc->seen);
		proc->seen = larger;
		proc->seen_size = size;
	}
	uint32_t at = (uint32_t)(hash >> 16) & (proc->seen_size - 1);
	while (proc->seen[at]) {
		if (proc->seen[at] == hash)
			return false;
		at = (at + 1) & (proc->seen_size - 1);
	}
	proc->seen[at] = hash;
	proc->seen_count++;
	return true;
}
