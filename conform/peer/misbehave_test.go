package peer_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/conform/peer"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// misbehaving are peers that break a rule each, with what the library has to say of it: an error of package iwarp, a
// mpa.Failure of the startup, or the rdmap.Code of a Terminate.
var misbehaving = []struct {
	name string
	want any
	play func(*peer.Conn)
}{
	{"Reply with a wrong key", mpa.FailureKey, func(c *peer.Conn) {
		r := peer.Reply(c.ExpectStartup(mpa.KeyRequest))
		r.Key = "MPA ID Rap Frame"
		c.SendStartup(r)
		c.ExpectRST()
	}},
	{"half a Reply and a FIN", mpa.FailureClosed, func(c *peer.Conn) {
		r := peer.Reply(c.ExpectStartup(mpa.KeyRequest))
		c.Send(mpa.AppendStartup(nil, &r)[:mpa.StartupHeaderLen/2])
		c.CloseWrite()
	}},
	{"RST after the Request", mpa.FailureClosed, func(c *peer.Conn) {
		c.ExpectStartup(mpa.KeyRequest)
		c.Reset()
	}},
	{"private data longer than PD_Length", rdmap.CodeOfMPA(mpa.CodeCRC), func(c *peer.Conn) {
		r := peer.Reply(c.ExpectStartup(mpa.KeyRequest))
		r.PDLength = len(r.PrivateData)
		r.PrivateData = append(r.PrivateData, make([]byte, 32)...)
		c.SendStartup(r)
		c.ExpectTerminate(rdmap.CodeOfMPA(mpa.CodeCRC)) // the rest counts as an FPDU
	}},
	{"wrong CRC", rdmap.CodeOfMPA(mpa.CodeCRC), func(c *peer.Conn) {
		c.Respond(mpa.DialectRFC6581)
		b := c.Segment(c.Header(rdmap.OpSend), []byte("hello"))
		b[len(b)-1] ^= 1
		c.Send(b)
		c.ExpectTerminate(rdmap.CodeOfMPA(mpa.CodeCRC))
	}},
	{"wrong FPDUPTR", rdmap.CodeOfMPA(mpa.CodeMarker), func(c *peer.Conn) {
		c.Respond(mpa.DialectRFC6581)
		b := c.Segment(c.Header(rdmap.OpSend), []byte("hello"))
		b[3] += 4 // the first FPDU begins with a marker
		c.Send(peer.Seal(b))
		c.ExpectTerminate(rdmap.CodeOfMPA(mpa.CodeMarker))
	}},
	{"Terminate with an unknown code", rdmap.Code(0xf0f0), func(c *peer.Conn) {
		c.Respond(mpa.DialectRFC6581)
		c.Send(c.Segment(c.Header(rdmap.OpTerminate), (&rdmap.Terminate{Code: 0xf0f0}).Append(nil)))
		c.ExpectFIN()
	}},
	{"Read Response to no request", rdmap.CodeUnexpectedOpcode, func(c *peer.Conn) {
		c.Respond(mpa.DialectRFC6581)
		c.Send(c.Segment(c.Header(rdmap.OpReadResponse), []byte("hello")))
		c.ExpectTerminate(rdmap.CodeUnexpectedOpcode)
	}},
	{"no RTR indication", iwarp.ErrNoRTR, func(c *peer.Conn) {
		c.SendStartup(peer.Request(mpa.DialectRFC6581))
		c.ExpectStartup(mpa.KeyReply)
		c.ExpectSilence(29 * time.Second)
		c.ExpectRST()
	}},
}

// TestMisbehaving has each peer meet the library, and both find what they want.
func TestMisbehaving(t *testing.T) {
	for _, m := range misbehaving {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, conn := peer.Pipe()
				played := make(chan error)
				go func() { m.play(c); played <- c.Close() }()
				err := endOf(t, conn, m.want == iwarp.ErrNoRTR)
				if !tells(err, m.want) {
					t.Errorf("the library says: %v; want %v", err, m.want)
				}
				if err := <-played; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// endOf has the library connect to a peer, and returns how that ends. The Initiator asks for markers.
func endOf(t *testing.T, conn net.Conn, asResponder bool) error {
	if !asResponder {
		d := iwarp.Dialer{MPA: mpa.Offer{Markers: true}}
		return ended(d.Initiate(t.Context(), conn, nil))
	}
	req, err := new(iwarp.ListenConfig).Respond(t.Context(), conn, nil)
	if err != nil {
		return err
	}
	return ended(req.Accept(t.Context(), iwarp.AcceptConfig{}))
}

// ended returns why a connection did not come up, or how it has ended.
func ended(qp *iwarp.QP, err error) error {
	if err != nil {
		return err
	}
	<-qp.Done()
	return qp.Err()
}

// tells reports whether an error is the wanted one.
func tells(err error, want any) bool {
	var startup *mpa.StartupError
	var terminate *iwarp.TerminateError
	switch want := want.(type) {
	case mpa.Failure:
		return errors.As(err, &startup) && startup.Failure == want
	case rdmap.Code:
		return errors.As(err, &terminate) && terminate.Code == want
	}
	return errors.Is(err, want.(error))
}
