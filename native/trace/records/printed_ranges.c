/* Which bytes of the command's output came from which program.
 *
 * The tracer notes the position that the output has reached when a program begins and when it ends. The
 * bytes between belong to it and its descendants, unless another process that has the output open wrote
 * meanwhile. That is noticed by how many bytes each of these has written in total (/proc/PID/io). Only
 * programs that have the output open are looked at: a program whose output goes elsewhere costs nothing. */
#include "library/library.h"
#include "records/records.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE 2000 /* times 100 microseconds: how long to wait for a reader that is in the middle of a read */

enum { NONE, PIPE, TERMINAL, SAME };

/* Memory shared with the process that reads the output; see docs/formats/trace.md. */
struct output_state {
	uint32_t kind[2]; /* of descriptors 1 and 2 */
	int32_t master;	  /* the master end of the terminal */
	uint32_t pad;
	struct {
		uint64_t taken; /* bytes read so far */
		uint64_t busy;	/* a read is in progress */
	} of[2];
};

static volatile struct output_state *output;
/* Device and inode of the two streams: how descriptors of other processes are recognized. */
static struct stat identity[2];
static struct proc *holders; /* all processes that have the output open */
static unsigned holder_exits;	     /* ends of holders that had written something */
static unsigned unknown;     /* how often a byte count could not be read: from then on nothing is certain */

void output_open(int fd)
{
	void *memory = mmap(NULL, sizeof *output, PROT_READ, MAP_SHARED, fd, 0);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (memory == MAP_FAILED)
		return;
	output = memory;
	/* The command must not inherit the master end of its own terminal. */
	if (output->master >= 0)
		fcntl(output->master, F_SETFD, FD_CLOEXEC);
	for (unsigned n = 0; n < 2; n++)
		if (output->kind[n] != NONE && fstat(1 + (int)n, &identity[n]))
			identity[n].st_ino = 0;
}

/* Which of the two output streams this file is, as a bit; 0: neither. */
unsigned output_streams_of(const struct clew_facts *facts)
{
	for (unsigned n = 0; output && n < 2; n++)
		if ((output->kind[n] == PIPE || output->kind[n] == TERMINAL) && identity[n].st_ino == facts->ino &&
		    identity[n].st_dev == facts->dev)
			return 1u << n;
	return 0;
}

/* How many bytes were written to the stream: those the reader took plus those still in the pipe. The reader
 * takes bytes at any time, so the counters are read before and after, and the answer counts only if they did
 * not change; -1: unknown. */
static int64_t output_position(unsigned n)
{
	if (!output || output->kind[n] == NONE || output->kind[n] == SAME)
		return -1;
	for (unsigned i = 0; i < PATIENCE; i++) {
		struct pollfd terminal = {output->master, POLLIN, 0};
		int left = 0;
		uint64_t taken = __atomic_load_n(&output->of[n].taken, __ATOMIC_SEQ_CST);
		bool steady = !__atomic_load_n(&output->of[n].busy, __ATOMIC_SEQ_CST);
		/* The buffer of a terminal cannot be measured: wait until the reader has emptied it. */
		if (steady && (output->kind[n] == TERMINAL ? poll(&terminal, 1, 0) == 0 : !ioctl(1 + (int)n, FIONREAD, &left)) &&
		    !__atomic_load_n(&output->of[n].busy, __ATOMIC_SEQ_CST) &&
		    taken == __atomic_load_n(&output->of[n].taken, __ATOMIC_SEQ_CST))
			return (int64_t)taken + left;
		usleep(100);
	}
	return -1;
}

void output_positions(int64_t at[2])
{
	for (unsigned n = 0; n < 2; n++)
		at[n] = output_position(n);
}

/* Bytes that a process has written in total, to any file, with those of the children it waited for; the last
 * known value when /proc/PID/io cannot be read. The file stays open: it is read at every start and end of a
 * program. */
