/* The objects of verbs as this library allocates them: first what the program sees, behind it what is ours. */
#ifndef IWARP_OBJECTS_H
#define IWARP_OBJECTS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

/* Macros of the headers that would hide the functions defined here. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* How many elements a work request has at most, as in package iwarp. */
enum { MAX_SGE = 32, MAX_WR = 1 << 15, MAX_READS = 128, MAX_CQE = 1 << 20 };

/* A handle of the engine, and of which: a child after fork has an engine of its own, to which the objects of its parent
 * mean nothing. */
struct iw_handle {
	uint64_t number;
	unsigned generation;
};

/* Of the device: structs behind that of ibv_device belong to drivers, which compare a pointer there with their own. */
struct iw_device {
	struct ibv_device device;
	char nobody[256];
};

/* Threads that wait for an event, which each takes from its queue when it is woken. A thread is counted before it looks into the queue: by threads until
 * something comes, and by wakes from then on. */
struct iw_waiters {
	void (*wake)(struct iw_waiters *);
	sem_t wakes;
	uint32_t threads;
	int32_t users; /* threads in a call that waits, asleep or not */
};

struct iw_context {
	struct iw_handle handle;
	unsigned process; /* whose async_fd is; with iw_make, as the handle, which is made when it is needed first */
	struct iw_waiters waiters;
	struct verbs_context v; /* which ends with its struct ibv_context */
};

struct iw_channel {
	struct ibv_comp_channel channel;
	struct iw_handle handle;
	struct iw_waiters waiters;
};

struct iw_pd {
	struct ibv_pd pd;
	struct iw_handle handle;
	uint32_t parents; /* parent domains that have it */
	struct iw_pd *of; /* of a parent domain, whose handle is that of this one */
	struct ibv_td *td;
};

struct iw_mr {
	struct ibv_mr mr;
	struct iw_handle handle;
};

struct iw_mw {
	struct ibv_mw mw; /* whose handle is the lower half of the number below */
	struct iw_handle handle;
};

struct iw_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex extended;
	};
	struct iw_handle handle;
	struct ibv_wc wc; /* that is read in place, as what is in extended */
	bool alone; /* one thread polls it: it needs no lock */
	pthread_mutex_t reading; /* from start_poll on, if it has found something, until end_poll */
	uint32_t comp_events, async_events; /* delivered */
};

struct iw_srq {
	struct ibv_srq srq;
	struct iw_handle handle;
	uint32_t events, max_sge;
};

/* Requests that are being built. */
struct iw_batch {
	struct iw_built *all;
	uint32_t n, room, max_inline;
	int error; /* the first of those that were built */
};

struct iw_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex extended;
	};
	struct iw_handle handle;
	uint32_t events;
	struct ibv_qp_init_attr attr;
	struct iw_batch batch; /* of an extended one */
	pthread_mutex_t building; /* from wr_start on, until wr_complete or wr_abort */
	struct ibv_qp_attr set; /* what the program has set, to be asked for */
};

struct iw_ah {
	struct ibv_ah ah; /* whose handle is the lower half of the number below */
	struct iw_handle handle;
};

/* Why a call is refused; empty is not known. */
struct iw_why {
	char text[256];
};

/* why.c: each returns the error that it is given. */
int iw_because(struct iw_why *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
int iw_because_of(struct iw_why *why, int error, const char *what, int mask); /* of ibv_modify_qp, whose attributes it names */
int iw_refuse_modify(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask, int error, struct iw_why *why);
int iw_refuse_ops(struct iw_qp *q, uint64_t ops, int error); /* of ibv_create_qp_ex */
int iw_refuse_datagrams(void);
const char *iw_state_name(unsigned state);

/* stack.c */
extern __thread bool iw_has_stack __attribute__((tls_model("initial-exec"))); /* an alternate one, or none could be made */
void iw_give_stack(void);

/* load.c */
const struct iw_engine *iw_engine(void);
bool iw_loading(void); /* whether there is an engine, or is about to be */
bool iw_live(const struct iw_handle *h);
uint64_t iw_number(const struct iw_handle *h); /* 0, which names nothing, if it is not live */
struct iw_handle iw_handle(uint64_t number);
void *iw_real(const char *name);

/* names.c */
void *iw_dlsym(void *handle, const char *name); /* without an answer of this library's */
void *iw_libc(const char *name); /* a function of libc's in its present version */
void *(*iw_dlopen(void))(const char *, int); /* the real one */

/* memory.c */
void *iw_new(size_t size);
void iw_retire(void *object);

/* wait.c */
int iw_descriptor(unsigned *process); /* a new one, of this process */
bool iw_own_descriptor(int fd, unsigned *process);
void iw_prepare_waiters(struct iw_waiters *w);
void iw_begin_waiting(struct iw_waiters *w); /* before the queue is looked at; next is one of these */
int iw_wait(struct iw_waiters *w, const int *fd); /* one that is negative is waited for in vain */
void iw_end_waiting(struct iw_waiters *w);
void iw_use_waiters(struct iw_waiters *w, int32_t more);
void iw_retire_waited(void *object, const struct iw_waiters *w);
#define AWAIT(waiters, fd, take) /* take is an error number: EAGAIN until there is something */ \
	({                                                                                     \
		int error;                                                                     \
		iw_use_waiters(waiters, 1);                                                    \
		do {                                                                           \
			iw_begin_waiting(waiters);                                             \
			error = take;                                                          \
			if (error != EAGAIN) {                                                 \
				iw_end_waiting(waiters);                                       \
				break;                                                         \
			}                                                                      \
		} while (!(error = iw_wait(waiters, fd)));                                     \
		iw_use_waiters(waiters, -1);                                                   \
		iw_set_errno(error);                                                           \
	})
int iw_set_errno(int error); /* for functions that return -1 for an error, or 0 */
void *iw_failed(int error); /* and for those that return NULL */

/* guise.c */
bool iw_passes_for_roce(char **argv);

/* device.c */
struct ibv_device *iw_device(void);
bool iw_ours(const struct ibv_context *context);
struct ibv_context *iw_open(void);
bool iw_roce(void); /* the guise of the device */
uint64_t iw_context_number(struct ibv_context *context);
bool iw_own_async(struct ibv_context *context);
bool iw_has_events(struct ibv_context *context);
/* Whether ibv_modify_qp may have these attributes in that state, in the guise of RoCE: 0 or EINVAL. */
int iw_check_modify(bool ud, enum ibv_qp_state now, const struct ibv_qp_attr *attr, int mask, struct iw_why *why);
/* How many entries the table of GIDs has; one of them: EINVAL if it is empty; and which has a GID: -1 if none has. */
int iw_gid_count(void);
int iw_gid(unsigned index, union ibv_gid *gid);
int iw_gid_entry(unsigned index, struct ibv_gid_entry *entry);
int iw_gid_index(const union ibv_gid *gid);
bool iw_gid_of(const struct sockaddr *a, union ibv_gid *gid); /* an IPv4 address is written as one of IPv6; false, and zeros, for none of these */
int iw_query_device(struct ibv_device_attr *attr);
int iw_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);

