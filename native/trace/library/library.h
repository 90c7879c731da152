/* The injected library as the tracer sees it: its rings, detours and set-up, and the holder of its files. */
#ifndef CLEW_LIBRARY_H
#define CLEW_LIBRARY_H

#include "tasks.h"

/* rings.c */
extern uint64_t *sequence;
uint64_t next_seq(void); /* gives one order to all records, those of the rings included */
void rings_open(void);
const char *rings_path(void);
int rings_file(void);
pid_t rings_holder(void);
void rings_set_holder(pid_t pid);
void ring_assign(struct proc *proc);
void ring_release(struct proc *proc);
void ring_set_up_child(struct proc *proc); /* writes the slot into the memory of the process */
void ring_share(struct proc *parent, struct proc *child, bool parent_waits);
void ring_take_back(struct proc *child);
void ring_unshare(struct proc *child);
void ring_drain(struct proc *proc);
void rings_drain(void);
bool is_ring_path(const char *path);
bool is_ring_file(const struct clew_facts *facts);

/* detours.c */
#define NO_LIBRARY (CLEW_MAX_DETOURS + 1) /* as a count of detours: more than allowed, so none is tried */
bool detour_try(struct task *task); /* whether the process makes the call again */
uint64_t detour_site(const struct task *task); /* address of the two instructions that made this call; 0: not changeable */
unsigned detours_install_known(struct task *task, struct clew_detour *detours);
void detours_remove_known(struct task *task);

/* early_setup.c */
void early_set_library(const char *path);
bool early_enter(struct task *task); /* whether the call that stopped is part of the set-up */

/* tracer_protection.c */
void close_all_but(int *kept, unsigned count);
pid_t holder_start(int library, int ring);

#endif
