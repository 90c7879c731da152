/* Which URLs a program requests: read from the first line and the Host header of HTTP requests.
 *
 * Plain requests pass through send(), encrypted ones through SSL_write_ex(), which Python's ssl module uses
 * (requests, urllib, httpx, huggingface_hub). Only method, host and path are looked at; nothing else of what
 * is sent is kept. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "inject.h"

/* Bytes of a URL: shorter than PATH_LIMIT, with room for the record. */
#define LONGEST 900

extern int dladdr(const void *, Dl_info *) __attribute__((weak));
extern void *dlopen(const char *, int) __attribute__((weak));

static size_t put(char *to, size_t at, const char *text, size_t size)
{
	for (size_t i = 0; i < size && at < LONGEST; i++)
		to[at++] = text[i];
	return at;
}

/* The length up to `end` or the end of the line. */
static size_t until(const char *text, size_t size, char end)
{
	size_t n = 0;
	while (n < size && text[n] != end && text[n] != '\r' && text[n] != '\n')
		n++;
	return n;
}

/* Compares without case; `word` is in lower case. */
static int same(const char *text, const char *word, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((text[i] | 0x20) != word[i])
			return 0;
	return 1;
}

/* Records the URL of a GET request; other methods do not fetch a file. */
static void record_request(const char *scheme, size_t scheme_size, const char *data, size_t size)
{
	char url[LONGEST];
	if (size < 16 || data[0] != 'G' || data[1] != 'E' || data[2] != 'T' || data[3] != ' ')
		return;
	size_t path = until(data + 4, size - 4, ' ');
	if (data[4] != '/' || path >= size - 4)
		return;
	for (size_t at = 4 + path; at + 8 < size; at++) {
		if (data[at] != '\n' || !same(data + at + 1, "host:", 5))
			continue;
		size_t host = at + 6;
		while (host < size && data[host] == ' ')
			host++;
		size_t used = put(url, 0, scheme, scheme_size);
		used = put(url, used, data + host, until(data + host, size - host, ' '));
		used = put(url, used, data + 4, path);
		record_fetch(url, used);
		return;
	}
}

/* The C library sends by the same call; a request may be cut here, and then only what was sent counts. */
EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
	long sent = traced_call(SYS_sendto, fd, (long)data, (long)size, flags, 0, 0);
	if (sent > 0) /* the kernel could read the buffer, so reading it here is safe */
		record_request("http://", 7, data, (size_t)sent);
	return libc_result(sent);
}

typedef int write_fn(void *, const void *, size_t, size_t *);
EXPORT write_fn SSL_write_ex;

/* The function that the caller would have called without this library. Looked up from the object of the
 * caller, because several copies of OpenSSL may be loaded side by side. */
static write_fn *next_function(void *caller)
{
	static struct {
		void *caller;
		write_fn *found;
	} known[16];
	static unsigned count;
	for (unsigned i = 0; i < 16; i++)
		if (__atomic_load_n(&known[i].caller, __ATOMIC_ACQUIRE) == caller)
			return known[i].found;
	Dl_info info;
	if (!dladdr || !dlopen || !dlsym || !dladdr(caller, &info) || !info.dli_fname)
		return NULL;
	void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	write_fn *found = object ? (write_fn *)dlsym(object, "SSL_write_ex") : NULL;
	if (!found || found == SSL_write_ex) /* the program itself called: its libraries come after this one */
		found = (write_fn *)dlsym(RTLD_NEXT, "SSL_write_ex");
	/* Threads may come here at once: each takes a place, and fills `caller` last. */
	unsigned at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	if (found && at < 16) {
		known[at].found = found;
		__atomic_store_n(&known[at].caller, caller, __ATOMIC_RELEASE);
	}
	return found;
}

EXPORT int SSL_write_ex(void *ssl, const void *data, size_t size, size_t *written)
{
	write_fn *next = next_function(__builtin_return_address(0));
	record_request("https://", 8, data, size);
	return next ? next(ssl, data, size, written) : 0;
}
