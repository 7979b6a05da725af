package peer_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/conform/peer"
	"github.com/goiwarp/iwarp/internal/mempipe"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestDialects has two Conns start in every dialect, and send a segment each way.
func TestDialects(t *testing.T) {
	exchange := func(c *peer.Conn) {
		c.Send(c.Segment(c.Header(rdmap.OpSend), []byte("hello")))
		if got := c.ExpectSegment(rdmap.OpSend); string(got.Payload) != "hello" {
			t.Errorf("%q: %v", got.Payload, c.Err())
		}
	}
	for _, d := range append(mpa.Dialects(), 0) {
		t.Run(d.String(), func(t *testing.T) {
			ini, conn := peer.Pipe()
			res := peer.New(conn)
			done := make(chan error)
			go func() {
				res.Respond(d)
				exchange(res)
				done <- res.Close()
			}()
			ini.Initiate(d)
			exchange(ini)
			if err := errors.Join(ini.Close(), <-done); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExpectations has the other end do what is not expected: the error says what was, what came, where, and with which
// bytes.
func TestExpectations(t *testing.T) {
	up := func(c *peer.Conn) { c.Initiate(mpa.DialectRFC5044) }
	key := []byte(mpa.KeyRequest)
	for name, m := range map[string]struct {
		wait   func(*peer.Conn)
		other  func(*peer.Conn) // what the other end does, after a startup where wait has one
		offset uint64
		n      int // of Bytes
		says   string
	}{
		"no bytes": {func(c *peer.Conn) { c.ExpectBytes(8) }, func(*peer.Conn) {}, 0, 0,
			"expected 8 bytes, got nothing in the time"},
		"part of them": {func(c *peer.Conn) { c.ExpectBytes(8) }, func(c *peer.Conn) {
			c.Send(key[:3])
			c.CloseWrite()
		}, 0, 3, "expected 8 bytes, got 3 bytes, and then the connection was closed by FIN: 4d 50 41"},
		"another key": {func(c *peer.Conn) { c.ExpectStartup(mpa.KeyReply) },
			func(c *peer.Conn) { c.SendStartup(peer.Request(mpa.DialectRFC5044)) }, 0, 20,
			`expected a frame with the key "MPA ID Rep Frame", got 20 bytes: MPA ID Req Frame C rev 1 pd 0: 4d 50`},
		"rejected": {up, func(c *peer.Conn) {
			r := peer.Reply(c.ExpectStartup(mpa.KeyRequest))
			r.R = true
			c.SendStartup(r)
		}, 0, 20, "expected an accepting Reply, got MPA ID Rep Frame C R rev 1"},
		"another dialect": {func(c *peer.Conn) { c.Respond(mpa.DialectRFC6581) },
			func(c *peer.Conn) { c.SendStartup(peer.Request(mpa.DialectRFC5044)) }, 0, 20, "expected a Request of"},
		"another opcode": {func(c *peer.Conn) { up(c); c.ExpectSegment(rdmap.OpWrite) }, func(c *peer.Conn) {
			c.Respond(0)
			c.Send(c.Segment(c.Header(rdmap.OpSend), key))
		}, 20, 40, "expected an FPDU of an RDMA Write, got Send"},
		"another code": {func(c *peer.Conn) { up(c); c.ExpectTerminate(rdmap.CodeInvalidSTag) }, func(c *peer.Conn) {
			c.Respond(0)
			c.Send(c.Segment(c.Header(rdmap.OpSend), key))
			c.Send(c.Segment(c.Header(rdmap.OpTerminate), (&rdmap.Terminate{Code: rdmap.CodeTOWrap}).Append(nil)))
		}, 60, 28, "expected a Terminate of [RDMAP/Remote Protection/invalid STag (0x0100)], got Terminate"},
		"a wrong CRC": {func(c *peer.Conn) { up(c); c.ExpectTerminate() }, func(c *peer.Conn) {
			c.Respond(0)
			b := c.Segment(c.Header(rdmap.OpSend), key)
			b[30]++
			c.Send(b)
		}, 20, 40, "expected a Terminate, got mpa: bad CRC at stream offset 36"},
		"no FIN": {func(c *peer.Conn) { up(c); c.ExpectFIN() }, func(c *peer.Conn) {
			c.Respond(0)
			c.Send(c.Segment(c.Header(rdmap.OpSend), nil))
		}, 20, 24, "expected a FIN, got an FPDU: Send"},
		"no RST": {func(c *peer.Conn) { c.ExpectRST() }, (*peer.Conn).CloseWrite, 0, 0,
			"expected a RST, got nothing, and then the connection was closed by FIN"},
		"no silence": {func(c *peer.Conn) { c.ExpectSilence(time.Hour) }, func(c *peer.Conn) {
			c.SendSplit(key[:4], key[4:])
		}, 0, 4, "expected nothing for 1h0m0s, got 4 bytes: 4d 50 41 20"},
		"a FIN in silence": {func(c *peer.Conn) { c.ExpectSilence(time.Hour) }, (*peer.Conn).CloseWrite, 0, 0,
			"expected nothing for 1h0m0s, got nothing, and then the connection was closed by FIN"},
		"no DDP header": {func(c *peer.Conn) { up(c); c.ExpectTerminate() }, func(c *peer.Conn) {
			c.Respond(0)
			c.Send(c.FPDU(key[:1]))
		}, 20, 8, "expected a Terminate, got ddp: "},
		"another Start Key": {func(c *peer.Conn) { c.Respond(mpa.DialectStartKey) }, func(c *peer.Conn) {
			c.Send(key)
		}, 0, 16, `expected a Start Key, got "MPA ID Req Fram"`},
		"no kind of RTR": {func(c *peer.Conn) { c.Initiate(0) }, func(c *peer.Conn) {
			r := peer.Reply(c.ExpectStartup(mpa.KeyRequest))
			r.PrivateData = mpa.AppendEnhanced(nil, &mpa.Enhanced{A: true})
			c.SendStartup(r)
		}, 0, 24, "expected a Reply that names an RTR indication, got MPA ID Rep Frame"},
		"another RTR indication": {func(c *peer.Conn) { c.Respond(0) }, func(c *peer.Conn) {
			c.SendStartup(peer.Request(mpa.DialectRFC6581))
			c.ExpectStartup(mpa.KeyReply)
			c.Send(c.Segment(c.Header(rdmap.OpSend), nil))
		}, 24, 24, "expected an RTR indication: write, got Send"},
		"nobody takes it": {func(c *peer.Conn) { c.Send(make([]byte, 1<<20)) }, func(*peer.Conn) {}, 0, 0,
			"expected the other end to take 1048576 bytes, got "},
		"no startup": {func(c *peer.Conn) { c.Send(c.Segment(c.Header(rdmap.OpSend), nil)) }, func(*peer.Conn) {}, 0, 0,
			"expected a Request and a Reply before the first FPDU"},
		"much": {func(c *peer.Conn) { c.ExpectFIN() }, func(c *peer.Conn) {
			c.Send(make([]byte, 100))
		}, 0, 100, "00 and 36 more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, conn := mempipe.Pipe("peer", "other")
				_ = ours.SetWriteBuffer(1 << 10)
				c, other := peer.New(ours), peer.New(conn)
				played := make(chan struct{})
				go func() { m.other(other); close(played) }()
				m.wait(c)
				var e *peer.Error
				if err := c.Err(); !errors.As(err, &e) || e.Offset != m.offset || len(e.Bytes) != m.n ||
					!strings.Contains(err.Error(), m.says) {
					t.Errorf("%v; want %d bytes at %d, and %q", err, m.n, m.offset, m.says)
				}
				c.Reset() // does nothing after an error, as all that follows
				if c.ExpectFIN(); !errors.Is(c.Err(), e) {
					t.Error("another error:", c.Err())
				}
				<-played
				conn.Close()
			})
		})
	}
}

// TestReadAsRTR has the RTR indication be a Read, which is answered, in both roles.
func TestReadAsRTR(t *testing.T) {
	read := mpa.AppendEnhanced(nil, &mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 1})
	c, conn := peer.Pipe()
	res := peer.New(conn)
	done := make(chan error)
	go func() {
		r := peer.Reply(res.ExpectStartup(mpa.KeyRequest))
		r.PrivateData = read
		res.SendStartup(r)
		q, err := rdmap.ParseReadRequest(res.ExpectSegment(rdmap.OpReadRequest).Payload)
		h := res.Header(rdmap.OpReadResponse)
		h.STag = q.SinkSTag
		res.Send(res.Segment(h, nil))
		done <- errors.Join(err, res.Close())
	}()
	c.Initiate(0)
	c.ExpectFIN() // the Response was taken
	if err := errors.Join(c.Close(), <-done); err != nil {
		t.Error(err)
	}

	c, conn = peer.Pipe()
	res = peer.New(conn)
	go func() { res.Respond(0); done <- res.Close() }()
	q := peer.Request(mpa.DialectRFC6581)
	q.PrivateData = read
	c.SendStartup(q)
	c.ExpectStartup(mpa.KeyReply)
	r := rdmap.ReadRequest{SinkSTag: 7, SrcSTag: 8}
	c.Send(c.Segment(c.Header(rdmap.OpReadRequest), r.Append(nil)))
	if got := c.ExpectSegment(rdmap.OpReadResponse); got.STag != 7 {
		t.Errorf("a Response to %d: %v", got.STag, c.Err())
	}
	if err := errors.Join(c.Close(), <-done); err != nil {
		t.Error(err)
	}
}

