//go:build interop

package interop_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/wording"
)

// inProcess runs one end of a connection in this process, with settings for
// which the iwarp command has no flags. As from that, the last line of output is
// the error.
func inProcess(t testing.TB, name string, run func(ctx context.Context, p *Proc) error) *Proc {
	t.Helper()
	p := newProc(t, "iwarp: "+name)
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		defer close(p.done)
		p.status = 0
		if err := run(ctx, p); err != nil {
			fmt.Fprintf(&p.out, "iwarp: %v\n", err)
			p.status = 1
		}
	}()
	return p
}

// connect starts iwarp as Initiator.
func (c *siwCase) connect(t testing.TB, g *Guest) *Proc {
	t.Helper()
	return inProcess(t, c.iwarp, func(ctx context.Context, p *Proc) error {
		if c.echo {
			return c.sayTo(ctx, p, g)
		}
		return rping.Client(ctx, g.server(), rping.ClientConfig{Config: c.rping(p),
			Count: pingCount, Dial: g.dialNudging})
	})
}

// serve starts iwarp as Responder.
func (c *siwCase) serve(t testing.TB, g *Guest) (p *Proc, port string) {
	t.Helper()
	config := func(p *Proc) iwarp.ListenConfig { return iwarp.ListenConfig{RNIC: c.rnic(p), Dialects: c.dialects} }
	return serveHere(t, g, c.iwarp, config, func(ctx context.Context, p *Proc, ln *iwarp.Listener) error {
		if c.echo {
			return c.answer(ctx, p, ln)
		}
		return rping.Serve(ctx, ln, rping.ServerConfig{Config: c.rping(p)})
	})
}

// serveHere runs a Responder in this process, and returns when it listens.
func serveHere(t testing.TB, g *Guest, name string, config func(*Proc) iwarp.ListenConfig,
	serve func(context.Context, *Proc, *iwarp.Listener) error) (p *Proc, port string) {
	t.Helper()
	ready := make(chan string, 1)
	p = inProcess(t, name, func(ctx context.Context, p *Proc) error {
		ln, port, err := g.listen(ctx, config(p))
		if err != nil {
			return err
		}
		defer ln.Close()
		ready <- port
		return serve(ctx, p, ln)
	})
	select {
	case port = <-ready:
		return p, port
	case <-p.done:
		t.Fatalf("%s: does not listen", p.name)
	}
	return nil, ""
}

// rnic returns an RNIC whose log is part of the output: a Listener says there
// why a startup failed.
func (c *siwCase) rnic(p *Proc) *iwarp.RNIC {
	return iwarp.NewRNIC(iwarp.RNICConfig{Kind: c.kind, Logger: slog.New(slog.NewTextHandler(&p.out, nil))})
}

// rping has everything that happens be part of the output.
func (c *siwCase) rping(p *Proc) rping.Config {
	return rping.Config{Validate: true, MPA: c.offer, Watch: p.printEvent}
}

// printEvent prints what rping in this process tells, in the words of the command where a test looks for them.
func (p *Proc) printEvent(e rping.Event) {
	switch e := e.(type) {
	case rping.Connected:
		agreed(p, e.Negotiated)
	case rping.Pinged:
		fmt.Fprintf(&p.out, "%sping data: %s\n", wording.If(e.Server, "server ", ""), e.Text)
	case rping.PrivateData:
		fmt.Fprintf(&p.out, "private data received: %q\n", []byte(e))
	default:
		fmt.Fprintf(&p.out, "%T: %v\n", e, e)
	}
}

// hello is what iwarp's client sends in an echo.
const hello = "hello from iwarp"

// sayTo sends a message and awaits it back.
func (c *siwCase) sayTo(ctx context.Context, p *Proc, g *Guest) error {
	e := echo{p: p}
	d := iwarp.Dialer{MPA: c.offer, NoReads: c.noReads, Prepare: e.prepare}
	qp, err := g.dialNudging(ctx, &d, g.server())
	if err != nil {
		return err
	}
	defer qp.Close()
	agreed(e.p, qp.Negotiated())
	if err := e.send(qp, hello); err != nil {
		return err
	}
	_, err = e.receive(ctx, qp)
	return err
}

// answer sends a message back.
func (c *siwCase) answer(ctx context.Context, p *Proc, ln *iwarp.Listener) error {
	req, err := ln.Accept(ctx)
	if err != nil {
		return err
	}
	e := echo{p: p}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{MPA: c.offer.Answer(), NoReads: c.noReads, Prepare: e.prepare})
	if err != nil {
		return err
	}
	defer qp.Close()
	agreed(e.p, qp.Negotiated())
	message, err := e.receive(ctx, qp)
	if err == nil {
		err = e.send(qp, message)
	}
	if err != nil {
		return err
	}
	<-qp.Done()
	if err := qp.Err(); !errors.Is(err, iwarp.ErrPeerClosed) {
		return err
	}
	return nil
}

// An echo is a connection for one message.
type echo struct {
	p   *Proc
	buf [64]byte
}

func (e *echo) prepare(qp *iwarp.QP) error {
	mr, err := qp.PD().Register(e.buf[:], iwarp.LocalWrite)
	if err != nil {
		return err
	}
	return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, mr.Len())}})
}

func (e *echo) send(qp *iwarp.QP, message string) error {
	return ended(qp, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte(message), Unsignaled: true}))
}

// receive waits for the message, and prints it as the guest's cmpd does.
func (e *echo) receive(ctx context.Context, qp *iwarp.QP) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-qp.Done()
		cancel()
	}()
	_ = qp.RecvCQ().Wait(ctx) // an orderly close leaves the receive where it is
	var wc [1]iwarp.WC
	if qp.RecvCQ().Poll(wc[:]) == 0 {
		return "", ended(qp, errors.New("the peer closed the connection without a message"))
	}
	if err := wc[0].Err(); err != nil {
		return "", ended(qp, err)
	}
	message := string(e.buf[:wc[0].Length])
	fmt.Fprintf(&e.p.out, "RECEIVED %d:%s\n", len(message), message)
	return message, nil
}

// ended prefers the reason why a connection has ended to what it did to a request.
func ended(qp *iwarp.QP, err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-qp.Done():
		return cmp.Or(qp.Err(), err)
	case <-time.After(time.Second): // the connection is alive, only the request failed
		return err
	}
}

// agreed prints what was negotiated.
func agreed(p *Proc, n iwarp.Negotiated) {
	fmt.Fprintf(&p.out, "negotiated: revision=%d crc=%s rtr=%v ird=%d ord=%d\n",
		n.Revision, wording.OnOff(n.CRC), n.RTR, n.IRD, n.ORD)
}
