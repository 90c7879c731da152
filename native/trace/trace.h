/* clew-trace: runs a command and writes down what it touches.
 *
 * main.c      options, the first process, the loop over stops
 * filter.c    which system calls stop
 * syscalls.c     the table of those calls
 * syscall_entry.c  what is done before each
 * syscall_exit.c   what is done after it
 * records.c  the records of what was seen
 * observations.c    what was seen of files, each described once
 * images.c    exec: what is loaded, what is inherited
 * descriptors.c      what a program is started with: its descriptors, its limits
 * output_ranges.c     which bytes of the output came from which program
 * reuse.c    whether a program need be started at all
 * stack.c    the variables of a new program, and the library injected into it
 * detours.c   calls of the loader and the C library, led through the injected library
 * early_setup.c     the library at work before its constructor runs
 * tasks.c     threads and processes
 * rings.c     what the injected library recorded
 * isolation.c keeping a command that is not trusted away from the tracer
 * snapshots.c    keeping content that is about to be changed
 * pinning.c   a pinned wall clock and pinned randomness: clocks.c, timeouts.c, random.c, random_devices.c
 * serial.c    one process after the other
 * memory.c    strings and paths of the traced processes
 * trace_file.c       the form of a record (docs/formats/trace.md)
 */
#ifndef CLEW_TRACE_H
#define CLEW_TRACE_H

#include <sys/ptrace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/user.h>

#include "wire.h"

#define PATH_MAX_ 4096
#define LOADED 0x80000000u /* among an open's flags: the kernel opened it, to run it */

/* ---- the records ---- */
enum record {
	R_SPAWN = 1, R_EXEC, R_ENV, R_EXIT, R_OPEN, R_LOOK, R_CHANGE, R_FD, R_NET, R_SAVED, R_GAP, R_FETCH,
	R_MARK, R_SIGNAL, R_HELD, R_REUSED, R_ASK, R_PLACE, R_SEEN,
};
void out_open(const char *path, int notify);
void out_begin(enum record type, uint64_t seq, uint32_t image, unsigned fields);
void out_int(int64_t value);
void out_text(const char *text); /* NULL becomes nil */
void out_bytes(const void *data, size_t size);
void out_array(unsigned count);
void out_facts(const struct clew_facts *facts); /* NULL becomes nil */
void out_end(void);
const void *out_withdraw(size_t *size); /* ends the record, and takes it back out of the trace */
void out_flush(void);

/* ---- system calls ---- */
enum operation {
	OP_NONE, OP_OPEN, OP_CREAT, OP_OPENAT2, OP_STAT, OP_STATX, OP_ACCESS, OP_READLINK,
	OP_RENAME, OP_LINK, OP_SYMLINK, OP_UNLINK, OP_RMDIR, OP_MKDIR, OP_MKNOD, OP_TRUNCATE,
	OP_FTRUNCATE, OP_META, OP_FMETA, OP_CHDIR, OP_EXEC, OP_CONNECT, OP_BIND, OP_SENDTO, OP_SOCKETCALL,
	OP_ROOT, OP_MOUNT, OP_MEMORY, OP_HANDLE, OP_PTRACE, OP_MAP, OP_SIGNAL,
	OP_GETTIME, OP_TIMEOFDAY, OP_TIME, OP_WAIT, OP_WAITID, OP_GETRANDOM,
	OP_NANOSLEEP, OP_CLOCK_NANOSLEEP, OP_FUTEX, OP_POLL, OP_SELECT, OP_PSELECT,
};
/* Those from CLOCK on hold only where that is pinned. */
enum rule { STOP, PASS, PASS_FLAGS, PASS_NAMED, STOP_ADDRESSED, STOP_SHARED, REFUSE, CLOCK, CLOCK_WALL, CLOCK_TIMED, CLOCK_FUTEX, RANDOM };
struct call {
	int nr, nr32; /* -1: not there */
	enum operation op;
	enum rule rule;
	int8_t dir, path, flags; /* argument numbers; -1: none */
	int8_t dir2, path2;
};
extern const struct call calls[];
extern const unsigned call_count;
const struct call *call_find(uint32_t arch, uint64_t nr);
int filter_install(void);

