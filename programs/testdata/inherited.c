/* What a child after fork does on event channels and contexts of its parent's has nothing to do with the parent, and the other way round: each process
 * has a descriptor of its own under the number that both know. A channel that has objects of the parent's is EINVAL, and does not block. Prints
 * "inherited: ok". It is compiled with pair.h. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rdma_event_channel *channel;
static struct ibv_comp_channel *completions;
static struct end *unused;

static int readable(int fd, int timeout)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, timeout);
}

/* A child that does something, and ends in success in time. */
static void child(const char *what, void (*f)(void))
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		f();
		_exit(0);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, what);
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

/* Has an event: that the address is resolved. */
static void resolve(struct rdma_cm_id *id)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000), "rdma_resolve_addr");
}

static void fetch(struct rdma_cm_id *of)
{
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(channel, &e) && e->id == of, "rdma_get_cm_event");
	check(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
}

static void waits_for_the_parents(void)
{
	struct ibv_cq *cq;
	struct rdma_cm_event *event;
	void *cq_context;
	for (int i = 0; i < 2; i++) {
		check(ibv_get_cq_event(completions, &cq, &cq_context) < 0 && errno == EINVAL, "ibv_get_cq_event on the parent's channel");
		check(rdma_get_cm_event(channel, &event) < 0 && errno == EINVAL, "rdma_get_cm_event on the parent's channel");
	}
}

static void leaves_an_event(void) { resolve(new_id()); }

static void fetches_its_own(void)
{
	struct rdma_cm_id *id = new_id();
	check(!readable(channel->fd, 0), "a channel without events");
	check(fcntl(channel->fd, F_GETFL) & O_NONBLOCK && fcntl(channel->fd, F_GETFD) & FD_CLOEXEC, "the flags of the parent's descriptor");
	resolve(id);
	check(readable(channel->fd, 0) == 1, "the child's event");
	fetch(id);
	check(!readable(channel->fd, 0), "a channel without events");
	child("a child of a child", leaves_an_event);
	check(!readable(channel->fd, 0), "the event of a child");
}

/* Its QP fails, which the parent is not told. */
static void fails(void)
{
	struct ibv_async_event event;
	pd = ibv_alloc_pd(context);
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE);
	meet(a, b);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {(uintptr_t)b->memory, b->mr->rkey + 0x100}};
	check(!post(a, &wr, 0, 8) && next(a).status == IBV_WC_REM_ACCESS_ERR, "a Write that is refused");
	check(!ibv_get_async_event(context, &event), "ibv_get_async_event");
	ibv_ack_async_event(&event);
}

/* Of a channel that has no ids yet: of parent and child alike. */
static void channel_without_ids(void)
{
	channel = rdma_create_event_channel();
	check(channel && !fcntl(channel->fd, F_SETFL, O_NONBLOCK), "rdma_create_event_channel");
	child("an event of a child", leaves_an_event);
	check(!readable(channel->fd, 0), "the event of a child");
	child("a child with events", fetches_its_own);
}

int main(void)
{
	channel_without_ids(); /* before the engine is loaded */
	open_device();
	child("a context that has nothing", fails);
	completions = ibv_create_comp_channel(context);
	unused = create(0);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, completions, 0);
	struct rdma_cm_id *id = new_id();
	check(cq && !fcntl(channel->fd, F_SETFL, 0), "objects");
	child("waiting for the parent's events", waits_for_the_parents);
	resolve(id);
	check(!fcntl(channel->fd, F_SETFL, O_NONBLOCK), "F_SETFL");
	child("a child with events", fetches_its_own);
	check(readable(channel->fd, 0) == 1, "an event after a child has fetched its own");
	check(!fcntl(channel->fd, F_SETFL, 0), "F_SETFL");
	fetch(id);
	child("an event of a child", leaves_an_event);
	check(!readable(channel->fd, 0), "the event of a child");
	child("a QP of a child", fails);
	check(!readable(context->async_fd, 0), "the event of a child's QP");
	channel_without_ids();
	puts("inherited: ok");
	return 0;
}
