/* Threads that share their objects: several post to one QP, several poll one CQ, and several keep a Shared Receive Queue full, at once. Each message comes once, whole, and each
 * request completes once. Prints "threads: ok". It is compiled with pair.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { POSTERS = 4, POLLERS = 3, FILLERS = 2, EACH = 4000, SENDS = POSTERS * EACH, DEPTH = 64, WORDS = 8, SLOTS = 32 };

struct message {
	uint64_t words[WORDS]; /* the sender, its number, and what follows from both */
};

static struct ibv_cq *cq; /* of both QPs */
static struct ibv_srq *srq;
static struct ibv_qp *from, *to;
static struct ibv_mr *mr;
static struct {
	struct message sent[POSTERS][SLOTS], received[DEPTH];
} memory;

static uint32_t at_sender[SENDS], at_receiver[SENDS]; /* how often it completed */
static uint32_t returned[POSTERS];                    /* Sends of each that have completed */
static uint32_t empty[DEPTH];                         /* receives that are to be posted */
static uint32_t completions;

static void fill(struct message *m, uint64_t poster, uint64_t number)
{
	for (uint64_t i = 0; i < WORDS; i++)
		m->words[i] = poster << 48 ^ number << 16 ^ i * 0x9e3779b97f4a7c15;
}

/* Whether it is a message as it was sent, and which. */
static int number_of(const struct message *m, uint64_t *poster, uint64_t *number)
{
	struct message want;
	*poster = m->words[0] >> 48;
	*number = m->words[0] >> 16 & 0xffffffff;
	fill(&want, *poster, *number);
	return *poster < POSTERS && *number < EACH && !memcmp(m, &want, sizeof want);
}

/* The Send Queue has room for fewer than the threads would have under way: ENOMEM is for it to try again. */
static void send(void *bytes, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)bytes, sizeof(struct message), mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
	int error;
	while ((error = ibv_post_send(from, &wr, &bad)) == ENOMEM)
		sched_yield();
	check(!error, "ibv_post_send");
}

static void *posts(void *arg)
{
	uint64_t poster = (uintptr_t)arg;
	for (uint64_t n = 0; n < EACH; n++) {
		while (n >= __atomic_load_n(&returned[poster], __ATOMIC_ACQUIRE) + SLOTS)
			sched_yield();
		struct message *m = &memory.sent[poster][n % SLOTS];
		fill(m, poster, n);
		send(m, poster * EACH + n);
	}
	return NULL;
}

static void *fills(void *unused)
{
	while (__atomic_load_n(&completions, __ATOMIC_ACQUIRE) < 2 * SENDS) {
		for (int i = 0; i < DEPTH; i++) {
			if (!__atomic_exchange_n(&empty[i], 0, __ATOMIC_ACQ_REL))
				continue;
			struct ibv_sge sge = {(uintptr_t)&memory.received[i], sizeof memory.received[i], mr->lkey};
			struct ibv_recv_wr *bad, wr = {.wr_id = SENDS + i, .sg_list = &sge, .num_sge = 1};
			check(!ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
		}
		sched_yield();
	}
	return unused;
}

static void received(const struct ibv_wc *wc)
{
	int slot = wc->wr_id - SENDS;
	uint64_t poster, number;
	check(wc->opcode == IBV_WC_RECV && wc->byte_len == sizeof(struct message) && wc->qp_num == to->qp_num, "a receive");
	check(number_of(&memory.received[slot], &poster, &number), "what it has brought");
	__atomic_add_fetch(&at_receiver[poster * EACH + number], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&empty[slot], 1, __ATOMIC_RELEASE);
}

static void sent(const struct ibv_wc *wc)
{
	check(wc->opcode == IBV_WC_SEND && wc->qp_num == from->qp_num, "a Send");
	__atomic_add_fetch(&at_sender[wc->wr_id], 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&returned[wc->wr_id / EACH], 1, __ATOMIC_RELEASE);
}

static void *polls(void *unused)
{
	struct ibv_wc wc[16];
	while (__atomic_load_n(&completions, __ATOMIC_ACQUIRE) < 2 * SENDS) {
		int n = ibv_poll_cq(cq, 16, wc);
		check(n >= 0, "ibv_poll_cq");
		for (int i = 0; i < n; i++) {
			check(!wc[i].status, ibv_wc_status_str(wc[i].status));
			wc[i].wr_id < SENDS ? sent(&wc[i]) : received(&wc[i]);
		}
		__atomic_add_fetch(&completions, n, __ATOMIC_ACQ_REL);
	}
	return unused;
}

static struct ibv_qp *create_qp(struct ibv_srq *with)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .srq = with, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
	return qp;
}

static void equip(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	open_device();
	cq = ibv_create_cq(context, 3 * DEPTH, NULL, NULL, 0);
	srq = ibv_create_srq(pd, &init);
	mr = ibv_reg_mr(pd, &memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	check(cq && srq && mr, "the objects");
	from = create_qp(NULL);
	to = create_qp(srq);
	meet(&(struct end){.qp = from}, &(struct end){.qp = to});
	for (int i = 0; i < DEPTH; i++)
		empty[i] = 1;
}

static void release(void)
{
	struct ibv_wc wc;
	check(!ibv_poll_cq(cq, 1, &wc), "one completion too many");
	check(!ibv_destroy_qp(from) && !ibv_destroy_qp(to) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr), "destroy");
	close_device();
}

int main(void)
{
	pthread_t threads[POSTERS + POLLERS + FILLERS];
	equip();
	for (int i = 0; i < POSTERS + POLLERS + FILLERS; i++)
		check(!pthread_create(&threads[i], NULL, i < POSTERS ? posts : i < POSTERS + POLLERS ? polls : fills, (void *)(uintptr_t)i), "pthread_create");
	for (int i = 0; i < POSTERS + POLLERS + FILLERS; i++)
		check(!pthread_join(threads[i], NULL), "pthread_join");
	for (int i = 0; i < SENDS; i++)
		check(at_sender[i] == 1 && at_receiver[i] == 1, "a message that has not come once");
	release();
	puts("threads: ok");
	return 0;
}
