/*
 * cmpd: one connection through librdmacm, to send and to show private data,
 * which none of rdma-core's own tools can.
 *
 *   cmpd -s PORT [DATA]         accept one request, with DATA
 *   cmpd -r PORT [DATA]         reject one request, with DATA
 *   cmpd -c ADDR PORT [DATA]    connect, with DATA
 *   cmpd -S PORT                accept one request, and send one message back
 *   cmpd -C ADDR PORT MESSAGE   connect, send MESSAGE and await it back
 *
 * It prints one line per event, "EVENT status=N private=LEN:TEXT", and one per
 * message, "RECEIVED LEN:TEXT" (octets that are not printable as \xx), and ends
 * with the connection: a client takes the connection down itself, a server waits
 * for that. Messages go by Sends alone, for connections that allow no Reads.
 */
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

static struct rdma_event_channel *channel;
static char buffer[4096];
static struct ibv_mr *mr;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void show_data(const unsigned char *data, int n)
{
	int i;

	printf("%d:", n);
	for (i = 0; i < n; i++)
		printf(isprint(data[i]) && data[i] != '\\' ? "%c" : "\\%02x", data[i]);
	printf("\n");
	fflush(stdout);
}

static void show(const struct rdma_cm_event *ev)
{
	const void *data = ev->param.conn.private_data;

	printf("%s status=%d private=", rdma_event_str(ev->event), ev->status);
	show_data(data, data ? ev->param.conn.private_data_len : 0);
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

static void check(struct ibv_wc *wc, int n, const char *what)
{
	if (n == 1 && wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, n == 1 ? ibv_wc_status_str(wc->status) : "no completion");
	exit(1);
}

/* receive waits for a message, shows it, and returns its length. */
static int receive(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	check(&wc, rdma_get_recv_comp(id, &wc), "receive");
	printf("RECEIVED ");
	show_data((unsigned char *)buffer, wc.byte_len);
	return wc.byte_len;
}

/* send_message sends the head of the buffer. */
static void send_message(struct rdma_cm_id *id, int n)
{
	struct ibv_wc wc;

	if (rdma_post_send(id, NULL, buffer, n, mr, IBV_SEND_SIGNALED))
		die("rdma_post_send");
	check(&wc, rdma_get_send_comp(id, &wc), "send");
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

static void serve(struct rdma_cm_id *listener, char mode, const char *port, const char *data)
{
	struct rdma_conn_param p = param(data);
	struct rdma_cm_id *id;

	if (rdma_bind_addr(listener, address(NULL, port)) || rdma_listen(listener, 1))
		die("listen");
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (mode == 'r') {
		if (rdma_reject(id, data, strlen(data)))
			die("rdma_reject");
		return;
	}
	make_qp(id);
	if (rdma_accept(id, &p))
		die("rdma_accept");
	next(RDMA_CM_EVENT_ESTABLISHED);
	if (mode == 'S')
		send_message(id, receive(id));
	next(RDMA_CM_EVENT_DISCONNECTED);
}

static void connect_to(struct rdma_cm_id *id, char mode, const char *host, const char *port, const char *data)
{
	struct rdma_conn_param p = param(mode == 'c' ? data : "");

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
	if (mode == 'C') {
		strncpy(buffer, data, sizeof(buffer));
		send_message(id, strlen(data));
		receive(id);
	}
	rdma_disconnect(id);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 && strlen(argv[1]) == 2 ? argv[1] : "--";
	int client = !strcasecmp(mode, "-c"), args = client ? 4 : 3;
	const char *data = argc > args ? argv[args] : "";
	struct rdma_cm_id *id;

	if (argc < args || !strchr("srcSC", mode[1])) {
		fprintf(stderr, "cmpd -s|-r|-S PORT [DATA] | -c|-C ADDR PORT [DATA]\n");
		return 2;
	}
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (client)
		connect_to(id, mode[1], argv[2], argv[3], data);
	else
		serve(id, mode[1], argv[2], data);
	return 0;
}
