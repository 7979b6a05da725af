//go:build interop

package interop_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// What the guest's programs are asked for: so many messages each way, of so many bytes.
const (
	earlyCount = 10
	earlySize  = 100
)

// TestSendEarly serves two programs whose clients start with A=0 and wait for the server to
// speak first, with the preset for siw. Without that, our Sends wait, and say for what.
func TestSendEarly(t *testing.T) {
	t.Parallel()
	sendEarly(t, Boot(t, Options{}))
}

func sendEarly(t *testing.T, g *Guest) {
	siw, err := iwarp.LookupPreset("siw")
	testrig.Must(t, err)
	t.Run("ucmatose", func(t *testing.T) {
		for range 10 {
			e := listenEarly(t, g, iwarp.AcceptConfig{Preset: &siw})
			guest := g.Start(t, e.ucmatose())
			qp := e.accept()
			testrig.Must(t, e.sayFirst(testrig.Within(t), qp))
			guest.WantOutput(t, "data transfers complete")
			testrig.Should(t, qp.Close()) // ucmatose awaits the server's disconnect
			guest.WantSuccess(t, 30*time.Second)
		}
	})
	t.Run("ib_write_lat", func(t *testing.T) {
		e := listenEarly(t, g, iwarp.AcceptConfig{Preset: &siw})
		guest := g.Start(t, fmt.Sprintf("timeout -s KILL 60 ib_write_lat -R -F -n %d -s %d -p %s $PEER_IP",
			earlyCount, earlySize, e.port))
		e.latency(testrig.Within(t))
		guest.WantSuccess(t, 30*time.Second)
		guest.WantOutput(t, fmt.Sprintf(" %d     %d  ", earlySize, earlyCount))
	})
	t.Run("without the preset", func(t *testing.T) {
		e := listenEarly(t, g, iwarp.AcceptConfig{})
		guest := g.Start(t, e.ucmatose())
		qp := e.accept()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.sayFirst(ctx, qp); !errors.Is(err, iwarp.ErrAwaitingInitiator) {
			t.Error(err)
		}
		testrig.Should(t, qp.Abort())
		guest.Wait(t, 30*time.Second)
	})
}

// An earlyServer waits for one of the guest's programs.
type earlyServer struct {
	t      *testing.T
	accept func() *iwarp.QP
	port   string
	inbox  *iwarp.MR // of the last connection
}

func listenEarly(t *testing.T, g *Guest, cfg iwarp.AcceptConfig) *earlyServer {
	t.Helper()
	ln, port, err := g.listen(t.Context(), iwarp.ListenConfig{})
	testrig.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	e := &earlyServer{t: t, port: port}
	cfg.Prepare = e.prepare
	e.accept = func() *iwarp.QP {
		t.Helper()
		req, err := ln.Accept(testrig.Within(t))
		testrig.Must(t, err)
		qp, err := req.Accept(testrig.Within(t), cfg)
		testrig.Must(t, err)
		return qp
	}
	return e
}

// prepare registers an inbox, of which each receive has its part.
func (e *earlyServer) prepare(qp *iwarp.QP) (err error) {
	const slots = 4 * earlyCount
	e.inbox, err = qp.PD().Register(make([]byte, slots*earlySize), iwarp.LocalWrite|iwarp.RemoteWrite)
	for i := 0; err == nil && i < slots; i++ {
		err = qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{e.inbox.Slice(i*earlySize, earlySize)}})
	}
	return err
}

func (e *earlyServer) ucmatose() string {
	return fmt.Sprintf("timeout -s KILL 60 ucmatose -s $PEER_IP -p %s -C %d -S %d", e.port, earlyCount, earlySize)
}

// sayFirst does what ucmatose's server does: it sends its messages, and then takes the
// client's.
func (e *earlyServer) sayFirst(ctx context.Context, qp *iwarp.QP) error {
	mr, err := qp.PD().Register(make([]byte, earlySize), 0)
	for i := 0; err == nil && i < earlyCount; i++ {
		err = qp.Send(ctx, mr.Slice(0, earlySize))
	}
	for i := 0; err == nil && i < earlyCount; i++ {
		var wc iwarp.WC
		if wc, err = qp.RecvCQ().Next(ctx); err == nil {
			err = wc.Err()
		}
	}
	return err
}

// latency is the server of ib_write_lat. On a first connection both ends tell each other, by
// Sends and the client first, what they are and where their memory is; meanwhile a second one
// is made, over which they write to each other's memory in turn, the server first, with the
// number of the round in the last byte.
func (e *earlyServer) latency(ctx context.Context) {
	const beforeData, all = 5, 10 // messages of the client's
	control := e.accept()
	told := e.inbox
	var data *iwarp.QP
	var to iwarp.Remote
	for i := range all {
		wc, err := control.RecvCQ().Next(ctx)
		testrig.Must(e.t, err)
		testrig.Must(e.t, wc.Err())
		to = e.answer(ctx, control, told.Bytes()[i*earlySize:][:wc.Length])
		if i+1 == beforeData {
			data = e.accept()
		}
	}
	e.pingPong(ctx, data, to)
	testrig.Should(e.t, data.Close())
	testrig.Should(e.t, control.Close())
}

// answer answers a message of ib_write_lat's by what it says itself: numbers and versions
// agree then. If it is long enough to say where the client's memory is, the answer says where
// ours is: LID, depth, QPN, PSN, STag, 4 bytes unused, TO, GID.
func (e *earlyServer) answer(ctx context.Context, control *iwarp.QP, m []byte) (peer iwarp.Remote) {
	const stag, to, length = 16, 24, 48
	if len(m) >= length {
		peer = iwarp.Remote{STag: binary.BigEndian.Uint32(m[stag:]), TO: binary.BigEndian.Uint64(m[to:])}
	}
	if peer.STag != 0 {
		binary.BigEndian.PutUint32(m[stag:], e.inbox.STag())
		binary.BigEndian.PutUint64(m[to:], e.inbox.Remote(0).TO)
	}
	testrig.Must(e.t, control.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: m, Unsignaled: true}))
	return peer
}

// pingPong writes to the client's memory, and awaits its answer in ours.
func (e *earlyServer) pingPong(ctx context.Context, data *iwarp.QP, to iwarp.Remote) {
	src, err := data.PD().Register(make([]byte, earlySize), 0)
	testrig.Must(e.t, err)
	for round := byte(1); round <= earlyCount; round++ {
		_, err := src.WriteAt([]byte{round}, earlySize-1)
		testrig.Must(e.t, err)
		_, err = data.Write(ctx, src.Slice(0, earlySize), to)
		testrig.Must(e.t, err)
		var last [1]byte
		for last[0] != round {
			testrig.Must(e.t, ctx.Err())
			_, err := e.inbox.ReadAt(last[:], earlySize-1)
			testrig.Must(e.t, err)
			runtime.Gosched()
		}
	}
}
