/* What is done when a call stops: before it, and where its answer matters, after it. */
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif
#define MOST_MOVED 1000000 /* files of one folder that was renamed */

/* That nothing is there is one fact, by whichever call it was learnt. */
static bool absent(int error) { return error == ENOENT || error == ENOTDIR; }

static uint64_t hash_absence(const char *path, int error)
{
	return hash_bytes(R_GAP + (uint64_t)error * 31, path, strlen(path));
}

void emit_open(struct proc *proc, uint64_t seq, const char *path, const char *real, uint32_t flags, int error,
	       const struct clew_facts *facts, const struct clew_facts *before)
{
	if (stacks_is_library(path))
		return;
	bool writes = !error && (flags & O_ACCMODE || flags & O_TRUNC);
	if (facts && !writes && !(flags & O_PATH))
		saving_read(facts);
	if (!writes) {
		uint64_t hash = absent(error) ? hash_absence(path, error)
					      : hash_bytes(R_OPEN + (uint64_t)error * 31 + flags * 1021ull, path, strlen(path));
		if (facts)
			hash = hash_bytes(hash, facts, sizeof *facts);
		if (!proc_first(proc, hash))
			return;
	}
	out_begin(R_OPEN, seq, proc->image, 6);
	out_text(path);
	out_text(real);
	out_int(flags);
	out_int(error);
	out_facts(facts);
	out_facts(before);
	out_end();
}

void emit_look(struct proc *proc, uint64_t seq, enum clew_kind kind, const char *path, int error, uint32_t flags,
	       const struct clew_facts *facts, const char *target)
{
	uint64_t hash = absent(error) ? hash_absence(path, error)
				      : hash_bytes(kind + (uint64_t)error * 31 + flags * 1021ull, path, strlen(path));
	if (facts)
		hash = hash_bytes(hash, facts, sizeof *facts);
	if (target)
		hash = hash_bytes(hash, target, strlen(target));
	if (!proc_first(proc, hash))
		return;
	out_begin(R_LOOK, seq, proc->image, 6);
	out_int(kind);
	out_text(path);
	out_int(error);
	out_int(flags);
	out_facts(facts);
	out_text(target);
	out_end();
}

void emit_gap(struct proc *proc, const char *what, const char *path, const char *why)
{
	out_begin(R_GAP, next_seq(), proc->image, 3);
	out_text(what);
	out_text(path);
	out_text(why);
	out_end();
}

static void emit_change(struct task *task, const char *what, const char *now)
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

/* SOCK_STREAM, SOCK_DGRAM …, asked of a copy of the process's own descriptor; 0: unknown. What a
 * socket was bound to is asked as well: the kernel chose the port where none was given. */
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

static uint64_t argument(const struct task *task, int n) { return n < 0 ? 0 : task->info.seccomp.args[n]; }

static void emit_net(struct task *task, const char *what, uint64_t address, uint64_t size, int64_t result)
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
	if (peer.ss_family == AF_UNSPEC || peer.ss_family == AF_NETLINK || !proc_first(task->proc, hash))
		return;
	out_begin(R_NET, next_seq(), task->proc->image, 3);
	out_text(what);
	out_bytes(&peer, size);
	out_int(type);
	out_end();
}

static char *named(struct task *task, int dir, int path)
{
	char *text = peek_text(task->tid, argument(task, path));
	char *whole = text && text[0] ? absolute(task, dir < 0 ? AT_FDCWD : (int)argument(task, dir), text) : NULL;
	free(text);
	return whole;
}

static bool held(struct task *task, int fd)
{
	char path[PATH_MAX_];
	if (!descriptor_path(task->proc->pid, fd, path) || path[0] != '/')
		return false;
	free(task->path);
	task->path = must(strdup(path));
	return true;
}

/* The open's flags, wherever this kind of open has them. */
static uint32_t open_flags(struct task *task)
{
	struct open_how how = {0};
	switch (task->call->op) {
	case OP_CREAT:
		return O_CREAT | O_WRONLY | O_TRUNC;
	case OP_OPENAT2:
		peek(task->tid, argument(task, 2), &how, sizeof how);
		return (uint32_t)how.flags;
	default:
		return (uint32_t)argument(task, task->call->flags);
	}
}

