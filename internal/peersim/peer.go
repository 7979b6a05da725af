package peersim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// peer is one startup.
type peer struct {
	peers.Peer
	*script.Link
	consumer Consumer
	role     mpa.Role
	ird, ord mpa.Depth
	limit    time.Time // of the waits; zero is none
}

func start(b *peers.Peer, conn net.Conn, c Consumer, role mpa.Role) *peer {
	p := &peer{Peer: *b, Link: script.NewLink(conn), consumer: c, role: role}
	p.ird, p.ord = c.depths(&b.Behavior)
	return p
}

// refuse ends the startup, unless the peer tolerates the reason.
func (p *peer) refuse(end peers.End, format string, args ...any) error {
	switch end {
	case peers.Tolerates:
		return nil
	case peers.Resets, peers.Crashes:
		_ = p.Reset()
	default:
		p.Leave(patience)
	}
	return &Refusal{Peer: p.Name, Role: p.role, End: end, Why: fmt.Sprintf(format, args...)}
}

// lost returns the Refusal of a connection that ended, or on which a wait was over.
func (p *peer) lost(err error, what string) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.Leave(patience)
	} else {
		_ = p.Close()
	}
	return &Refusal{Peer: p.Name, Role: p.role, End: peers.Closes, Why: "waiting for " + what, Err: err}
}

// isReset tells a RST from an orderly end and from a timeout.
func isReset(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Err != nil && script.EndOf(r.Err) == script.RST
}

// patience is how long the other end may take to close.
const patience = 5 * time.Second

// wait bounds the reads that follow; 0 is no bound.
func (p *peer) wait(d time.Duration) error {
	if p.limit = (time.Time{}); d > 0 {
		p.limit = time.Now().Add(d)
	}
	return p.Conn().SetReadDeadline(p.limit)
}

// send sends a startup frame in one write.
func (p *peer) send(f *mpa.StartupFields) error {
	if err := p.Send(mpa.AppendStartup(nil, f)); err != nil {
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
func (p *peer) receive(key string, limit time.Duration, long peers.End) (f received, err error) {
	if err := p.wait(limit); err != nil {
		return f, p.lost(err, key)
	}
	if f.StartupFrame, err = p.read(key, long); err != nil {
		return f, err
	}
	if n := len(p.Received()); n > 0 {
		if err := p.refuse(p.Glued, "%d bytes after the startup frame", n); err != nil {
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

// read reads a frame. What is received at a time counts as a segment.
func (p *peer) read(key string, long peers.End) (mpa.StartupFrame, error) {
	for {
		had := len(p.Received())
		if err := p.Need(had+1, p.limit); err != nil {
			return nil, p.lost(err, key)
		}
		b := p.Received()
		if err := p.judge(b, key, long); err != nil {
			return nil, err
		}
		if f, err := mpa.ParseStartup(b); err == nil {
			return mpa.StartupFrame(p.Take(len(f))), nil
		}
		if err := p.refuse(p.Split, "%d bytes of a startup frame in a segment of its own", len(b)-had); err != nil {
			return nil, err
		}
	}
}

// judge judges the head of a frame, as soon as that is whole.
func (p *peer) judge(b []byte, key string, long peers.End) error {
	if len(b) < mpa.StartupHeaderLen {
		return nil
	}
	if n := len(key); string(b[:n]) != key {
		return p.refuse(peers.Closes, "key %q", b[:n])
	}
	if n := int(mpa.StartupFrame(b).PDLength()); n > p.MaxPDLength {
		return p.refuse(long, "PD_Length %d over %d", n, p.MaxPDLength)
	}
	return nil
}

// judgeEnhanced judges the enhanced data of a frame, if it has any.
func (p *peer) judgeEnhanced(f *received, short peers.End) error {
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

// smbDepths judges private data of revision 1 that should begin with depths, and adopts
// them: the ORD is at most the IRD of the other end.
func (p *peer) smbDepths(data []byte) error {
	if !p.SMBDirect {
		return nil
	}
	if len(data) < ulpdata.SMBDirectLen {
		return p.refuse(peers.Resets, "%d bytes of private data: no room for the depths of MS-SMBD", len(data))
	}
	ird, ord := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	if ird == 0 || ord == 0 || ird > 0xffff || ord > 0xffff {
		return p.refuse(peers.Resets, "depths %d and %d of MS-SMBD", ird, ord)
	}
	p.ord = min(p.ord, mpa.Depth(ird))
	return nil
}

// privateData returns that of the consumer, after the depths if those go there.
func (p *peer) privateData(plain bool) []byte {
	var b []byte
	if p.SMBDirect && plain {
		b = ulpdata.SMBDirect{IRD: uint32(p.ird), ORD: uint32(p.ord)}.Append(b)
	}
	return append(b, p.consumer.PrivateData...)
}
