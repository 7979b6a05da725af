/* A child after fork uses verbs, though its parent did: by a copy of the engine, to which its parent's objects mean nothing. It gets the
 * error numbers of the manual pages for these, and has objects of its own, over several generations. The parent goes on meanwhile. */
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GENERATIONS = 4, CHILDREN = 20 };

static int busy = 1;

static void send_one(struct end *from, struct end *to, uint64_t value)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	from->memory[0] = value;
	check(!receive(to, 1, 8), "ibv_post_recv");
	check(!post(from, &wr, 0, 8), "ibv_post_send");
	completed(from, IBV_WC_SEND, "Send");
	completed(to, IBV_WC_RECV, "receive");
	check(to->memory[8] == value, "what was received");
}

/* What an earlier process has made is nothing here, however often it is tried. */
static void inherited(struct end *e, struct ibv_pd *domain, struct rdma_cm_id *id)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;
	for (int i = 0; i < 2; i++) {
		check(post(e, &wr, 0, 8) == EINVAL, "ibv_post_send on a QP of the parent's");
		check(receive(e, 2, 8) == EINVAL, "ibv_post_recv");
		check(ibv_poll_cq(e->cq, 1, &wc) < 0, "ibv_poll_cq");
		check(ibv_req_notify_cq(e->cq, 0) == EINVAL, "ibv_req_notify_cq");
		check(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE) == EINVAL, "ibv_modify_qp");
		check(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init) == EINVAL, "ibv_query_qp");
		check(ibv_destroy_qp(e->qp) == EINVAL, "ibv_destroy_qp");
		check(ibv_destroy_cq(e->cq) == EINVAL, "ibv_destroy_cq");
		check(ibv_dereg_mr(e->mr) == EINVAL, "ibv_dereg_mr");
		check(ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL, "ibv_rereg_mr");
		check(!ibv_reg_mr(domain, e->memory, 8, 0) && errno == EINVAL, "ibv_reg_mr");
		check(ibv_dealloc_pd(domain) == EINVAL, "ibv_dealloc_pd");
		check(rdma_listen(id, 1) < 0 && errno == EINVAL, "rdma_listen");
		check(rdma_destroy_id(id) < 0 && errno == EINVAL, "rdma_destroy_id");
	}
}

/* Another thread of the parent's is in the middle of something when it forks. */
static void *work(void *e)
{
	while (__atomic_load_n(&busy, __ATOMIC_RELAXED)) {
		struct ibv_mr *mr = ibv_reg_mr(pd, ((struct end *)e)->memory, 8, 0);
		check(mr && !ibv_dereg_mr(mr), "ibv_reg_mr, ibv_dereg_mr");
	}
	return NULL;
}

static void succeeds(pid_t child)
{
	int status = 0;
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child");
}

/* Each process is the parent of the next, and has its connection before and after that. */
static void live(int generation, struct end *theirs, struct ibv_pd *domain, struct rdma_cm_id *id)
{
	if (theirs)
		inherited(theirs, domain, id);
	open_device();
	struct end *a = create(0), *b = create(IBV_ACCESS_LOCAL_WRITE);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *mine;
	check(channel && !rdma_create_id(channel, &mine, NULL, RDMA_PS_TCP), "rdma_create_id");
	meet(a, b);
	send_one(a, b, generation);
	if (theirs)
		inherited(theirs, domain, id); /* whose numbers may be those of something here */
	pid_t child = generation < GENERATIONS ? fork() : -1;
	if (child == 0) {
		live(generation + 1, a, pd, mine);
		exit(0);
	}
	for (int i = 0; i < 100; i++)
		send_one(a, b, 1000 + i);
	if (child > 0)
		succeeds(child);
	send_one(a, b, 77);
	check(!rdma_destroy_id(mine), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	destroy(a);
	destroy(b);
	close_device();
}

/* Children of a process with several threads, of which each destroys what it has made. */
static void forks_beside_threads(void)
{
	open_device();
	struct end *e = create(0);
	pthread_t thread;
	check(!pthread_create(&thread, NULL, work, e), "pthread_create");
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		if (child == 0) {
			open_device();
			destroy(create(0));
			close_device();
			exit(0);
		}
		succeeds(child);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	destroy(e);
	close_device();
}

int main(void)
{
	live(1, NULL, NULL, NULL);
	forks_beside_threads();
	puts("fork: ok");
	return 0;
}
