/* What newer kernels than the headers on a build machine may have added to the protocol. */
#ifndef CLEW_LAYER_PROTOCOL_H
#define CLEW_LAYER_PROTOCOL_H

#include <linux/fuse.h>
#include <sys/ioctl.h>

#define INIT_PASSTHROUGH (1ull << 37)
#define OPENED_PASSTHROUGH (1u << 7)

struct backing_map {
    int32_t descriptor;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

struct init_answer { /* fuse_init_out, with the depth of stacked file systems */
    uint32_t major, minor, max_readahead, flags;
    uint16_t max_background, congestion_threshold;
    uint32_t max_write, time_granularity;
    uint16_t max_pages, map_alignment;
    uint32_t flags2, max_stack_depth, unused[6];
};

struct open_answer { /* fuse_open_out, with the id of the file below */
    uint64_t handle;
    uint32_t flags;
    int32_t backing;
};

#endif
