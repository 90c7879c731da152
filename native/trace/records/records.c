/* Builds the records of opens, queries, changes, signals and connections.
 *
 * What an image observes is recorded once per image: a program that stats a file a thousand times in the
 * same state learns nothing new. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"
#include "records/records.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Leaves out the padding at the end of the struct: its bytes are undefined. */
static uint64_t hash_facts(uint64_t hash, const struct clew_facts *facts)
{
	return facts ? hash_bytes(hash, facts, offsetof(struct clew_facts, mode) + sizeof facts->mode) : hash;
}

static uint64_t hash_text(uint64_t hash, const char *text) { return text ? hash_bytes(hash, text, strlen(text)) : hash; }

/* number 0: an open for writing, which is never shared between images. */
static void write_open(uint64_t seq, uint32_t image, const char *path, const char *real, uint32_t flags,
		       const struct clew_facts *facts, const struct clew_facts *before, uint32_t number)
{
	out_begin(R_OPEN, seq, image, 6);
	out_text(path);
	out_text(real);
	out_int(flags);
	out_facts(facts);
	out_facts(before);
	out_int(number);
	out_end();
}

/* Records what is at a path, as if the program had called stat. */
void emit_state(struct proc *proc, uint64_t seq, const char *path, bool follow)
{
	struct clew_facts facts;
	bool there = facts_of(path, follow, &facts);
	emit_look(proc, seq, CLEW_STAT, path, there ? 0 : errno, !follow, there ? &facts : NULL, NULL);
}

/* An open that failed is a query. One for writing is always recorded; one for reading is an observation. */
void emit_open(struct proc *proc, uint64_t seq, const char *path, const char *real, uint32_t flags, int error,
	       const struct clew_facts *facts, const struct clew_facts *before)
{
	bool is_new;
	if (stack_is_library(path))
		return; /* the tracer injected it: not an input of the program */
	if (error) {
		emit_look(proc, seq, CLEW_OPEN, path, error, flags, NULL, NULL);
		if (error != ENOENT)
			emit_state(proc, seq, path, false); /* what made it fail */
		return;
	}
	if (!(flags & O_PATH) && (flags & O_ACCMODE || flags & O_TRUNC)) {
		write_open(seq, proc->image, path, real, flags, facts, before, 0);
		return;
	}
	if (facts && !(flags & O_PATH))
		snapshots_note_read(facts);
	/* The state is part of the hash: a file that changed between two opens is recorded twice. */
	uint64_t hash = hash_facts(hash_text(hash_text(R_OPEN + flags * 1021ull, path), real), facts);
	if (!proc_first_time(proc, hash))
		return;
	uint32_t number = observation_number(hash, &is_new);
	if (is_new)
		write_open(next_seq(), 0, path, real, flags, facts, NULL, number);
	observation_opened(proc->image, seq, number);
}

/* An absent file is one fact, by whichever call it was learnt, so the kind of call is not part of the hash. */
static uint64_t hash_look(enum clew_kind kind, const char *path, int error, uint32_t flags)
{
	uint64_t asked = error == ENOENT || error == ENOTDIR ? R_GAP : kind + flags * 1021ull;
	return hash_text(asked + (uint64_t)error * 31, path);
}

void emit_look(struct proc *proc, uint64_t seq, enum clew_kind kind, const char *path, int error, uint32_t flags,
	       const struct clew_facts *facts, const char *target)
{
	bool is_new;
	uint64_t hash = hash_text(hash_facts(hash_look(kind, path, error, flags), facts), target);
	if (!proc_first_time(proc, hash))
		return;
	uint32_t number = observation_number(hash, &is_new);
	if (is_new) {
		out_begin(R_LOOK, next_seq(), 0, 7);
		out_int(kind);
		out_text(path);
		out_int(error);
		out_int(flags);
		out_facts(facts);
		out_text(target);
		out_int(number);
		out_end();
	}
	observation_looked(proc->image, seq, number);
}

