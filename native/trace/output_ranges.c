/* Which bytes of the command's own output came from which program.
 *
 * When a program begins and when it ends, the place that the output has reached by then is noted.
 * What lies between is its own, and of all it started, unless somebody else who has the output
 * open wrote meanwhile: that is told by how much each of them had written in all. Only programs
 * that have the output are looked at: nothing is done for one whose output goes other_root. */
#include "trace.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE 2000 /* times 100 microseconds: how long a reader may be in the middle of output */

enum { NONE, PIPE, TERMINAL, SAME };

/* Shared with whoever reads the output; see docs/formats/trace.md. */
struct output_state {
	uint32_t kind[2]; /* of descriptors 1 and 2 */
	int32_t master;	  /* the terminal's other end */
	uint32_t pad;
	struct {
		uint64_t taken; /* bytes that were read so far */
		uint64_t busy;	/* a read is under access_mode */
	} of[2];
};

static volatile struct output_state *output;
static struct stat identity[2];
static struct proc *holders; /* all that have the output */
static unsigned holder_exits;	     /* of holders that had written anything */
static unsigned unknown;     /* how often it could not be asked how much one had written */

void output_open(int fd)
{
	void *memory = mmap(NULL, sizeof *output, PROT_READ, MAP_SHARED, fd, 0);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (memory == MAP_FAILED)
		return;
	output = memory;
	if (output->master >= 0)
		fcntl(output->master, F_SETFD, FD_CLOEXEC);
	for (unsigned n = 0; n < 2; n++)
		if (output->kind[n] != NONE && fstat(1 + (int)n, &identity[n]))
			identity[n].st_ino = 0;
}

/* Which of the two this file is, as a bit. */
unsigned output_streams_of(const struct clew_facts *facts)
{
	for (unsigned n = 0; output && n < 2; n++)
		if ((output->kind[n] == PIPE || output->kind[n] == TERMINAL) && identity[n].st_ino == facts->ino &&
		    identity[n].st_dev == facts->dev)
			return 1u << n;
	return 0;
}

static int64_t output_position(unsigned n)
{
	if (!output || output->kind[n] == NONE || output->kind[n] == SAME)
		return -1;
	for (unsigned i = 0; i < PATIENCE; i++) {
		struct pollfd terminal = {output->master, POLLIN, 0};
		int left = 0;
		uint64_t taken = __atomic_load_n(&output->of[n].taken, __ATOMIC_SEQ_CST);
		bool steady = !__atomic_load_n(&output->of[n].busy, __ATOMIC_SEQ_CST);
		/* A terminal passes on what is written to it only when it is asked for. */
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

/* What the process has written in all, to whatever, and those of its children that it has waited for;
 * the last known where it cannot be asked. */
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

static bool is_descendant(const struct proc *proc, const struct proc *from)
{
	while (proc && proc != from)
		proc = proc->parent;
	return proc;
}

/* What all others have written that have the output. */
static int64_t bytes_written_by_others(const struct proc *proc)
{
	int64_t all = 0;
	for (struct proc *at = holders; at; at = at->next_holder)
		if (!is_descendant(at, proc))
			all += bytes_written(at);
	return all;
}

static void add_holder(struct proc *proc, unsigned streams)
{
	if (!proc->streams) {
		proc->next_holder = holders;
		holders = proc;
	}
	proc->streams = streams;
}

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

/* A child has what its parent has, until it becomes another program. */
void output_fork(struct proc *proc)
{
	if (output && proc->parent && proc->parent->streams)
		add_holder(proc, proc->parent->streams);
}

/* The program that begins holds these streams. */
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

/* The image gives access_mode to the next, or is about to end: then nobody can have waited for it yet, and
 * what it wrote is not yet counted as its parent's. */
void output_end(struct proc *proc)
{
	if (!proc->range_open)
		return;
	int64_t now[2];
	output_positions(now);
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

/* The process is about to end: the last moment to ask how much it wrote. */
void output_exiting(struct proc *proc)
{
	output_end(proc);
	if (proc->streams)
		bytes_written(proc);
	proc->exit_seen = true;
}

void output_exited(struct proc *proc)
{
	if (!proc->streams)
		return;
	if (!proc->exit_seen)
		unknown++; /* killed: nobody could ask */
	remove_holder(proc);
}
