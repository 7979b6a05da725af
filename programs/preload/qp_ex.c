/* Extended Queue Pairs: requests are built one by one between wr_start and wr_complete, which posts them as a
 * list: all of them, or none. */
#include "objects.h"

#include <pthread.h>

/* A request with all that it refers to. Inline data is the program's own again when it is set. */
struct iw_built {
	struct ibv_send_wr wr;
	struct ibv_sge sges[MAX_SGE];
	uint8_t *data;
};

static struct iw_qp *qp_of(struct ibv_qp_ex *qp)
{
	return container(qp, struct iw_qp, extended);
}

static struct iw_batch *batch_of(struct ibv_qp_ex *qp)
{
	return &qp_of(qp)->batch;
}

/* In a child after fork its parent's batches are as they were then: held for ever, or half of one. A QP that was destroyed has none. */
static bool live(struct ibv_qp_ex *qp)
{
	return iw_live(&qp_of(qp)->handle);
}

static void start(struct ibv_qp_ex *qp)
{
	if (!live(qp))
		return;
	pthread_mutex_lock(&qp_of(qp)->building);
	if (!live(qp)) /* it was destroyed while this waited */
		return;
	batch_of(qp)->n = 0;
	batch_of(qp)->error = 0;
}

static void drop(struct iw_batch *b)
{
	for (uint32_t i = 0; i < b->room; i++)
		free(b->all[i].data);
	free(b->all);
	*b = (struct iw_batch){.max_inline = b->max_inline};
}

/* The lock knows whose it is: a thread that did not get it, as the QP was destroyed, gives up none of another's. Of a QP that was destroyed nobody builds
 * any more once the lock is free, be that here or in the thread that has destroyed it. */
static void release(struct ibv_qp_ex *qp)
{
	struct iw_qp *q = qp_of(qp);
	pthread_mutex_unlock(&q->building);
	if (live(qp) || pthread_mutex_trylock(&q->building))
		return;
	drop(&q->batch);
	pthread_mutex_unlock(&q->building);
}

static bool grow(struct iw_batch *b)
{
	uint32_t room = b->room ? 2 * b->room : 16;
	struct iw_built *all = realloc(b->all, room * sizeof *all);
	if (!all)
		return false;
	memset(all + b->room, 0, (room - b->room) * sizeof *all);
	b->all = all;
	b->room = room;
	return true;
}

/* The next request; its memory comes later. */
static struct ibv_send_wr *next(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	static __thread struct ibv_send_wr nowhere;
	struct iw_batch *b = batch_of(qp);
	if (!live(qp))
		return &nowhere;
	if (b->n == b->room && !grow(b)) {
		b->error = ENOMEM;
		return &nowhere;
	}
	struct iw_built *w = &b->all[b->n++];
	w->wr = (struct ibv_send_wr){.wr_id = qp->wr_id, .opcode = opcode, .send_flags = qp->wr_flags & ~IBV_SEND_INLINE};
	return &w->wr;
}

static void to_remote(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote)
{
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote;
}

static void wr_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote)
{
	to_remote(next(qp, IBV_WR_RDMA_READ), rkey, remote);
}

static void wr_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote)
{
	to_remote(next(qp, IBV_WR_RDMA_WRITE), rkey, remote);
}

