/* Exec: what is loaded, what is injected, what is inherited. */
#include "trace.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#define MOST_LOADED 6	      /* a script, its interpreter, that one's, … and the loader */
#define LONGEST_LIST (2u << 20) /* of arguments, or of variables */

struct list {
	char **items;
	unsigned count;
	size_t bytes;
};
struct image {
	struct list arguments, variables;
	char *loaded[MOST_LOADED];
	unsigned loaded_count;
	bool dynamic;	     /* a 64-bit program with a loader: the library can be injected */
	bool injected;
	uint64_t variables_at; /* where its caller keeps them */
};

static const char *library;

void images_library(const char *path) { library = access(path, R_OK) ? NULL : path; }

bool images_is_library(const char *path) { return library && !strcmp(path, library); }

/* ---- what the caller passes ---- */

static void list_read(struct list *list, pid_t tid, uint64_t address, size_t word)
{
	for (; address && list->bytes < LONGEST_LIST; address += word) {
		uint64_t item = 0;
		char *text = NULL;
		if (peek(tid, address, &item, word) != (ssize_t)word || !item || !(text = peek_text(tid, item)))
			return;
		if (!(list->count & (list->count - 1)))
			list->items = must(realloc(list->items, (list->count ? list->count * 2 : 1) * sizeof *list->items));
		list->items[list->count++] = text;
		list->bytes += strlen(text) + 1;
	}
}

static void list_free(struct list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

static void list_out(const struct list *list)
{
	out_array(list->count);
	for (unsigned i = 0; i < list->count; i++)
		out_text(list->items[i]);
}

/* The variables are written once and named by a number after that. */
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

static void load(struct image *image, char *path)
{
	if (image->loaded_count < MOST_LOADED)
		image->loaded[image->loaded_count++] = path;
	else
		free(path);
}

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
		image->dynamic = wide && elf->e_machine == EM_X86_64;
		return must(strdup(path));
	}
	return NULL;
}

static char *script_interpreter(struct task *task, char *head)
{
	char *at = head + 2, *end;
	head[255] = 0;
	at += strspn(at, " \t");
	end = at + strcspn(at, " \t\n");
	*end = 0;
	return *at ? absolute(task, AT_FDCWD, at) : NULL;
}

