/* Calls that wait for an event wait as a read does: on after a handler of a signal that has SA_RESTART, and not after one that has not; until the thread is
 * canceled; and not at all where the descriptor does not block. Several may wait, and the descriptor is readable as long as there is something. All that in
 * a child after fork, too. Prints "restarted: ok". It is compiled with pair.h. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 10, WAITERS = 4, LIMIT = 120 };

/* What can be waited for: get takes one and returns an error number, and raise brings one about. */
struct source {
	const char *name;
	int fd;
	int (*get)(void);
	void (*raise)(void);
};

static const struct source *source;
static int handled;

/* Events of librdmacm: of addresses. */
static struct rdma_event_channel *channel;

static int get_cm(void)
{
	struct rdma_cm_event *e;
	if (rdma_get_cm_event(channel, &e))
		return errno;
	struct rdma_cm_id *id = e->id;
	check(!rdma_ack_cm_event(e) && !rdma_destroy_id(id), "rdma_destroy_id");
	return 0;
}

static void raise_cm(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), "rdma_resolve_addr");
}

/* Completions: of receives that are flushed. */
static struct ibv_comp_channel *completions;
static struct end receiver;

static void flushes(struct end *e, struct ibv_comp_channel *on)
{
	e->cq = ibv_create_cq(context, 64, NULL, on, 0);
	struct ibv_qp_init_attr attr = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 2}};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	e->qp = e->cq ? ibv_create_qp(pd, &attr) : NULL;
	e->mr = ibv_reg_mr(pd, e->memory, sizeof e->memory, IBV_ACCESS_LOCAL_WRITE);
	check(e->qp && e->mr, "a Queue Pair");
	init(e);
	check(!ibv_modify_qp(e->qp, &error, IBV_QP_STATE), "ERR");
}

