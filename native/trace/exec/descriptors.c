/* Descriptors that a program inherits, and those by which processes exchange data.
 *
 * A program may read and write through a descriptor that it never opened itself (`sort < raw > mid`). So the
 * open descriptors of a process are recorded when a program starts in it, from /proc. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"
#include "records/records.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
 * with them; otherwise only pipes and sockets, which show which processes exchange data. */
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
