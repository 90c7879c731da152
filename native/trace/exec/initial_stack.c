/* The stack of a new program, before its first instruction: reads its variables and injects the library.
 *
 * The kernel lays it out as argc, argument pointers, NULL, variable pointers, NULL, auxiliary vector. To
 * inject the library the tracer adds LD_PRELOAD and CLEW_RING to the variables. It does so here and not in
 * the arguments of execve: no other thread can use this memory yet, and the calling process, which may share
 * its memory with a parent that goes on (vfork), is never changed. */
#include "arch.h"
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define MOST (8u << 20) /* bytes of the table: above what the kernel allows for arguments and variables */

/* Bytes of the CLEW_RING variable. */
#define RING 128

static const char *library;

/* The loader splits LD_PRELOAD at spaces and colons: a path with one is replaced by that of a descriptor. */
void stack_set_library(const char *path)
{
	static char other[64];
	int fd;
	if (!strpbrk(path, " :")) {
		library = access(path, R_OK) ? NULL : path;
	} else if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		snprintf(other, sizeof other, "/proc/%d/fd/%d", getpid(), fd);
		library = other;
	}
	if (library)
		early_set_library(library);
}

bool stack_is_library(const char *path) { return library && !strcmp(path, library); }
char *stack_find_library(char *text) { return library ? strstr(text, library) : NULL; }

/* The n-th word of the table; words have 4 bytes in a 32-bit program. */
static uint64_t item(const struct stack *stack, size_t n)
{
	return stack->word == 8 ? ((uint64_t *)stack->table)[n] : ((uint32_t *)stack->table)[n];
}

/* The number of words up to the end of the auxiliary vector; 0: more of the stack must be read. */
static size_t parse(struct stack *stack, size_t have)
{
	if (have < 2)
		return 0;
	size_t at = 1 + item(stack, 0) + 1;
	stack->variables = at;
	while (at < have && item(stack, at))
		at++;
	stack->vector = at + 1;
	for (at++; at + 1 < have; at += 2)
		if (item(stack, at) == AT_NULL)
			return at + 2;
	return 0;
}

/* The size of the table is not known before it is read: doubles the room until it fits. */
bool stack_read(struct stack *stack, pid_t pid)
{
	memset(stack, 0, sizeof *stack);
	if (!stack_pointer_read(stack, pid))
		return false;
	for (size_t room = 8192; room <= MOST; room *= 2) {
		stack->table = must(realloc(stack->table, room));
		ssize_t size = peek(pid, stack->at, stack->table, room);
		stack->items = size > 0 ? parse(stack, (size_t)size / stack->word) : 0;
		if (stack->items || size < (ssize_t)room)
			break;
	}
	if (!stack->items)
		stack_free(stack);
	return stack->items > 0;
}

void stack_free(struct stack *stack)
{
	free(stack->table);
	stack->table = NULL;
}

/* Reads the variables. The kernel puts their strings one after the other, so one read gets all but the last. */
void stack_variables(const struct stack *stack, pid_t pid, struct list *list)
{
	size_t count = stack->vector - 1 - stack->variables;
	if (!count)
		return;
	uint64_t first = item(stack, stack->variables), last = item(stack, stack->variables + count - 1);
	size_t before = (size_t)(last - first);
	char *texts = last >= first && before < MOST ? malloc(before + 1) : NULL;
	bool whole = texts && peek(pid, first, texts, before) == (ssize_t)before;
	list->items = must(malloc(count * sizeof *list->items));
	for (size_t i = 0; i < count; i++) {
		uint64_t at = item(stack, stack->variables + i) - first;
		char *text = whole && at < before ? must(strndup(texts + at, before - at)) : peek_text(pid, first + at);
		if (text)
			list->items[list->count++] = text;
	}
	free(texts);
}

/* The value of an entry of the auxiliary vector; 0: none. */
uint64_t stack_auxv(const struct stack *stack, uint64_t tag)
{
	for (size_t at = stack->vector; at + 1 < stack->items; at += 2)
		if (item(stack, at) == tag)
			return item(stack, at + 1);
	return 0;
}

/* Hides an entry of the auxiliary vector from the program (AT_IGNORE), in its memory and in the copy. */
void stack_hide_auxv(struct stack *stack, pid_t pid, uint64_t tag)
{
	uint64_t ignore = AT_IGNORE;
	for (size_t at = stack->vector; at + 1 < stack->items; at += 2)
		if (item(stack, at) == tag) {
			memcpy((char *)stack->table + at * stack->word, &ignore, stack->word);
			poke(pid, stack->at + at * stack->word, &ignore, stack->word);
		}
}

/* Writes the table again, lower on the stack, with LD_PRELOAD and CLEW_RING added after the other variables.
 * The library removes both again. An existing LD_PRELOAD is kept, behind the library. */
static bool add(struct stack *stack, pid_t pid, const struct list *list, const char *ring)
{
	char *preload;
	const char *theirs = NULL;
	size_t at_theirs = 0, count = 0;
	for (unsigned i = 0; i < list->count; i++)
		if (!theirs && !strncmp(list->items[i], CLEW_ENV_PRELOAD, sizeof CLEW_ENV_PRELOAD - 1)) {
			theirs = list->items[i] + sizeof CLEW_ENV_PRELOAD - 1;
			at_theirs = stack->variables + i;
		}
	if (asprintf(&preload, CLEW_ENV_PRELOAD "%s%s%s", library, theirs && *theirs ? ":" : "", theirs ? theirs : "") < 0)
		fail("out of memory");
	/* Always the same size: it moves the stack, and addresses must not differ between runs. */
	size_t preload_size = strlen(preload) + 1, ring_size = RING;
	size_t table_size = (stack->items + 2) * 8, size = table_size + preload_size + ring_size;
	/* 128: the red zone. The ABI wants the stack aligned to 16 bytes. */
	uint64_t at = (stack->at - 128 - size) & ~15ull, texts = at + table_size;
	uint64_t *all = must(malloc(size)), *old = stack->table;
	for (size_t i = 0; i < stack->items; i++) {
		if (i == stack->vector - 1) { /* before the NULL that ends the variables */
			if (!theirs)
				all[count++] = texts;
			all[count++] = texts + preload_size;
		}
		all[count++] = theirs && i == at_theirs ? texts : old[i];
	}
	table_size = count * 8;
	memcpy((char *)all + (texts - at), preload, preload_size);
	memcpy((char *)all + (texts - at) + preload_size, ring, ring_size);
	/* The stack pointer moves only after the table is complete: on failure the program starts as it was. */
	bool done = poke(pid, at, all, size);
	free(all);
	free(preload);
	if (!done)
		return false;
	return stack_pointer_move(stack, pid, at);
}

/* Whether the library was injected. Not into a program of another user, which could open neither the library
 * nor the ring, nor into a privileged one, for which the loader ignores LD_PRELOAD. These are traced by stops
 * instead. */
bool stack_inject(struct stack *stack, struct proc *proc, const struct list *list)
{
	char ring[RING] = "";
	if (!library || !rings_path()[0] || proc->other_root || stack->word != 8 || stack_auxv(stack, AT_SECURE) ||
	    stack_auxv(stack, AT_EUID) != geteuid())
		return false;
	/* The slot must be known before: it is part of the variable. */
	ring_assign(proc);
	if (!proc->slot)
		return false;
	snprintf(ring, sizeof ring, CLEW_ENV_RING "%u:%s", proc->slot, rings_path());
	return add(stack, proc->pid, list, ring);
}
