/* An exec between its entry and its outcome: what images.c and program_files.c share. */
#ifndef CLEW_IMAGE_H
#define CLEW_IMAGE_H

#include "exec/exec.h"

#define MAX_LOADED 6 /* a script, its interpreter, the interpreter of that, … and the loader */

struct image {
	struct list arguments;
	char *loaded[MAX_LOADED];
	unsigned loaded_count;
	const char *loader; /* points into `loaded`; NULL: static program */
	bool dynamic; /* a 64-bit program with a loader: the library can be injected */
	bool absent;  /* the tracer finds no such file */
	bool refused; /* a 32-bit program, where their calls cannot be recorded */
};

/* program_files.c: follows scripts to their interpreters, as the kernel does */
void image_inspect(struct task *task, struct image *image, const char *path);

#endif
