/* What a program is started with besides its arguments and files: its descriptors, umask, signals, user,
 * limits. Reuse compares it: two starts that agree in this, in arguments and variables, and in what they
 * see of files behave alike.
 *
 * The list is filled for one program at a time, then written. */
#include "exec/exec.h"
#include "library/library.h"
#include "memory.h"
#include "records/records.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Further descriptors are left out. */
#define MAX_DESCRIPTORS 256

/* One list for all: a program is recorded at a time, and each entry holds a whole path. */
static struct descriptor list[MAX_DESCRIPTORS];
static unsigned count;

void descriptors_clear(void) { count = 0; }

/* Offset and open flags of a descriptor, from its fdinfo (flags are octal there). */
static void read_fdinfo(pid_t pid, int fd, struct descriptor *held)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, fd);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	if (size <= 0)
		return;
	text[size] = 0;
	const char *flags = strstr(text, "flags:");
	held->offset = !strncmp(text, "pos:", 4) ? strtoll(text + 4, NULL, 10) : -1;
	held->flags = flags ? (uint32_t)strtoul(flags + 6, NULL, 8) : 0;
}

/* The descriptor by which another process has the same open file description, so that both share one offset;
 * -1: none. Names are compared first: kcmp is a system call per pair. */
static int find_shared_fd(pid_t other, pid_t pid, const struct descriptor *held)
{
	char folder[64], name[PATH_MAX_];
	int found = -1;
	/* It was most likely inherited under the same number. */
	if (!syscall(SYS_kcmp, pid, other, KCMP_FILE, held->fd, held->fd))
		return held->fd;
	snprintf(folder, sizeof folder, "/proc/%d/fd", other);
	DIR *entries = opendir(folder);
	for (struct dirent *entry; entries && found < 0 && (entry = readdir(entries));) {
		int fd = atoi(entry->d_name);
		if (entry->d_name[0] == '.' || !descriptor_path(other, fd, name) || strcmp(name, held->name))
			continue;
		if (!syscall(SYS_kcmp, pid, other, KCMP_FILE, held->fd, fd))
			found = fd;
	}
	if (entries)
		closedir(entries);
	return found;
}

/* Offset and sharing matter for regular files only: a pipe has no offset. */
void descriptors_add(struct proc *proc, int fd, int access_mode, const char *name, const struct clew_facts *facts)
{
	struct descriptor *held = &list[count];
	if (count == MAX_DESCRIPTORS)
		return;
	*held = (struct descriptor){.fd = fd, .access_mode = access_mode, .offset = -1, .parent_fd = -1};
	snprintf(held->name, sizeof held->name, "%s", name);
	if (facts && S_ISREG(facts->mode)) {
		held->size = (int64_t)facts->size;
		read_fdinfo(proc->pid, fd, held);
		if (proc->parent && !proc->parent->gone)
			held->parent_fd = find_shared_fd(proc->parent->pid, proc->pid, held);
	}
	count++;
}

const struct descriptor *descriptors_all(unsigned *size)
{
	*size = count;
	return list;
}

void descriptors_write(void)
{
	out_array(count);
	for (unsigned i = 0; i < count; i++) {
		out_array(6);
		out_int(list[i].fd);
		out_int(list[i].access_mode);
		out_text(list[i].name);
		out_int(list[i].offset);
		out_int((list[i].flags & O_APPEND ? 1 : 0) | (list[i].parent_fd >= 0 ? 2 : 0));
		out_int(list[i].size);
	}
}

/* Where the program left the offset of files that its parent reads as well: the parent reads on from there, so
 * a reused program must move the offset too. Read from the parent, because the program may have closed its own
 * descriptor. */
void descriptors_record_offsets(struct proc *proc)
{
	for (unsigned i = 0; i < proc->shared_count; i++) {
		struct descriptor held = {.offset = -1};
		if (proc->parent && !proc->parent->gone)
			read_fdinfo(proc->parent->pid, proc->shared[i].parent_fd, &held);
		out_begin(R_PLACE, next_seq(), proc->image, 2);
		out_int(proc->shared[i].fd);
		out_int(held.offset);
		out_end();
	}
	proc->shared_count = 0;
}

