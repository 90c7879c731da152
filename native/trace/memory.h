/* Memory, paths and file states of the traced processes (memory.c). */
#ifndef CLEW_MEMORY_H
#define CLEW_MEMORY_H

#include "tasks.h"

ssize_t peek(pid_t pid, uint64_t address, void *to, size_t size);
bool poke(pid_t pid, uint64_t address, const void *from, size_t size);
/* These three return new memory. */
char *peek_text(pid_t pid, uint64_t address);
char *absolute(struct task *task, int dirfd, const char *path);
char *canonical(const char *path, bool follow);
void strip_deleted_mark(char *path);
/* These two write up to PATH_MAX_ bytes. */
bool link_path(int folder, const char *link, char *to);
bool descriptor_path(pid_t pid, int fd, char *to);
bool facts_at(int folder, const char *path, bool follow, struct clew_facts *facts);
bool facts_of(const char *path, bool follow, struct clew_facts *facts);
void facts_from(const struct stat *st, struct clew_facts *facts);

#endif
