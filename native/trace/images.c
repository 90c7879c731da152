/* Exec: the program a process becomes.
 *
 * An image is one program that ran in a process: each exec begins a new one. Before the exec this module
 * reads the arguments and finds what the kernel will load (script, interpreter, loader). After it, it
 * records the new image and its inherited descriptors, and injects the library (initial_stack.c). */
#include "arch.h"
#include "exec.h"
#include "library.h"
#include "memory.h"
#include "pinning.h"
#include "records.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_LOADED 6	      /* a script, its interpreter, the interpreter of that, … and the loader */
#define LONGEST_LIST (2u << 20) /* bytes of all arguments, or of all variables: above what the kernel accepts */

/* An exec between its entry and its outcome. */
struct image {
	struct list arguments;
	char *loaded[MAX_LOADED];
	unsigned loaded_count;
	const char *loader; /* points into `loaded`; NULL: static program */
	bool dynamic; /* a 64-bit program with a loader: the library can be injected */
	bool absent;  /* the tracer finds no such file */
	bool refused; /* a 32-bit program, where their calls cannot be recorded */
};

/* ---- what the calling program passes to exec ---- */

#define BATCH 64   /* strings read with one process_vm_readv */
#define SHORT 128u /* bytes read of each: most arguments are shorter */

/* Reads the strings at these addresses in one call; NULL for each that is longer or unreadable. */
static void read_strings(pid_t tid, const uint64_t *addresses, unsigned count, char *texts[])
{
	static char room[BATCH][SHORT];
	struct iovec here[BATCH], there[BATCH];
	for (unsigned i = 0; i < count; i++) {
		/* Do not read into the next page: it may not be mapped, and the whole read would end there. */
		size_t page = 4096 - addresses[i] % 4096;
		there[i] = (struct iovec){(void *)addresses[i], page < SHORT ? page : SHORT};
		here[i] = (struct iovec){room[i], there[i].iov_len};
	}
	ssize_t left = process_vm_readv(tid, here, count, there, count, 0);
	for (unsigned i = 0; i < count; i++) {
		/* A short count means that the rest of the list was not read. */
		bool read = left >= (ssize_t)here[i].iov_len;
		texts[i] = read && memchr(room[i], 0, here[i].iov_len) ? must(strdup(room[i])) : NULL;
		left = read ? left - (ssize_t)here[i].iov_len : 0;
	}
}

/* Takes ownership of `text`. The array doubles when the count is a power of two. */
static bool list_add(struct list *list, char *text)
{
	if (!text)
		return false;
	if (!(list->count & (list->count - 1)))
		list->items = must(realloc(list->items, (list->count ? list->count * 2 : 1) * sizeof *list->items));
	list->items[list->count++] = text;
	list->bytes += strlen(text) + 1;
	return true;
}

/* Reads a NULL-terminated array of string pointers. `word` is the pointer size: 8, or 4 in a 32-bit program. */
static void list_read(struct list *list, pid_t tid, uint64_t address, size_t word)
{
	while (address && list->bytes < LONGEST_LIST) {
		uint8_t pointers[BATCH * 8];
		uint64_t items[BATCH] = {0};
		char *texts[BATCH];
		size_t page = 4096 - address % 4096, want = page < BATCH * word ? page : BATCH * word;
		ssize_t size = peek(tid, address, pointers, want < word ? word : want);
		unsigned count = 0, all = size > 0 ? (unsigned)((size_t)size / word) : 0;
		for (; count < all; count++) {
			memcpy(&items[count], pointers + count * word, word);
			if (!items[count])
				break;
		}
		read_strings(tid, items, count, texts);
		for (unsigned i = 0; i < count; i++)
			if (!list_add(list, texts[i] ? texts[i] : peek_text(tid, items[i]))) {
				while (++i < count)
					free(texts[i]);
				return;
			}
		if (count < all || !all)
			return;
		address += count * word;
	}
}