static bool enter_open(struct task *task)
{
	uint32_t flags = open_flags(task);
	if (!task->path || ring_is(task->path))
		return false;
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	if (flags & O_PATH || (!writes && !(flags & O_CREAT)) || (flags & O_TMPFILE) == O_TMPFILE)
		return true;
	rings_drain();
	task->existed = facts_of(task->path, true, &task->before);
	if (!task->existed || !writes || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) || S_ISDIR(task->before.mode))
		return true;
	if ((flags & O_ACCMODE) == O_RDWR && !(flags & O_TRUNC))
		saving_read(&task->before);
	saving_before(task->proc, task->path, false, !(flags & O_TRUNC));
	return true;
}

static void leave_open(struct task *task, int64_t result)
{
	uint32_t flags = open_flags(task);
	char link[64], real[PATH_MAX_];
	struct clew_facts facts;
	if (result < 0) {
		emit_open(task->proc, task->seq, task->path, NULL, flags, (int)-result, NULL, NULL);
		return;
	}
	snprintf(link, sizeof link, "/proc/%d/fd/%d", task->proc->pid, (int)result);
	bool named = descriptor_path(task->proc->pid, (int)result, real) && real[0] == '/';
	bool known = facts_of(link, true, &facts);
	if (!task->path)
		task->path = must(strdup(named ? real : link));
	emit_open(task->proc, task->seq, task->path, named ? real : NULL, flags, 0, known ? &facts : NULL,
		  task->existed ? &task->before : NULL);
	if (known && (flags & O_ACCMODE || flags & O_TRUNC))
		saving_written(&facts);
}

static void enter_name(struct task *task, bool saves)
{
	rings_drain();
	if (!task->path)
		return;
	char *real = canonical(task->path, false);
	free(task->path);
	task->path = real;
	task->existed = facts_of(real, false, &task->before);
	if (saves)
		saving_before(task->proc, real, true, false);
}

/* The first name of a link that follows: it may lead to a file that has no name yet. */
static void enter_followed(struct task *task)
{
	char target[PATH_MAX_];
	task->existed = facts_of(task->path, true, &task->before);
	bool nameless = !strncmp(task->path, "/proc/", 6) && link_path(task->path, target) && target[0] == '/';
	char *followed = nameless ? must(strdup(target)) : canonical(task->path, true);
	free(task->path);
	task->path = followed;
}

static void enter_two_names(struct task *task)
{
	enter_name(task, false);
	task->path2 = named(task, task->call->dir2, task->call->path2);
	if (!task->path2)
		return;
	char *real = canonical(task->path2, false);
	free(task->path2);
	task->path2 = real;
	if (task->call->op == OP_RENAME && !(argument(task, task->call->flags) & RENAME_EXCHANGE))
		saving_before(task->proc, real, true, false);
	if (task->call->op == OP_LINK && argument(task, task->call->flags) & AT_SYMLINK_FOLLOW)
		enter_followed(task);
}

static void enter_content(struct task *task, bool keeps)
{
	rings_drain();
	if (!task->path)
		return;
	char *real = canonical(task->path, true);
	free(task->path);
	task->path = real;
	task->existed = facts_of(real, true, &task->before);
	saving_before(task->proc, real, false, keeps);
}

static void enter_meta(struct task *task)
{
	rings_drain();
	char *real = canonical(task->path, true);
	free(task->path);
	task->path = real;
	task->existed = facts_of(real, true, &task->before);
}

