/* What the parts of the injected library share. */
#ifndef CLEW_INJECT_H
#define CLEW_INJECT_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Records that a URL was asked for; the text need not be terminated. */
void record_fetch(const char *url, size_t size);

#endif