static int64_t bytes_written(struct proc *proc)
{
	char path[64], text[256], *at;
	if (proc->io <= 0) {
		snprintf(path, sizeof path, "/proc/%d/io", proc->pid);
		proc->io = open(path, O_RDONLY | O_CLOEXEC);
	}
	ssize_t size = proc->io > 0 ? pread(proc->io, text, sizeof text - 1, 0) : -1;
	if (size <= 0) {
		unknown++;
		return proc->wrote;
	}
	text[size] = 0;
	at = strstr(text, "wchar:");
	return proc->wrote = at ? strtoll(at + 6, NULL, 10) : proc->wrote;
}

/* Whether `proc` is `from` or descends from it. */
static bool is_descendant(const struct proc *proc, const struct proc *from)
{
	while (proc && proc != from)
		proc = proc->parent;
	return proc;
}

/* Total bytes written by all other holders that do not descend from this one. */
static int64_t bytes_written_by_others(const struct proc *proc)
{
	int64_t all = 0;
	for (struct proc *at = holders; at; at = at->next_holder)
		if (!is_descendant(at, proc))
			all += bytes_written(at);
	return all;
}

/* Adds a process to the holders, once. */
static void add_holder(struct proc *proc, unsigned streams)
{
	if (!proc->streams) {
		proc->next_holder = holders;
		holders = proc;
	}
	proc->streams = streams;
}

/* A holder that ended takes its byte count with it, so its end is counted instead, for itself and all its
 * ancestors. */
static void remove_holder(struct proc *proc)
{
	struct proc **at = &holders;
	while (*at && *at != proc)
		at = &(*at)->next_holder;
	if (*at)
		*at = proc->next_holder;
	if (proc->io > 0)
		close(proc->io);
	proc->io = 0;
	proc->streams = 0;
	if (!proc->wrote)
		return;
	holder_exits++;
	for (struct proc *above = proc->parent; above; above = above->parent)
		above->descendant_exits++;
}

/* A child has the output of its parent, until it becomes another program. */
void output_fork(struct proc *proc)
{
	if (output && proc->parent && proc->parent->streams)
		add_holder(proc, proc->parent->streams);
}

/* A program begins with these streams open: note where the output stands and what others have written. */
void output_exec(struct proc *proc, unsigned streams)
{
	if (!output)
		return;
	if (!streams && proc->streams) {
		bytes_written(proc);
		remove_holder(proc);
	}
	if (!streams)
		return;
	add_holder(proc, streams);
	proc->range_open = true;
	proc->others_wrote = bytes_written_by_others(proc);
	proc->unknown = unknown;
	proc->holder_exits = holder_exits - proc->descendant_exits;
	output_positions(proc->began);
	out_begin(R_MARK, next_seq(), proc->image, 4);
	out_int(0);
	out_int(1);
	out_int(proc->began[0]);
	out_int(proc->began[1]);
	out_end();
}

/* The image ends: by exec, or because the process is about to exit. At the exit stop no process can have
 * waited for it yet, so its bytes are not yet counted as those of its parent. */
void output_end(struct proc *proc)
{
	if (!proc->range_open)
		return;
	int64_t now[2];
	output_positions(now);
	/* Nothing was written in this range, so no other process can have written in it. */
	bool silent = now[0] == proc->began[0] && now[1] == proc->began[1];
	bool alone = silent || (bytes_written_by_others(proc) == proc->others_wrote && unknown == proc->unknown &&
				holder_exits - proc->descendant_exits == proc->holder_exits);
	out_begin(R_MARK, next_seq(), proc->image, 4);
	out_int(1);
	out_int(alone);
	out_int(now[0]);
	out_int(now[1]);
	out_end();
	proc->range_open = false;
}

/* The exit stop: the last moment at which the byte count can be read. */
void output_exiting(struct proc *proc)
{
	output_end(proc);
	if (proc->streams)
		bytes_written(proc);
	proc->exit_seen = true;
}

/* The process has ended. */
void output_exited(struct proc *proc)
{
	if (!proc->streams)
		return;
	if (!proc->exit_seen)
		unknown++; /* killed without an exit stop: what it wrote is unknown */
	remove_holder(proc);
}
