/* The layout of what passes between programs and the engine as it is: package verbs relies on these numbers. */
#include "objects.h"

#define AT(type, member, offset) _Static_assert(offsetof(struct type, member) == offset, #type "." #member)
#define SIZE(type, size) _Static_assert(sizeof(struct type) == size, #type)

SIZE(ibv_send_wr, 128);
AT(ibv_send_wr, next, 8);
AT(ibv_send_wr, sg_list, 16);
AT(ibv_send_wr, num_sge, 24);
AT(ibv_send_wr, opcode, 28);
AT(ibv_send_wr, send_flags, 32);
AT(ibv_send_wr, invalidate_rkey, 36);
AT(ibv_send_wr, wr.rdma.remote_addr, 40);
AT(ibv_send_wr, wr.rdma.rkey, 48);

AT(ibv_send_wr, wr.ud.ah, 40);
AT(ibv_send_wr, wr.ud.remote_qpn, 48);
AT(ibv_send_wr, wr.ud.remote_qkey, 52);
AT(ibv_ah, handle, 16);
SIZE(ibv_grh, 40);

AT(ibv_send_wr, bind_mw.mw, 80);
AT(ibv_send_wr, bind_mw.rkey, 88);
AT(ibv_send_wr, bind_mw.bind_info.mr, 96);
AT(ibv_send_wr, bind_mw.bind_info.addr, 104);
AT(ibv_send_wr, bind_mw.bind_info.length, 112);
AT(ibv_send_wr, bind_mw.bind_info.mw_access_flags, 120);
AT(ibv_mw, handle, 20);
AT(ibv_mr, lkey, 36);

AT(ibv_send_wr, wr.atomic.compare_add, 48);
AT(ibv_send_wr, wr.atomic.swap, 56);
AT(ibv_send_wr, wr.atomic.rkey, 64);

SIZE(ibv_recv_wr, 32);
AT(ibv_recv_wr, next, 8);
AT(ibv_recv_wr, sg_list, 16);
AT(ibv_recv_wr, num_sge, 24);

SIZE(ibv_sge, 16);
AT(ibv_sge, length, 8);
AT(ibv_sge, lkey, 12);

SIZE(ibv_wc, 48);
AT(ibv_wc, status, 8);
AT(ibv_wc, opcode, 12);
AT(ibv_wc, vendor_err, 16);
AT(ibv_wc, byte_len, 20);
AT(ibv_wc, invalidated_rkey, 24);
AT(ibv_wc, qp_num, 28);
AT(ibv_wc, src_qp, 32);
AT(ibv_wc, wc_flags, 36);

SIZE(rdma_cm_id, 416);
AT(iw_id, no_device, 416);
AT(iw_id, sync, 448);
_Static_assert(sizeof(struct iw_id) >= 640, "room for what rsockets read");

AT(iw_waiters, wake, 0);

SIZE(iw_cm_event, 808);
AT(iw_cm_event, private_data, 36);
AT(iw_cm_event, local, 552);