static void list_free(struct list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

void list_out(const struct list *list)
{
	out_array(list->count);
	for (unsigned i = 0; i < list->count; i++)
		out_text(list->items[i]);
}

/* Each distinct environment is written once (R_ENV) and referred to by number: most programs of a run have the
 * same. */
static int64_t variables_number(const struct list *list)
{
	static uint64_t *known;
	static unsigned count;
	uint64_t hash = 7;
	for (unsigned i = 0; i < list->count; i++)
		hash = hash_bytes(hash, list->items[i], strlen(list->items[i]) + 1);
	for (unsigned i = 0; i < count; i++)
		if (known[i] == hash)
			return i + 1;
	known = must(realloc(known, (count + 1) * sizeof *known));
	known[count++] = hash;
	out_begin(R_ENV, next_seq(), 0, 2);
	out_int(count);
	list_out(list);
	out_end();
	return count;
}

/* ---- what the kernel will load ---- */

/* Takes ownership of `path`. */
static void load(struct image *image, char *path)
{
	if (image->loaded_count < MAX_LOADED)
		image->loaded[image->loaded_count++] = path;
	else
		free(path);
}

/* The PT_INTERP of an ELF program: the dynamic loader; NULL: static. Handles both ELF classes. */
static char *elf_loader(int file, const char *head, struct image *image)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head;
	char path[PATH_MAX_];
	bool wide = elf->e_ident[EI_CLASS] == ELFCLASS64;
	const Elf32_Ehdr *narrow = (const Elf32_Ehdr *)head;
	unsigned count = wide ? elf->e_phnum : narrow->e_phnum;
	for (unsigned i = 0; i < count && i < 64; i++) {
		Elf64_Phdr p;
		Elf32_Phdr q;
		off_t at = wide ? (off_t)(elf->e_phoff + i * elf->e_phentsize) : (off_t)(narrow->e_phoff + i * narrow->e_phentsize);
		if (pread(file, wide ? (void *)&p : (void *)&q, wide ? sizeof p : sizeof q, at) < (ssize_t)sizeof q)
			return NULL;
		if ((wide ? p.p_type : q.p_type) != PT_INTERP)
			continue;
		size_t size = wide ? p.p_filesz : q.p_filesz;
		if (size >= sizeof path || pread(file, path, size, wide ? (off_t)p.p_offset : (off_t)q.p_offset) != (ssize_t)size)
			return NULL;
		path[size] = 0;
		image->dynamic = wide && elf->e_machine == ARCH_MACHINE;
		return must(strdup(path));
	}
	return NULL;
}

/* The interpreter on the #! line of a script. */
static char *script_interpreter(struct task *task, char *head)
{
	char *at = head + 2, *end;
	head[255] = 0;
	at += strspn(at, " \t");
	end = at + strcspn(at, " \t\n");
	*end = 0;
	return *at ? absolute(task, AT_FDCWD, at) : NULL;
}

/* Follows scripts to their interpreters, as the kernel does. O_NONBLOCK: a named pipe must not block the
 * tracer. */
static void inspect(struct task *task, struct image *image, const char *path)
{
	char *next = must(strdup(path));
	while (next && image->loaded_count < MAX_LOADED) {
		char head[256] = "";
		char *path_now = next;
		int file = open(path_now, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (file < 0 && errno == ENOENT && !image->loaded_count)
			image->absent = true;
		next = NULL;
		if (file >= 0 && read(file, head, sizeof head) > 4) {
			if (head[0] == '#' && head[1] == '!') {
				next = script_interpreter(task, head);
			} else if (!memcmp(head, ELFMAG, SELFMAG)) {
				char *loader = elf_loader(file, head, image);
				image->refused = !ARCH_NARROW && head[EI_CLASS] == ELFCLASS32;
				image->loader = loader;
				if (loader)
					load(image, loader);
			}
		}
		if (file >= 0)
			close(file);
		load(image, path_now);
	}
	free(next);
}

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
	inspect(task, image, path);
	if (image->refused) { /* as on a machine that cannot run it */
		emit_gap(task->proc, "32-bit", path, "32-bit programs cannot be recorded on this architecture");
		call_skip(task, -ENOEXEC);
	}
	if (!image->absent)
		record_pipe_maker(task->proc);
	/* A search of the PATH tries many absent files. Their exec is not followed to its end, which saves a
	 * stop: it has failed if the next stop is not that of a new program (image_outcome_pending). */
	return !image->absent;
}

/* The exec did not happen. An absent file is recorded as looked for in vain. */
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
	proc_clear_seen(proc);
	ring_release(proc);
	/* Pins first: injecting moves the stack, and the auxiliary vector is changed in place. */
	pin_exec(task, readable ? &stack : NULL);
	if (readable && image->dynamic && !stack_inject(&stack, proc, &list))
		ring_release(proc);
	proc->loader = proc->slot ? stack_auxv(&stack, AT_BASE) : 0;
	proc->detours = NO_LIBRARY;
	proc->known = 0;
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

