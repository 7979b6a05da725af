/*
 * cmpd: one connection through librdmacm, to send and to show private data,
 * which none of rdma-core's own tools can.
 *
 *   cmpd -s PORT [DATA]         accept one request, with DATA
 *   cmpd -r PORT [DATA]         reject one request, with DATA
 *   cmpd -c ADDR PORT [DATA]    connect, with DATA
 *
 * It prints one line per event, "EVENT status=N private=LEN:TEXT" (octets that
 * are not printable as \xx), and ends with the connection: a client takes the
 * connection down itself, a server waits for that.
 */
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

static struct rdma_event_channel *channel;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void show(const struct rdma_cm_event *ev)
{
	const unsigned char *data = ev->param.conn.private_data;
	int i, n = data ? ev->param.conn.private_data_len : 0;

	printf("%s status=%d private=%d:", rdma_event_str(ev->event), ev->status, n);
	for (i = 0; i < n; i++)
		printf(isprint(data[i]) && data[i] != '\\' ? "%c" : "\\%02x", data[i]);
	printf("\n");
	fflush(stdout);
}

/* next waits for an event, shows it, and ends the program if it is not the wanted one. */
static struct rdma_cm_id *next(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	int got;

	if (rdma_get_cm_event(channel, &ev))
		die("rdma_get_cm_event");
	show(ev);
	got = ev->event;
	id = ev->id;
	rdma_ack_cm_event(ev);
	if (got != want)
		exit(got == RDMA_CM_EVENT_REJECTED ? 3 : 4);
	return id;
}

/*
 * make_qp also posts a buffer: a client may Send at once, and siw makes its
 * kernel crash where the first thing that comes with the RTR is an error.
 */
static void make_qp(struct rdma_cm_id *id)
{
	static char buffer[4096];
	struct ibv_mr *mr;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
	if (!mr || rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr))
		die("rdma_post_recv");
}

static struct rdma_conn_param param(const char *data)
{
	struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1};

	p.private_data = data;
	p.private_data_len = strlen(data);
	return p;
}

static struct sockaddr *address(const char *host, const char *port)
{
	struct addrinfo *ai, hints = {.ai_family = AF_INET, .ai_flags = AI_PASSIVE};

	if (getaddrinfo(host, port, &hints, &ai))
		die("getaddrinfo");
	return ai->ai_addr;
}

static void serve(struct rdma_cm_id *listener, int reject, const char *port, const char *data)
{
	struct rdma_conn_param p = param(data);
	struct rdma_cm_id *id;

	if (rdma_bind_addr(listener, address(NULL, port)) || rdma_listen(listener, 1))
		die("listen");
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (reject) {
		if (rdma_reject(id, data, strlen(data)))
			die("rdma_reject");
		return;
	}
	make_qp(id);
	if (rdma_accept(id, &p))
		die("rdma_accept");
	next(RDMA_CM_EVENT_ESTABLISHED);
	next(RDMA_CM_EVENT_DISCONNECTED);
}

static void connect_to(struct rdma_cm_id *id, const char *host, const char *port, const char *data)
{
	struct rdma_conn_param p = param(data);

	if (rdma_resolve_addr(id, NULL, address(host, port), 2000))
		die("rdma_resolve_addr");
	next(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 2000))
		die("rdma_resolve_route");
	next(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	if (rdma_connect(id, &p))
		die("rdma_connect");
	next(RDMA_CM_EVENT_ESTABLISHED);
	rdma_disconnect(id);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	int args = strcmp(mode, "-c") ? 3 : 4;
	const char *data = argc > args ? argv[args] : "";
	struct rdma_cm_id *id;

	if (argc < args || (strcmp(mode, "-c") && strcmp(mode, "-s") && strcmp(mode, "-r"))) {
		fprintf(stderr, "cmpd -s|-r PORT [DATA] | -c ADDR PORT [DATA]\n");
		return 2;
	}
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (mode[1] == 'c')
		connect_to(id, argv[2], argv[3], data);
	else
		serve(id, mode[1] == 'r', argv[2], data);
	return 0;
}
