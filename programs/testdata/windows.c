/* Memory Windows of both types, and regions that are registered again. Prints "windows: ok". It is compiled with pair.h. */

static void write_by(struct end *from, struct end *to, uint32_t rkey, uint64_t value)
{
	from->memory[0] = value;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {(uintptr_t)&to->memory[1], rkey}};
	check(!post(from, &wr, 0, 8), "post a Write");
	completed(from, IBV_WC_RDMA_WRITE, "Write");
	wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_READ};
	check(!post(from, &wr, 0, 0), "post a Read of nothing");
	completed(from, IBV_WC_RDMA_READ, "Read");
	check(to->memory[1] == value, "what was written");
}

static struct ibv_mw_bind_info part(struct end *e)
{
	return (struct ibv_mw_bind_info){e->mr, (uintptr_t)&e->memory[1], 8, IBV_ACCESS_REMOTE_WRITE};
}

int main(void)
{
	open_device();
	struct ibv_device_attr attr;
	check(!ibv_query_device(context, &attr) && attr.max_mw > 0 && attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW, "ibv_query_device");
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	meet(a, b);

	struct ibv_mw *one = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	check(one && two && one->type == IBV_MW_TYPE_1, "ibv_alloc_mw");
	struct ibv_mw_bind bind = {.wr_id = 1, .bind_info = part(b)};
	uint32_t before = one->rkey;
	check(!ibv_bind_mw(b->qp, one, &bind) && one->rkey == ibv_inc_rkey(before), "ibv_bind_mw");
	completed(b, IBV_WC_BIND_MW, "bind");
	write_by(a, b, one->rkey, 11);
	check(ibv_bind_mw(b->qp, two, &bind) == EINVAL, "a window of type 2");
	check(ibv_dereg_mr(b->mr) == EBUSY, "a region with a window");
	check(ibv_dealloc_pd(pd) == EBUSY, "a domain with a window");

	uint32_t key = ibv_inc_rkey(two->rkey);
	struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_BIND_MW, .bind_mw = {two, key, part(b)}};
	check(!post(b, &wr, 0, 0), "IBV_WR_BIND_MW");
	completed(b, IBV_WC_BIND_MW, "bind");
	write_by(a, b, key, 22);
	wr = (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key};
	check(!post(b, &wr, 0, 0), "IBV_WR_LOCAL_INV");
	completed(b, IBV_WC_LOCAL_INV, "local invalidation");

	key = ibv_inc_rkey(key);
	wr = (struct ibv_send_wr){.opcode = IBV_WR_BIND_MW, .bind_mw = {two, key, part(b)}};
	check(!post(b, &wr, 0, 0), "IBV_WR_BIND_MW");
	completed(b, IBV_WC_BIND_MW, "bind");
	write_by(a, b, key, 33);
	check(!receive(b, 3, 2), "ibv_post_recv");
	wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key};
	check(!post(a, &wr, 0, 8), "IBV_WR_SEND_WITH_INV");
	completed(a, IBV_WC_SEND, "Send with Invalidate");
	struct ibv_wc wc = completed(b, IBV_WC_RECV, "receive");
	check(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == key, "what was invalidated");

	check(!ibv_dealloc_mw(one) && !ibv_dealloc_mw(two) && ibv_dealloc_mw(two) == EINVAL, "ibv_dealloc_mw");
	check(ibv_rereg_mr(b->mr, 64, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL, "a flag that there is not");
	uint32_t lkey = b->mr->lkey, rkey = b->mr->rkey;
	check(lkey == rkey, "one key");
	check(!ibv_rereg_mr(b->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "ibv_rereg_mr");
	write_by(a, b, b->mr->rkey, 44);
	check(!ibv_rereg_mr(b->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &b->memory[1], 8, 0) && b->mr->addr == &b->memory[1] && b->mr->length == 8,
	      "other memory");
	write_by(a, b, b->mr->rkey, 55);
	check(b->mr->lkey == lkey && b->mr->rkey == rkey, "the keys");
	destroy(a);
	destroy(b);
	close_device();
	puts("windows: ok");
	return 0;
}
