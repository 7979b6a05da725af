/* What programs do wrong with librdmacm: see wrong.c. Prints "wrong_cm: ok". It is compiled with pair.h. */
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "wrong.h"

/* Lengths of the values of options, and an id that is gone. */
static void options(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;
	char value[64] = {1};
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 64)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 0)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, value, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, value, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 4)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, value, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, 99, value, 1)), ENOSYS);
	WRONG(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 1), 0);
	WRONG(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, value, 4), 0);
	WRONG(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, value, 4), 0);
	WRONG(FAILS(-1, rdma_notify(id, IBV_EVENT_COMM_EST)), EINVAL); /* nothing was begun with it */
	WRONG(rdma_destroy_id(id), 0);
	WRONG(FAILS(-1, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_notify(id, IBV_EVENT_COMM_EST)), EINVAL);
}

/* What rdma_getaddrinfo makes of hints that have one of the two. */
static void names(void)
{
	static const struct {
		int qp_type, port_space, gets_type, gets_space;
	} cases[] = {
		{0, 0, IBV_QPT_RC, RDMA_PS_TCP},
		{IBV_QPT_RC, 0, IBV_QPT_RC, RDMA_PS_TCP},
		{IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP},
		{0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP},
		{0, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB},
		{IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rdma_addrinfo *r, hints = {.ai_qp_type = cases[i].qp_type, .ai_port_space = cases[i].port_space};
		check(!rdma_getaddrinfo("127.0.0.1", "7174", &hints, &r), "rdma_getaddrinfo");
		WRONG(r->ai_qp_type, cases[i].gets_type);
		WRONG(r->ai_port_space, cases[i].gets_space);
		rdma_freeaddrinfo(r);
	}
	struct rdma_addrinfo *r, hints = {.ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_TCP};
	WRONG(FAILS(-1, rdma_getaddrinfo("127.0.0.1", "7174", &hints, &r)), EOPNOTSUPP);
}

/* An id that has no device yet, and addresses of another family. */
static void unbound(struct rdma_cm_id *id)
{
	struct sockaddr local = {.sa_family = AF_UNIX};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask;
	WRONG(FAILS(-1, rdma_bind_addr(id, &local)), EINVAL);
	WRONG(FAILS(-1, rdma_resolve_addr(id, NULL, &local, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_create_srq(id, pd, &srq)), EINVAL);
	WRONG(FAILS(-1, rdma_init_qp_attr(id, &attr, &mask)), EINVAL);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
}

/* What belongs to an id, which has a device: it is made of something, and destroyed once. */
static void owned(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp_init_attr_ex nowhere = {.qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	WRONG(FAILS(-1, rdma_create_qp(id, NULL, NULL)), EINVAL);
	WRONG(FAILS(-1, rdma_create_qp_ex(id, NULL)), EINVAL);
	WRONG(FAILS(-1, rdma_create_qp_ex(id, &nowhere)), EINVAL);
	WRONG(FAILS(-1, rdma_create_srq(id, NULL, NULL)), EINVAL);
	WRONG(FAILS(-1, rdma_create_srq_ex(id, NULL)), EINVAL);
	rdma_destroy_qp(id);
	WRONG(rdma_create_qp(id, NULL, &qp), 0);
	rdma_destroy_qp(id);
	rdma_destroy_qp(id);
	WRONG(id->qp != NULL || id->send_cq != NULL || id->recv_cq != NULL, 0);
	WRONG(rdma_create_srq(id, NULL, &srq), 0);
	rdma_destroy_srq(id);
	rdma_destroy_srq(id);
}

/* The CQs of an id are those of its QP, also where the program has set them: they are the program's then, to destroy. */
static void set_cqs(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr none = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1}}, qp;
	struct ibv_cq *own = ibv_create_cq(id->verbs, 4, NULL, NULL, 0), *other = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	check(own && other, "ibv_create_cq");
	id->send_cq = id->recv_cq = own;
	qp = none, qp.send_cq = other;
	WRONG(FAILS(-1, rdma_create_qp(id, NULL, &qp)), EINVAL);
	qp = none, qp.recv_cq = other;
	WRONG(FAILS(-1, rdma_create_qp(id, NULL, &qp)), EINVAL);
	qp = none, qp.send_cq = own;
	WRONG(rdma_create_qp(id, NULL, &qp), 0);
	WRONG(!id->qp || id->qp->send_cq != own || id->qp->recv_cq != own, 0);
	rdma_destroy_qp(id);
	id->send_cq = id->recv_cq = NULL;
	WRONG(ibv_destroy_cq(own), 0);
	WRONG(ibv_destroy_cq(other), 0);
}

static void connections(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id, *other;
	struct rdma_cm_event *event;
	struct rdma_conn_param param = {0};
	struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, foreign = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000263)};
	WRONG(FAILS(-1, rdma_create_id(channel, &id, NULL, RDMA_PS_UDP)), EPROTONOSUPPORT);
	WRONG(FAILS(-1, rdma_create_id(channel, &id, NULL, 99)), EINVAL);
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) && !rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), "rdma_create_id");
	options(channel);
	unbound(id);
	WRONG(FAILS(-1, rdma_resolve_route(id, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_connect(id, &param)), EINVAL);
	WRONG(FAILS(-1, rdma_accept(id, &param)), EINVAL);
	WRONG(FAILS(-1, rdma_reject(id, NULL, 0)), EINVAL);
	WRONG(FAILS(-1, rdma_disconnect(id)), EINVAL);
	WRONG(FAILS(-1, rdma_bind_addr(id, (struct sockaddr *)&foreign)), EADDRNOTAVAIL);
	WRONG(rdma_bind_addr(id, (struct sockaddr *)&local), 0);
	WRONG(FAILS(-1, rdma_bind_addr(id, (struct sockaddr *)&local)), EINVAL);
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	WRONG(FAILS(-1, rdma_create_srq(id, pd, &srq)), EINVAL); /* a PD of another context's */
	owned(id);
	set_cqs(id);
	WRONG(rdma_listen(id, 1), 0);
	WRONG(FAILS(-1, rdma_listen(id, 1)), EINVAL);
	WRONG(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
	WRONG(FAILS(-1, rdma_bind_addr(other, rdma_get_local_addr(id))), EADDRINUSE);
	WRONG(FAILS(-1, rdma_set_option(id, 99, 0, NULL, 0)), ENOSYS);
	WRONG(rdma_destroy_id(other), 0);
	WRONG(FAILS(-1, rdma_destroy_id(other)), EINVAL);
	WRONG(FAILS(-1, rdma_listen(other, 1)), EINVAL);
	WRONG(FAILS(-1, rdma_get_cm_event(NULL, &event)), EINVAL);
	WRONG(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	open_device();
	connections();
	names();
	close_device();
	if (!failed)
		puts("wrong_cm: ok");
	return failed;
}