static int get_cq(void)
{
	struct ibv_cq *cq;
	void *of;
	if (ibv_get_cq_event(completions, &cq, &of))
		return errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static void raise_cq(void)
{
	check(!ibv_req_notify_cq(receiver.cq, 0) && !receive(&receiver, 1, 0), "a receive");
	check(next(&receiver).status == IBV_WC_WR_FLUSH_ERR, "a receive that is flushed");
}

/* Asynchronous events: of CQs that have no room for what is flushed. */
static int get_async(void)
{
	struct ibv_async_event event;
	if (ibv_get_async_event(context, &event))
		return errno;
	ibv_ack_async_event(&event);
	return 0;
}

static void raise_async(void)
{
	struct end e;
	flushes(&e, NULL);
	check(!ibv_resize_cq(e.cq, 1) && !receive(&e, 1, 0) && !receive(&e, 2, 0), "receives");
}

static void handle(int signum)
{
	(void)signum;
	__atomic_fetch_add(&handled, 1, __ATOMIC_SEQ_CST);
}

static void install(int flags)
{
	struct sigaction with = {.sa_handler = handle, .sa_flags = flags};
	check(!sigaction(SIGUSR1, &with, NULL), "sigaction");
}

struct waiter {
	pthread_t thread;
	int id, done, error;
};

static void *waits(void *waiter)
{
	struct waiter *w = waiter;
	__atomic_store_n(&w->id, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	w->error = source->get();
	__atomic_store_n(&w->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int sleeps(const struct waiter *w)
{
	char name[64], text[256] = "";
	int id = __atomic_load_n(&w->id, __ATOMIC_SEQ_CST);
	snprintf(name, sizeof name, "/proc/self/task/%d/stat", id);
	FILE *f = id ? fopen(name, "r") : NULL;
	if (!f)
		return 0;
	char *at = fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
	fclose(f);
	return at && at[2] == 'S';
}

static int done(const struct waiter *w)
{
	return __atomic_load_n(&w->done, __ATOMIC_SEQ_CST);
}

/* A thread that waits, or has not waited. */
static void begin(struct waiter *w)
{
	*w = (struct waiter){0};
	check(!pthread_create(&w->thread, NULL, waits, w), "pthread_create");
	while (!done(w) && !sleeps(w))
		sched_yield();
}

static void *end_of(struct waiter *w)
{
	void *result;
	check(!pthread_join(w->thread, &result), "pthread_join");
	return result;
}

static void ends(struct waiter *w, int error, const char *what)
{
	check(!end_of(w), what);
	if (w->error != error)
		fprintf(stderr, "%s: %s\n", source->name, strerror(w->error));
	check(w->error == error, what);
}

static int readable(int timeout)
{
	struct pollfd p = {.fd = source->fd, .events = POLLIN};
	return poll(&p, 1, timeout) == 1;
}

/* It sleeps when it is interrupted, or has ended. */
static void interrupt(struct waiter *w)
{
	int before = __atomic_load_n(&handled, __ATOMIC_SEQ_CST);
	while (!done(w) && !sleeps(w))
		sched_yield();
	pthread_kill(w->thread, SIGUSR1);
	while (!done(w) && __atomic_load_n(&handled, __ATOMIC_SEQ_CST) == before)
		sched_yield();
}

static void goes_on(void)
{
	struct waiter w;
	install(SA_RESTART);
	begin(&w);
	for (int i = 0; i < ROUNDS; i++)
		interrupt(&w);
	check(!done(&w), "a wait that a handler with SA_RESTART interrupts");
	source->raise();
	ends(&w, 0, "a wait that goes on after SA_RESTART");
}

static void is_interrupted(void)
{
	struct waiter w;
	install(0);
	begin(&w);
	while (!done(&w))
		interrupt(&w);
	ends(&w, EINTR, "a wait that a handler without SA_RESTART interrupts");
}

static void is_canceled(void)
{
	struct waiter w;
	begin(&w);
	check(!pthread_cancel(w.thread) && end_of(&w) == PTHREAD_CANCELED, "a wait that is canceled");
	check(!readable(0), "the descriptor after that");
}

static void wait_together(void)
{
	struct waiter w[WAITERS];
	for (int i = 0; i < WAITERS; i++)
		begin(&w[i]);
	check(!pthread_cancel(w[0].thread) && end_of(&w[0]) == PTHREAD_CANCELED, "one of them");
	begin(&w[0]);
	for (int i = 0; i < WAITERS; i++)
		source->raise();
	for (int i = 0; i < WAITERS; i++)
		ends(&w[i], 0, "several that wait");
	check(!readable(0), "the descriptor after that");
}

static void blocks_or_not(void)
{
	int flags = fcntl(source->fd, F_GETFL);
	check(!fcntl(source->fd, F_SETFL, flags | O_NONBLOCK) && source->get() == EAGAIN, "what does not block");
	source->raise();
	check(readable(-1) && source->get() == 0 && !readable(0) && source->get() == EAGAIN, "what does not block");
	check(!fcntl(source->fd, F_SETFL, flags), "F_SETFL");
}

static void stays_readable(void)
{
	source->raise();
	source->raise();
	check(readable(-1) && source->get() == 0 && readable(-1) && source->get() == 0 && !readable(0), "two events");
}

static void try(struct source of)
{
	source = &of;
	blocks_or_not();
	for (int i = 0; i < 2; i++) { /* what one leaves behind is in no one's way */
		goes_on();
		is_interrupted();
		is_canceled();
		wait_together();
		stays_readable();
	}
}

static void try_all(void)
{
	open_device();
	channel = rdma_create_event_channel();
	completions = ibv_create_comp_channel(context);
	check(channel && completions, "channels");
	flushes(&receiver, completions);
	try((struct source){"rdma_get_cm_event", channel->fd, get_cm, raise_cm});
	try((struct source){"ibv_get_cq_event", completions->fd, get_cq, raise_cq});
	try((struct source){"ibv_get_async_event", context->async_fd, get_async, raise_async});
}

/* While a thread of its parent's waits. */
static void try_in_a_child(void)
{
	struct source of = {"rdma_get_cm_event", channel->fd, get_cm, raise_cm};
	struct waiter w;
	int status = 0;
	source = &of;
	begin(&w);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(LIMIT);
		try_all();
		_exit(0);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child");
	raise_cm();
	ends(&w, 0, "a wait beside a child's");
}

int main(void)
{
	alarm(LIMIT);
	try_all();
	try_in_a_child();
	puts("restarted: ok");
	return 0;
}
