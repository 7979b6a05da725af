package stream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream"
)

// A peer is played by hand: it sends the words and bytes that a test wants.
type peer struct {
	t     *testing.T
	qp    *iwarp.QP
	mr    *iwarp.MR // receives, and after these the table and the ring
	hello rsockets.Hello
	other rsockets.Hello
	big   bool
}

const (
	peerWords = 64
	peerTable = peerWords * rsockets.WordLen
	peerRing  = peerTable + 2*rsockets.EntryLen
)

// dialByHand connects a peer of either byte order.
func dialByHand(t *testing.T, r *rig, big bool) (*peer, *stream.Conn) {
	t.Helper()
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	must(t, err)
	p := &peer{t: t, big: big}
	p.mr, err = pd.Register(make([]byte, peerRing+1000), iwarp.RemoteWrite)
	must(t, err)
	p.hello = rsockets.Hello{
		Big: big, Credits: 32, Entries: 2, Table: rsockets.Place{TO: peerTable, STag: p.mr.STag()},
		Ring: rsockets.Entry{Place: rsockets.Place{TO: peerRing, STag: p.mr.STag()}, Length: 500},
	}
	said, _ := p.hello.AppendBinary(nil)
	came := make(chan net.Conn, 1)
	go func() {
		c, _ := r.ln.Accept()
		came <- c
	}()
	d := iwarp.Dialer{PD: pd, MPA: mpa.Offer{PrivateData: said}, QP: iwarp.QPConfig{Linger: -1}, Prepare: p.prepare}
	p.qp, err = d.Dial(t.Context(), r.net, r.to)
	must(t, err)
	t.Cleanup(func() { _ = p.qp.Abort() })
	p.other, err = rsockets.ParseHello(p.qp.Negotiated().PrivateData)
	must(t, err)
	c := (<-came).(*stream.Conn)
	t.Cleanup(func() { _ = c.Close() })
	return p, c
}

func (p *peer) prepare(qp *iwarp.QP) error {
	for i := range peerWords {
		slot := p.mr.Slice(i*rsockets.WordLen, rsockets.WordLen)
		if err := qp.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{slot}}); err != nil {
			return err
		}
	}
	return nil
}

// want waits for the next word.
func (p *peer) want(w rsockets.Word) {
	p.t.Helper()
	for {
		wc, err := p.qp.RecvCQ().Next(testrig.Within(p.t))
		must(p.t, err)
		if wc.Op != iwarp.OpRecv {
			continue
		}
		must(p.t, wc.Err())
		got, err := rsockets.ParseWord(p.mr.Bytes()[wc.ID*rsockets.WordLen:][:wc.Length], p.big)
		must(p.t, err)
		if got != w {
			p.t.Fatalf("%v came, wanted %v", got, w)
		}
		return
	}
}

// say sends a word, or bytes that are none.
func (p *peer) say(b []byte) {
	p.t.Helper()
	must(p.t, p.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: b, Unsignaled: true}))
}

func (p *peer) word(op rsockets.Op, value uint32) {
	p.t.Helper()
	p.say(rsockets.NewWord(op, value).Append(nil, p.big))
}

// write places bytes at the beginning of the other's ring.
func (p *peer) write(b string) {
	p.t.Helper()
	to := iwarp.Remote{STag: p.other.Ring.STag, TO: p.other.Ring.TO}
	must(p.t, p.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte(b), Remote: to, Unsignaled: true}))
}

// wantEntry checks entry i of the peer's table: a free half of the ring.
func (p *peer) wantEntry(i int, length uint32) {
	p.t.Helper()
	var raw [rsockets.EntryLen]byte
	_, err := p.mr.ReadAt(raw[:], int64(peerTable+i*rsockets.EntryLen))
	must(p.t, err)
	half := rsockets.Place{TO: p.other.Ring.TO + stream.DefaultRing/2, STag: p.other.Ring.STag}
	want := rsockets.Entry{Place: half, Length: length}
	if string(want.Append(nil, p.big)) != string(raw[:]) {
		p.t.Errorf("entry %d is %x, wanted %+v", i, raw, want)
	}
}