/* ---- inherited descriptors ---- */

static void emit_descriptor(struct proc *proc, int fd, int access_mode, const char *name, const struct clew_facts *facts)
{
	out_begin(R_FD, next_seq(), proc->image, 4);
	out_int(fd);
	out_int(access_mode);
	out_text(name);
	out_facts(facts);
	out_end();
}

/* Notes a file that the program may write through an inherited descriptor; at most 8. */
static void remember_inherited(struct proc *proc, const char *name)
{
	for (unsigned i = 0; i < sizeof proc->inherited / sizeof *proc->inherited; i++) {
		if (!proc->inherited[i])
			proc->inherited[i] = must(strdup(name));
		if (!strcmp(proc->inherited[i], name))
			return;
	}
}

/* Records the state in which an image leaves the files it inherited for writing. It tells later whether other
 * processes that have them open wrote as well. By path, because programs close their output early. */
void image_ending(struct proc *proc)
{
	descriptors_record_offsets(proc);
	for (unsigned i = 0; i < sizeof proc->inherited / sizeof *proc->inherited; i++) {
		struct clew_facts facts;
		if (proc->inherited[i] && facts_of(proc->inherited[i], true, &facts))
			emit_descriptor(proc, -1, 2, proc->inherited[i], &facts);
		free(proc->inherited[i]);
		proc->inherited[i] = NULL;
	}
}

/* `folder` is open: a lookup from there costs half of one by a whole path of /proc. */
static void record_descriptor(struct proc *proc, int folder, const char *link, bool files, unsigned *streams)
{
	char name[PATH_MAX_];
	int fd = atoi(link);
	struct stat own;
	struct clew_facts facts;
	if (!link_path(folder, link, name) || (!files && name[0] == '/'))
		return;
	if (fstatat(folder, link, &own, AT_SYMLINK_NOFOLLOW))
		return;
	/* The permissions of the /proc link say how the descriptor was opened: r for reading, w for writing. */
	int access_mode = (own.st_mode & S_IRUSR ? 1 : 0) | (own.st_mode & S_IWUSR ? 2 : 0);
	bool known = files && facts_at(folder, link, true, &facts);
	if (files) {
		descriptors_add(proc, fd, access_mode, name, known ? &facts : NULL);
		*streams |= known ? output_streams_of(&facts) : 0;
	}
	/* Anonymous memory is not a file that others can find. */
	if (!strncmp(name, "/memfd:", 7))
		return;
	if (!strncmp(name, "pipe:", 5)) {
		proc->pipes = true;
	} else if (name[0] != '/' && strncmp(name, "socket:", 7))
		return;
	uint64_t hash = hash_bytes(R_FD + (uint64_t)access_mode, name, strlen(name));
	/* A directory that is merely open was not listed. */
	if (known && S_ISDIR(facts.mode))
		return;
	if (known && S_ISREG(facts.mode) && access_mode & 2)
		remember_inherited(proc, name);
	if (!proc_first_time(proc, hash))
		return;
	if (!files) /* only now: most are already known, and a stat each would be wasted */
		known = facts_at(folder, link, true, &facts);
	/* The program can read it: its content is kept before it is changed. */
	if (known && access_mode & 1)
		snapshots_note_read(&facts);
	emit_descriptor(proc, fd, access_mode, name, known ? &facts : NULL);
}

/* Records the open descriptors of a process. `files`: also regular files, for a program that was just started
 * with them; otherwise only pipes and sockets, which say who exchanges data with whom. */
void image_record_descriptors(struct proc *proc, bool files)
{
	char folder[64];
	unsigned streams = 0;
	descriptors_clear();
	snprintf(folder, sizeof folder, "/proc/%d/fd", proc->pid);
	DIR *list = opendir(folder);
	for (struct dirent *entry; list && (entry = readdir(list));)
		if (entry->d_name[0] != '.')
			record_descriptor(proc, dirfd(list), entry->d_name, files, &streams);
	if (list)
		closedir(list);
	if (!files)
		return;
	descriptors_record(proc);
	output_exec(proc, streams);
}
