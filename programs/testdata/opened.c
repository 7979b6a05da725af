/* A program that is not linked to libibverbs and finds it by name, each function in the version that NCCL asks for. Two Queue Pairs exchange a
 * Send with what was found. Prints "opened: ok". It is compiled without pair.h, which it includes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

#define FUNCTIONS(F)                                                                                                                \
	F(ibv_get_device_list, "1.1") F(ibv_free_device_list, "1.1") F(ibv_get_device_name, "1.1") F(ibv_open_device, "1.1")        \
	F(ibv_close_device, "1.1") F(ibv_get_async_event, "1.1") F(ibv_ack_async_event, "1.1") F(ibv_query_device, "1.1")           \
	F(ibv_query_port, "1.1") F(ibv_query_gid, "1.1") F(ibv_query_qp, "1.1") F(ibv_alloc_pd, "1.1") F(ibv_dealloc_pd, "1.1")     \
	F(ibv_reg_mr, "1.1") F(ibv_reg_mr_iova2, "1.8") F(ibv_reg_dmabuf_mr, "1.12") F(ibv_dereg_mr, "1.1") F(ibv_create_cq, "1.1") \
	F(ibv_destroy_cq, "1.1") F(ibv_create_qp, "1.1") F(ibv_modify_qp, "1.1") F(ibv_destroy_qp, "1.1") F(ibv_fork_init, "1.1")   \
	F(ibv_event_type_str, "1.1") F(ibv_wc_status_str, "1.1")

static struct {
#define MEMBER(name, version) typeof(&name) name;
	FUNCTIONS(MEMBER)
} verbs;

static void *library;

/* Returns the name of a function that is not found, or not the same without its version. */
static const char *find(void)
{
#define FIND(name, version)                                             \
	*(void **)&verbs.name = dlvsym(library, #name, "IBVERBS_" version); \
	if (!verbs.name || (void *)verbs.name != dlsym(library, #name))     \
		return #name;
	FUNCTIONS(FIND)
	return NULL;
}

/* A version with other structures is that of libibverbs, and what there is not is an error. */
static int answers_others(void)
{
	void *old = dlvsym(library, "ibv_open_device", "IBVERBS_1.0");
	return old && old != (void *)verbs.ibv_open_device && !dlvsym(library, "ibv_open_device", "IBVERBS_9.9") && dlerror() &&
	       !dlsym(library, "ibv_no_such_function") && dlerror();
}

/* What pair.h calls. */
#define ibv_get_device_list verbs.ibv_get_device_list
#define ibv_free_device_list verbs.ibv_free_device_list
#define ibv_open_device verbs.ibv_open_device
#define ibv_close_device verbs.ibv_close_device
#define ibv_query_gid verbs.ibv_query_gid
#define ibv_alloc_pd verbs.ibv_alloc_pd
#define ibv_dealloc_pd verbs.ibv_dealloc_pd
#define ibv_reg_mr verbs.ibv_reg_mr
#define ibv_dereg_mr verbs.ibv_dereg_mr
#define ibv_create_cq verbs.ibv_create_cq
#define ibv_destroy_cq verbs.ibv_destroy_cq
#define ibv_create_qp verbs.ibv_create_qp
#define ibv_modify_qp verbs.ibv_modify_qp
#define ibv_destroy_qp verbs.ibv_destroy_qp
#define ibv_wc_status_str verbs.ibv_wc_status_str
#include "pair.h"

int main(void)
{
	check(!dlsym(RTLD_DEFAULT, "ibv_wc_status_str"), "the program is not linked to libibverbs");
	library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	check(library != NULL, "dlopen");
	const char *missing = find();
	check(!missing, missing);
	check(answers_others(), "what else is looked for");
	check(!verbs.ibv_fork_init(), "ibv_fork_init");
	open_device();
	check(!strcmp(verbs.ibv_get_device_name(context->device), "iwarp0"), "the device");
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE);
	meet(a, b);
	check(!receive(b, 1, 2), "ibv_post_recv");
	a->memory[0] = 4711;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	check(!post(a, &wr, 0, 8), "ibv_post_send");
	completed(a, IBV_WC_SEND, "Send");
	completed(b, IBV_WC_RECV, "receive");
	check(b->memory[2] == 4711, "what was received");
	destroy(a);
	destroy(b);
	close_device();
	puts("opened: ok");
	return 0;
}