/* ops.c */
void iw_set_ops(struct verbs_context *v);

/* cq.c, qp.c, srq.c, window.c: what ops.c puts into contexts */
int iw_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int iw_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int iw_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int iw_post_all(struct ibv_qp *qp, struct ibv_send_wr *wr);
int iw_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int iw_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_mw *iw_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int iw_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int iw_dealloc_mw(struct ibv_mw *mw);
struct ibv_td *iw_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int iw_dealloc_td(struct ibv_td *td);
struct ibv_pd *iw_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
int iw_dealloc_parent_domain(struct iw_pd *p);
bool iw_is_parent(const struct ibv_context *context, struct ibv_pd *pd);
struct ibv_cq_ex *iw_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *iw_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* qp_ex.c */
int iw_extend(struct iw_qp *q, uint64_t send_ops);
void iw_shorten(struct iw_qp *q);

/* wait.c */
void iw_shield(void); /* around what is not to be canceled */
void iw_unshield(void);
void iw_deliver(void); /* around what takes an event from its queue, and counts it */
void iw_delivered(void);
void iw_count(uint32_t *counter, uint32_t n); /* of events that were delivered, or acknowledged */
void iw_wait_acked(const uint32_t *acked, const uint32_t *delivered);
void iw_make(void); /* around what makes something when it is needed first */
void iw_made(void);

/* A rdma_cm_id. librdmacm's rsockets look behind what the header shows of it: for a device, which is none here, and
 * whether the id has no channel of the program's. */
struct iw_id {
	struct rdma_cm_id id;
	void *no_device;
	char unknown[24];
	int sync;
	char unknown_too[188];
	struct iw_handle handle;
	struct ibv_qp_init_attr *attr; /* of rdma_create_ep, for the requests that come */
	bool passive, own_cqs;
	bool begun; /* it connects or listens, or is that of a request */
	bool up; /* by its events: that of its end is still to come */
	uint8_t responder_resources, initiator_depth; /* that a peer has asked for */
	uint8_t timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT: TCP has its own, so that it is kept to be asked for */
	uint32_t events, acked; /* events delivered, and those acknowledged */
};

struct iw_cm_channel {
	struct rdma_event_channel channel;
	struct iw_handle handle;
	unsigned process; /* whose descriptor it is; with iw_make, as the handle */
	struct iw_waiters waiters;
};

/* cm.c */
int iw_complete(struct rdma_cm_id *id);
uint64_t iw_id_number(struct rdma_cm_id *id);
struct iw_id *iw_new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type type);
struct rdma_event_channel *iw_new_channel(struct iw_id *id);
int iw_migrate(struct rdma_cm_id *id, struct rdma_event_channel *channel); /* without waiting */
bool iw_may_wait(struct rdma_event_channel *channel);
unsigned iw_cm_rights(void); /* of the peer, to a QP of librdmacm's */
void iw_set_addresses(struct rdma_cm_id *id, const uint8_t *local, const uint8_t *peer);
struct ibv_context *iw_cm_context(void);
void iw_not_common(const struct ibv_context *context, const struct ibv_pd *pd); /* any more: one of them is destroyed */

/* What is not ours goes on to the real library. */
#define REAL(function, ...)                                                                                    \
	({                                                                                                     \
		static typeof(&function) real;                                                                 \
		if (!real)                                                                                     \
			real = (typeof(&function))iw_real(#function);                                          \
		real(__VA_ARGS__);                                                                             \
	})

#define EXPORT __attribute__((visibility("default")))

#endif
