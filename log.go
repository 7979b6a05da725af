package iwarp

import (
	"context"
	"log/slog"
	"net"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// logStart records what was agreed on.
func (qp *QP) logStart(n *Negotiated) {
	qp.rnic.log.Log(context.Background(), LevelConnection, "iwarp: connection established",
		"qp", qp.num, "role", n.Role.String(), "dialect", n.Dialect.String(), "revision", n.Revision,
		"ddp_version", n.DDPVersion,
		"crc", n.CRC, "markers_send", n.MarkersSend, "markers_receive", n.MarkersReceive,
		"ird", n.IRD, "ord", n.ORD, "peer_to_peer", n.PeerToPeer, "rtr", n.RTR.String(),
		"emss", n.EMSS, "mulpdu", n.MULPDU, "fell_back", n.FellBack)
}

// logEnd records how the connection ended. The caller holds qp.mu.
func (qp *QP) logEnd() {
	attrs := []slog.Attr{slog.Uint64("qp", uint64(qp.num))}
	if err := qp.eng.Cause(); err != nil {
		attrs = append(attrs, slog.String("cause", err.Error()))
	}
	qp.rnic.log.LogAttrs(context.Background(), LevelConnection, "iwarp: connection ended", attrs...)
}

// logFrame records a startup frame.
func logFrame(log *slog.Logger, c net.Conn, dir string, frame []byte) {
	if !log.Enabled(context.Background(), LevelPacket) {
		return
	}
	if len(frame) > 0 {
		log.LogAttrs(context.Background(), LevelPacket, "iwarp: startup frame "+dir,
			slog.String("peer", c.RemoteAddr().String()), slog.String("frame", mpa.DescribeStartup(frame)))
	}
}

func (qp *QP) logNotice(n *engine.Notice) {
	if !qp.rnic.log.Enabled(context.Background(), LevelPacket) {
		return
	}
	attrs := []slog.Attr{slog.Uint64("qp", uint64(qp.num))}
	msg := "iwarp: "
	switch {
	case n.Kind == engine.NoticeState:
		msg += "state"
		attrs = append(attrs, slog.String("from", n.From.String()), slog.String("to", n.To.String()))
	case n.Kind == engine.NoticeNudge:
		msg += "nudge: zero-length RDMA Write to a silent peer"
	default:
		msg += noticeEvents[n.Kind].String()
	}
	if n.Err != nil {
		attrs = append(attrs, slog.String("cause", n.Err.Error()))
	}
	qp.rnic.log.LogAttrs(context.Background(), LevelPacket, msg, attrs...)
}

// tracer returns what records every FPDU, or nil if nobody wants to know.
func (qp *QP) tracer() func(engine.Trace) {
	log := qp.rnic.log
	if !log.Enabled(context.Background(), LevelFrame) {
		return nil
	}
	return func(t engine.Trace) {
		dir := "received"
		if t.Sent {
			dir = "sent"
		}
		log.LogAttrs(context.Background(), LevelFrame, "iwarp: FPDU "+dir,
			slog.Uint64("qp", uint64(qp.num)), slog.String("op", t.Op.String()), slog.Uint64("offset", t.Offset),
			slog.Int("size", t.Size), slog.Int("payload", t.Payload), slog.String("ddp", t.Header.String()))
	}
}