/* Notes the files whose offset must be recorded when the program ends. */
static void remember_shared(struct proc *proc)
{
	for (unsigned i = 0; i < count && proc->shared_count < sizeof proc->shared / sizeof *proc->shared; i++)
		if (list[i].access_mode & 1 && list[i].parent_fd >= 0) {
			proc->shared[proc->shared_count].fd = list[i].fd;
			proc->shared[proc->shared_count++].parent_fd = list[i].parent_fd;
		}
}

/* Records what a program that was just started holds (R_HELD). */
void descriptors_record(struct proc *proc)
{
	proc->shared_count = 0;
	remember_shared(proc);
	out_begin(R_HELD, next_seq(), proc->image, 2);
	out_text(process_attributes(proc));
	descriptors_write();
	out_end();
}

/* Fills the list with what the program will hold after an exec that has not happened yet: all that is not
 * close-on-exec. */
void descriptors_after_exec(struct proc *proc)
{
	char folder[64], link[96], name[PATH_MAX_];
	descriptors_clear();
	snprintf(folder, sizeof folder, "/proc/%d/fd", proc->pid);
	DIR *entries = opendir(folder);
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		struct stat own;
		struct clew_facts facts;
		struct descriptor info = {.fd = atoi(entry->d_name)};
		if (entry->d_name[0] == '.')
			continue;
		snprintf(link, sizeof link, "%s/%d", folder, info.fd);
		read_fdinfo(proc->pid, info.fd, &info);
		if (info.flags & O_CLOEXEC || lstat(link, &own) || !descriptor_path(proc->pid, info.fd, name))
			continue;
		int access_mode = (own.st_mode & S_IRUSR ? 1 : 0) | (own.st_mode & S_IWUSR ? 2 : 0);
		descriptors_add(proc, info.fd, access_mode, name, facts_of(link, true, &facts) ? &facts : NULL);
	}
	if (entries)
		closedir(entries);
}

/* The value of a line of /proc/PID/status. */
static void status_line(const char *status, const char *name, char *to, size_t room)
{
	const char *at = strstr(status, name);
	size_t size = at ? strcspn(at += strlen(name) + 1, "\n") : 0;
	snprintf(to, room, "%.*s", (int)size, at ? at : "");
}

/* Resource limits, CPU affinity and priority as one hash: a program may behave differently under others. */
static uint64_t hash_limits(pid_t pid)
{
	uint64_t hash = 1;
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit = {0, 0};
		syscall(SYS_prlimit64, pid, i, NULL, &limit);
		hash = hash_bytes(hash, &limit, sizeof limit);
	}
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	sched_getaffinity(pid, sizeof cpus, &cpus);
	hash = hash_bytes(hash, &cpus, sizeof cpus);
	int nice = getpriority(PRIO_PROCESS, (id_t)pid);
	return hash_bytes(hash, &nice, sizeof nice);
}

/* The attributes of a process as text; NULL when they are those of the first program, which is the usual case
 * and need not be written. */
const char *process_attributes(struct proc *proc)
{
	static char first[320], now[320];
	char path[64], text[4096], umask[16], ignored[32], blocked[32], users[64], groups[64];
	snprintf(path, sizeof path, "/proc/%d/status", proc->pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	text[size > 0 ? size : 0] = 0;
	status_line(text, "\nUmask:", umask, sizeof umask);
	status_line(text, "\nSigIgn:", ignored, sizeof ignored);
	status_line(text, "\nSigBlk:", blocked, sizeof blocked);
	status_line(text, "\nUid:", users, sizeof users);
	status_line(text, "\nGid:", groups, sizeof groups);
	snprintf(now, sizeof now, "umask %s ignored %s blocked %s users %s groups %s limits %016lx", umask, ignored,
		 blocked, users, groups, hash_limits(proc->pid));
	if (!first[0])
		strcpy(first, now);
	return strcmp(first, now) ? now : NULL;
}
