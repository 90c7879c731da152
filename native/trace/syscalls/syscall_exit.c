/* What the tracer does when a call returns: it records the outcome.
 *
 * A call that succeeded is a use or a change. A call that failed is recorded, too: that a file was absent
 * or could not be created is something the program learnt, and a repeat must find it the same. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"
#include "pinning/pinning.h"
#include "records/records.h"
#include "syscalls/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MOVED 1000000 /* entries below one renamed directory that are recorded */

/* An open for reading or writing has returned. */
static void leave_open(struct task *task, int64_t result)
{
	uint32_t flags = open_flags(task);
	char link[64], real[PATH_MAX_];
	struct clew_facts facts;
	if (result < 0) {
		if (task->path) /* open_by_handle_at has no path */
			emit_open(task->proc, task->seq, task->path, NULL, flags, (int)-result, NULL, NULL);
		return;
	}
	/* Through the new descriptor, not the path: the path may lead elsewhere by now. */
	snprintf(link, sizeof link, "/proc/%d/fd/%d", task->proc->pid, (int)result);
	bool named = descriptor_path(task->proc->pid, (int)result, real) && real[0] == '/';
	bool known = facts_of(link, true, &facts);
	if (known && S_ISCHR(facts.mode))
		device_opened(task, (int)result);
	if (!task->path)
		task->path = must(strdup(named ? real : link));
	emit_open(task->proc, task->seq, task->path, named ? real : NULL, flags, 0, known ? &facts : NULL,
		  task->existed ? &task->before : NULL);
	if (known && (flags & O_ACCMODE || flags & O_TRUNC))
		snapshots_note_write(&facts);
}

/* i386 passes all socket calls through one: its arguments are an array in memory. */
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

/* A query: access, readlink or stat. The facts are read again by the tracer, because each kind of stat has a
 * struct of its own. */
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

/* The process sees another file system, in which it could not open the ring: it is traced by stops from now
 * on. */
static void leave_root(struct task *task)
{
	struct proc *proc = task->proc;
	emit_gap(proc, "root", task->path, "the process sees another file system from here on");
	proc->other_root = true;
	ring_release(proc);
	ring_set_up_child(proc);
}

/* The kernel resolved the path: read the result instead of repeating the work. */
static void leave_chdir(struct proc *proc)
{
	char link[64];
	snprintf(link, sizeof link, "/proc/%d/cwd", proc->pid);
	ssize_t size = readlink(link, proc->cwd, sizeof proc->cwd - 1);
	if (size > 0) {
		proc->cwd[size] = 0;
	} else {
		strcpy(proc->cwd, link); /* the directory can still be reached this way, but has no name */
		emit_gap(proc, "path", NULL, "its working directory has a path too long to be named");
	}
}

/* Renaming a directory renames everything in it: each entry is recorded, also what no process has opened. */
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
		bool folder = facts_of(is, false, &facts) && S_ISDIR(facts.mode);
		--*left;
		out_begin(R_CHANGE, next_seq(), task->proc->image, 5);
		out_text("rename");
		out_text(was);
		out_text(is);
		out_facts(&facts);
		out_facts(&facts);
		out_end();
		if (folder)
			emit_moved(task, was, is, left);
		free(was);
		free(is);
	}
	if (list)
		closedir(list);
}

/* Both states are recorded for the directory itself; its entries follow. */
static void leave_rename(struct task *task)
{
	unsigned left = MAX_MOVED;
	bool exchange = argument(task, task->call->flags) & RENAME_EXCHANGE;
	/* It succeeded, so the program learnt that the target was absent. */
	if (argument(task, task->call->flags) & RENAME_NOREPLACE)
		emit_look(task->proc, task->seq, CLEW_STAT, task->path2, ENOENT, 1, NULL, NULL);
	emit_change(task, exchange ? "exchange" : "rename", exchange ? task->path : task->path2);
	if (!task->existed || !S_ISDIR(task->before.mode))
		return;
	if (!exchange)
		emit_moved(task, task->path, task->path2, &left);
	if (exchange || !left)
		emit_gap(task->proc, "folder", task->path, "it was moved together with its contents, and not all of them were recorded");
}

/* A change that succeeded: the records have the state of the file before and after. */
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
	case OP_MAP:
		emit_change(task, "map", task->path);
		break;
	default: /* truncate, fallocate: what is there now was written by this run */
		if (facts_of(task->path, true, &facts))
			snapshots_note_write(&facts);
		emit_change(task, "truncate", task->path);
	}
}

/* The directory could not be removed or replaced because it is not empty: the program learnt about its
 * entries. */
static void leave_not_empty(struct task *task, const char *folder)
{
	struct clew_facts facts;
	if (facts_of(folder, false, &facts) && S_ISDIR(facts.mode))
		emit_open(task->proc, task->seq, folder, folder, O_RDONLY | O_DIRECTORY, 0, &facts, NULL);
}

/* A change that failed says what is there, or that nothing is. Errors that say nothing about files are not
 * recorded. */
static void leave_refused(struct task *task, int64_t result)
{
	if (result == -EFAULT || result == -EINTR || result == -ENOSPC || !task->path || task->path[0] != '/')
		return;
	bool two = task->path2 && task->call->op != OP_SYMLINK;
	emit_state(task->proc, task->seq, task->path, false);
	if (two)
		emit_state(task->proc, task->seq, task->path2, false);
	/* EEXIST of a call that creates says that the name exists, not that a directory is full. */
	bool makes = task->call->op == OP_MKDIR || task->call->op == OP_MKNOD || task->call->op == OP_SYMLINK;
	if ((result == -ENOTEMPTY || result == -EEXIST) && !makes)
		leave_not_empty(task, two ? task->path2 : task->path);
}

/* ERESTARTSYS and the four codes after it: a signal interrupted the call, and the kernel makes it again. */
#define RESTARTS 512

void syscall_leave(struct task *task, int64_t result)
{
	if (task->call->rule >= CLOCK) {
		clock_leave(task, result);
		task->call = NULL;
		return;
	}
	/* The call stops again when it is made again: record it then. */
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
		if (task->path)
			emit_state(task->proc, task->seq, task->path, true);
		leave_chdir(task->proc);
		break;
	case OP_EXEC: /* a successful exec is a stop of its own (PTRACE_EVENT_EXEC): this one failed */
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
	/* chroot, pivot_root, setns */
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
		else
			leave_refused(task, result);
	}
	task->call = NULL;
}
