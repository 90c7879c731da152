/* What the tracer and the injected library agree on.
 *
 * The library maps two pages at a fixed address. The first holds `syscall; ret`: the seccomp
 * filter lets the harmless calls pass when they come from there, and only then, so whatever
 * does not come through the library is stopped and seen by the tracer. The second says which
 * ring of the shared file is this process's own; the tracer fills it in, also after a fork.
 *
 * The loader and the C library make some calls by instructions of their own, which the library cannot
 * replace by name. Where such a call stops, the tracer turns it into a jump to a detour, on the first page
 * behind the code there, and from then on it comes through the library, too.
 *
 * Before the library's constructor runs, the loader opens all that a program is linked with. So as soon as
 * the library itself is mapped, the tracer maps the two pages and has the loader run `early_entry`, the entry
 * point of the library, which sets up the rest; nothing there may need a relocation.
 *
 * The address lies below 0x200000, where no linker puts a program by default, and above the
 * lowest address the kernel allows to be mapped.
 */
#ifndef CLEW_WIRE_H
#define CLEW_WIRE_H

#include <stdint.h>

#define CLEW_CODE 0x110000ul
#define CLEW_PASS (CLEW_CODE + 2) /* the instruction pointer a passing call shows */
#define CLEW_LOCAL (CLEW_CODE + 0x1000)
#define CLEW_MAGIC 0x31574c43u
#define CLEW_DETOURS (CLEW_CODE + 0x100)
#define CLEW_MAX_DETOURS 16

#define CLEW_SLOTS 1024 /* slot 0 is the header; a process without a slot is stopped instead */
#define CLEW_SLOT_SIZE 65536
#define CLEW_DATA (CLEW_SLOT_SIZE - 64)
#define CLEW_HALF (CLEW_DATA / 2) /* past this the library asks to be drained: it lets itself be stopped */

#define CLEW_ENV_PRELOAD "LD_PRELOAD="
#define CLEW_ENV_RING "CLEW_RING="

struct clew_local {
	uint32_t magic;
	uint32_t slot; /* 0: none; the tracer writes it */
	uint64_t base; /* where the shared file is mapped here */
	uint64_t handler; /* where the library takes a call over from a detour; 0: nowhere yet */
	uint64_t libc, libc_end; /* the code of the C library; 0: unknown */
	uint64_t return_to;		 /* where the loader goes on after `early_entry` */
	char path[128];		 /* of the shared file, for `early_entry` */
};

struct clew_detour {
	uint8_t code[16]; /* comes to `over` with its own address in rcx */
	uint64_t return_to;	  /* behind the call */
};

/* The first slot. */
struct clew_head {
	uint64_t seq; /* one order over all rings and all stops */
	uint32_t magic;
};

/* Every other slot: a ring of records with several writers (threads) and one reader. */
struct clew_ring {
	uint32_t head; /* reserved up to here; grows without end */
	uint32_t tail; /* read up to here */
	uint8_t pad[56];
	uint8_t data[CLEW_DATA];
};

enum clew_kind {
	CLEW_PAD = 1,
	CLEW_OPEN,     /* flags: the open flags; real: the canonical path */
	CLEW_STAT,     /* existence and times asked; flags 1: the link itself */
	CLEW_ACCESS,   /* existence asked */
	CLEW_READLINK, /* real: the target */
	CLEW_REALPATH, /* real: the canonical path */
	CLEW_FETCH,    /* path: a URL that was asked for */
};

struct clew_facts {
	uint64_t dev, ino, size;
	int64_t mtime, ctime; /* nanoseconds */
	uint32_t mode;
};

/* `size` is written last: a record is there when it is not zero. Paths follow, not terminated. */
struct clew_record {
	uint32_t size;
	uint32_t kind;
	uint64_t seq;
	struct clew_facts facts;
	int32_t result; /* 0 or -errno */
	uint32_t flags;
	uint16_t path_size, real_size;
};

#endif
