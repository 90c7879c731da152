/* The memory layout that the tracer and the injected library share.
 *
 * The library maps two pages at a fixed address. The first holds `syscall; ret`. The seccomp filter lets
 * the harmless calls pass when their instruction pointer is there, and only then, so every call that does
 * not come through the library is stopped and seen by the tracer. The second page says which ring of the
 * shared file belongs to this process. The tracer writes it, also after a fork.
 *
 * The loader and the C library make some calls with `syscall` instructions of their own, which the library
 * cannot replace by name. Where such a call stops, the tracer turns it into a jump to a detour (on the
 * first page, behind the code), and from then on it goes through the library, too.
 *
 * The loader opens the libraries of a program before the constructor of the injected library runs. So as
 * soon as the library is mapped, the tracer has the loader run `early_entry`, the entry point of the
 * library, which maps the two pages. The library is not relocated yet at that moment, so nothing there may
 * need a relocation.
 *
 * The address lies below 0x200000, where no linker puts a program by default, and above the lowest
 * address that the kernel allows to map (vm.mmap_min_addr, 64 KiB). It is fixed because a seccomp filter
 * can only compare the instruction pointer with a constant. */
#ifndef CLEW_INJECT_LAYOUT_H
#define CLEW_INJECT_LAYOUT_H

#include <stdint.h>

#define CLEW_CODE 0x110000ul
#define CLEW_PASS (CLEW_CODE + 2) /* the instruction pointer during a call: behind the 2 bytes of `syscall` */
#define CLEW_LOCAL (CLEW_CODE + 0x1000)
#define CLEW_MAGIC 0x31574c43u
/* Behind `syscall; ret`, on the page that is executable. */
#define CLEW_DETOURS (CLEW_CODE + 0x100)
#define CLEW_MAX_DETOURS 16

#define CLEW_SLOTS 1024 /* slot 0 is the header; a process without a slot is traced by stops */
#define CLEW_SLOT_SIZE 65536
#define CLEW_DATA (CLEW_SLOT_SIZE - 64)
#define CLEW_HALF (CLEW_DATA / 2) /* above this the library makes a call that stops, so that the tracer drains the ring */

/* The two variables that the tracer adds to a new program, and the library removes again. */
#define CLEW_ENV_PRELOAD "LD_PRELOAD="
#define CLEW_ENV_RING "CLEW_RING="

/* The second page. `magic` is written last: until then the tracer leaves the page alone. */
struct clew_local {
	uint32_t magic;
	uint32_t slot; /* 0: none, so every call is stopped; written by the tracer */
	uint64_t base; /* where the shared file is mapped here */
	uint64_t handler; /* the code in the library that a detour jumps to; 0: not set up yet */
	uint64_t libc, libc_end; /* the code of the C library, where detours are allowed; 0: unknown */
};

/* A replaced call of the loader or the C library. */
struct clew_detour {
	uint8_t code[16]; /* the replaced instruction, then a jump to `handler`; rcx holds the address of this struct */
	uint64_t return_to;	  /* the instruction behind the replaced call */
};

/* What `early_entry` needs. The tracer writes it to the stack, below the 128 bytes that the loader may use (the
 * red zone). */
struct clew_early {
	uint64_t return_to; /* where the loader continues */
	uint32_t slot;
	int32_t holder, file; /* the process that has the shared file open, and its descriptor there */
	uint32_t count;	      /* of detours */
	struct clew_detour detours[CLEW_MAX_DETOURS];
	char path[128]; /* of the shared file */
};
#define CLEW_EARLY 544 /* bytes on the stack: a multiple of 16 */

/* `early_entry` could not map the pages: it makes the call access(NULL, CLEW_UNDO), so that the tracer removes the
 * detours. */
#define CLEW_UNDO CLEW_MAGIC

/* The first slot. */
struct clew_head {
	uint64_t seq; /* gives one order to all rings and all stops */
	uint32_t magic;
};

/* Every other slot: a ring of records with several writers (the threads of a process) and one reader (the
 * tracer). */
struct clew_ring {
	/* 64 bits: CLEW_DATA does not divide 2^32, so the position would jump when 32 bits overflow. */
	uint64_t head; /* writers have reserved up to here; only grows, the position is head % CLEW_DATA */
	uint64_t tail; /* the tracer has read up to here */
	uint8_t pad[48];
	uint8_t data[CLEW_DATA];
};

enum clew_kind {
	CLEW_PAD = 1,
	CLEW_OPEN,     /* flags: the open flags; real: the canonical path */
	CLEW_STAT,     /* existence, size and times were queried; flags 1: of the link itself */
	CLEW_ACCESS,   /* existence or permission was queried */
	CLEW_READLINK, /* real: the target */
	CLEW_REALPATH, /* real: the canonical path */
	CLEW_FETCH,    /* path: a URL that was requested */
};

/* The state of a file: enough to notice that its content changed. */
struct clew_facts {
	uint64_t dev, ino, size;
	int64_t mtime, ctime; /* nanoseconds */
	uint32_t mode;
};

/* `size` is written last, with release order: a record exists once it is not zero. The tracer sets it back to
 * zero. The two paths follow the struct, without terminating zeros. */
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
