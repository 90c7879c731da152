/* What the tracer does when a call stops, before the kernel runs it.
 *
 * It reads the paths from the memory of the process, notes the state of the file, and keeps content that
 * the call would destroy (snapshots.c). This is the last moment for that: the process is stopped, and the
 * call has not changed anything yet. syscall_exit.c records the outcome. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"
#include "pinning/pinning.h"
#include "records/records.h"
#include "syscalls/syscalls.h"
#include "tracer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The absolute path that an argument names, relative to the directory descriptor in `dir`; NULL: none, or
 * unreadable. */
static char *read_path(struct task *task, int dir, int path)
{
	char *text = peek_text(task->tid, argument(task, path));
	char *whole = text && text[0] ? absolute(task, dir < 0 ? AT_FDCWD : (int)argument(task, dir), text) : NULL;
	free(text);
	return whole;
}

/* For calls on a descriptor: takes the path of the file that it refers to. False: it is not a file (a pipe, a
 * socket). */
static bool use_descriptor_path(struct task *task, int fd)
{
	char path[PATH_MAX_];
	if (!descriptor_path(task->proc->pid, fd, path) || path[0] != '/')
		return false;
	free(task->path);
	task->path = must(strdup(path));
	return true;
}

/* The flags of an open; each kind of open passes them differently. */
uint32_t open_flags(struct task *task)
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

/* An open. False: its outcome is of no interest. */
static bool enter_open(struct task *task)
{
	uint32_t flags = open_flags(task);
	if (!task->path)
		return false;
	/* The library opens its ring: that is not the program's doing and is not recorded. */
	if (is_ring_path(task->path)) {
		if (task->proc->detours == NO_LIBRARY) /* the library is set up now, and calls can be detoured */
			task->proc->detours = 0;
		return false;
	}
	/* The loader opens the injected library: not recorded. The next call sets it up (early_setup.c). */
	if (task->proc->early == LIBRARY_INJECTED && stack_is_library(task->path)) {
		task->proc->early = LIBRARY_OPENED;
		return false;
	}
	/* An open for reading destroys nothing: only its outcome matters. O_PATH opens no content, O_TMPFILE
	 * no existing file. */
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	if (flags & O_PATH || (!writes && !(flags & O_CREAT)) || (flags & O_TMPFILE) == O_TMPFILE)
		return true;
	/* Rings first: they say whether a process has read this file, and only then its content is kept. */
	rings_drain();
	task->existed = facts_of(task->path, true, &task->before);
	if (!task->existed || !writes || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) || S_ISDIR(task->before.mode))
		return true;
	/* Opened for both: the program may read what is there before it overwrites it. */
	if ((flags & O_ACCMODE) == O_RDWR && !(flags & O_TRUNC))
		snapshots_note_read(&task->before);
	snapshot_before_change(task->proc, task->path, false, !(flags & O_TRUNC));
	return true;
}

/* For a call that changes a name, not content: the last component is not followed. */
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
		snapshot_before_change(task->proc, real, true, false);
}

/* The first path of a linkat that follows links. It may lead through /proc to a file that has no name yet
 * (O_TMPFILE): then realpath fails, and the link itself says what the file is. */
static void enter_followed(struct task *task)
{
	char target[PATH_MAX_];
	task->existed = facts_of(task->path, true, &task->before);
	bool nameless = !strncmp(task->path, "/proc/", 6) && link_path(AT_FDCWD, task->path, target) && target[0] == '/';
	char *followed = nameless ? must(strdup(target)) : canonical(task->path, true);
	free(task->path);
	task->path = followed;
}

/* A rename replaces what the second name had; an exchange keeps both, and a link fails if the second exists. */
static void enter_two_names(struct task *task)
{
	enter_name(task, false);
	task->path2 = read_path(task, task->call->dir2, task->call->path2);
	if (!task->path2)
		return;
	char *real = canonical(task->path2, false);
	free(task->path2);
	task->path2 = real;
	if (task->call->op == OP_RENAME && !(argument(task, task->call->flags) & RENAME_EXCHANGE))
		snapshot_before_change(task->proc, real, true, false);
	if (task->call->op == OP_LINK && task->path && argument(task, task->call->flags) & AT_SYMLINK_FOLLOW)
		enter_followed(task);
}

