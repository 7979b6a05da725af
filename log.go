package iwarp

import (
	"context"
	"log/slog"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// logStart records what was negotiated.
func (qp *QP) logStart(n *Negotiated) {
	if !qp.rnic.logs() {
		return
	}
	attrs := []any{"role", n.Role.String(), "dialect", n.Dialect.String(), "ddp_version", n.DDPVersion}
	if !n.noMPA {
		attrs = append(attrs, "revision", n.Revision,
			"crc", n.CRC, "markers_send", n.MarkersSend, "markers_receive", n.MarkersReceive, "emss", n.EMSS)
	}
	qp.logLater(LevelConnection, "iwarp: connection established", append(attrs,
		"ird", n.IRD, "ord", n.ORD, "peer_to_peer", n.PeerToPeer, "rtr", n.RTR.String(),
		"mulpdu", n.MULPDU, "fell_back", n.FellBack)...)
}

// logEnd records how the connection ended. The caller holds qp.mu.
func (qp *QP) logEnd() {
	if !qp.rnic.logs() {
		return
	}
	attrs := []any{slog.String("state", qp.state().String())}
	if err := qp.eng.Cause(); err != nil {
		attrs = append(attrs, slog.String("cause", err.Error()))
	}
	qp.logLater(LevelConnection, "iwarp: connection ended", attrs...)
}

// logFrame records a startup frame.
func logFrame(log *slog.Logger, c addressed, sent bool, frame []byte) {
	if !log.Enabled(context.Background(), LevelPacket) {
		return
	}
	log.Log(context.Background(), LevelPacket, "iwarp: startup frame "+direction(sent), append(logEnds(c), "frame", mpa.DescribeStartup(frame))...)
}

func direction(sent bool) string {
	if sent {
		return "sent"
	}
	return "received"
}

func (qp *QP) logNotice(n *engine.Notice) {
	if !qp.rnic.logs() {
		return
	}
	var attrs []any
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
	qp.logLater(LevelPacket, msg, attrs...)
}

// tracer returns a function that records every FPDU, or nil if they are not logged.
func (qp *QP) tracer() func(engine.Trace) {
	if !qp.rnic.log.Enabled(context.Background(), LevelFrame) {
		return nil
	}
	return func(t engine.Trace) {
		qp.logLater(LevelFrame, "iwarp: FPDU "+direction(t.Sent),
			slog.String("op", t.Op.String()), slog.Uint64("offset", t.Offset),
			slog.Int("size", t.Size), slog.Int("payload", t.Payload), slog.String("ddp", t.Header.String()))
	}
}

// A journal holds what has happened until it can be logged: a log handler is the
// consumer's, runs without a lock, and may call the QP.
type journal struct {
	records []slog.Record
	dropped int  // how many there was no room for
	writing bool // by a goroutine that also writes what is added meanwhile
}

// A journal has room for the FPDUs that a full receive buffer can hold, at 20 octets and
// more, and some more for what is not about an FPDU. More than that are dropped, if the
// handler does not keep up.
const (
	maxJournal  = 8 << 10 // records
	journalRest = 64
)

func (j *journal) add(r slog.Record) {
	room := maxJournal
	if r.Level > LevelFrame {
		room += journalRest
	}
	if len(j.records) >= room {
		j.dropped++
		return
	}
	j.records = append(j.records, r)
}

// begin reports whether the caller is to write what there is.
func (j *journal) begin() bool {
	if len(j.records) == 0 || j.writing {
		return false
	}
	j.writing = true
	return true
}

// logs reports whether anything is logged: where nothing is, no record is made.
func (r *RNIC) logs() bool { return r.log.Handler() != slog.DiscardHandler }

// logLater has something logged about the QP when qp.mu, which the caller holds, is released.
func (qp *QP) logLater(level slog.Level, msg string, args ...any) {
	if qp.rnic.logs() {
		qp.journal.add(qp.record(level, msg, args...))
	}
}

// record makes a log record with the addresses of both ends.
func (qp *QP) record(level slog.Level, msg string, args ...any) slog.Record {
	r := slog.NewRecord(time.Now(), level, msg, 0)
	r.Add("qp", qp.num)
	r.Add(qp.ends.logged...)
	r.Add(args...)
	return r
}

// unlock releases qp.mu and logs what has happened, in order.
func (qp *QP) unlock() {
	qp.askUnlocking()
	if qp.journal.begin() {
		qp.writeLogUnlocking()
	}
	qp.mu.Unlock()
}

// unlockReceiving is unlock for a goroutine that has the receive buffer: a log handler may
// wait for what is still to be received, as in Close, and so runs in a goroutine of its own.
func (qp *QP) unlockReceiving() {
	qp.askUnlocking()
	if qp.journal.begin() {
		go func() {
			qp.mu.Lock()
			defer qp.mu.Unlock()
			qp.writeLogUnlocking()
		}()
	}
	qp.mu.Unlock()
}

// writeLogUnlocking logs until nothing is left. The caller holds qp.mu, which is released
// while a handler runs.
func (qp *QP) writeLogUnlocking() {
	j := &qp.journal
	for len(j.records) > 0 {
		records := j.records
		if j.dropped > 0 {
			records = append(records, qp.record(LevelConnection, "iwarp: log records dropped, as the handler is too slow", "records", j.dropped))
		}
		j.records, j.dropped = nil, 0
		qp.mu.Unlock()
		qp.rnic.write(records)
		qp.mu.Lock()
	}
	j.writing = false
}

func (r *RNIC) write(records []slog.Record) {
	h := r.log.Handler()
	for _, rec := range records {
		if h.Enabled(context.Background(), rec.Level) {
			_ = h.Handle(context.Background(), rec)
		}
	}
}
