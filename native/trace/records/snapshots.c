/* Snapshot before mutation: the tracer keeps content before a call overwrites or deletes it.
 *
 * Content is kept if a process of this run has read it, or if it remains part of the changed file (an
 * append). The call waits meanwhile, so the bytes are those that were read. A reflink where the file system
 * can; a hard link where only the name goes away; otherwise a copy. Nothing else is ever copied. */
#include "library/library.h"
#include "memory.h"
#include "records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What is known of a file, by inode: names come and go, the content belongs to the inode. */
struct inode {
	uint64_t dev, ino;
	bool used, read, written;
	int64_t saved_mtime, saved_ctime; /* the state that was already kept: times that differ mean new content */
};

static struct snapshot_options options;
static struct inode *table;
static size_t table_size, table_count;
static unsigned names;

void snapshots_start(const struct snapshot_options *given) { options = *given; }

/* Open addressing with linear probing. */
static struct inode *find_slot(struct inode *in, size_t size, uint64_t dev, uint64_t ino)
{
	size_t at = hash_bytes(dev, &ino, sizeof ino) & (size - 1);
	while (in[at].used && (in[at].dev != dev || in[at].ino != ino))
		at = (at + 1) & (size - 1);
	return &in[at];
}

static struct inode *inode_of(const struct clew_facts *facts)
{
	if (table_count * 2 >= table_size) {
		size_t size = table_size ? table_size * 2 : 4096;
		struct inode *larger = must(calloc(size, sizeof *larger));
		for (size_t i = 0; i < table_size; i++)
			if (table[i].used)
				*find_slot(larger, size, table[i].dev, table[i].ino) = table[i];
		free(table);
		table = larger;
		table_size = size;
	}
	struct inode *inode = find_slot(table, table_size, facts->dev, facts->ino);
	if (!inode->used) {
		*inode = (struct inode){.dev = facts->dev, .ino = facts->ino, .used = true};
		table_count++;
	}
	return inode;
}

/* A process has read this file: its content is an input and must be kept before it changes. */
void snapshots_note_read(const struct clew_facts *facts)
{
	if (S_ISREG(facts->mode))
		inode_of(facts)->read = true;
}

/* The run has written this file: its content is an output of the run. Keep it only if it is read again. */
void snapshots_note_write(const struct clew_facts *facts)
{
	if (S_ISREG(facts->mode)) {
		struct inode *inode = inode_of(facts);
		inode->written = true;
		inode->read = false;
	}
}

/* Whether an --exclude pattern matches the path. */
static bool excluded(const char *path)
{
	for (unsigned i = 0; i < options.exclude_count; i++)
		if (!fnmatch(options.exclude[i], path, 0))
			return true;
	return false;
}

/* Lets the kernel copy if it can (copy_file_range), else copies through a buffer. 0 or errno. */
static int copy_range(int from, int to, off_t at, off_t end)
{
	static char buffer[1 << 18];
	bool kernel = true;
	while (at < end) {
		ssize_t n;
		if (kernel) {
			loff_t in = at, out = at;
			n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
			if (n <= 0) {
				kernel = false;
				continue;
			}
		} else {
			size_t want = (size_t)(end - at) < sizeof buffer ? (size_t)(end - at) : sizeof buffer;
			n = pread(from, buffer, want, at);
			if (n <= 0)
				return n ? errno : 0;
			if (pwrite(to, buffer, (size_t)n, at) != n)
				return errno ? errno : ENOSPC;
		}
		at += n;
	}
	return 0;
}

/* Copies a file; holes stay holes, so a sparse file of terabytes costs what it holds. */
static int copy_file(int from, int to, off_t size)
{
	/* A reflink shares the blocks and takes no time, on file systems that have it (btrfs, XFS). */
	if (!ioctl(to, FICLONE, from))
		return 0;
	if (ftruncate(to, size))
		return errno;
	for (off_t at = 0; at < size;) {
		off_t data = lseek(from, at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : copy_range(from, to, at, size);
		off_t hole = lseek(from, data, SEEK_HOLE);
		int error = copy_range(from, to, data, hole < 0 ? size : hole);
		if (error)
			return error;
		at = hole < 0 ? size : hole;
	}
	return 0;
}

/* Keeps the content of a file in the spool; 0 or errno. */
static int keep_content(const char *path, const char *to, bool loses_name, struct clew_facts *facts, const char **how)
{
	struct stat st;
	/* The last name goes away and the inode with it: a hard link keeps both. With more names the file could
	 * still be changed through another one, and the link with it. */
	if (loses_name && !stat(path, &st) && st.st_nlink == 1 && !link(path, to)) {
		*how = "link";
		return 0;
	}
	*how = "copy";
	/* O_NONBLOCK: opening a named pipe must not block the tracer. */
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (from < 0)
		return errno;
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error;
	if (out < 0) {
		error = errno;
	} else {
		error = fstat(from, &st) ? errno : 0;
		if (!error) {
			facts_from(&st, facts);
			error = copy_file(from, out, st.st_size);
		}
		/* Another process wrote during the copy: these are not the bytes of one moment. */
		struct clew_facts after;
		if (!error && (fstat(from, &st) || (facts_from(&st, &after), after.mtime != facts->mtime)))
			error = EBUSY;
		close(out);
		if (error)
			unlink(to);
	}
	close(from);
	return error;
}

/* `loses_name`: the change removes this name and leaves the bytes. `keeps_bytes`: the old content becomes part
 * of the new (an append, a change in place). */
void snapshot_before_change(struct proc *proc, const char *path, bool loses_name, bool keeps_bytes)
{
	struct clew_facts facts;
	struct stat st;
	if (!options.folder || (loses_name ? lstat : stat)(path, &st) || !S_ISREG(st.st_mode))
		return;
	facts_from(&st, &facts);
	struct inode *inode = inode_of(&facts);
	bool needed = inode->read || (keeps_bytes && !inode->written);
	/* Nothing to keep: not an input, empty, or this state is already in the spool. */
	if (!needed || !facts.size || (inode->saved_mtime == facts.mtime && inode->saved_ctime == facts.ctime))
		return;
	char *real = canonical(path, !loses_name);
	if (!excluded(real)) {
		char name[32], to[PATH_MAX_];
		const char *how;
		snprintf(name, sizeof name, "saved-%u", ++names);
		snprintf(to, sizeof to, "%s/%s", options.folder, name);
		int error = keep_content(real, to, loses_name, &facts, &how);
		if (!error) {
			inode->saved_mtime = facts.mtime;
			inode->saved_ctime = facts.ctime;
		}
		/* A failure is recorded as well: the reader then reports that this version is lost. */
		out_begin(R_SAVED, next_seq(), proc->image, 5);
		out_text(real);
		out_facts(&facts);
		out_text(how);
		out_text(name);
		out_int(error);
		out_end();
	}
	free(real);
}
