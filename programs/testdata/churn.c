/* A process forks again and again while its other threads are in the middle of calls, of which each holds a lock for a moment, or until the program makes another
 * one. No child waits for a lock that a thread of its parent's has taken with it: it uses verbs anew, on what it shares with its parent as well, and objects
 * of its parent's give errors. Nor does a fork wait for a thread that waits for events. Prints "churn: ok". It is compiled with pair.h. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 150, LIMIT = 120 };

static int busy = 1;
static struct rdma_event_channel *channel, *quiet;
static struct rdma_cm_id *named;
static struct ibv_cq_ex *polled;
static struct ibv_qp *extended;
static struct end *a, *b;

static int goes_on(void) { return __atomic_load_n(&busy, __ATOMIC_RELAXED); }

/* An id with a device, and so with the context and the PD that all ids have in common. */
static struct rdma_cm_id *bound(struct rdma_event_channel *on)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;
	check(!rdma_create_id(on, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(id, (struct sockaddr *)&address) && id->verbs && id->pd, "rdma_bind_addr");
	return id;
}

static void *binds(void *unused)
{
	while (goes_on())
		check(!rdma_destroy_id(bound(channel)), "rdma_destroy_id");
	return unused;
}

/* Channels that have nothing: each call asks whose they are. */
static void *asks(void *unused)
{
	struct rdma_cm_event *e;
	struct ibv_async_event event;
	while (goes_on()) {
		check(rdma_get_cm_event(channel, &e) && errno == EAGAIN, "rdma_get_cm_event");
		check(ibv_get_async_event(context, &event) && errno == EAGAIN, "ibv_get_async_event");
	}
	return unused;
}

static void *counts(void *unused)
{
	while (goes_on())
		ibv_ack_cq_events(a->cq, 0);
	return unused;
}

static void *looks(void *unused)
{
	union ibv_gid gid;
	while (goes_on())
		check(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
	return unused;
}

/* A completion is being read, and a request built, most of the time. */
static void *reads(void *unused)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(extended);
	while (goes_on()) {
		ibv_wr_start(x);
		ibv_wr_rdma_write(x, b->mr->rkey, (uintptr_t)b->memory);
		ibv_wr_set_sge(x, a->mr->lkey, (uintptr_t)a->memory, 8);
		sched_yield();
		check(!ibv_wr_complete(x), "ibv_wr_complete");
		while (ibv_start_poll(polled, &none))
			;
		check(!polled->status, "a Write");
		sched_yield();
		ibv_end_poll(polled);
	}
	return unused;
}

/* Waits for an event, for as long as the process is there. */
static void *waits(void *unused)
{
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(quiet, &e), "rdma_get_cm_event");
	return unused;
}

static void parents_objects(void)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(extended);
	struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL, .element.qp = extended};
	check(ibv_start_poll(polled, &none) == EINVAL, "ibv_start_poll on a CQ of the parent's");
	for (int i = 0; i < 2; i++) {
		ibv_wr_start(x);
		ibv_wr_send(x);
		ibv_wr_set_sge(x, 0, 0, 0);
		ibv_wr_send(x);
		ibv_wr_set_inline_data(x, "text", 4);
		if (i)
			ibv_wr_abort(x);
		else
			check(ibv_wr_complete(x) == EINVAL, "ibv_wr_complete on a QP of the parent's");
	}
	ibv_ack_cq_events(a->cq, 1);
	ibv_ack_async_event(&event);
	check(ibv_destroy_qp(extended) == EINVAL && ibv_destroy_cq(a->cq) == EINVAL, "ibv_destroy_qp, ibv_destroy_cq");
	check(rdma_destroy_id(named) && errno == EINVAL, "rdma_destroy_id");
}

/* The parent's channels and contexts, and objects of its own on them. */
static void anew(void)
{
	union ibv_gid gid;
	struct rdma_cm_event *e;
	struct ibv_async_event event;
	check(!ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
	check(rdma_get_cm_event(channel, &e), "rdma_get_cm_event on the parent's channel");
	struct rdma_cm_id *id = bound(channel), *other = bound(NULL);
	check(rdma_get_cm_event(channel, &e) && errno == EAGAIN, "rdma_get_cm_event");
	check(ibv_get_async_event(context, &event) && errno == EAGAIN, "ibv_get_async_event");
	check(!rdma_migrate_id(other, channel), "rdma_migrate_id");
	check(!rdma_destroy_id(id) && !rdma_destroy_id(other), "rdma_destroy_id");
	check((pd = ibv_alloc_pd(context)) != NULL, "ibv_alloc_pd");
	destroy(create(0));
}

/* Some do so in the other order. */
static void child(int odd)
{
	alarm(LIMIT);
	if (odd)
		anew();
	parents_objects();
	if (!odd)
		anew();
	_exit(0);
}

static void forks(int i)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		child(i & 1);
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child");
}

/* The QP of a has its completions in polled. */
static void prepare(void)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
	open_device();
	channel = rdma_create_event_channel();
	quiet = rdma_create_event_channel();
	check(channel && quiet && !fcntl(channel->fd, F_SETFL, O_NONBLOCK) && !fcntl(context->async_fd, F_SETFL, O_NONBLOCK), "channels");
	named = bound(channel);
	a = create(IBV_ACCESS_LOCAL_WRITE);
	b = create(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check((polled = ibv_create_cq_ex(context, &cq)) != NULL, "ibv_create_cq_ex");
	struct ibv_qp_init_attr_ex qp = {.send_cq = ibv_cq_ex_to_cq(polled), .recv_cq = ibv_cq_ex_to_cq(polled), .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {4, 4, 2, 2, 64}, .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE};
	check((extended = ibv_create_qp_ex(context, &qp)) != NULL, "ibv_create_qp_ex");
	struct end *x = calloc(1, sizeof *x);
	x->qp = extended;
	meet(x, b);
	free(x);
}

int main(void)
{
	void *(*const threads[])(void *) = {binds, asks, counts, looks, reads};
	enum { THREADS = sizeof threads / sizeof *threads };
	pthread_t t[THREADS], waiting;
	prepare();
	check(!pthread_create(&waiting, NULL, waits, NULL), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		check(!pthread_create(&t[i], NULL, threads[i], NULL), "pthread_create");
	for (int i = 0; i < CHILDREN; i++)
		forks(i);
	__atomic_store_n(&busy, 0, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		check(!pthread_join(t[i], NULL), "pthread_join");
	puts("churn: ok");
	return 0;
}
