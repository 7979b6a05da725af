/* Memory Windows. */
#include "objects.h"

static struct iw_mw *window_of(struct ibv_mw *mw)
{
	return container(mw, struct iw_mw, mw);
}

struct ibv_mw *iw_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	uint64_t number;
	uint32_t rkey;
	struct iw_mw *w = iw_new(sizeof *w);
	int error = w ? iw_engine()->mw_alloc(iw_number(&container(pd, struct iw_pd, pd)->handle), type, &number, &rkey) : ENOMEM;
	if (error) {
		free(w);
		return iw_failed(error);
	}
	w->handle = iw_handle(number);
	w->mw = (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = rkey, .handle = (uint32_t)number, .type = type};
	return &w->mw;
}

int iw_dealloc_mw(struct ibv_mw *mw)
{
	struct iw_mw *w = window_of(mw);
	int error = iw_engine()->mw_dealloc(iw_number(&w->handle));
	if (!error) {
		w->handle.number = mw->handle = 0;
		iw_retire(w);
	}
	return error;
}

/* Of a window of type 1: the key of the new binding is the one after the last. */
int iw_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad, wr = {.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info}};
	int error = iw_live(&window_of(mw)->handle) ? iw_post_send(qp, &wr, &bad) : EINVAL;
	if (!error)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}
