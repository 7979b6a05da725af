/* What programs call without a function of libibverbs: by inline functions, through the context. */
#include "objects.h"

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
			   size_t size)
{
	if (size < sizeof attr->orig_attr)
		return EINVAL;
	memset(attr, 0, size);
	if (size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) + sizeof attr->phys_port_cnt_ex)
		attr->phys_port_cnt_ex = 1;
	int error = iw_query_device(&attr->orig_attr);
	if (size >= offsetof(struct ibv_device_attr_ex, device_cap_flags_ex) + sizeof attr->device_cap_flags_ex)
		attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags;
	return error;
}

void iw_set_ops(struct verbs_context *v)
{
	v->sz = sizeof *v;
	v->query_port = iw_query_port;
	v->query_device_ex = query_device_ex;
	v->create_qp_ex = iw_create_qp_ex;
	v->create_cq_ex = iw_create_cq_ex;
	v->alloc_td = iw_alloc_td;
	v->dealloc_td = iw_dealloc_td;
	v->alloc_parent_domain = iw_alloc_parent_domain;
	v->context.ops = (struct ibv_context_ops){
		.alloc_mw = iw_alloc_mw,
		.bind_mw = iw_bind_mw,
		.dealloc_mw = iw_dealloc_mw,
		.poll_cq = iw_poll_cq,
		.req_notify_cq = iw_req_notify_cq,
		.post_srq_recv = iw_post_srq_recv,
		.post_send = iw_post_send,
		.post_recv = iw_post_recv,
	};
}
