/* What was refused is flushed. rdma_disconnect of what has no connection: of a synchronous id it waits for no event, as none comes. Prints "given_up: ok". */
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct rdma_addrinfo *address(int flags, struct sockaddr_in *at)
{
	struct rdma_addrinfo *r = calloc(1, sizeof *r);
	*r = (struct rdma_addrinfo){.ai_flags = flags, .ai_family = AF_INET, .ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_TCP};
	if (flags & RAI_PASSIVE) {
		r->ai_src_addr = (struct sockaddr *)at;
		r->ai_src_len = sizeof *at;
	} else {
		r->ai_dst_addr = (struct sockaddr *)at;
		r->ai_dst_len = sizeof *at;
	}
	return r;
}

static struct rdma_cm_id *client_of(struct sockaddr_in *at)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *id;
	struct rdma_addrinfo *r = address(0, at);
	check(!rdma_create_ep(&id, r, NULL, &attr), "rdma_create_ep");
	free(r);
	return id;
}

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *listener, *server, *client;
	struct rdma_addrinfo *r = address(RAI_PASSIVE, &at);
	check(!rdma_create_ep(&listener, r, NULL, &attr), "rdma_create_ep");
	free(r);
	at.sin_port = rdma_get_src_port(listener);

	client = client_of(&at);
	static char memory[8];
	struct ibv_mr *mr = rdma_reg_msgs(client, memory, sizeof memory);
	struct ibv_wc wc;
	check(mr && !rdma_post_recv(client, NULL, memory, sizeof memory, mr), "rdma_post_recv");
	check(rdma_connect(client, NULL) && errno == ECONNREFUSED, "rdma_connect where nobody listens");
	check(client->qp->state == IBV_QPS_ERR, "the state of what was refused");
	check(rdma_get_recv_comp(client, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR, "its receive");
	check(!rdma_dereg_mr(mr), "rdma_dereg_mr");
	check(!rdma_disconnect(client) && !rdma_disconnect(client), "rdma_disconnect of what was refused");
	rdma_destroy_ep(client);

	check(!rdma_listen(listener, 1), "rdma_listen");
	client = client_of(&at);
	check(!rdma_migrate_id(client, rdma_create_event_channel()), "rdma_migrate_id");
	check(!rdma_connect(client, NULL), "rdma_connect");
	check(!rdma_get_request(listener, &server), "rdma_get_request");
	check(!rdma_disconnect(server), "rdma_disconnect of a request");
	check(!rdma_disconnect(client), "rdma_disconnect before the answer");
	struct rdma_event_channel *channel = client->channel;
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(channel, &e) && e->event == RDMA_CM_EVENT_REJECTED && e->status == -ECONNRESET, "rdma_get_cm_event");
	rdma_ack_cm_event(e);
	rdma_destroy_ep(client);
	rdma_destroy_event_channel(channel);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
	puts("given_up: ok");
	return 0;
}
