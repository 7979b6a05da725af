/* Memory that the program unmaps while it is registered: whatever reaches for it ends in an error, and the program goes on. Prints "vanish: ok". It is
 * compiled with pair.h. */
#include <sys/mman.h>
#include <unistd.h>

static struct end *a, *b;
static char *memory;
static struct ibv_mr *mr;
static size_t size;

static void map(void)
{
	size = 64 * sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	check(mr != NULL, "ibv_reg_mr");
	a = create(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	b = create(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	meet(a, b);
}

static void unmap(void)
{
	check(!munmap(memory + size / 2, size / 2), "munmap");
}

static void end(void)
{
	destroy(a);
	destroy(b);
	check(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	check(!munmap(memory, size / 2), "munmap");
}

/* 16 bytes, of which 8 are there after unmap. */
static char *half(void)
{
	return memory + size / 2 - 8;
}

/* What a sends of the memory, or reads into it, fails. */
static void ours(enum ibv_wr_opcode opcode)
{
	map();
	check(!receive(b, 4, 0), "ibv_post_recv");
	struct ibv_sge list = {(uintptr_t)half(), 16, mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = opcode, .sg_list = &list, .num_sge = 1, .wr.rdma = {(uintptr_t)b->memory, b->mr->rkey}};
	unmap();
	check(!ibv_post_send(a->qp, &wr, &bad), "ibv_post_send");
	struct ibv_wc wc = next(a);
	if (wc.status != IBV_WC_LOC_PROT_ERR)
		fprintf(stderr, "operation %d: %s\n", opcode, ibv_wc_status_str(wc.status));
	check(wc.status == IBV_WC_LOC_PROT_ERR, "what is unmapped at the one that asks");
	end();
}

/* What a asks of the memory as b's fails. */
static void theirs(enum ibv_wr_opcode opcode)
{
	map();
	unmap();
	struct ibv_send_wr wr = {.opcode = opcode, .wr.rdma = {(uintptr_t)half(), mr->rkey}};
	check(!post(a, &wr, 0, 16), "post");
	struct ibv_wc wc = next(a);
	check(wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR, "what is unmapped at the one that is asked");
	end();
}

static void received(void)
{
	map();
	struct ibv_sge list = {(uintptr_t)half(), 64, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 5, .sg_list = &list, .num_sge = 1};
	check(!ibv_post_recv(b->qp, &wr, &bad), "ibv_post_recv");
	unmap();
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND};
	check(!post(a, &send, 0, 32), "post");
	struct ibv_wc wc = next(b);
	check(wc.wr_id == 5 && wc.status == IBV_WC_LOC_PROT_ERR, "what is unmapped at the receiver");
	check(next(a).status != IBV_WC_SUCCESS, "the Send");
	end();
}

int main(void)
{
	open_device();
	ours(IBV_WR_SEND);
	ours(IBV_WR_RDMA_WRITE);
	ours(IBV_WR_RDMA_READ);
	theirs(IBV_WR_RDMA_WRITE);
	theirs(IBV_WR_RDMA_READ);
	received();
	close_device();
	puts("vanish: ok");
	return 0;
}
