/* Calls that are refused for a reason that an error number does not tell: the log has it. */
#include "objects.h"

#include <stdarg.h>
#include <stdio.h>

int iw_because(struct iw_why *why, int error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why->text, sizeof why->text, format, arguments);
	va_end(arguments);
	return error;
}

const char *iw_state_name(unsigned state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	return state < sizeof names / sizeof *names ? names[state] : "a state that there is not";
}

/* By the bits of enum ibv_qp_attr_mask. */
static const char *const attributes[] = {"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT",
	"RETRY_CNT", "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP", "DEST_QPN"};
enum { KNOWN = sizeof attributes / sizeof *attributes };

int iw_because_of(struct iw_why *why, int error, const char *what, int mask)
{
	size_t n = snprintf(why->text, sizeof why->text, "%s", what);
	for (size_t i = 0; i < KNOWN && n < sizeof why->text; i++)
		if (mask & 1 << i)
			n += snprintf(why->text + n, sizeof why->text - n, " IBV_QP_%s", attributes[i]);
	if (mask >> KNOWN && n < sizeof why->text)
		snprintf(why->text + n, sizeof why->text - n, " %#x", mask & ~0u << KNOWN);
	return error;
}

/* Whether it is a step that librdmacm would do, of a program that has exchanged numbers of QPs: siw refuses that, too. */
static bool connects_alone(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	bool knows_peer = mask & (IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_SQ_PSN) || q->set.dest_qp_num;
	return !iw_roce() && mask & IBV_QP_STATE && (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS) && knows_peer &&
	       !iw_engine()->qp_linked(iw_number(&q->handle));
}

static void explain(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask, struct iw_why *why)
{
	uint32_t state;
	int32_t ird, ord;
	uint64_t h = iw_number(&q->handle);
	bool ud = q->qp.qp_type == IBV_QPT_UD;
	if (ud ? iw_engine()->ud_query(h, &state) : iw_engine()->qp_query(h, &state, &ird, &ord))
		iw_because(why, 0, "the QP was destroyed");
	else if (mask & IBV_QP_STATE)
		iw_because(why, 0, "no way leads from %s to %s%s", iw_state_name(state), iw_state_name(attr->qp_state),
			   iw_roce() || attr->qp_state != IBV_QPS_RTS ? "" : " but a connection of librdmacm's");
}

int iw_refuse_modify(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask, int error, struct iw_why *why)
{
	const char *advice = NULL;
	if (connects_alone(q, attr, mask))
		advice = "this program connects Queue Pairs by itself, for which there is iwarp run --as roce, at both ends";
	if (!why->text[0])
		explain(q, attr, mask, why);
	iw_engine()->refused("ibv_modify_qp", q->qp.qp_num, error, why->text, advice);
	return error;
}

int iw_refuse_ops(struct iw_qp *q, uint64_t ops, int error)
{
	struct iw_why why;
	const char *advice = NULL;
	iw_because(&why, 0, "send_ops_flags has %#llx, which is not offered", (unsigned long long)ops);
	if (!iw_roce() && ops & IBV_QP_EX_WITH_SEND_WITH_IMM) {
		iw_because(&why, 0, "iWARP has no Send with Immediate Data (IBV_QP_EX_WITH_SEND_WITH_IMM)");
		advice = "this program wants Sends with Immediate Data, for which there is iwarp run --as roce, at both ends";
	}
	iw_engine()->refused("ibv_create_qp_ex", q->qp.qp_num, error, why.text, advice);
	return error;
}

int iw_refuse_datagrams(void)
{
	iw_engine()->refused("rdma_create_id", 0, EPROTONOSUPPORT, "there is no RDMA_PS_UDP", "there are no datagrams of librdmacm (RDMA_PS_UDP)");
	return EPROTONOSUPPORT;
}