bool call_enter(struct task *task)
{
	const struct call *call = call_find(task->info.arch, task->info.seccomp.nr);
	if (!call)
		return false;
	ring_drain(task->proc);
	free(task->path);
	free(task->path2);
	task->path2 = NULL;
	task->existed = false;
	task->call = call;
	task->seq = next_seq();
	task->path = call->path >= 0 ? named(task, call->dir, call->path) : NULL;
	switch (call->op) {
	case OP_OPEN:
	case OP_CREAT:
	case OP_OPENAT2:
		return enter_open(task);
	case OP_STAT:
	case OP_STATX:
	case OP_ACCESS:
	case OP_READLINK:
		return task->path != NULL;
	case OP_RENAME:
	case OP_LINK:
		/* An empty name stands for the descriptor itself. */
		if (!task->path && call->op == OP_LINK && argument(task, call->flags) & AT_EMPTY_PATH &&
		    asprintf(&task->path, "/proc/%d/fd/%d", task->proc->pid, (int)argument(task, call->dir)) >= 0)
			task->info.seccomp.args[call->flags] |= AT_SYMLINK_FOLLOW;
		enter_two_names(task);
		return task->path && task->path2;
	case OP_SYMLINK:
		enter_name(task, false);
		task->path2 = peek_text(task->tid, argument(task, call->path2));
		return task->path && task->path2;
	case OP_UNLINK:
		enter_name(task, !(call->flags >= 0 && argument(task, call->flags) & AT_REMOVEDIR));
		return task->path != NULL;
	case OP_RMDIR:
	case OP_MKDIR:
	case OP_MKNOD:
		enter_name(task, false);
		return task->path != NULL;
	case OP_TRUNCATE:
		enter_content(task, argument(task, call->flags) > 0);
		return task->path != NULL;
	case OP_FTRUNCATE:
		if (!held(task, (int)argument(task, 0)))
			return false;
		enter_content(task, call->flags < 0 || argument(task, call->flags) > 0);
		return true;
	case OP_META:
		if (!task->path && !(call->dir >= 0 && held(task, (int)argument(task, call->dir))))
			return false;
		enter_meta(task);
		return true;
	case OP_FMETA:
		if (!held(task, (int)argument(task, 0)))
			return false;
		enter_meta(task);
		return true;
	case OP_EXEC:
		if (!task->path && call->dir >= 0)
			held(task, (int)argument(task, call->dir));
		if (task->path)
			image_enter(task, task->path);
		return true;
	case OP_NONE:
		return false;
	default:
		return true;
	}
}

static void leave_socketcall(struct task *task, int64_t result)
{
	uint32_t words[6] = {0};
	uint64_t which = argument(task, 0);
	if (peek(task->tid, argument(task, 1), words, sizeof words) != sizeof words)
		return;
	if (which == 2 || which == 3)
		emit_net(task, which == 2 ? "bind" : "connect", words[1], words[2], result);
	else if (which == 11)
		emit_net(task, "send", words[4], words[5], result);
}

static void leave_look(struct task *task, int64_t result)
{
	const struct call *call = task->call;
	int error = result < 0 ? (int)-result : 0;
	struct clew_facts facts;
	if (call->op == OP_ACCESS) {
		emit_look(task->proc, task->seq, CLEW_ACCESS, task->path, error, (uint32_t)argument(task, call->path + 1), NULL, NULL);
	} else if (call->op == OP_READLINK) {
		char target[PATH_MAX_];
		ssize_t size = result > 0 && result < PATH_MAX_ ? peek(task->tid, argument(task, call->path + 1), target, (size_t)result) : 0;
		target[size > 0 ? size : 0] = 0;
		emit_look(task->proc, task->seq, CLEW_READLINK, task->path, error, 0, NULL, target);
	} else {
		bool link = call->flags == -2 || (call->flags >= 0 && argument(task, call->flags) & AT_SYMLINK_NOFOLLOW);
		bool known = !error && facts_of(task->path, !link, &facts);
		emit_look(task->proc, task->seq, CLEW_STAT, task->path, error, link, known ? &facts : NULL, NULL);
	}
}

static void leave_root(struct task *task)
{
	struct proc *proc = task->proc;
	emit_gap(proc, "root", task->path, "the process sees another file system from here on");
	proc->elsewhere = true;
	ring_drop(proc);
	ring_tell(proc);
}

static void leave_chdir(struct proc *proc)
{
	char link[64];
	snprintf(link, sizeof link, "/proc/%d/cwd", proc->pid);
	ssize_t size = readlink(link, proc->cwd, sizeof proc->cwd - 1);
	if (size > 0) {
		proc->cwd[size] = 0;
	} else {
		strcpy(proc->cwd, link); /* it can still be reached, but has no name */
		emit_gap(proc, "path", NULL, "its working folder has a path too long to be named");
	}
}