/* ---- threads and processes ---- */
#define SEED 16
#define KEY 32
struct random_stream { /* a stream of pinned random bytes */
	uint8_t key[KEY];
	uint64_t used, births;
};
struct proc {
	pid_t pid;
	uint32_t image, parent_image;
	struct proc *parent;
	unsigned tasks, children;
	bool execed, gone, other_root;	 /* other_root: another root folder */
	struct proc *memory;		 /* an ancestor whose memory it shares */
	unsigned sharers;		 /* how many share its own */
	bool pipes;			 /* it inherited some */
	char *inherited[8];		 /* files it was started with, open for writing */
	uint32_t slot;
	uint64_t loader; /* where it is; 0: nowhere */
	uint64_t loader_file; /* which file that is: a hash */
	unsigned known;	  /* detours that were made before the library was there */
	unsigned detours; /* how many it has; NO_LIBRARY: it cannot have any yet */
	enum { LIBRARY_INJECTED, LIBRARY_OPENED, EARLY_DONE } early;
	char cwd[PATH_MAX_];
	uint64_t *seen; /* what this image is known to have seen: a set of hashes */
	uint32_t seen_count, seen_size;
	struct { int fd, parent_fd; } shared[4]; /* regular files it reads, and its parent has open as well */
	unsigned shared_count;
	struct proc *next_ring;
	/* which bytes of the output are its own: see output_ranges.c */
	unsigned streams, unknown, holder_exits, descendant_exits;
	bool exit_seen, range_open;
	int io;
	int64_t wrote, others_wrote, began[2];
	struct proc *next_holder;
	int64_t clock;	       /* pinned: how far it has moved here */
	struct child_clock *child_clocks;   /* children whose end was not waited for yet */
	bool has_random_device;	       /* pinned: it has a random device open */
};
struct task {
	pid_t tid;
	struct proc *proc;
	const struct call *call; /* a call whose end is awaited */
	struct __ptrace_syscall_info info;
	uint64_t seq;
	char *path, *path2;
	bool existed;
	struct early *early; /* its call was replaced_argument by one that maps the library's pages */
	struct clew_facts before;
	struct image *image; /* an exec whose end is awaited */
	bool awaits_parent; /* its first stop came before its parent's word of it */
	struct random_stream random;
	int64_t clock, timeout; /* pinned: how far it has moved here; how long a wait may take */
	int replaced_argument;		 /* the argument that is to be put back, from 1 */
	enum { DEVICE_NONE, DEVICE_READ, DEVICE_CLOSED } device;
	int64_t answer;
	struct proc *waits_for; /* one after the other: it goes on when this one has ended */
	struct task *next_held;
	struct task *next;
};
struct task *task_find(pid_t tid);
struct task *task_new(pid_t tid, struct proc *proc);
void task_drop(struct task *task);
struct proc *proc_new(pid_t pid, struct proc *parent, uint64_t seq);
void proc_put(struct proc *proc);
bool proc_first_time(struct proc *proc, uint64_t hash); /* whether this is news */
void proc_clear_seen(struct proc *proc);
uint32_t image_number(void);
unsigned task_count(void);
unsigned proc_count_others(const struct proc *proc); /* how many run, beside it and those it came from */
void procs_each(void (*each)(struct proc *proc, void *with), void *with);
void tasks_visit(void (*visit)(struct task *task, const void *with), const void *with);
uint64_t hash_bytes(uint64_t seed, const void *data, size_t size);

/* ---- what was seen of files ---- */
uint32_t observation_number(uint64_t hash, bool *is_new); /* news: it has not been described yet */
void observation_opened(uint32_t image, uint64_t seq, uint32_t number);
void observation_looked(uint32_t image, uint64_t seq, uint32_t number);
void observations_flush(void);

