/* Memory of objects, Protection Domains and Memory Regions. */
#include "objects.h"

#include <pthread.h>

void *iw_new(size_t size)
{
	return calloc(1, size);
}

/* Objects that were destroyed rest for a while before their memory is used again: a program that destroys one twice, or uses
 * it once more, finds a handle that names nothing, and gets its EINVAL. */
static pthread_mutex_t retiring = PTHREAD_MUTEX_INITIALIZER;

void iw_retire(void *object)
{
	enum { ROOM = 1024 };
	static void *resting[ROOM];
	static unsigned next;
	pthread_mutex_lock(&retiring);
	unsigned at = next;
	next = (at + 1) % ROOM; /* a child that comes before the next line keeps what it would free */
	void *oldest = resting[at];
	resting[at] = object;
	pthread_mutex_unlock(&retiring);
	free(oldest);
}

static void in_child(void)
{
	pthread_mutex_init(&retiring, NULL);
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static struct iw_pd *pd_of(struct ibv_pd *pd)
{
	return container(pd, struct iw_pd, pd);
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	if (!iw_ours(context))
		return REAL(ibv_alloc_pd, context);
	if (context->async_fd < 0) /* it has been closed */
		return iw_failed(EINVAL);
	uint64_t number;
	struct iw_pd *p = iw_new(sizeof *p);
	int error = p ? iw_engine()->pd_alloc(&number) : ENOMEM;
	if (error) {
		free(p);
		return iw_failed(error);
	}
	p->pd.context = context;
	p->handle = iw_handle(number);
	return &p->pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (!iw_ours(pd->context))
		return REAL(ibv_dealloc_pd, pd);
	struct iw_pd *p = pd_of(pd);
	if (p->of)
		return iw_dealloc_parent_domain(p);
	if (__atomic_load_n(&p->parents, __ATOMIC_SEQ_CST))
		return EBUSY;
	int error = iw_engine()->pd_dealloc(iw_number(&p->handle));
	if (!error) {
		p->handle.number = 0;
		iw_not_common(NULL, pd);
		iw_retire(p);
	}
	return error;
}

static struct ibv_mr *register_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	uint64_t number;
	uint32_t key;
	struct iw_mr *m = iw_new(sizeof *m);
	int error = m ? iw_engine()->mr_register(iw_number(&pd_of(pd)->handle), addr, length, iova, access, &number, &key) : ENOMEM;
	if (error) {
		free(m);
		return iw_failed(error);
	}
	m->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length, .handle = key, .lkey = key, .rkey = key};
	m->handle = iw_handle(number);
	return &m->mr;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	if (!iw_ours(pd->context))
		return REAL(ibv_reg_mr_iova2, pd, addr, length, iova, access);
	return register_mr(pd, addr, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (!iw_ours(pd->context))
		return REAL(ibv_reg_mr_iova, pd, addr, length, iova, access);
	return register_mr(pd, addr, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!iw_ours(pd->context))
		return REAL(ibv_reg_mr, pd, addr, length, access);
	return register_mr(pd, addr, length, (uintptr_t)addr, access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	if (!iw_ours(pd->context))
		return REAL(ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
	return iw_failed(EOPNOTSUPP);
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!iw_ours(mr->context))
		return REAL(ibv_rereg_mr, mr, flags, pd, addr, length, access);
	struct iw_mr *m = container(mr, struct iw_mr, mr);
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length)) || (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	uint64_t to = flags & IBV_REREG_MR_CHANGE_PD && pd ? iw_number(&pd_of(pd)->handle) : 0;
	int error = iw_engine()->mr_reregister(iw_number(&m->handle), flags, to, addr, length, access);
	if (error) {
		errno = error;
		return IBV_REREG_MR_ERR_INPUT; /* the region is as it was */
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (!iw_ours(mr->context))
		return REAL(ibv_dereg_mr, mr);
	struct iw_mr *m = container(mr, struct iw_mr, mr);
	int error = iw_engine()->mr_deregister(iw_number(&m->handle));
	if (!error) {
		m->handle.number = 0;
		iw_retire(m);
	}
	return error;
}

/* Memory that is registered may be written at any time, and is not to become another process's: it is the business of the
 * program, as there is no device that would go on with the old pages. */
EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}