/* A gap: something that the tracer could not see, for docs/reference/witness.md. */
void emit_gap(struct proc *proc, const char *what, const char *path, const char *why)
{
	out_begin(R_GAP, next_seq(), proc->image, 3);
	out_text(what);
	out_text(path);
	out_text(why);
	out_end();
}

/* `now`: the path whose state after the call is recorded. */
void emit_change(struct task *task, const char *what, const char *now)
{
	struct clew_facts after;
	bool there = now && facts_of(now, false, &after);
	out_begin(R_CHANGE, task->seq, task->proc->image, 5);
	out_text(what);
	out_text(task->path);
	out_text(task->path2);
	out_facts(task->existed ? &task->before : NULL);
	out_facts(there ? &after : NULL);
	out_end();
}

struct signalling {
	struct proc *from;
	int signal;
	pid_t group; /* 0: all processes */
};

static void emit_signal_to(struct proc *proc, void *with)
{
	struct signalling *sent = with;
	if (proc == sent->from || (sent->group && getpgid(proc->pid) != sent->group))
		return;
	out_begin(R_SIGNAL, next_seq(), sent->from->image, 2);
	out_int(sent->signal);
	out_int(proc->image);
	out_end();
}

/* The process that a pidfd refers to. */
static pid_t pidfd_pid(pid_t pid, int fd)
{
	char path[64], text[512], *line;
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, fd);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	text[size > 0 ? size : 0] = 0;
	return (line = strstr(text, "\nPid:")) ? atoi(line + 5) : 0;
}

/* Records a signal for each traced process that it reaches. Before it is sent, because it may end the
 * receiver. Positive: one process; 0: the own group; -1: all; other negative: that group. */
void emit_signal(struct task *task)
{
	struct signalling sent = {task->proc, (int)argument(task, 1), 0};
	pid_t to = (pid_t)argument(task, 0);
	if (task->call->nr == 424) /* pidfd_send_signal */
		to = pidfd_pid(task->proc->pid, to);
	struct task *one = to > 0 ? task_find(to) : NULL;
	if (one && one->proc) {
		emit_signal_to(one->proc, &sent);
	} else if (to <= 0) {
		sent.group = to == -1 ? 0 : to ? -to : getpgid(task->proc->pid);
		procs_each(emit_signal_to, &sent);
	}
}

/* SOCK_STREAM, SOCK_DGRAM …; 0: unknown. Asked of a copy of the descriptor of the process (pidfd_getfd). For a
 * bind the address is read back as well: the kernel chose the port where none was given. */
static int socket_type(pid_t pid, int fd, struct sockaddr_storage *bound, uint64_t *bound_size)
{
	int type = 0, process = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	socklen_t size = sizeof type, name_size = sizeof *bound;
	if (copy < 0 || getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &size))
		type = 0;
	if (copy >= 0 && bound && !getsockname(copy, (struct sockaddr *)bound, &name_size) && name_size <= sizeof *bound)
		*bound_size = name_size;
	if (copy >= 0)
		close(copy);
	if (process >= 0)
		close(process);
	return type;
}

/* Each peer is recorded once per image. EINPROGRESS is a connection too: a non-blocking connect returns before
 * it is made. */
void emit_net(struct task *task, const char *what, uint64_t address, uint64_t size, int64_t result)
{
	struct sockaddr_storage peer;
	if (!address || size < sizeof peer.ss_family || size > sizeof peer)
		return;
	if (peek(task->tid, address, &peer, size) != (ssize_t)size)
		return;
	if (result < 0 && result != -EINPROGRESS && result != -EINTR)
		return;
	bool binds = what[0] == 'b';
	int type = socket_type(task->proc->pid, (int)argument(task, 0), binds ? &peer : NULL, &size);
	uint64_t hash = hash_bytes(R_NET + (uint64_t)what[0], &peer, size);
	if (peer.ss_family == AF_UNSPEC || peer.ss_family == AF_NETLINK || !proc_first_time(task->proc, hash))
		return;
	out_begin(R_NET, next_seq(), task->proc->image, 3);
	out_text(what);
	out_bytes(&peer, size);
	out_int(type);
	out_end();
}
