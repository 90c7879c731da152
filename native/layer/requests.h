#ifndef CLEW_LAYER_REQUESTS_H
#define CLEW_LAYER_REQUESTS_H

#include "layer.h"
#include "protocol.h"

/* files.c */
void files_begin(bool passthrough);
int files_open(int device, struct node *node, int descriptor, uint32_t flags,
               const struct stat *status, bool created, struct open_answer *answer);
void files_close(int device, struct open_file *file);

/* answers.c */
void answer(uint64_t unique, int error, const void *data, size_t size);
void fill_attributes(const struct stat *status, struct fuse_attr *attr);
void fill_entry(const struct stat *status, struct node *node, struct fuse_entry_out *entry);
void answers_begin(int device, uint64_t seconds);
uint64_t valid_seconds(void);

/* directories.c */
void read_directory(const struct fuse_in_header *in, const struct fuse_read_in *args, bool plus);

/* names.c: requests that change names */
void create_file(int device, const struct fuse_in_header *in, const void *body);
void make_entry(const struct fuse_in_header *in, const void *body);
void remove_entry(const struct fuse_in_header *in, const char *name);
void rename_entry(const struct fuse_in_header *in, const void *body);
void link_entry(const struct fuse_in_header *in, const void *body);
void users_begin(void);
void become(const struct fuse_in_header *in);
void become_again(const struct fuse_in_header *in);

#endif
