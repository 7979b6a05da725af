/* Two threads that take events of ids, and two that destroy the ids meanwhile: rdma_destroy_id does not return before an event that was taken is
 * acknowledged, so that the context of its id is still there. Prints "delivered: ok". */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

enum { IDS = 10000 };

static struct rdma_event_channel *channel;
static struct context {
	int gone;
} contexts[2][IDS];
static int ended;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void *take(void *unused)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	while (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) {
		struct rdma_cm_event *e;
		if (poll(&p, 1, 10) <= 0)
			continue;
		if (rdma_get_cm_event(channel, &e)) {
			check(errno == EAGAIN, "rdma_get_cm_event");
			continue;
		}
		struct context *c = e->id->context;
		check(!__atomic_load_n(&c->gone, __ATOMIC_SEQ_CST), "an event of an id that is there");
		for (volatile int i = 0; i < 200; i++)
			;
		check(!__atomic_load_n(&c->gone, __ATOMIC_SEQ_CST), "an id while its event is not acknowledged");
		rdma_ack_cm_event(e);
	}
	return unused;
}

static void *create(void *mine)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned seed = 1;
	for (struct context *c = mine; c < (struct context *)mine + IDS; c++) {
		struct rdma_cm_id *id;
		check(!rdma_create_id(channel, &id, c, RDMA_PS_TCP), "rdma_create_id");
		check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000), "rdma_resolve_addr");
		for (volatile int i = rand_r(&seed) % 3000; i > 0; i--)
			;
		check(!rdma_destroy_id(id), "rdma_destroy_id");
		__atomic_store_n(&c->gone, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(void)
{
	pthread_t takers[2], creators[2];
	channel = rdma_create_event_channel();
	check(channel && !fcntl(channel->fd, F_SETFL, O_NONBLOCK), "rdma_create_event_channel");
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&takers[i], NULL, take, NULL) && !pthread_create(&creators[i], NULL, create, contexts[i]), "pthread_create");
	for (int i = 0; i < 2; i++)
		check(!pthread_join(creators[i], NULL), "pthread_join");
	__atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++)
		check(!pthread_join(takers[i], NULL), "pthread_join");
	rdma_destroy_event_channel(channel);
	puts("delivered: ok");
	return 0;
}
