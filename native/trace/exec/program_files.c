/* The files of a program: what the kernel will load for an exec (script, interpreter, loader).
 *
 * The kernel opens them itself, so no open call is seen for them: the tracer has to find them as the kernel does. */
#include "exec/image.h"
#include "arch.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
void image_inspect(struct task *task, struct image *image, const char *path)
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