// TestByHand is a whole dialogue with a peer like rdma-core, in either byte order.
func TestByHand(t *testing.T) {
	for name, big := range map[string]bool{"little-endian": false, "big-endian": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c := dialByHand(t, newRig(t, layers[0], stream.Config{}), big)
			if p.other.Big != big {
				t.Errorf("our end says that its order is %v", p.other.Big)
			}
			p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits)) // the second half, at once
			p.wantEntry(1, stream.DefaultRing/2)
			p.write("hello")
			p.word(rsockets.OpData, 5)
			got := make([]byte, 10)
			if n, err := c.Read(got); string(got[:n]) != "hello" || err != nil {
				t.Errorf("%q, %v", got[:n], err)
			}
			if _, err := c.Write([]byte("and back")); err != nil {
				t.Error(err)
			}
			p.want(rsockets.NewWord(rsockets.OpData, 8))
			if here := string(p.mr.Bytes()[peerRing:][:8]); here != "and back" {
				t.Errorf("%q", here)
			}
			must(t, c.CloseWrite())
			p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Shutdown)))
			p.word(rsockets.OpControl, uint32(rsockets.Disconnect))
			if n, err := c.Read(got); n != 0 || err != io.EOF {
				t.Errorf("%d bytes, %v", n, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHostile checks that a peer that breaks the protocol loses its connection, and that all calls say why.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct {
		field string
		do    func(p *peer)
	}{
		"another word":        {"word", func(p *peer) { p.word(3, 1) }},
		"few bytes":           {"word", func(p *peer) { p.say([]byte{1, 2}) }},
		"a piece too large":   {"data", func(p *peer) { p.word(rsockets.OpData, stream.DefaultRing) }},
		"after its end":       {"data", func(p *peer) { p.word(rsockets.OpControl, 2); p.word(rsockets.OpData, 1) }},
		"a map without table": {"map", func(p *peer) { p.word(rsockets.OpMap, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, conn := dialByHand(t, newRig(t, layers[0], stream.Config{}), false)
			c.do(p)
			wantError := func(err error) {
				t.Helper()
				var broken *rsockets.Error
				if !errors.As(err, &broken) || broken.Field != c.field {
					t.Errorf("%v: wanted an error about %q", err, c.field)
				}
			}
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				wantError(err)
			}
			var err error
			for err == nil { // what has come is taken when there is no room
				_, err = conn.Write(make([]byte, 100))
			}
			wantError(err)
			<-p.qp.Done()
		})
	}
}

// TestSpareWords has a peer send many words that need no credit. It checks that the connection goes on, although no
// call waits.
func TestSpareWords(t *testing.T) {
	p, c := dialByHand(t, newRig(t, layers[0], stream.Config{Credits: 16}), false)
	for range 16 {
		p.word(rsockets.OpData, 1)
	}
	for range 16 {
		p.word(rsockets.OpCredit, 32)
	}
	got := make([]byte, 16)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Error(err)
	}
}

// TestPeerLost checks that a connection that ends without a word of the peer is no end of the stream.
func TestPeerLost(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(qp *iwarp.QP) error
		want error
	}{
		"closed without a word": {(*iwarp.QP).Close, io.ErrUnexpectedEOF},
		"reset":                 {(*iwarp.QP).Abort, iwarp.ErrConnectionLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, conn := dialByHand(t, newRig(t, layers[0], stream.Config{}), false)
			p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
			read := make(chan error, 1)
			go func() {
				_, err := conn.Read(make([]byte, 1))
				read <- err
			}()
			must(t, c.end(p.qp))
			if err := <-read; !errors.Is(err, c.want) {
				t.Errorf("Read: %v", err)
			}
			if n, err := conn.Write([]byte("some")); n != 0 || !errors.Is(err, c.want) {
				t.Errorf("Write: %d bytes, %v", n, err)
			}
			if _, err := conn.Write(make([]byte, 10_000)); !errors.Is(err, c.want) {
				t.Errorf("Write: %v", err)
			}
			for _, ends := range []func() error{conn.CloseWrite, conn.Close} {
				err := ends()
				if !errors.Is(err, c.want) {
					t.Errorf("after a Write that failed: %v", err)
				} else if strings.Contains(err.Error(), "Modify") || strings.Contains(err.Error(), "iwarp: ") {
					t.Errorf("words of what is below: %v", err)
				}
			}
		})
	}
}

