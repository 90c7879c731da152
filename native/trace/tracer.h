/* The run as a whole: what main.c, command.c and ptrace_stops.c share. */
#ifndef CLEW_TRACER_H
#define CLEW_TRACER_H

#include "tasks.h"

#include <sys/resource.h>

struct run {
	bool prompt;   /* write what a child of the command did when it ends, not at the next tick */
	bool steps;    /* the command divides its work into steps */
	bool isolated; /* the command is not trusted */
	bool init;     /* behave as the first process of a container */
	bool ended;    /* the command has ended */
	pid_t root;    /* the command */
	int status;    /* of the command; 125 as long as it has not ended: then the tracer failed */
};
extern struct run run;

/* command.c */
void environment_read(const char *path);
bool command_open(char *option); /* an --open option; false: there are too many */
void ignore_signals(void);
void forward_signals(void);
void start_command(char **command);

/* ptrace_stops.c */
void handle_stop(struct task *task, int status);
void handle_end(struct task *task, int status, const struct rusage *usage);

#endif
