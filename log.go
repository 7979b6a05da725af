package iwarp

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// A journal holds what has happened to a QP until it can be logged: a log handler is the
// consumer's, runs without a lock, and may call the QP. A nil journal is that of a QP of which nothing is logged.
type journal struct {
	of *QP

	mu      sync.Mutex // guards what follows; no other lock is taken under it
	ends    []any      // the addresses of the connection
	records []slog.Record
	dropped int  // how many there was no room for
	writing bool // by a goroutine that also writes what is added meanwhile
}

// A journal has room for the FPDUs that a full receive buffer can hold, of 20 bytes at least, and for some other
// records. If the handler does not keep up, what is beyond is dropped.
const (
	maxJournal  = 8 << 10 // records
	journalRest = 64
)

// start records what was negotiated.
func (j *journal) start(e *ends, n *Negotiated) {
	if j == nil {
		return
	}
	j.mu.Lock()
	j.ends = e.logged
	j.mu.Unlock()
	attrs := []any{"role", n.Role.String(), "dialect", n.Dialect.String(), "ddp_version", n.DDPVersion}
	if !n.noMPA {
		attrs = append(attrs, "revision", n.Revision,
			"crc", n.CRC, "markers_send", n.MarkersSend, "markers_receive", n.MarkersReceive, "emss", n.EMSS)
	}
	j.add(levelConnection, "iwarp: connection established", append(attrs,
		"ird", n.IRD, "ord", n.ORD, "peer_to_peer", n.PeerToPeer, "rtr", n.RTR.String(),
		"mulpdu", n.MULPDU, "fell_back", n.FellBack)...)
}

// logEnd records how the connection ended.
func (j *journal) logEnd(s status) {
	if j == nil {
		return
	}
	attrs := []any{slog.String("state", s.state.String())}
	if s.cause != nil {
		attrs = append(attrs, slog.String("cause", s.cause.Error()))
	}
	j.add(levelConnection, "iwarp: connection ended", attrs...)
}

func (j *journal) notice(n *engine.Notice) {
	if j == nil {
		return
	}
	var attrs []any
	msg := "iwarp: "
	switch {
	case n.Kind == engine.NoticeSilent:
		j.add(levelConnection, "iwarp: the peer has said nothing since our first FPDU: "+
			"if it is Linux's siw, which may have missed that, use its preset or set QPConfig.Nudge", "silence",
			silence)
		return
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
	j.add(levelPacket, msg, attrs...)
}

// tracer returns a function that records every FPDU, or nil if they are not logged.
func (j *journal) tracer() func(engine.Trace) {
	if j == nil || !j.of.rnic.log.Enabled(context.Background(), LevelFrame) {
		return nil
	}
	return func(t engine.Trace) {
		j.add(LevelFrame, "iwarp: FPDU "+direction(t.Sent),
			slog.String("op", t.Op.String()), slog.Uint64("offset", t.Offset),
			slog.Int("size", t.Size), slog.Int("payload", t.Payload), slog.String("ddp", t.Header.String()))
	}
}

// add has something logged about the QP at the next flush.
func (j *journal) add(level slog.Level, msg string, args ...any) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	room := maxJournal
	if level > LevelFrame {
		room += journalRest
	}
	if len(j.records) >= room {
		j.dropped++
		return
	}
	j.records = append(j.records, j.record(level, msg, args...))
}

// record makes a log record with the addresses of both ends. The caller holds j.mu.
func (j *journal) record(level slog.Level, msg string, args ...any) slog.Record {
	r := slog.NewRecord(time.Now(), level, msg, 0)
	r.Add("qp", j.of.num)
	r.Add(j.ends...)
	r.Add(args...)
	return r
}

// flush logs what has happened, in order. For a goroutine that has the receive buffer another does that: a log handler
// may wait for what is still to be received, as in Close.
func (j *journal) flush(receiving bool) {
	if j == nil || !j.startWriting() {
		return
	}
	if receiving {
		go j.write()
		return
	}
	j.write()
}

// startWriting reports whether the caller is to write what there is.
func (j *journal) startWriting() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.records) == 0 || j.writing {
		return false
	}
	j.writing = true
	return true
}

// write logs until nothing is left.
func (j *journal) write() {
	for records := j.next(); len(records) > 0; records = j.next() {
		j.of.rnic.write(records)
	}
}

// next takes what is to be written; when there is nothing, nobody writes any more.
func (j *journal) next() []slog.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	records := j.records
	if j.dropped > 0 {
		records = append(records, j.record(levelConnection, "iwarp: log records dropped, as the handler is too slow",
			"records", j.dropped))
	}
	j.records, j.dropped = nil, 0
	j.writing = len(records) > 0
	return records
}

func (r *RNIC) write(records []slog.Record) {
	h := r.log.Handler()
	for _, rec := range records {
		if h.Enabled(context.Background(), rec.Level) {
			_ = h.Handle(context.Background(), rec)
		}
	}
}

// logs reports whether anything is logged: where nothing is, no record is made.
func (r *RNIC) logs() bool { return r.logging }

// logFrame records a startup frame.
func logFrame(log *slog.Logger, c addressed, sent bool, frame []byte) {
	if !log.Enabled(context.Background(), levelPacket) {
		return
	}
	about := append(logEnds(c), "frame", mpa.DescribeStartup(frame))
	log.Log(context.Background(), levelPacket, "iwarp: startup frame "+direction(sent), about...)
}

func direction(sent bool) string {
	if sent {
		return "sent"
	}
	return "received"
}

// logEnds returns the addresses of both ends of a connection, as arguments of a log record.
func logEnds(c addressed) []any {
	return []any{"local", addrText(c.LocalAddr()), "peer", addrText(c.RemoteAddr())}
}

// addrText returns an address as text. A consumer's connection may have none.
func addrText(a net.Addr) string {
	if a == nil {
		return "an unknown address"
	}
	return a.String()
}