/* For a call that changes content by path or descriptor. `keeps`: part of the old content remains. */
static void enter_content(struct task *task, bool keeps)
{
	rings_drain();
	if (!task->path)
		return;
	char *real = canonical(task->path, true);
	free(task->path);
	task->path = real;
	task->existed = facts_of(real, true, &task->before);
	snapshot_before_change(task->proc, real, false, keeps);
}

/* For a change of mode, owner or times: content stays, so there is nothing to keep. */
static void enter_meta(struct task *task)
{
	rings_drain();
	char *real = canonical(task->path, true);
	free(task->path);
	task->path = real;
	task->existed = facts_of(real, true, &task->before);
}

/* A shared mapping of a file. Only a descriptor that is open for writing can be written through its mapping.
 * One mapping per file is recorded for an image: it may write for as long as it runs. */
static bool enter_map(struct task *task)
{
	char link[64];
	struct stat own;
	int fd = (int)argument(task, task->call->dir);
	snprintf(link, sizeof link, "/proc/%d/fd/%d", task->proc->pid, fd);
	if (lstat(link, &own) || !(own.st_mode & S_IWUSR))
		return false;
	task->existed = facts_of(link, true, &task->before);
	return task->existed && S_ISREG(task->before.mode) && !is_ring_file(&task->before) && use_descriptor_path(task, fd) &&
	       proc_first_time(task->proc, hash_bytes(R_CHANGE, &task->before, 2 * sizeof(uint64_t)));
}

#define STEP "/proc/clew-step/"

static void forget_seen(struct proc *proc, void *with)
{
	(void)with;
	proc_clear_seen(proc);
}

/* The command says that a step of its work begins or ends: it removes a directory that cannot exist. All that
 * was observed until now is written before, and what is observed again later is written again: the step that
 * follows depends on it, too. */
static bool enter_step(struct task *task)
{
	bool removes = task->call->op == OP_RMDIR || task->call->op == OP_UNLINK;
	if (!run.steps || !removes || task->proc->pid != run.root || !task->path || strncmp(task->path, STEP, strlen(STEP)))
		return false;
	rings_drain();
	procs_each(forget_seen, NULL);
	out_begin(R_STEP, task->seq, task->proc->image, 1);
	out_text(task->path + strlen(STEP));
	out_end();
	out_flush();
	return true;
}

/* Returns whether the tracer must also stop when the call returns. */
bool syscall_enter(struct task *task)
{
	const struct call *call = call_find(task->info.arch, task->info.seccomp.nr);
	if (!call)
		return false;
	if (call->rule >= CLOCK) {
		task->call = call;
		return pin_enter(task);
	}
	/* The loader may be sent to the library first; it makes this call again afterwards. */
	if (task->proc->early < EARLY_DONE && early_enter(task))
		return false;
	/* What the process recorded itself happened before this call: write it first. */
	ring_drain(task->proc);
	if (detour_try(task))
		return false;
	free(task->path);
	free(task->path2);
	task->path2 = NULL;
	task->existed = false;
	task->call = call;
	/* Taken at entry: a record of another process that follows from this call gets a later number. */
	task->seq = next_seq();
	task->path = call->path >= 0 ? read_path(task, call->dir, call->path) : NULL;
	if (enter_step(task))
		return false;
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
		/* An empty path stands for the descriptor itself: follow it through /proc. */
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
	/* Also fallocate, which has no length to compare and keeps content. */
	case OP_FTRUNCATE:
		if (!use_descriptor_path(task, (int)argument(task, 0)))
			return false;
		enter_content(task, call->flags < 0 || argument(task, call->flags) > 0);
		return true;
	case OP_MAP:
		return enter_map(task);
	case OP_META:
		if (!task->path && !(call->dir >= 0 && use_descriptor_path(task, (int)argument(task, call->dir))))
			return false;
		enter_meta(task);
		return true;
	case OP_FMETA:
		if (!use_descriptor_path(task, (int)argument(task, 0)))
			return false;
		enter_meta(task);
		return true;
	case OP_EXEC: /* execveat with an empty path runs the descriptor (fexecve) */
		if (!task->path && call->dir >= 0)
			use_descriptor_path(task, (int)argument(task, call->dir));
		return !task->path || image_enter(task, task->path);
	case OP_SIGNAL: /* before it is sent: it may end the receiver */
		emit_signal(task);
		return false;
	case OP_NONE:
		return false;
	default:
		return true;
	}
}
