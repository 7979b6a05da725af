/* A process has few descriptors left when it connects, each number of them: a call or an event says that there are too few, and an id that has an address has
 * a device. Prints "scarce_cm: ok". It is compiled with pair.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 100, ENOUGH = 8 };

/* Leaves so many descriptors. */
static void leave(int free)
{
	int taken[LIMIT], n = 0;
	struct rlimit r = {.rlim_cur = LIMIT, .rlim_max = LIMIT};
	check(!setrlimit(RLIMIT_NOFILE, &r), "setrlimit");
	while ((taken[n] = dup(0)) >= 0)
		n++;
	while (free-- > 0)
		close(taken[--n]);
}

static struct sockaddr_in address = {.sin_family = AF_INET};

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	return e;
}

/* It reports whether it succeeds; else there were too few. */
static int succeeds(int result, int free, const char *what)
{
	check(!result || (errno == EMFILE && free < ENOUGH), what);
	return !result;
}

static int has_qp(struct rdma_cm_id *id, int free)
{
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	check(id->verbs && id->pd, "no device");
	return succeeds(rdma_create_qp(id, NULL, &qp), free, "rdma_create_qp");
}

static void resolves(struct rdma_event_channel *channel, struct rdma_cm_id *id, int free)
{
	address.sin_port = htons(9);
	if (!succeeds(rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000), free, "rdma_resolve_addr"))
		return;
	struct rdma_cm_event *e = next_event(channel);
	errno = -e->status;
	if (succeeds(e->status, free, "ADDR_RESOLVED") && has_qp(id, free))
		rdma_destroy_qp(id);
}

/* An id, or NULL if it is not to be had: after that, or before there is one, so many are left. */
static struct rdma_cm_id *left_with(int free, int early)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	if (early)
		leave(free);
	if (!succeeds(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), early ? free : ENOUGH, "rdma_create_id"))
		return NULL;
	if (!early)
		leave(free);
	return id;
}

/* Asks for an address. */
static void asks(int free, int early)
{
	struct rdma_cm_id *id = left_with(free, early);
	if (id)
		resolves(id->channel, id, free);
}

/* So does one that has closed the device of its ids before. */
static void asks_again(int free, int unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *first, *id;
	check(!rdma_create_id(channel, &first, NULL, RDMA_PS_TCP) && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(first, (struct sockaddr *)&address) && first->verbs, "rdma_bind_addr");
	check(!ibv_dealloc_pd(first->pd) && !ibv_close_device(first->verbs), "ibv_close_device");
	leave(free);
	resolves(channel, id, free);
}

/* The same of one that binds, and of an endpoint. */
static void binds(int free, int early)
{
	struct rdma_cm_id *id = left_with(free, early);
	if (id && succeeds(rdma_bind_addr(id, (struct sockaddr *)&address), free, "rdma_bind_addr"))
		check(id->verbs && id->pd, "bound without a device");
}

static void makes_endpoint(int free, int unused)
{
	struct rdma_addrinfo *to, hints = {.ai_port_space = RDMA_PS_TCP};
	struct rdma_cm_id *id;
	check(!rdma_getaddrinfo("127.0.0.1", "9", &hints, &to), "rdma_getaddrinfo");
	leave(free);
	if (succeeds(rdma_create_ep(&id, to, NULL, NULL), free, "rdma_create_ep"))
		has_qp(id, free);
}

/* A peer's request comes when there are so many left. */
static void serves(int free, int to_peer)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *listener;
	check(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(listener, (struct sockaddr *)&address) && !rdma_listen(listener, 1), "rdma_listen");
	uint16_t port = rdma_get_src_port(listener);
	leave(free);
	check(write(to_peer, &port, sizeof port) == sizeof port, "write");
	struct rdma_cm_event *e = next_event(channel);
	check(e->event == RDMA_CM_EVENT_CONNECT_REQUEST && !e->status, "CONNECT_REQUEST");
	if (has_qp(e->id, free))
		check(!rdma_accept(e->id, &param) && next_event(channel)->event == RDMA_CM_EVENT_ESTABLISHED, "ESTABLISHED");
	else
		check(!rdma_reject(e->id, NULL, 0), "rdma_reject");
}

/* Its peer, which is told of its port. */
static void connects(int from)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id;
	check(read(from, &address.sin_port, sizeof address.sin_port) == sizeof address.sin_port, "read");
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) && !rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000), "rdma_resolve_addr");
	check(next_event(channel)->event == RDMA_CM_EVENT_ADDR_RESOLVED && !rdma_resolve_route(id, 1000), "rdma_resolve_route");
	check(next_event(channel)->event == RDMA_CM_EVENT_ROUTE_RESOLVED && has_qp(id, ENOUGH) && !rdma_connect(id, &param), "rdma_connect");
	next_event(channel);
}

/* Each process begins anew, with an engine of its own. */
static pid_t begin(void (*run)(int, int), int free, int argument)
{
	pid_t child = fork();
	if (child)
		return child;
	open_device();
	run(free, argument);
	_exit(0);
}

static void wait_for(pid_t child, const char *what, int free)
{
	int status;
	check(waitpid(child, &status, 0) == child, "waitpid");
	if (status) {
		fprintf(stderr, "%s, with %d descriptors: status %#x\n", what, free, status);
		exit(1);
	}
}

/* With one, which the connection takes, its request may not be told of, as it is given up for another that might come. */
static void meet_with(int free)
{
	int ends[2], status;
	check(!pipe(ends), "pipe");
	pid_t server = begin(serves, free, ends[1]), client = fork();
	if (!client) {
		connects(ends[0]);
		_exit(0);
	}
	wait_for(client, "connects", free);
	if (free > 1)
		wait_for(server, "serves", free);
	else
		check(!kill(server, SIGKILL) && waitpid(server, &status, 0) == server && (!status || WIFSIGNALED(status)), "serves, with 1");
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int free = 0; free <= ENOUGH; free++) {
		for (int early = 0; early < 2; early++) {
			wait_for(begin(asks, free, early), "asks", free);
			wait_for(begin(binds, free, early), "binds", free);
		}
		wait_for(begin(asks_again, free, 0), "asks again", free);
		wait_for(begin(makes_endpoint, free, 0), "makes an endpoint", free);
		if (free)
			meet_with(free);
	}
	puts("scarce_cm: ok");
	return 0;
}