// TestSendAfterEnd sends to who has gone, which is no error: the next expectation finds the end.
func TestSendAfterEnd(t *testing.T) {
	c, conn := peer.Pipe()
	peer.New(conn).Reset()
	c.Send([]byte("hello"))
	c.ExpectRST()
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

// TestOperateKeepsVersion has a script frame otherwise than the startup, in the startup's version.
func TestOperateKeepsVersion(t *testing.T) {
	c, conn := peer.Pipe()
	done := make(chan error)
	go func() { res := peer.New(conn); res.Respond(0); done <- res.Close() }()
	c.Initiate(mpa.DialectRevision0)
	c.Operate(mpa.Framing{CRC: true}, mpa.Framing{Markers: true})
	if h, b := c.Header(rdmap.OpSend), c.FPDU(nil); h.Version != 0 || len(b) != 8 || [8]byte(b) == [8]byte{} {
		t.Errorf("version %d, % x", h.Version, b)
	}
	if err := errors.Join(c.Close(), <-done); err != nil {
		t.Error(err)
	}
}

// TestTCP plays over TCP from both ends, in pieces, and sees each end of a connection.
func TestTCP(t *testing.T) {
	for _, reset := range []bool{false, true} {
		ln, err := peer.Listen(t.Context(), "127.0.0.1:0", func(c *peer.Conn) error {
			q := c.ExpectStartup(mpa.KeyRequest)
			b := c.ExpectBytes(3)
			if len(q.PrivateData()) != 1 || string(b) != "end" {
				return errors.New("got other bytes")
			}
			if reset {
				c.ExpectRST()
			} else {
				c.ExpectFIN()
			}
			return c.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := peer.Dial(t.Context(), ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		q := peer.Request(mpa.DialectRFC5044)
		q.PrivateData = []byte{1}
		b := mpa.AppendStartup(nil, &q)
		c.SendSplit(b[:1], b[1:20], append(b[20:], "end"...))
		if reset {
			c.Reset()
		}
		if err := errors.Join(c.Close(), ln.Close()); err != nil {
			t.Errorf("reset %v: %v", reset, err)
		}
	}
}

// TestListenerErrors returns the errors of scripts.
func TestListenerErrors(t *testing.T) {
	ln, err := peer.Listen(t.Context(), "127.0.0.1:0", func(c *peer.Conn) error { c.ExpectRST(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := peer.Dial(t.Context(), ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	joined, _ := ln.Close().(interface{ Unwrap() []error })
	if joined == nil || len(joined.Unwrap()) != 2 || !errors.Is(joined.Unwrap()[0], io.EOF) {
		t.Errorf("%v, want two FINs", joined)
	}
}

// TestTrace gets each step, with its bytes.
func TestTrace(t *testing.T) {
	c, conn := peer.Pipe()
	other := peer.New(conn)
	var steps []string
	c.Trace = func(s peer.Step) { steps = append(steps, fmt.Sprintf("%s|%x|%x", s.Text, s.Sent, s.Received)) }
	other.Operate(mpa.Framing{Markers: true}, mpa.Framing{CRC: true})
	c.Operate(mpa.Framing{}, mpa.Framing{Markers: true, CRC: true})
	b := other.Segment(other.Header(rdmap.OpSend), []byte("hello"))
	other.Send(b)
	a := c.Segment(c.Header(rdmap.OpSend), nil)
	c.SendSplit(a[:5], a[5:])
	c.ExpectSegment(rdmap.OpSend)
	c.CloseWrite()
	c.ExpectSilence(0)
	other.Send([]byte("bye"))
	c.ExpectBytes(3)
	other.CloseWrite()
	c.ExpectFIN()
	c.ExpectRST()
	c, _ = peer.Pipe()
	c.Trace = func(s peer.Step) { steps = append(steps, s.Text) }
	c.Reset()
	header := ", DDP untagged L=1 Rsvd=0 DV=1 RsvdULP=0x43:00000000 QN=0 MSN=1 MO=0, payload of "
	if want := []string{
		"FPDU: Send" + header + "0 bytes in 2 pieces|" + hex.EncodeToString(a) + "|",
		"FPDU: Send" + header + "5 bytes||" + hex.EncodeToString(b), "FIN||", "nothing for 0s||", "3 bytes||627965",
		"the connection is closed by FIN||", "nothing, and then the connection was closed by FIN||", "RST",
	}; !slices.Equal(steps, want) {
		t.Errorf("got %q, want %q", steps, want)
	}
}

// A script that asks for what cannot be has an error, and does not panic.
func TestMistakes(t *testing.T) {
	for name, play := range map[string]func(*peer.Conn){
		"ULPDU of 65536 bytes": func(c *peer.Conn) {
			c.Operate(mpa.Framing{}, mpa.Framing{})
			b := c.FPDU(make([]byte, 1<<15), make([]byte, 1<<15))
			c.Send(peer.Seal(b))
		},
		"-1 bytes":   func(c *peer.Conn) { c.ExpectBytes(-1) },
		"dialect 99": func(c *peer.Conn) { c.Initiate(99) },
	} {
		c, other := peer.Pipe()
		if play(c); !strings.Contains(fmt.Sprint(c.Err()), name) {
			t.Errorf("%s: the error is %v", name, c.Err())
		}
		_ = other.Close()
		_ = c.Close()
	}
}

// A Conn without a connection has an error, whatever is called.
func TestNoConnection(t *testing.T) {
	for name, call := range map[string]func(*peer.Conn){
		"Initiate":        func(c *peer.Conn) { c.Initiate(0) },
		"Initiate by key": func(c *peer.Conn) { c.Initiate(mpa.DialectStartKey) },
		"Respond":         func(c *peer.Conn) { c.Respond(0) },
		"Operate":         func(c *peer.Conn) { c.Operate(mpa.Framing{}, mpa.Framing{}) },
		"Segment":         func(c *peer.Conn) { c.Send(c.Segment(c.Header(rdmap.OpSend), nil)) },
		"ExpectBytes":     func(c *peer.Conn) { c.ExpectBytes(1) },
		"ExpectSegment":   func(c *peer.Conn) { c.ExpectSegment(rdmap.OpSend) },
		"ExpectTerminate": func(c *peer.Conn) { c.ExpectTerminate() },
		"ExpectFIN":       (*peer.Conn).ExpectFIN,
		"ExpectSilence":   func(c *peer.Conn) { c.ExpectSilence(0) },
		"CloseWrite":      (*peer.Conn).CloseWrite,
		"Reset":           (*peer.Conn).Reset,
		"Close":           func(c *peer.Conn) { _ = c.Close() },
		"Err":             func(*peer.Conn) {},
	} {
		for kind, c := range map[string]*peer.Conn{"New(nil)": peer.New(nil), "zero": new(peer.Conn)} {
			if call(c); c.Err() == nil {
				t.Errorf("%s of %s: there is no error", name, kind)
			}
		}
	}
}

// A connection without halves, or without a RST, says so.
func TestNoSuchEnd(t *testing.T) {
	for name, call := range map[string]func(*peer.Conn){
		"CloseWrite": (*peer.Conn).CloseWrite, "Reset": (*peer.Conn).Reset,
	} {
		ours, others := net.Pipe()
		c := peer.New(ours)
		if call(c); !errors.Is(c.Err(), errors.ErrUnsupported) {
			t.Errorf("%s: the error is %v", name, c.Err())
		}
		_ = c.Close()
		_ = others.Close()
	}
}
