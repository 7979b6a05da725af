/* What programs/engine gives to the library that is preloaded. Handles are numbers; the functions return an error number,
 * or 0. */
#ifndef IWARP_ENGINE_H
#define IWARP_ENGINE_H

#include <stdint.h>

struct iw_qp_attr {
	uint64_t context, pd, send_cq, recv_cq, srq, token;
	int32_t send_depth, recv_depth, send_sges, recv_sges, max_inline, signal_all;
};

struct iw_path {
	uint8_t local[16], peer[16]; /* GIDs */
	uint32_t number;
	int32_t ird;
};

struct iw_conn_param {
	const void *private_data;
	int32_t length;
	uint8_t responder_resources, initiator_depth;
	uint8_t responds; /* a CONNECT_RESPONSE is to come */
	uint8_t rnr_retries, min_rnr_timer;
};

struct iw_cm_event {
	uint32_t type;
	int32_t status;
	uint64_t token, child, qp;
	uint8_t responder_resources, initiator_depth;
	uint16_t length;
	uint8_t private_data[516];
	uint8_t local[128], peer[128]; /* struct sockaddr_storage */
};

/* Each line is a function of the engine: its name after iw_, and its arguments. */
#define IW_ENGINE(F)                                                                                               \
	F(sources, (uint64_t *to)) /* a digest */                                                                  \
	F(guise, (int32_t roce)) /* before all but the former */                                                   \
	F(refused, (const char *call, uint32_t qp, int32_t error, const char *why, const char *advice)) /* NULL is none */ \
	/* What has a descriptor has waiters, a struct iw_waiters, too. */                                         \
	F(context_open, (int32_t fd, void *waiters, uint64_t *to))                                                 \
	F(context_close, (uint64_t h))                                                                             \
	F(async_next, (uint64_t h, uint32_t *event, uint64_t *token))                                              \
	F(pd_alloc, (uint64_t *to))                                                                                \
	F(pd_dealloc, (uint64_t h))                                                                                \
	F(mr_register, (uint64_t pd, void *addr, uint64_t n, uint64_t iova, uint32_t access, uint64_t *to,         \
			uint32_t *key))                                                                            \
	F(mr_deregister, (uint64_t h))                                                                             \
	F(mr_reregister, (uint64_t h, uint32_t flags, uint64_t pd, void *addr, uint64_t n, uint32_t access))        \
	F(mw_alloc, (uint64_t pd, uint32_t kind, uint64_t *to, uint32_t *rkey))                                    \
	F(mw_dealloc, (uint64_t h))                                                                                \
	F(channel_open, (int32_t fd, void *waiters, uint64_t *to))                                                 \
	F(channel_close, (uint64_t h))                                                                             \
	F(channel_next, (uint64_t h, uint64_t *token))                                                             \
	F(cq_create, (uint64_t context, uint64_t channel, int32_t depth, uint64_t token, uint64_t *to))            \
	F(cq_resize, (uint64_t h, int32_t depth))                                                                  \
	F(cq_destroy, (uint64_t h))                                                                                \
	F(cq_arm, (uint64_t h, int32_t solicited_only))                                                            \
	F(cq_poll, (uint64_t h, int32_t n, void *wcs)) /* returns how many, or -1 */                               \
	F(srq_create, (uint64_t context, uint64_t pd, int32_t depth, int32_t sges, uint64_t token, uint64_t *to))  \
	F(srq_modify, (uint64_t h, int32_t depth, int32_t limit))                                                  \
	F(srq_query, (uint64_t h, int32_t *depth, int32_t *limit))                                                 \
	F(srq_destroy, (uint64_t h))                                                                               \
	F(srq_post, (uint64_t h, void *wr, void **bad))                                                            \
	F(qp_create, (struct iw_qp_attr *attr, uint64_t *to, uint32_t *number))                                    \
	F(qp_find, (uint32_t number, uint64_t *to))                                                                \
	F(qp_modify, (uint64_t h, uint32_t state))                                                                 \
	F(qp_allow, (uint64_t h, uint32_t access))                                                                 \
	F(qp_meet, (uint64_t h, const struct iw_path *path))                                                       \
	F(qp_query, (uint64_t h, uint32_t *state, int32_t *ird, int32_t *ord))                                     \
	F(qp_linked, (uint64_t h)) /* to an rdma_cm_id: 1 or 0 */                                                  \
	F(qp_destroy, (uint64_t h))                                                                                \
	F(qp_send_ops, (int32_t datagrams, uint64_t *to)) /* enum ibv_qp_create_send_ops_flags */                  \
	F(qp_send, (uint64_t h, void *wr, void **bad))                                                             \
	F(qp_send_all, (uint64_t h, void *wr))                                                                     \
	F(qp_recv, (uint64_t h, void *wr, void **bad))                                                             \
	F(ud_create, (struct iw_qp_attr *attr, uint64_t *to, uint32_t *number))                                    \
	F(ud_modify, (uint64_t h, uint32_t state))                                                                 \
	F(ud_key, (uint64_t h, uint32_t qkey))                                                                     \
	F(ud_query, (uint64_t h, uint32_t *state))                                                                 \
	F(ud_destroy, (uint64_t h))                                                                                \
	F(ud_send, (uint64_t h, void *wr, void **bad))                                                             \
	F(ud_send_all, (uint64_t h, void *wr))                                                                     \
	F(ud_recv, (uint64_t h, void *wr, void **bad))                                                             \
	F(ah_create, (uint64_t pd, const uint8_t *local, const uint8_t *peer, uint64_t *to))                       \
	F(ah_destroy, (uint64_t h))                                                                                \
	F(ah_answer, (const void *route, uint8_t *local, uint8_t *peer))                                           \
	F(cm_channel_open, (int32_t fd, void *waiters, uint64_t *to))                                              \
	F(cm_channel_close, (uint64_t h))                                                                          \
	F(cm_next, (uint64_t h, struct iw_cm_event *to))                                                           \
	F(id_create, (uint64_t channel, uint64_t token, uint64_t *to))                                             \
	F(id_name, (uint64_t h, uint64_t token))                                                                   \
	F(id_destroy, (uint64_t h))                                                                                \
	F(id_migrate, (uint64_t h, uint64_t channel))                                                              \
	F(id_addresses, (uint64_t h, void *local, void *peer))                                                     \
	F(id_family_only, (uint64_t h, int32_t on))                                                                \
	F(id_bind, (uint64_t h, const void *addr, int32_t n))                                                      \
	F(id_resolve_addr, (uint64_t h, const void *src, int32_t src_n, const void *dst, int32_t dst_n))                                                                       \
	F(id_resolve_route, (uint64_t h))                                                                          \
	F(id_listen, (uint64_t h))                                                                                 \
	F(id_connect, (uint64_t h, uint64_t qp, const struct iw_conn_param *param))                                \
	F(id_establish, (uint64_t h))                                                                              \
	F(id_accept, (uint64_t h, uint64_t qp, const struct iw_conn_param *param))                                 \
	F(id_reject, (uint64_t h, const void *data, int32_t n))                                                    \
	F(id_disconnect, (uint64_t h))

struct iw_engine {
#define IW_MEMBER(name, args) int32_t(*name) args;
	IW_ENGINE(IW_MEMBER)
#undef IW_MEMBER
};

#endif