static void inspect(struct task *task, struct image *image, const char *path)
{
	char *next = must(strdup(path));
	while (next && image->loaded_count < MOST_LOADED) {
		char head[256] = "";
		char *path_now = next;
		int file = open(path_now, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		next = NULL;
		if (file >= 0 && read(file, head, sizeof head) > 4) {
			if (head[0] == '#' && head[1] == '!') {
				next = script_interpreter(task, head);
			} else if (!memcmp(head, ELFMAG, SELFMAG)) {
				char *loader = elf_loader(file, head, image);
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

/* ---- the injected library ---- */

/* Two variables are added behind the caller's back, in the unused part of its stack. */
static void inject(struct task *task, struct image *image)
{
	struct proc *proc = task->proc;
	struct user_regs_struct registers;
	const struct list *old = &image->variables;
	char preload[2 * PATH_MAX_], ring[128];
	const char *theirs = NULL;
	if (!library || !rings_path()[0] || proc->elsewhere || !image->dynamic || task->info.arch != AUDIT_ARCH_X86_64)
		return;
	ring_take(proc);
	if (!proc->slot || old->count > 4000)
		return;
	uint64_t *table = must(malloc((old->count + 3) * sizeof *table));
	unsigned count = 0;
	for (unsigned i = 0; i < old->count; i++) {
		uint64_t item = 0;
		peek(task->tid, image->variables_at + i * 8, &item, 8);
		if (!strncmp(old->items[i], CLEW_ENV_PRELOAD, sizeof CLEW_ENV_PRELOAD - 1))
			theirs = old->items[i] + sizeof CLEW_ENV_PRELOAD - 1;
		else
			table[count++] = item;
	}
	int a = snprintf(preload, sizeof preload, CLEW_ENV_PRELOAD "%s%s%s", library, theirs && *theirs ? ":" : "", theirs ? theirs : "") + 1;
	int b = snprintf(ring, sizeof ring, CLEW_ENV_RING "%u:%s", proc->slot, rings_path()) + 1;
	size_t size = (size_t)(a + b) + (count + 3) * sizeof *table;
	uint64_t at = (task->info.stack_pointer - 256 - size) & ~15ull;
	table[count] = at + (count + 3) * sizeof *table;
	table[count + 1] = table[count] + (uint64_t)a;
	table[count + 2] = 0;
	bool done = a < (int)sizeof preload && poke(task->tid, at, table, (count + 3) * sizeof *table) &&
		    poke(task->tid, table[count], preload, (size_t)a) && poke(task->tid, table[count + 1], ring, (size_t)b) &&
		    !ptrace(PTRACE_GETREGS, task->tid, NULL, &registers);
	free(table);
	if (!done)
		return;
	*(task->call->dir < 0 ? &registers.rdx : &registers.r10) = at;
	image->injected = !ptrace(PTRACE_SETREGS, task->tid, NULL, &registers);
}

void image_enter(struct task *task, const char *path)
{
	struct image *image = must(calloc(1, sizeof *image));
	int shift = task->call->dir < 0 ? 0 : 1;
	size_t word = task->info.arch == AUDIT_ARCH_X86_64 ? 8 : 4;
	image->variables_at = task->info.seccomp.args[2 + shift];
	list_read(&image->arguments, task->tid, task->info.seccomp.args[1 + shift], word);
	list_read(&image->variables, task->tid, image->variables_at, word);
	inspect(task, image, path);
	task->image = image;
	inject(task, image);
}

static void image_free(struct task *task)
{
	list_free(&task->image->arguments);
	list_free(&task->image->variables);
	for (unsigned i = 0; i < task->image->loaded_count; i++)
		free(task->image->loaded[i]);
	free(task->image);
	task->image = NULL;
}

/* The caller lives on, and finds its register as it left it. */
void image_failed(struct task *task)
{
	struct user_regs_struct registers;
	if (task->image->injected && task->call && !ptrace(PTRACE_GETREGS, task->tid, NULL, &registers)) {
		*(task->call->dir < 0 ? &registers.rdx : &registers.r10) = task->image->variables_at;
		ptrace(PTRACE_SETREGS, task->tid, NULL, &registers);
	}
	image_free(task);
}

static void emit_loaded(struct proc *proc, uint64_t seq, const struct image *image)
{
	for (unsigned i = 0; i < image->loaded_count; i++) {
		struct clew_facts facts;
		char *real = canonical(image->loaded[i], true);
		if (facts_of(real, true, &facts)) {
			emit_open(proc, seq, image->loaded[i], real, LOADED, 0, &facts, NULL);
			struct stat st;
			if (facts.mode & S_ISUID && !stat(real, &st) && st.st_uid != geteuid())
				emit_gap(proc, "set-uid", real, "a traced program runs without the privilege of its set-uid bit");
		}
		free(real);
	}
}

void image_begun(struct task *task)
{
	struct proc *proc = task->proc;
	struct image *image = task->image;
	uint32_t previous = proc->image;
	char link[64], exe[PATH_MAX_];
	if (!image)
		return;
	int64_t variables = variables_number(&image->variables);
	image_leaves(proc);
	if (proc->execed)
		proc->image = image_number();
	proc->execed = true;
	proc->shares_memory = false;
	proc_forget(proc);
	if (!image->injected)
		ring_drop(proc);
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
	image_inherit(proc, true);
}

/* ---- inherited descriptors ---- */

static void emit_descriptor(struct proc *proc, int fd, int way, const char *name, const struct clew_facts *facts)
{
	out_begin(R_FD, next_seq(), proc->image, 4);
	out_int(fd);
	out_int(way);
	out_text(name);
	out_facts(facts);
	out_end();
}

static void remember(struct proc *proc, const char *name)
{
	for (unsigned i = 0; i < sizeof proc->inherited / sizeof *proc->inherited; i++) {
		if (!proc->inherited[i])
			proc->inherited[i] = must(strdup(name));
		if (!strcmp(proc->inherited[i], name))
			return;
	}
}

/* The state in which a process leaves what it was handed tells later whether others, who had
 * it open as well, wrote to it too. Programs close their output early: so by name. */
void image_leaves(struct proc *proc)
{
	for (unsigned i = 0; i < sizeof proc->inherited / sizeof *proc->inherited; i++) {
		struct clew_facts facts;
		if (proc->inherited[i] && facts_of(proc->inherited[i], true, &facts))
			emit_descriptor(proc, -1, 2, proc->inherited[i], &facts);
		free(proc->inherited[i]);
		proc->inherited[i] = NULL;
	}
}

static void inherit_one(struct proc *proc, const char *folder, int fd, bool files)
{
	char link[96], name[PATH_MAX_];
	struct stat own;
	struct clew_facts facts;
	snprintf(link, sizeof link, "%s/%d", folder, fd);
	if (lstat(link, &own) || !descriptor_path(proc->pid, fd, name))
		return;
	if (!strncmp(name, "pipe:", 5))
		proc->pipes = true;
	else if (name[0] == '/' ? !files : strncmp(name, "socket:", 7) != 0)
		return;
	/* The link's own permissions say how the descriptor was opened. */
	int way = (own.st_mode & S_IRUSR ? 1 : 0) | (own.st_mode & S_IWUSR ? 2 : 0);
	uint64_t hash = hash_bytes(R_FD + (uint64_t)way, name, strlen(name));
	bool known = facts_of(link, true, &facts);
	if (known && S_ISDIR(facts.mode))
		return;
	if (known && S_ISREG(facts.mode) && way & 2)
		remember(proc, name);
	if (!proc_first(proc, hash))
		return;
	if (known && way & 1)
		saving_read(&facts);
	emit_descriptor(proc, fd, way, name, known ? &facts : NULL);
}

/* Files count only for a program that was started with them open. */
void image_inherit(struct proc *proc, bool files)
{
	char folder[64];
	snprintf(folder, sizeof folder, "/proc/%d/fd", proc->pid);
	DIR *list = opendir(folder);
	for (struct dirent *entry; list && (entry = readdir(list));)
		if (entry->d_name[0] != '.')
			inherit_one(proc, folder, atoi(entry->d_name), files);
	if (list)
		closedir(list);
}
