/* Exec: the program a process becomes.
 *
 * An image is one program that ran in a process: each exec begins a new one. Before the exec this module
 * reads the arguments and finds what the kernel will load (script, interpreter, loader). After it, it
 * records the new image and its inherited descriptors, and injects the library (initial_stack.c). */
#include "exec/image.h"
#include "arch.h"
#include "library/library.h"
#include "memory.h"
#include "pinning/pinning.h"
#include "records/records.h"
#include "syscalls/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* The process that made a pipe may close its end before the other end is used, and would then never be seen
 * with it. So its descriptors are recorded when the first program is about to be started with that pipe. */
static void record_pipe_maker(struct proc *proc)
{
	static struct proc pipes; /* used only as a set: the pipes seen so far */
	char name[PATH_MAX_];
	bool met = true;
	if (proc->execed || !proc->parent || proc->parent->gone)
		return;
	for (int fd = 0; fd <= 2; fd++)
		if (descriptor_path(proc->pid, fd, name) && !strncmp(name, "pipe:", 5) &&
		    proc_first_time(&pipes, hash_bytes(R_FD, name, strlen(name))))
			met = false;
	if (!met)
		image_record_descriptors(proc->parent, false);
}

static void image_free(struct task *task)
{
	list_free(&task->image->arguments);
	for (unsigned i = 0; i < task->image->loaded_count; i++)
		free(task->image->loaded[i]);
	free(task->image);
	task->image = NULL;
}

/* Before an exec. Returns whether the tracer must stop when the call returns. */
bool image_enter(struct task *task, const char *path)
{
	struct image *image = must(calloc(1, sizeof *image));
	/* execveat has the directory descriptor first. */
	int shift = task->call->dir < 0 ? 0 : 1;
	size_t word = is_native(task) ? 8 : 4;
	list_read(&image->arguments, task->tid, task->info.seccomp.args[1 + shift], word);
	struct list variables = {0};
	if (reuse_enabled())
		list_read(&variables, task->tid, task->info.seccomp.args[2 + shift], word);
	task->image = image;
	/* The call may have become an exit: then there is nothing to load. */
	bool reused = reuse_instead_of_exec(task, &image->arguments, &variables);
	list_free(&variables);
	if (reused) {
		image_free(task);
		return false;
	}
	image_inspect(task, image, path);
	if (image->refused) { /* as on a machine that cannot run it */
		emit_gap(task->proc, "32-bit", path, "32-bit programs cannot be recorded on this architecture");
		call_skip(task, -ENOEXEC);
	}
	if (!image->absent) {
		ring_take_back(task->proc);
		record_pipe_maker(task->proc);
	}
	/* A search of the PATH tries many absent files. Their exec is not followed to its end, which saves a
	 * stop: it has failed if the next stop is not that of a new program (image_outcome_pending). */
	return !image->absent;
}

/* The exec did not happen. An absent file is recorded as a failed lookup. */
void image_failed(struct task *task)
{
	if (task->image->absent)
		emit_look(task->proc, task->seq, CLEW_ACCESS, task->path, ENOENT, X_OK, NULL, NULL);
	image_free(task);
}

/* An exec of an absent file: its outcome is known at the next stop. */
bool image_outcome_pending(const struct task *task) { return task->image && task->image->absent; }

/* The state of a loaded file, and its path without links; false: there is none. The kernel knows the path of
 * an open file: that is cheaper than to resolve each part of it. */
static bool loaded_file(const char *path, struct clew_facts *facts, char *real)
{
	struct stat st;
	int file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0)
		return false;
	bool found = !fstat(file, &st) && descriptor_path(getpid(), file, real);
	close(file);
	if (found)
		facts_from(&st, facts);
	return found;
}

/* The kernel opened these files itself: no open call will be seen for them. */
static void emit_loaded(struct proc *proc, uint64_t seq, const struct image *image)
{
	for (unsigned i = 0; i < image->loaded_count; i++) {
		struct clew_facts facts;
		char real[PATH_MAX_];
		if (loaded_file(image->loaded[i], &facts, real)) {
			/* Names the loader file, so that known detour sites apply to it (detours.c). */
			if (image->loaded[i] == image->loader)
				proc->loader_file = hash_bytes(1, &facts, offsetof(struct clew_facts, mode));
			emit_open(proc, seq, image->loaded[i], real, LOADED, 0, &facts, NULL);
			struct stat st;
			if (facts.mode & S_ISUID && !stat(real, &st) && st.st_uid != geteuid())
				emit_gap(proc, "set-uid", real, "a traced program runs without the privilege of its set-uid bit");
		}
	}
}

/* The exec has succeeded, and the new program has not run an instruction. The order matters: the old image is
 * closed before the new number is given, and the stack is read before it is changed. */
void image_started(struct task *task)
{
	struct proc *proc = task->proc;
	struct image *image = task->image;
	/* The record of the new image names the one before it. */
	uint32_t previous = proc->image;
	char link[64], exe[PATH_MAX_];
	if (!image)
		return;
	if (image->absent) /* the exec succeeded after all: the process sees other files than the tracer */
		record_pipe_maker(proc);
	struct stack stack;
	struct list list = {0};
	bool readable = stack_read(&stack, proc->pid);
	if (readable)
		stack_variables(&stack, proc->pid, &list);
	int64_t variables = variables_number(&list);
	image_ending(proc);
	output_end(proc);
	if (proc->execed)
		proc->image = image_number();
	proc->execed = true;
	/* Exec gives the process new memory: it no longer shares that of its parent (vfork). */
	ring_unshare(proc);
	proc->sharers = 0; /* processes that shared the old memory keep that */
	proc->lent_to = NULL;
	proc_clear_seen(proc);
	ring_release(proc);
	/* Pins first: injecting moves the stack, and the auxiliary vector is changed in place. */
	pin_exec(task, readable ? &stack : NULL);
	if (readable && image->dynamic && !stack_inject(&stack, proc, &list))
		ring_release(proc);
	proc->loader = proc->slot ? stack_auxv(&stack, AT_BASE) : 0;
	proc->detours = NO_LIBRARY;
	proc->early = LIBRARY_INJECTED;
	list_free(&list);
	stack_free(&stack);
	/* The file that runs, after scripts and links: the path in the call may be another. */
	snprintf(link, sizeof link, "/proc/%d/exe", proc->pid);
	ssize_t size = readlink(link, exe, sizeof exe - 1);
	exe[size > 0 ? size : 0] = 0;
	out_begin(R_EXEC, task->seq, proc->image, 7);
	out_int(previous);
	out_int(proc->pid);
	out_text(exe);
	out_text(task->path);
	list_out(&image->arguments);
	out_int(variables);
	out_text(proc->cwd);
	out_end();
	emit_loaded(proc, task->seq, image);
	image_free(task);
	image_record_descriptors(proc, true);
}
