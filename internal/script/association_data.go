package script

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/sctp"
)

// Send sends a message as it is: a Message with Ordered set has no U flag.
func (a *Association) Send(m sctp.Message) {
	a.SendParts(m, len(m.Data))
}

// SendParts sends a message in DATA chunks of at most n bytes, each in a packet of its own.
func (a *Association) SendParts(m sctp.Message, n int) {
	flags := byte(chunk.FlagBeginning | chunk.FlagUnordered)
	if m.Ordered {
		flags &^= chunk.FlagUnordered
	}
	for rest := m.Data; ; flags &^= chunk.FlagBeginning {
		k := min(n, len(rest))
		if k == len(rest) {
			flags |= chunk.FlagEnding
		}
		a.data(m, flags, rest[:k])
		if rest = rest[k:]; len(rest) == 0 {
			return
		}
	}
}

// data sends one DATA chunk: RFC 9260, section 3.3.1.
func (a *Association) data(m sctp.Message, flags byte, part []byte) {
	d := chunk.Data{TSN: a.tsn, Stream: m.Stream, PPID: m.PPID, Bytes: part}
	p := a.packet(a.Peer.Tag, d.Chunk(flags))
	a.unacked[a.tsn] = p
	a.tsn++
	a.again = time.Now().Add(resend)
	_, _ = a.conn.Write(p)
}

// send sends a chunk. What is lost is sent again in answer to what is sent again.
func (a *Association) send(t chunk.Type, value []byte) {
	_, _ = a.conn.Write(a.packet(a.Peer.Tag, chunk.Chunk{Type: t, Value: value}))
}

// Next waits for a message. It reports false if none has come in time, or the association has
// ended: see End.
func (a *Association) Next(until time.Time) (m Message, ok bool) {
	for len(a.got) == 0 && a.end == Open {
		if !a.step(until) {
			return m, false
		}
	}
	if len(a.got) == 0 {
		return m, false
	}
	m = a.got[0]
	a.got = a.got[1:]
	a.held -= len(m.Data)
	return m, true
}

// Settle waits until all that was sent is acknowledged, and reports whether it is.
func (a *Association) Settle(until time.Time) bool {
	for len(a.unacked) > 0 && a.end == Open {
		if !a.step(until) {
			break
		}
	}
	return len(a.unacked) == 0
}

// step reads one packet, or sends again what was not acknowledged. It reports false when the
// time is over.
func (a *Association) step(until time.Time) bool {
	next := until
	if len(a.unacked) > 0 && a.again.Before(until) {
		next = a.again
	}
	chunks, err := a.read(next)
	if err == nil {
		a.takeAll(chunks)
		return true
	}
	if !time.Now().Before(until) || !errors.Is(err, errNotYet) {
		return false
	}
	for _, p := range a.unacked {
		_, _ = a.conn.Write(p)
	}
	a.again = time.Now().Add(resend)
	return true
}

// read returns the chunks of the next packet that is for us.
func (a *Association) read(until time.Time) ([]chunk.Chunk, error) {
	for {
		if err := a.conn.SetReadDeadline(until); err != nil {
			return nil, err
		}
		n, err := a.conn.Read(a.buf)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return nil, errNotYet
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil: // an ICMP message: nobody is there, or not yet
			time.Sleep(min(time.Until(until), resend/10))
			if !time.Now().Before(until) {
				return nil, errNotYet
			}
			continue
		}
		if h, ok := chunk.ParseHeader(a.buf[:n]); !ok || h.Tag != a.ours.Tag || !chunk.Sealed(a.buf[:n]) {
			continue
		}
		if chunks, _ := chunk.In(a.buf[:n]); len(chunks) > 0 {
			return chunks, nil
		}
	}
}

// takeAll takes the chunks of a packet, and acknowledges data in it.
func (a *Association) takeAll(chunks []chunk.Chunk) {
	data := false
	for _, c := range chunks {
		switch c.Type {
		case chunk.TypeData:
			a.takeData(c)
			data = true
		case chunk.TypeSack:
			a.takeSack(c)
		case chunk.TypeCookieEcho: // again, too
			a.send(chunk.TypeCookieAck, nil)
		case chunk.TypeHeartbeat:
			a.send(chunk.TypeHeartbeatAck, c.Value)
		case chunk.TypeAbort:
			a.end, a.why = RST, c.Reason()
		case chunk.TypeShutdown:
			a.takeSack(c)
			a.end = FIN
			a.send(chunk.TypeShutdownAck, nil)
		case chunk.TypeShutdownAck:
			a.end = FIN
			a.send(chunk.TypeShutdownComplete, nil)
		}
	}
	if data && !a.mute {
		a.acknowledge()
	}
}

// acknowledge sends a SACK.
func (a *Association) acknowledge() {
	b := binary.BigEndian.AppendUint32(nil, a.cum)
	a.send(chunk.TypeSack, append(b, 0, 2, 0, 0, 0, 0, 0, 0))
}

// HoldAcks says whether what comes stays without acknowledgment. When it no longer does, all that has come is
// acknowledged.
func (a *Association) HoldAcks(on bool) {
	a.mute = on
	if !on {
		a.acknowledge()
	}
}

// takeSack takes a cumulative acknowledgment.
func (a *Association) takeSack(c chunk.Chunk) {
	cum, ok := c.Acknowledged()
	if !ok {
		return
	}
	for tsn := range a.unacked {
		if !chunk.Before(cum, tsn) {
			delete(a.unacked, tsn)
		}
	}
}

// What nobody has taken is bounded, in DATA chunks and in bytes, with what sessions hold ahead of a missing message.
// Where that is much, the missing one need not come any more: who waits for it hears nothing.
const (
	maxWaiting = 1 << 12
	maxHeld    = 4 << 20
)

// full reports whether nothing more is kept.
func (a *Association) full() bool {
	return len(a.ahead)+a.parts.Len()+len(a.got) >= maxWaiting || a.held >= maxHeld
}

// takeData takes a DATA chunk, once.
func (a *Association) takeData(c chunk.Chunk) {
	d, ok := c.Data()
	if !ok {
		return
	}
	tsn := d.TSN
	if !chunk.Before(a.cum, tsn) || a.ahead[tsn] || a.full() {
		return // it comes again, if it was not there yet
	}
	a.ahead[tsn] = true
	a.held += len(d.Bytes)
	for a.ahead[a.cum+1] {
		delete(a.ahead, a.cum+1)
		a.cum++
	}
	flags := c.Flags
	m := Message{
		Message: sctp.Message{
			Stream: d.Stream, PPID: d.PPID, Ordered: flags&chunk.FlagUnordered == 0,
			Data: append([]byte(nil), d.Bytes...),
		},
		Chunks: 1,
	}
	if flags&chunk.FlagsWhole == chunk.FlagsWhole {
		a.got = append(a.got, m)
	} else if parts := a.parts.Add(tsn, flags, m); parts != nil {
		a.got = append(a.got, joined(parts))
	}
}

// joined is the message that parts are of.
func joined(parts []Message) Message {
	m := parts[0]
	for _, p := range parts[1:] {
		m.Data, m.Chunks = append(m.Data, p.Data...), m.Chunks+1
	}
	return m
}
