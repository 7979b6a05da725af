/*
 * cmpd: one connection through librdmacm, to send and to show private data,
 * which none of rdma-core's own tools can.
 *
 *   cmpd -s PORT [DATA]         accept one request, with DATA
 *   cmpd -r PORT [DATA]         reject one request, with DATA
 *   cmpd -c ADDR PORT [DATA]    connect, with DATA
 *   cmpd -S PORT                accept one request, and send one message back
 *   cmpd -C ADDR PORT MESSAGE   connect, send MESSAGE and await it back
 *   cmpd -n PORT COUNT [wait]       accept one request, and send COUNT messages
 *   cmpd -N ADDR PORT COUNT [wait]  connect, and send COUNT messages
 *
 * It prints one line per event, "EVENT status=N private=LEN:TEXT", and one per
 * message, "RECEIVED LEN:TEXT" (octets that are not printable as \xx), and ends
 * with the connection: a client takes the connection down itself, a server waits
 * for that. Messages go by Sends alone, for connections that allow no Reads.
 * With -n and -N it takes the connection down when its own messages are sent, or with
 * "wait" when as many have come, and says how many were sent, how many have come, and how
 * many of those were as they should be.
 */
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
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

/* Messages of -n and -N: the n-th is full of octets n. */
#define SIZE 4096
#define MOST 256

static char slots[2 * MOST][SIZE];
static struct ibv_mr *slots_mr;
static int count;

static void make_many(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = count, .max_recv_wr = count, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	int i;

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	slots_mr = rdma_reg_msgs(id, slots, sizeof(slots));
	if (!slots_mr)
		die("rdma_reg_msgs");
	for (i = 0; i < count; i++) {
		memset(slots[MOST + i], i, SIZE);
		if (rdma_post_recv(id, (void *)(long)i, slots[i], SIZE, slots_mr))
			die("rdma_post_recv");
	}
}

/*
 * poll_all takes completions until n have succeeded, or one has not, and returns how many.
 * siw flushes nothing by itself when the peer closes its half: then it gives up, two
 * seconds after the last completion.
 */
static int poll_all(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;
	time_t last = time(NULL);
	int done = 0, got;

	while (done < n && time(NULL) - last <= 2) {
		got = ibv_poll_cq(cq, 1, &wc);
		if (got < 0 || (got && wc.status != IBV_WC_SUCCESS))
			break;
		done += got;
		if (got)
			last = time(NULL);
	}
	return done;
}

static int good(int n)
{
	int i, j, ok = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < SIZE && slots[i][j] == (char)i; j++)
			;
		ok += j == SIZE;
	}
	return ok;
}

static void exchange(struct rdma_cm_id *id, int wait)
{
	int i, sent, came = 0;

	for (i = 0; i < count; i++)
		if (rdma_post_send(id, NULL, slots[MOST + i], SIZE, slots_mr, IBV_SEND_SIGNALED))
			break;
	sent = poll_all(id->send_cq, i);
	if (wait)
		came = poll_all(id->recv_cq, count);
	rdma_disconnect(id);
	sent += poll_all(id->send_cq, i - sent);
	came += poll_all(id->recv_cq, count - came);
	printf("SENT %d CAME %d GOOD %d\n", sent, came, good(came));
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
	struct rdma_conn_param p = param(mode == 'n' ? "" : data);
	struct rdma_cm_id *id;

	if (rdma_bind_addr(listener, address(NULL, port)) || rdma_listen(listener, 1))
		die("listen");
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (mode == 'r') {
		if (rdma_reject(id, data, strlen(data)))
			die("rdma_reject");
		return;
	}
	count ? make_many(id) : make_qp(id);
	if (rdma_accept(id, &p))
		die("rdma_accept");
	next(RDMA_CM_EVENT_ESTABLISHED);
	if (count) {
		exchange(id, !!strstr(data, "wait"));
		return;
	}
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
	count ? make_many(id) : make_qp(id);
	if (rdma_connect(id, &p))
		die("rdma_connect");
	next(RDMA_CM_EVENT_ESTABLISHED);
	if (count) {
		exchange(id, !!strstr(data, "wait"));
		return;
	}
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
	int client = !strcasecmp(mode, "-c") || !strcmp(mode, "-N"), args = client ? 4 : 3;
	const char *data = argc > args ? argv[args] : "";
	struct rdma_cm_id *id;

	if (argc < args || !strchr("srcSCnN", mode[1])) {
		fprintf(stderr, "cmpd -s|-r|-S|-n PORT [DATA] | -c|-C|-N ADDR PORT [DATA]\n");
		return 2;
	}
	if (strchr("nN", mode[1])) {
		count = atoi(data);
		if (count < 1 || count > MOST) {
			fprintf(stderr, "COUNT: 1 to %d\n", MOST);
			return 2;
		}
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
