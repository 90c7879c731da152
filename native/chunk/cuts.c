/* Content-defined chunking: the ends of the chunks of some bytes.
 *
 * A chunk ends where a hash of the last bytes (at most 64) starts with enough zero bits. So the
 * same bytes are cut at the same places wherever they are in a file, and an edit changes only the
 * chunks around it. The first 64 KiB of a chunk, its minimum size, are not hashed, which saves half
 * of the work (as in FastCDC). docs/formats/store.md defines the function: another one would be as
 * correct, but would share no chunks with contents that are stored already.
 */
#include <stddef.h>
#include <stdint.h>

enum { SMALLEST = 64 << 10, LARGEST = 1 << 20 };
enum { ZERO_BITS = 16 }; /* on average 64 KiB after SMALLEST */

static uint64_t gear[256];

/* The hash adds one random number for each byte. They come from splitmix64, started at 0, so that
 * the format needs no table. Two threads that fill the table at once write the same numbers. */
static void fill_gear(void) {
    uint64_t state = 0;
    for (size_t i = 0; i < 256; i++) {
        uint64_t mixed = state += 0x9e3779b97f4a7c15;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        gear[i] = mixed ^ (mixed >> 31);
    }
}

/* The length of the first chunk of `length` bytes, which are more than SMALLEST. */
static size_t chunk_length(const uint8_t *data, size_t length) {
    const uint64_t limit = (uint64_t)1 << (64 - ZERO_BITS);
    uint64_t hash = 0;
    size_t at = SMALLEST;
    if (length > LARGEST)
        length = LARGEST;
    for (; at < length; at++) {
        hash = (hash << 1) + gear[data[at]];
        if (hash < limit)
            break;
    }
    return at;
}

/* Write the ends of the chunks of data[0..length) to `ends`, which has room for
 * length / SMALLEST + 1 of them, and return their number. The last one is `length`. */
__attribute__((visibility("default"))) size_t clew_cuts(const uint8_t *data, size_t length,
                                                        uint64_t *ends) {
    size_t count = 0, start = 0;
    fill_gear();
    while (length - start > SMALLEST)
        ends[count++] = start += chunk_length(data + start, length - start);
    if (start < length)
        ends[count++] = length;
    return count;
}