/* A folder takes all that is in it along, also what nobody has opened. */
static void emit_moved(struct task *task, const char *from, const char *to, unsigned *left)
{
	DIR *list = opendir(to);
	for (struct dirent *entry; list && *left && (entry = readdir(list));) {
		char *was, *is;
		struct clew_facts facts;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (asprintf(&was, "%s/%s", from, entry->d_name) < 0 || asprintf(&is, "%s/%s", to, entry->d_name) < 0)
			fail("out of memory");
		if (facts_of(is, false, &facts) && S_ISDIR(facts.mode)) {
			emit_moved(task, was, is, left);
		} else {
			--*left;
			out_begin(R_CHANGE, next_seq(), task->proc->image, 5);
			out_text("rename");
			out_text(was);
			out_text(is);
			out_facts(&facts);
			out_facts(&facts);
			out_end();
		}
		free(was);
		free(is);
	}
	if (list)
		closedir(list);
}

static void leave_rename(struct task *task)
{
	unsigned left = MOST_MOVED;
	bool exchange = argument(task, task->call->flags) & RENAME_EXCHANGE;
	emit_change(task, exchange ? "exchange" : "rename", exchange ? task->path : task->path2);
	if (!task->existed || !S_ISDIR(task->before.mode))
		return;
	if (!exchange)
		emit_moved(task, task->path, task->path2, &left);
	if (exchange || !left)
		emit_gap(task->proc, "folder", task->path, "it changed places with what is in it, and not all of that was told");
}

/* A change that happened: who, what, and the file's state before and after. */
static void leave_change(struct task *task)
{
	struct clew_facts facts;
	switch (task->call->op) {
	case OP_RENAME:
		leave_rename(task);
		break;
	case OP_LINK:
		emit_change(task, "link", task->path2);
		break;
	case OP_SYMLINK:
		emit_change(task, "symlink", task->path);
		break;
	case OP_UNLINK:
	case OP_RMDIR:
		emit_change(task, "delete", task->path);
		break;
	case OP_MKDIR:
		emit_change(task, "folder", task->path);
		break;
	case OP_MKNOD:
		emit_change(task, "node", task->path);
		break;
	case OP_META:
	case OP_FMETA:
		emit_change(task, "metadata", task->path);
		break;
	default:
		if (facts_of(task->path, true, &facts))
			saving_written(&facts);
		emit_change(task, "truncate", task->path);
	}
}

#define RESTARTS 512 /* and the four after it: interrupted by a signal, and made again by the kernel */

void call_leave(struct task *task, int64_t result)
{
	if (result <= -RESTARTS && result >= -RESTARTS - 4) {
		if (task->image)
			image_failed(task);
		task->call = NULL;
		return;
	}
	switch (task->call->op) {
	case OP_OPEN:
	case OP_CREAT:
	case OP_OPENAT2:
	case OP_HANDLE:
		leave_open(task, result);
		break;
	case OP_STAT:
	case OP_STATX:
	case OP_ACCESS:
	case OP_READLINK:
		leave_look(task, result);
		break;
	case OP_CHDIR:
		leave_chdir(task->proc);
		break;
	case OP_EXEC:
		if (task->image) {
			if (task->path)
				emit_look(task->proc, task->seq, CLEW_ACCESS, task->path, (int)-result, X_OK, NULL, NULL);
			image_failed(task);
		}
		break;
	case OP_CONNECT:
	case OP_BIND:
		emit_net(task, task->call->op == OP_BIND ? "bind" : "connect", argument(task, 1), argument(task, 2), result);
		break;
	case OP_SENDTO:
		emit_net(task, "send", argument(task, 4), argument(task, 5), result);
		break;
	case OP_SOCKETCALL:
		leave_socketcall(task, result);
		break;
	case OP_ROOT:
		if (result >= 0)
			leave_root(task);
		break;
	case OP_MOUNT:
		if (result >= 0)
			emit_gap(task->proc, "mount", task->path, "a file system was mounted during the run");
		break;
	case OP_MEMORY:
		if (result >= 0)
			emit_gap(task->proc, "shared-memory", NULL, "System V shared memory carries data unseen");
		break;
	case OP_PTRACE:
		if (result < 0)
			emit_gap(task->proc, "ptrace", NULL, "a traced program cannot trace others");
		break;
	case OP_NONE:
		break;
	default:
		if (result >= 0)
			leave_change(task);
	}
	task->call = NULL;
}
