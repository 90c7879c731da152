/* Reuse: before a program is started, the tracer asks another process whether it needs to run at all.
 *
 * That process may already have done what the program would do (from an earlier record). Then the exec is
 * turned into an exit with the status that the program would have had. The question has the form of a
 * record (R_ASK, docs/formats/trace.md) and carries copies of the descriptors that the program would write
 * to; the answer is a `struct answer`. Nothing is asked about a file that cannot be executed. */
#include "arch.h"
#include "exec/exec.h"
#include "memory.h"
#include "records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors in one question. */
#define MAX_SENT 16

struct answer {
	uint32_t done; /* 0: run the program */
	uint32_t status;
	uint64_t token; /* names the reused execution in the trace */
};

/* -1: nothing is reused in this run. */
static int ask_socket = -1;

void reuse_open(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	ask_socket = fd;
}

bool reuse_enabled(void) { return ask_socket >= 0; }

/* Copies of the descriptors that the program could write to or whose offset it could move, in list order. The
 * answering process writes the output of the program through them. */
static unsigned copy_descriptors(struct proc *proc, int *to)
{
	unsigned count, found = 0;
	const struct descriptor *held = descriptors_all(&count);
	int process = (int)syscall(SYS_pidfd_open, proc->pid, 0);
	for (unsigned i = 0; i < count && process >= 0 && found < MAX_SENT; i++) {
		int copy = held[i].access_mode & 2 || held[i].offset >= 0 ? (int)syscall(SYS_pidfd_getfd, process, held[i].fd, 0) : -1;
		if (copy >= 0)
			to[found++] = copy;
	}
	if (process >= 0)
		close(process);
	return found;
}

/* The descriptors travel with the first byte (SCM_RIGHTS). */
static bool send_all(const void *data, size_t size, const int *copies, unsigned count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * MAX_SENT)];
	} control = {0};
	for (size_t done = 0; done < size;) {
		struct iovec rest = {(char *)data + done, size - done};
		struct msghdr message = {.msg_iov = &rest, .msg_iovlen = 1};
		if (!done && count) {
			message.msg_control = control.room;
			message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
			struct cmsghdr *header = CMSG_FIRSTHDR(&message);
			header->cmsg_level = SOL_SOCKET;
			header->cmsg_type = SCM_RIGHTS;
			header->cmsg_len = CMSG_LEN(sizeof(int) * count);
			memcpy(CMSG_DATA(header), copies, sizeof(int) * count);
		}
		ssize_t n = sendmsg(ask_socket, &message, MSG_NOSIGNAL);
		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

static bool receive_answer(struct answer *answer)
{
	for (size_t done = 0; done < sizeof *answer;) {
		ssize_t n = recv(ask_socket, (char *)answer + done, sizeof *answer - done, 0);
		if (n > 0)
			done += (size_t)n;
		else if (!n || errno != EINTR)
			return false;
	}
	return true;
}

/* Asks and waits: the process is stopped meanwhile, so nothing it holds can change. */
static bool ask(struct task *task, const struct list *arguments, const struct list *variables, struct answer *answer)
{
	struct proc *proc = task->proc;
	int sent[MAX_SENT];
	char *program = canonical(task->path, true);
	descriptors_after_exec(proc);
	unsigned count = copy_descriptors(proc, sent);
	out_begin(R_ASK, task->seq, proc->image, 9);
	out_int(proc->pid);
	out_text(program);
	list_out(arguments);
	list_out(variables);
	out_text(proc->cwd);
	out_text(process_attributes(proc));
	descriptors_write();
	out_int(proc_count_others(proc));
	out_int(count);
	size_t size;
	const void *record = out_withdraw(&size);
	bool answered = send_all(record, size, sent, count) && receive_answer(answer);
	while (count)
		close(sent[--count]);
	free(program);
	if (!answered) { /* the other end is gone: run everything from now on */
		close(ask_socket);
		ask_socket = -1;
	}
	return answered;
}

/* Whether the program was reused and the exec became an exit. */
bool reuse_instead_of_exec(struct task *task, const struct list *arguments, const struct list *variables)
{
	struct proc *proc = task->proc;
	struct answer answer;
	int64_t before[2], after[2];
	if (ask_socket < 0 || access(task->path, X_OK))
		return false;
	output_positions(before);
	if (!ask(task, arguments, variables, &answer) || !answer.done || !call_become_exit(task, answer.status))
		return false;
	/* What was written between `before` and `after` is the output that the other process replayed. */
	uint32_t previous = proc->image;
	output_positions(after);
	/* The process ran a program before: that image ends here, as at a real exec. */
	if (proc->execed) {
		image_ending(proc);
		output_end(proc);
		proc->image = image_number();
	}
	proc->execed = true;
	out_begin(R_REUSED, task->seq, proc->image, 7);
	out_int(previous);
	out_int(proc->pid);
	out_int((int64_t)answer.token);
	for (unsigned n = 0; n < 2; n++) {
		out_int(before[n]);
		out_int(after[n]);
	}
	out_end();
	return true;
}