/* ---- the injected library's rings ---- */
extern uint64_t *sequence;
uint64_t next_seq(void);
void rings_open(void);
const char *rings_path(void);
int rings_file(void);
void rings_set_holder(pid_t pid);
void ring_assign(struct proc *proc);
void ring_release(struct proc *proc);
void ring_set_up_child(struct proc *proc); /* writes the slot into the process's memory */
void ring_share(struct proc *parent, struct proc *child);
void ring_unshare(struct proc *child);
void ring_drain(struct proc *proc);
void rings_drain(void);
bool is_ring_path(const char *path);
#define NO_LIBRARY (CLEW_MAX_DETOURS + 1)
void detour_try(struct task *task);
uint64_t detour_site(const struct task *task); /* where the two instructions are that make this call; 0: none to change */
void detours_install_known(struct task *task);
void early_set_library(const char *path);
bool early_replace_call(struct task *task);
void early_finish(struct task *task, int64_t result);

/* ---- a command that is not trusted ---- */
void close_all_but(int *kept, unsigned count);
pid_t holder_start(int library, int ring);

/* ---- memory and paths ---- */
ssize_t peek(pid_t pid, uint64_t address, void *to, size_t size);
bool poke(pid_t pid, uint64_t address, const void *from, size_t size);
char *peek_text(pid_t pid, uint64_t address);
char *absolute(struct task *task, int dirfd, const char *path); /* takes nothing, returns new */
char *canonical(const char *path, bool follow);
void strip_deleted_mark(char *path);
bool link_path(const char *link, char *to);
bool descriptor_path(pid_t pid, int fd, char *to);
bool facts_of(const char *path, bool follow, struct clew_facts *facts);
void facts_from(const struct stat *st, struct clew_facts *facts);

/* ---- content about to change ---- */
struct snapshot_options {
	const char *folder; /* NULL: nothing is saved */
	const char **exclude;
	unsigned exclude_count;
};
void snapshots_start(const struct snapshot_options *options);
void snapshots_note_read(const struct clew_facts *facts);
void snapshots_note_write(const struct clew_facts *facts);
void snapshot_before_change(struct proc *proc, const char *path, bool loses_name, bool keeps_bytes);

/* ---- what happens at each stop ---- */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif
static inline uint64_t argument(const struct task *task, int n) { return n < 0 ? 0 : task->info.seccomp.args[n]; }
uint32_t open_flags(struct task *task);
bool syscall_enter(struct task *task); /* whether its end is of interest */
void syscall_leave(struct task *task, int64_t result);
void emit_open(struct proc *proc, uint64_t seq, const char *path, const char *real, uint32_t flags, int error,
	       const struct clew_facts *facts, const struct clew_facts *before);
void emit_look(struct proc *proc, uint64_t seq, enum clew_kind kind, const char *path, int error, uint32_t flags,
	       const struct clew_facts *facts, const char *target);
void emit_change(struct task *task, const char *what, const char *now);
void emit_net(struct task *task, const char *what, uint64_t address, uint64_t size, int64_t result);
void emit_gap(struct proc *proc, const char *what, const char *path, const char *why);
void emit_signal(struct task *task);
void emit_state(struct proc *proc, uint64_t seq, const char *path, bool follow);

/* ---- exec ---- */
bool image_enter(struct task *task, const char *path); /* whether its end is of interest */
bool image_outcome_pending(const struct task *task);	       /* an exec whose end the next stop tells */
void image_started(struct task *task);  /* the exec succeeded */
void image_failed(struct task *task); /* it did not */
void image_record_descriptors(struct proc *proc, bool files);
void image_ending(struct proc *proc);

