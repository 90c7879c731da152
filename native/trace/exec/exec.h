/* Starting a program: the exec, its stack, what it inherits, and whether it needs to run. */
#ifndef CLEW_EXEC_H
#define CLEW_EXEC_H

#include "tasks.h"

/* exec_arguments.c */
struct list { /* arguments or variables */
	char **items;
	unsigned count;
	size_t bytes;
};
void list_read(struct list *list, pid_t tid, uint64_t address, size_t word);
void list_free(struct list *list);
void list_out(const struct list *list);
int64_t variables_number(const struct list *list); /* writes the list if it is new */

/* images.c */
bool image_enter(struct task *task, const char *path); /* whether the tracer must stop when it returns */
bool image_outcome_pending(const struct task *task);   /* an exec whose outcome the next stop tells */
void image_started(struct task *task);		       /* the exec succeeded */
void image_failed(struct task *task);		       /* it did not */

/* descriptors.c */
void image_record_descriptors(struct proc *proc, bool files);
void image_ending(struct proc *proc);

/* initial_stack.c */
struct stack {
	struct user_regs_struct registers;
	uint64_t at;			       /* the stack pointer */
	size_t word, items, variables, vector; /* bytes of a word; words in all; where the variables and the auxiliary vector begin */
	void *table;
};
void stack_set_library(const char *path);
bool stack_is_library(const char *path);
char *stack_find_library(char *text); /* where its path occurs; NULL: nowhere */
bool stack_read(struct stack *stack, pid_t pid);
void stack_variables(const struct stack *stack, pid_t pid, struct list *list);
uint64_t stack_auxv(const struct stack *stack, uint64_t tag); /* 0: none */
void stack_hide_auxv(struct stack *stack, pid_t pid, uint64_t tag);
bool stack_inject(struct stack *stack, struct proc *proc, const struct list *list);
void stack_free(struct stack *stack);

/* inherited_state.c */
struct descriptor {
	int fd, access_mode; /* access_mode: 1 for reading, 2 for writing, 3 for both */
	char name[PATH_MAX_];
	int64_t offset, size; /* of a regular file; offset -1: it is none */
	uint32_t flags;
	int parent_fd; /* the descriptor by which the parent has the same open file description; -1: none */
};
void descriptors_clear(void);
void descriptors_add(struct proc *proc, int fd, int access_mode, const char *name, const struct clew_facts *facts);
void descriptors_after_exec(struct proc *proc);
const struct descriptor *descriptors_all(unsigned *count);
void descriptors_write(void);
void descriptors_record_offsets(struct proc *proc);
void descriptors_record(struct proc *proc);
const char *process_attributes(struct proc *proc);

/* reuse.c */
void reuse_open(int fd);
bool reuse_enabled(void);
bool reuse_instead_of_exec(struct task *task, const struct list *arguments, const struct list *variables);

#endif
