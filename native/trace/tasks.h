/* The traced threads (tasks) and processes (procs): the state that all modules share.
 *
 * A task belongs to a proc. A proc runs one image (program) at a time; each exec begins a new image with a
 * new number, by which the records of the trace name it. */
#ifndef CLEW_TASKS_H
#define CLEW_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/user.h>

#include "inject_layout.h"

#define PATH_MAX_ 4096

#define KEY 32
struct random_stream { /* pinned random bytes (random.c) */
	uint8_t key[KEY];
	uint64_t used, births; /* bytes taken; threads and children made */
};
struct proc {
	pid_t pid;
	uint32_t image, parent_image;
	struct proc *parent;
	unsigned tasks, children;    /* that refer to it: it is freed when both are 0 */
	bool execed, gone, other_root; /* it ran exec; it has ended; it has another root directory */
	/* The injected library and its ring (rings.c, detours.c, early_setup.c). */
	struct proc *memory;  /* an ancestor whose memory it shares (vfork); NULL: its memory is its own */
	unsigned sharers;     /* how many processes share its memory */
	struct proc *lent_to; /* the vfork child whose slot is on its page meanwhile */
	bool pipes;	      /* it inherited pipes */
	char *inherited[8];   /* paths of files that it was started with, open for writing */
	uint32_t slot;	      /* its ring; 0: none, traced by stops */
	uint32_t second_slot; /* a ring into which it may have written as well; 0: none */
	uint64_t loader;      /* address of the dynamic loader; 0: none */
	uint64_t loader_file; /* identifies the file of the loader: a hash */
	unsigned detours;     /* how many it has; NO_LIBRARY: none are possible yet */
	enum { LIBRARY_INJECTED, LIBRARY_OPENED, LIBRARY_ENTERED, EARLY_DONE } early;
	char cwd[PATH_MAX_]; /* working directory; kept here because most relative paths need it */
	uint64_t *seen;	     /* what this image has observed: a set of hashes */
	uint32_t seen_count, seen_size;
	struct { int fd, parent_fd; } shared[4]; /* regular files that it and its parent read with one offset */
	unsigned shared_count;
	struct proc *next_ring;
	/* Which bytes of the output are its own (printed_ranges.c). */
	unsigned streams, unknown, holder_exits, descendant_exits;
	bool exit_seen, range_open;
	int io;
	int64_t wrote, others_wrote, began[2];
	struct proc *next_holder;
	int64_t clock;
	struct child_clock *child_clocks; /* pinned clock: children that ended and were not waited for */
	bool has_random_device;		  /* pinned randomness: it has a random device open */
};
struct task {
	pid_t tid;
	struct proc *proc;	 /* NULL: the event of its parent has not come yet */
	const struct call *call; /* the call whose return is awaited */
	struct __ptrace_syscall_info info;
	uint64_t seq;	    /* taken when the call was entered: that is when it counts */
	char *path, *path2; /* the paths of the call, owned by the task */
	bool existed;	    /* there was a file before the call, in the state `before` */
	struct clew_facts before;
	struct image *image; /* the exec whose outcome is awaited */
	bool awaits_parent;  /* its first stop came before the event of its parent */
	struct random_stream random;
	int64_t clock, timeout; /* pinned clock: nanoseconds it has moved; the timeout of the current wait */
	int replaced_argument;	/* which argument must be put back, counted from 1; 0: none */
	enum { DEVICE_NONE, DEVICE_READ, DEVICE_CLOSED } device;
	int64_t answer;		/* the result of a read from a random device */
	struct proc *waits_for; /* serial mode: it goes on when this process has ended */
	struct task *next_held; /* serial mode: the task that was held before this one */
	struct task *next;	/* in the hash table */
};
struct task *task_find(pid_t tid);
struct task *task_new(pid_t tid, struct proc *proc);
void task_drop(struct task *task);
unsigned task_count(void);
void tasks_visit(void (*visit)(struct task *task, const void *with), const void *with);
struct proc *proc_new(pid_t pid, struct proc *parent, uint64_t seq);
void proc_put(struct proc *proc);
bool proc_first_time(struct proc *proc, uint64_t hash); /* adds what the image observed; false: known */
void proc_clear_seen(struct proc *proc);
unsigned proc_count_others(const struct proc *proc);
void procs_each(void (*each)(struct proc *proc, void *with), void *with);
uint32_t image_number(void); /* a new one */
uint64_t hash_bytes(uint64_t seed, const void *data, size_t size);

/* ptrace_stops.c and main.c */
void resume(struct task *task, int request, int signal);
void fail(const char *what) __attribute__((noreturn)); /* prints errno and exits with 125 */
void *must(void *memory);			       /* fails if an allocation did */

/* process_order.c: one process after the other */
void serial_start(void);
bool serial_holds(struct task *parent, struct proc *child);
void serial_ended(const struct proc *proc);
void serial_gone(struct task *task);
void serial_tick(void);

#endif
