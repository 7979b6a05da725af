/* Threads that are canceled in a call of the library: where they wait for acknowledgements, and where the first call for something makes it, which is no place
 * to be canceled at. The others go on. Prints "canceled: ok". It is compiled with pair.h. */
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

enum { LIMIT = 120 };

static struct rdma_event_channel *channel;
static struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_port = 0, .sin_addr.s_addr = 0};

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

/* The next event: that of the address of an id. */
static struct rdma_cm_event *event(struct rdma_cm_id *of)
{
	struct sockaddr_in to = loopback;
	struct rdma_cm_event *e;
	to.sin_port = htons(9);
	check(!rdma_resolve_addr(of, NULL, (struct sockaddr *)&to, 1000), "rdma_resolve_addr");
	check(!rdma_get_cm_event(channel, &e) && e->id == of, "rdma_get_cm_event");
	return e;
}

/* Each is canceled from the beginning, and so at the first point where it can be. */
static void *binds(void *id)
{
	pthread_cancel(pthread_self());
	check(!rdma_bind_addr(id, (struct sockaddr *)&loopback), "rdma_bind_addr");
	pthread_testcancel();
	return NULL;
}

static void *destroys_id(void *id)
{
	pthread_cancel(pthread_self());
	rdma_destroy_id(id);
	return NULL;
}

static void *destroys_cq(void *cq)
{
	pthread_cancel(pthread_self());
	ibv_destroy_cq(cq);
	return NULL;
}

static void canceled(const char *what, void *(*f)(void *), void *of)
{
	pthread_t thread;
	void *result;
	check(!pthread_create(&thread, NULL, f, of) && !pthread_join(thread, &result), "a thread");
	check(result == PTHREAD_CANCELED, what);
}

/* What the first id with an address has made is there for the next. */
static void at_the_beginning(void)
{
	struct rdma_cm_id *first = new_id(), *second = new_id();
	canceled("rdma_bind_addr", binds, first);
	check(!rdma_bind_addr(second, (struct sockaddr *)&loopback) && second->verbs && second->verbs == first->verbs, "rdma_bind_addr");
	check(!rdma_destroy_id(first) && !rdma_destroy_id(second), "rdma_destroy_id");
}

/* Events that are not acknowledged before their object is destroyed, but later. */
static void acknowledgements(void)
{
	struct rdma_cm_id *id = new_id(), *other = new_id();
	struct rdma_cm_event *kept = event(id);
	canceled("rdma_destroy_id", destroys_id, id);
	check(!rdma_ack_cm_event(event(other)) && !rdma_ack_cm_event(kept), "rdma_ack_cm_event");
	check(!rdma_destroy_id(other), "rdma_destroy_id");
}

static void completions(void)
{
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE);
	struct ibv_comp_channel *on = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, on, 0), *of;
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr), *own = a->qp;
	void *cq_context;
	check(cq && qp && !ibv_req_notify_cq(cq, 0), "a Queue Pair");
	a->qp = qp;
	meet(a, b);
	check(!receive(a, 1, 0), "ibv_post_recv");
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	check(!ibv_modify_qp(qp, &error, IBV_QP_STATE), "ERR");
	check(!ibv_get_cq_event(on, &of, &cq_context) && of == cq && !ibv_destroy_qp(qp), "an event");
	canceled("ibv_destroy_cq", destroys_cq, cq);
	ibv_ack_cq_events(cq, 1);
	a->qp = own;
	destroy(a);
	destroy(b);
}

int main(void)
{
	alarm(LIMIT);
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	channel = rdma_create_event_channel();
	check(channel != NULL, "rdma_create_event_channel");
	at_the_beginning();
	acknowledgements();
	open_device();
	completions();
	close_device();
	rdma_destroy_event_channel(channel);
	puts("canceled: ok");
	return 0;
}
