/* Writing the trace: the form of a record, what is recorded, and content that is kept. */
#ifndef CLEW_RECORDS_H
#define CLEW_RECORDS_H

#include "tasks.h"

#define LOADED 0x80000000u /* among the flags of an open: the kernel opened the file, to run it */

/* trace_file.c. The numbers are part of the format (docs/formats/trace.md). */
enum record {
	R_SPAWN = 1, R_EXEC, R_ENV, R_EXIT, R_OPEN, R_LOOK, R_CHANGE, R_FD, R_NET, R_SAVED, R_GAP, R_FETCH,
	R_MARK, R_SIGNAL, R_HELD, R_REUSED, R_ASK, R_PLACE, R_SEEN, R_STEP,
};
void out_open(const char *path, int notify);
void out_limit(uint64_t bytes); /* of the whole trace */
void out_begin(enum record type, uint64_t seq, uint32_t image, unsigned fields);
void out_int(int64_t value);
void out_text(const char *text); /* NULL becomes nil */
void out_bytes(const void *data, size_t size);
void out_array(unsigned count);
void out_facts(const struct clew_facts *facts); /* NULL becomes nil */
void out_end(void);
const void *out_withdraw(size_t *size); /* ends the record and removes it from the trace */
void out_flush(void);

/* records.c */
void emit_open(struct proc *proc, uint64_t seq, const char *path, const char *real, uint32_t flags, int error,
	       const struct clew_facts *facts, const struct clew_facts *before);
void emit_look(struct proc *proc, uint64_t seq, enum clew_kind kind, const char *path, int error, uint32_t flags,
	       const struct clew_facts *facts, const char *target);
void emit_change(struct task *task, const char *what, const char *now);
void emit_net(struct task *task, const char *what, uint64_t address, uint64_t size, int64_t result);
void emit_gap(struct proc *proc, const char *what, const char *path, const char *why);
void emit_signal(struct task *task);
void emit_state(struct proc *proc, uint64_t seq, const char *path, bool follow);

/* observation_numbers.c */
uint32_t observation_number(uint64_t hash, bool *is_new); /* is_new: it must be described */
void observation_opened(uint32_t image, uint64_t seq, uint32_t number);
void observation_looked(uint32_t image, uint64_t seq, uint32_t number);
void observations_flush(void);

/* snapshots.c */
struct snapshot_options {
	const char *folder; /* NULL: nothing is kept */
	const char **exclude;
	unsigned exclude_count;
};
void snapshots_start(const struct snapshot_options *options);
void snapshots_note_read(const struct clew_facts *facts);
void snapshots_note_write(const struct clew_facts *facts);
void snapshot_before_change(struct proc *proc, const char *path, bool loses_name, bool keeps_bytes);

/* printed_ranges.c */
void output_open(int fd);
unsigned output_streams_of(const struct clew_facts *facts);
void output_positions(int64_t at[2]); /* of stdout and stderr; -1: unknown */
void output_fork(struct proc *proc);
void output_exec(struct proc *proc, unsigned streams);
void output_exiting(struct proc *proc);
void output_end(struct proc *proc);
void output_exited(struct proc *proc);

#endif
