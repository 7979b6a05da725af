//go:build linux && (amd64 || arm64)

package verbs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"

	"github.com/goiwarp/iwarp"
)

// What a program is told of a connection that does not come up is one number. The log has the reason.

var failures = map[uint32]string{ConnectError: "RDMA_CM_EVENT_CONNECT_ERROR", Unreachable: "RDMA_CM_EVENT_UNREACHABLE",
	Rejected: "RDMA_CM_EVENT_REJECTED"}

// fails logs why the ID's connection does not come up, and returns the event that says so. The program may end as soon
// as it has that.
func (id *ID) fails(err error) CMEvent {
	e := failure(err)
	if id.ctx.Err() == nil {
		id.mu.Lock()
		local, peer := id.local, id.peer
		id.mu.Unlock()
		id.device.logFailure(local, peer, fmt.Sprintf("%s, status %d", failures[e.Type], e.Status), err)
	}
	return e
}

// logFailure is the record of one that fails at this end. The program of a QP that has no ID hears of it when it posts.
func (d *Device) logFailure(local, peer netip.AddrPort, told string, err error) {
	d.log.Log(context.Background(), slog.LevelWarn, "iwarp: startup failed",
		"local", local.String(), "peer", peer.String(), "program_gets", told, "cause", err.Error())
}

// A Refusal is a call that fails for a reason that its error number does not tell.
type Refusal struct {
	Call   string // as "ibv_modify_qp"
	QP     uint32 // its number
	Errno  syscall.Errno
	Why    string
	Advice string // what the user can do, if that is known
}

// Refused logs why a call is refused. Advice is for users who do not know that there is something to look for in a log:
// the first is also on standard error.
func (d *Device) Refused(r Refusal) {
	args := []any{"call", r.Call, "qp", r.QP, "program_gets", r.Errno.Error(), "cause", r.Why}
	if r.Advice != "" {
		args = append(args, "advice", r.Advice)
		d.advised.Do(func() { complain(fmt.Errorf("%s: %s: %s", r.Call, r.Errno.Error(), r.Advice)) })
	}
	d.log.Log(context.Background(), slog.LevelWarn, "iwarp: call refused", args...)
}

// callFails is logFailure for a QP that has no ID.
func (q *QP) callFails(p *Path, err error) {
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if p.Local != (GID{}) {
		ip = netip.AddrFrom16(p.Local).Unmap()
	}
	q.device.logFailure(netip.AddrPortFrom(ip, portOfNumber(q.number)), p.address(),
		"IBV_WC_RETRY_EXC_ERR for what it posts", err)
	q.unreachable()
}

func loggerOf(cfg iwarp.RNICConfig) *slog.Logger {
	return cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
}
