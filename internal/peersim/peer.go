package peersim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// peer is one startup.
type peer struct {
	Behaviour
	consumer Consumer
	role     mpa.Role
	conn     net.Conn
	ird, ord uint16
	behind   []byte // what arrived with the startup frame
}

func (b *Behaviour) start(conn net.Conn, c Consumer, role mpa.Role) *peer {
	p := &peer{Behaviour: *b, consumer: c, role: role, conn: conn}
	p.ird, p.ord = b.depths(&c)
	return p
}

// refuse ends the startup. What the peer tolerates is no reason to.
func (p *peer) refuse(end End, format string, args ...any) error {
	if end == Tolerates {
		return nil
	}
	finish(p.conn, end)
	return &Refusal{Peer: p.Name, Role: p.role, End: end, Why: fmt.Sprintf(format, args...)}
}

// lost is a connection that ended, or a wait that did.
func (p *peer) lost(err error, what string) error {
	r := &Refusal{Peer: p.Name, Role: p.role, End: Closes, Why: "waiting for " + what, Err: err}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		finish(p.conn, Closes)
	} else {
		_ = p.conn.Close()
	}
	return r
}

// isReset tells a RST from an orderly end and from a timeout.
func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// finish ends a connection.
func finish(c net.Conn, end End) {
	if end == Resets || end == Crashes {
		reset(c)
		return
	}
	closeInOrder(c)
}

func reset(c net.Conn) {
	switch c := c.(type) {
	case interface{ SetLinger(sec int) error }:
		_ = c.SetLinger(0)
	case interface{ Reset() error }:
		_ = c.Reset()
	}
	_ = c.Close()
}

// patience is how long the other end may take to close.
const patience = 5 * time.Second

// closeInOrder sends a FIN, and takes what comes so that no RST follows.
func closeInOrder(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok && h.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}

// wait bounds the reads that follow; 0 is no bound.
func (p *peer) wait(d time.Duration) error {
	if d == 0 {
		return p.conn.SetReadDeadline(time.Time{})
	}
	return p.conn.SetReadDeadline(time.Now().Add(d))
}

// send sends a startup frame in one write.
func (p *peer) send(f *mpa.StartupFields) error {
	if _, err := p.conn.Write(mpa.AppendStartup(nil, f)); err != nil {
		return p.lost(err, "the peer to take a startup frame")
	}
	return nil
}

// A received is a whole startup frame.
type received struct {
	mpa.StartupFrame
	enhanced bool
	mpa.Enhanced
}

// receive reads a startup frame with the given key, and judges what both roles judge.
func (p *peer) receive(key string, limit time.Duration, long End) (f received, err error) {
	if err := p.wait(limit); err != nil {
		return f, p.lost(err, key)
	}
	b, err := p.read(key, long)
	if err != nil {
		return f, err
	}
	f.StartupFrame = b
	if len(p.behind) > 0 {
		if err := p.refuse(p.Glued, "%d octets behind the startup frame", len(p.behind)); err != nil {
			return f, err
		}
	}
	if !f.StartupFrame.C() {
		err = p.refuse(p.NoCRC, "C=0")
	}
	if err == nil {
		err = p.wait(0)
	}
	return f, err
}

// read reads a frame, and what else comes in its last segment.
func (p *peer) read(key string, long End) (mpa.StartupFrame, error) {
	var b []byte
	for {
		segment := make([]byte, 64<<10)
		n, err := p.conn.Read(segment)
		if err != nil {
			return nil, p.lost(err, key)
		}
		b = append(b, segment[:n]...)
		if err := p.judge(b, key, long); err != nil {
			return nil, err
		}
		f, err := mpa.ParseStartup(b)
		if err == nil {
			p.behind = b[len(f):]
			return f, nil
		}
		if err := p.refuse(p.Split, "%d octets of a startup frame in a segment of its own", n); err != nil {
			return nil, err
		}
	}
}

// judge judges the head of a frame, as soon as that is whole.
func (p *peer) judge(b []byte, key string, long End) error {
	if len(b) < mpa.StartupHeaderLen {
		return nil
	}
	if n := len(key); string(b[:n]) != key {
		return p.refuse(Closes, "key %q", b[:n])
	}
	if n := int(mpa.StartupFrame(b).PDLength()); n > p.MaxPDLength {
		return p.refuse(long, "PD_Length %d over %d", n, p.MaxPDLength)
	}
	return nil
}

// judgeEnhanced looks at the enhanced data of a frame, where there is such.
func (p *peer) judgeEnhanced(f *received, short End) error {
	f.enhanced = f.Rev() >= 2 && (f.S() || p.IgnoresS)
	if !f.enhanced {
		return nil
	}
	e, err := mpa.ParseEnhanced(f.PrivateData())
	if err != nil {
		return p.refuse(short, "PD_Length %d in an enhanced frame", f.PDLength())
	}
	f.Enhanced = e
	if !e.A {
		return p.refuse(p.NotPeerToPeer, "A=0")
	}
	return nil
}

// smbLen is the size of what MS-SMBD has in front of the private data, in octets.
const smbLen = 8

// smbDepths judges private data of revision 1 that should begin with depths, and
// adopts them: our ORD is at most the other's IRD.
func (p *peer) smbDepths(data []byte) error {
	if !p.SMBDirect {
		return nil
	}
	if len(data) < smbLen {
		return p.refuse(Resets, "%d octets of private data: no room for the depths of MS-SMBD", len(data))
	}
	ird, ord := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	if ird == 0 || ord == 0 || ird > 0xffff || ord > 0xffff {
		return p.refuse(Resets, "depths %d and %d of MS-SMBD", ird, ord)
	}
	p.ord = min(p.ord, uint16(ird))
	return nil
}

// privateData returns the consumer's, behind the depths where they go there.
func (p *peer) privateData(plain bool) []byte {
	var b []byte
	if p.SMBDirect && plain {
		b = binary.BigEndian.AppendUint32(b, uint32(p.ird))
		b = binary.BigEndian.AppendUint32(b, uint32(p.ord))
	}
	return append(b, p.consumer.PrivateData...)
}