// TestPeerLostBeforeClose checks that Close and CloseWrite fail if the peer has ended the connection without a word,
// even if no Write has failed.
func TestPeerLostBeforeClose(t *testing.T) {
	for name, end := range map[string]func(*stream.Conn) error{
		"CloseWrite": (*stream.Conn).CloseWrite, "Close": (*stream.Conn).Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, conn := dialByHand(t, newRig(t, layers[0], stream.Config{}), false)
			p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
			if n, err := conn.Write([]byte("some")); n != 4 || err != nil {
				t.Fatalf("Write: %d bytes, %v", n, err)
			}
			must(t, p.qp.Close())
			<-conn.QP().Done()
			if err := end(conn); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNotOurs checks that requests of other protocols are rejected, and that the Listener goes on.
func TestNotOurs(t *testing.T) {
	r := newRig(t, layers[0], stream.Config{})
	for _, said := range []string{"", "\x02 of another version, as long as that of ours..", "\x01short"} {
		d := iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte(said)}}
		_, err := d.Dial(t.Context(), r.net, r.to)
		var rejected *iwarp.RejectError
		if !errors.As(err, &rejected) || len(rejected.PrivateData) > 0 {
			t.Fatalf("%q: %v", said, err)
		}
		_ = rejected.Conn.Close()
	}
	a, b := r.pair(t)
	closeInOrder(t, a, b)
}

// answering starts a server that accepts every request with the same private data, and returns its address.
func answering(t *testing.T, say []byte) string {
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			req, err := ln.Accept(context.Background())
			if err != nil {
				return
			}
			_, _ = req.Accept(context.Background(), iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: say}})
		}
	}()
	return ln.Addr().String()
}

// TestBadAnswers checks that Dial fails if the server does not speak the protocol, or has the other byte order.
func TestBadAnswers(t *testing.T) {
	other := rsockets.Hello{Entries: 2, Credits: 16}
	_, err := stream.Dial(t.Context(), "tcp", answering(t, nil))
	if !errors.Is(err, rsockets.ErrVersion) {
		t.Errorf("no private data: %v", err)
	}
	other.Big = true
	said, _ := other.AppendBinary(nil)
	at := answering(t, said)
	if _, err = stream.Dial(t.Context(), "tcp", at); !errors.Is(err, stream.ErrByteOrder) {
		t.Errorf("another byte order: %v", err)
	}
	c, err := (&stream.Dialer{Config: stream.Config{BigEndian: true}}).Dial(t.Context(), "tcp", at)
	must(t, err)
	go c.Close()
	_, err = new(stream.Dialer).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || op.Net != "tcp" {
		t.Errorf("nobody there: %v", err)
	}
	text := err.Error()
	if strings.Count(text, "dial") != 1 || strings.Count(text, "127.0.0.1:1") != 1 || strings.Contains(text, "iwarp") {
		t.Errorf("said twice: %v", err)
	}
	if !errors.As(err, new(*iwarp.OpError)) || isTimeout(err) {
		t.Errorf("iwarp's own error is lost: %#v", err)
	}
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, err = new(stream.Dialer).DialContext(late, "tcp", "127.0.0.1:1"); !isTimeout(err) {
		t.Errorf("too late: %v", err)
	}
}

// TestSpareReceives has a peer use all credits at once, and as many words without a credit as there are receives for.
func TestSpareReceives(t *testing.T) {
	const ring, credits, free = 4096, 16, 32
	p, c := dialByHand(t, newRig(t, layers[0], stream.Config{Ring: ring, Credits: credits}), false)
	p.want(rsockets.NewWord(rsockets.OpCredit, credits))
	for range 6 {
		p.word(rsockets.OpData, 1)
	}
	p.word(rsockets.OpData, ring/2-6)
	_, err := io.ReadFull(c, make([]byte, ring/2))
	must(t, err)
	p.want(rsockets.NewWord(rsockets.OpCredit, 7+credits))
	for range free {
		p.word(rsockets.OpCredit, uint32(p.hello.Credits))
	}
	for range credits {
		p.word(rsockets.OpData, 1)
	}
	if _, err := io.ReadFull(c, make([]byte, credits)); err != nil {
		t.Error(err)
	}
}