/* ---- the stack of a new program ---- */
struct list {
	char **items;
	unsigned count;
	size_t bytes;
};
void list_out(const struct list *list);
struct stack {
	struct user_regs_struct registers;
	uint64_t at;
	size_t word, items, variables, vector; /* where these begin among the items of the table */
	void *table;
};
void stack_set_library(const char *path);
bool stack_is_library(const char *path);
char *stack_find_library(char *text); /* where its path is named; NULL: nowhere */
bool stack_read(struct stack *stack, pid_t pid);
void stack_variables(const struct stack *stack, pid_t pid, struct list *list);
uint64_t stack_auxv(const struct stack *stack, uint64_t tag); /* 0: nothing */
void stack_hide_auxv(struct stack *stack, pid_t pid, uint64_t tag);
bool stack_inject(struct stack *stack, struct proc *proc, const struct list *list);
void stack_free(struct stack *stack);

/* ---- what a program is started with ---- */
struct descriptor {
	int fd, access_mode;
	char name[PATH_MAX_];
	int64_t offset, size; /* its place in a regular file, and that one's size; -1: no such */
	uint32_t flags;
	int parent_fd; /* the descriptor by which its parent has the very same opening; -1: none */
};
void descriptors_clear(void);
void descriptors_add(struct proc *proc, int fd, int access_mode, const char *name, const struct clew_facts *facts);
void descriptors_after_exec(struct proc *proc);
const struct descriptor *descriptors_all(unsigned *count);
void descriptors_write(void);
void descriptors_record_offsets(struct proc *proc);
void descriptors_record(struct proc *proc);
const char *process_attributes(struct proc *proc);

/* ---- the command's own output ---- */
void output_open(int fd);
unsigned output_streams_of(const struct clew_facts *facts);
void output_positions(int64_t at[2]);
void output_fork(struct proc *proc);
void output_exec(struct proc *proc, unsigned streams);
void output_exiting(struct proc *proc);
void output_end(struct proc *proc);
void output_exited(struct proc *proc);

/* ---- what need not run ---- */
void reuse_open(int fd);
bool reuse_enabled(void);
bool reuse_instead_of_exec(struct task *task, const struct list *arguments, const struct list *variables);

/* ---- pinned clock and randomness ---- */
struct pins {
	bool clock, random;
	int64_t start; /* nanoseconds since the epoch */
	uint8_t seed[SEED];
};
extern struct pins pins;
bool pin_clock(const char *nanoseconds);
bool pin_random(const char *hex);
bool pin_includes(const struct call *call);
void pin_addresses(void);
void pin_task(struct task *maker, struct task *born);
void pin_exec(struct task *task, struct stack *stack); /* a new program; NULL: its stack is unknown */
bool pin_enter(struct task *task);
void call_skip(struct task *task, int64_t result);
void call_set_result(struct task *task, int64_t result);
void argument_set(struct task *task, int n, uint64_t value);
#define SECOND 1000000000ll
bool write_time(struct task *task, uint64_t address, int64_t seconds, int64_t rest);
bool read_time(struct task *task, uint64_t address, int64_t unit, int64_t *nanoseconds); /* unit: of what is not whole seconds */
bool wait_enter(struct task *task);
void wait_leave(struct task *task, int64_t result);
bool clock_enter(struct task *task);
void clock_leave(struct task *task, int64_t result);
void clock_child_ended(struct task *leader);
void clock_free_children(struct proc *proc);
void random_root(struct random_stream *stream);
void random_child(struct random_stream *maker, struct random_stream *born);
void random_exec(struct random_stream *stream);
void random_bytes(struct random_stream *stream, void *to, size_t size);
int64_t random_fill(struct task *task, uint64_t address, uint64_t size);
bool getrandom_enter(struct task *task);
void device_opened(struct task *task, int fd);
void devices_inherited(struct proc *proc);
void device_stop(struct task *task, const struct __ptrace_syscall_info *info);

/* ---- one process after the other ---- */
void serial_start(void);
bool serial_holds(struct task *parent, struct proc *child);
void serial_ended(const struct proc *proc); /* and all it started */
void serial_gone(struct task *task);
void serial_tick(void);
void resume(struct task *task, int request, int signal);

void fail(const char *what) __attribute__((noreturn));
void *must(void *memory);

#endif
