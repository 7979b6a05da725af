//go:build linux && (amd64 || arm64)

package verbs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/goiwarp/iwarp"
)

// What a program is told of a connection that does not come up is one number. The log has the reason.

var failures = map[uint32]string{ConnectError: "RDMA_CM_EVENT_CONNECT_ERROR", Unreachable: "RDMA_CM_EVENT_UNREACHABLE", Rejected: "RDMA_CM_EVENT_REJECTED"}

// fails logs why the ID's connection does not come up, and returns the event that says so. The program may end as soon as it has that.
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
	d.log.Log(context.Background(), iwarp.LevelStartup, "iwarp: startup failed",
		"local", local.String(), "peer", peer.String(), "program_gets", told, "cause", err.Error())
}

// callFails is the same for a QP that has no ID.
func (q *QP) callFails(p *Path, err error) {
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if p.Local != (GID{}) {
		ip = netip.AddrFrom16(p.Local).Unmap()
	}
	q.device.logFailure(netip.AddrPortFrom(ip, portOfNumber(q.number)), p.address(), "IBV_WC_RETRY_EXC_ERR for what it posts", err)
	q.unreachable()
}

func loggerOf(cfg iwarp.RNICConfig) *slog.Logger {
	return cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
}