static void wr_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote, __be32 imm)
{
	struct ibv_send_wr *wr = next(qp, IBV_WR_RDMA_WRITE_WITH_IMM);
	to_remote(wr, rkey, remote);
	wr->imm_data = imm;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	next(qp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	next(qp, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	next(qp, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	next(qp, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote, uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr = next(qp, IBV_WR_ATOMIC_CMP_AND_SWP);
	wr->wr.atomic.remote_addr = remote;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

static void wr_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote, uint64_t add)
{
	struct ibv_send_wr *wr = next(qp, IBV_WR_ATOMIC_FETCH_AND_ADD);
	wr->wr.atomic.remote_addr = remote;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = add;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = next(qp, IBV_WR_BIND_MW);
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

/* The request whose memory is to be set: NULL after an error. */
static struct iw_built *last(struct ibv_qp_ex *qp)
{
	struct iw_batch *b = batch_of(qp);
	return !live(qp) || b->error || !b->n ? NULL : &b->all[b->n - 1];
}

static void set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t number, uint32_t qkey)
{
	struct iw_built *w = last(qp);
	if (!w)
		return;
	w->wr.wr.ud.ah = ah;
	w->wr.wr.ud.remote_qpn = number;
	w->wr.wr.ud.remote_qkey = qkey;
}

static void set_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list)
{
	struct iw_batch *b = batch_of(qp);
	struct iw_built *w = last(qp);
	if (w && n > MAX_SGE)
		b->error = EINVAL;
	else if (w)
		memcpy(w->sges, list, (w->wr.num_sge = n) * sizeof *list);
}

static void set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge s = {.addr = addr, .length = length, .lkey = lkey};
	set_sge_list(qp, 1, &s);
}

static void set_inline_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
	struct iw_batch *b = batch_of(qp);
	struct iw_built *w = last(qp);
	size_t length = 0;
	if (!w)
		return;
	if (!w->data && !(w->data = malloc(b->max_inline))) {
		b->error = ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; length += list[i++].length) {
		if (list[i].length > b->max_inline - length) {
			b->error = EINVAL;
			return;
		}
		memcpy(w->data + length, list[i].addr, list[i].length);
	}
	w->sges[0] = (struct ibv_sge){.addr = (uintptr_t)w->data, .length = length};
	w->wr.num_sge = 1;
	w->wr.send_flags |= IBV_SEND_INLINE;
}

static void set_inline(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};
	set_inline_list(qp, 1, &buf);
}

static int post_built(struct ibv_qp_ex *qp)
{
	struct iw_batch *b = batch_of(qp);
	for (uint32_t i = 0; i < b->n; i++) {
		b->all[i].wr.sg_list = b->all[i].sges;
		b->all[i].wr.next = i + 1 < b->n ? &b->all[i + 1].wr : NULL;
	}
	if (b->error || !b->n)
		return b->error;
	return iw_post_all(&qp->qp_base, &b->all[0].wr);
}

static int finish(struct ibv_qp_ex *qp)
{
	int error = live(qp) ? post_built(qp) : EINVAL;
	release(qp);
	return error;
}

/* Which there are says the table of internal/programs/verbs/operation.go. */
static uint64_t ops_of(const struct iw_qp *q)
{
	uint64_t ops = 0;
	iw_engine()->qp_send_ops(q->qp.qp_type == IBV_QPT_UD, &ops);
	return ops;
}

static void init_lock(pthread_mutex_t *m)
{
	pthread_mutexattr_t checking;
	pthread_mutexattr_init(&checking);
	pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(m, &checking);
	pthread_mutexattr_destroy(&checking);
}

int iw_extend(struct iw_qp *q, uint64_t send_ops)
{
	if (send_ops & ~ops_of(q))
		return EOPNOTSUPP;
	init_lock(&q->building);
	q->batch.max_inline = q->attr.cap.max_inline_data;
	struct ibv_qp_ex *x = &q->extended;
	x->wr_rdma_read = wr_read;
	x->wr_rdma_write = wr_write;
	x->wr_rdma_write_imm = wr_write_imm;
	x->wr_send = wr_send;
	x->wr_send_imm = wr_send_imm;
	x->wr_send_inv = wr_send_inv;
	x->wr_local_inv = wr_local_inv;
	x->wr_bind_mw = wr_bind_mw;
	x->wr_atomic_cmp_swp = wr_cmp_swp;
	x->wr_atomic_fetch_add = wr_fetch_add;
	x->wr_set_ud_addr = set_ud_addr;
	x->wr_set_sge = set_sge;
	x->wr_set_sge_list = set_sge_list;
	x->wr_set_inline_data = set_inline;
	x->wr_set_inline_data_list = set_inline_list;
	x->wr_start = start;
	x->wr_complete = finish;
	x->wr_abort = release;
	return 0;
}

static bool is_extended(const struct iw_qp *q)
{
	return q->extended.wr_start == start;
}

/* For a QP that was destroyed. Its batch may be in the hands of a thread that builds: that drops it then. */
void iw_shorten(struct iw_qp *q)
{
	if (is_extended(q))
		release(&q->extended); /* also where the thread that builds is the one that destroys */
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (!iw_ours(qp->context))
		return REAL(ibv_qp_to_qp_ex, qp);
	struct iw_qp *q = container(qp, struct iw_qp, qp);
	return is_extended(q) ? &q->extended : NULL;
}
