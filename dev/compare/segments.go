package main

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/perf"
)

// realSegment is a maximum segment size as of Ethernet: TCP's options leave 1448 bytes of it.
const realSegment = 1460

// segmentsTrial compares what FPDUs take that are aligned with the segments of an Ethernet with what FPDUs of 64 KiB
// take over the same segments.
func segmentsTrial(op perf.Op, cc string) trial {
	work := fmt.Sprintf("1 MiB %v, FPDUs of 1448 bytes", op)
	return trial{[]goal{{work, cc, "CPU beside those of 64 KiB", 1.2, true}},
		func(ctx context.Context, _ *own) ([]float64, error) {
			small, err := newTransfer(ctx, op, cc, iwarp.FPDUsAligned)
			if err != nil {
				return nil, err
			}
			defer small.close()
			large, err := newTransfer(ctx, op, cc, iwarp.FPDUsLarge)
			if err != nil {
				return nil, err
			}
			defer large.close()
			return oneAfterTheOther(ctx, small, large)
		}}
}

// A transfer moves 1 MiB at a time over a connection whose ends are in this process.
type transfer struct {
	rnic *iwarp.RNIC
	ends [2]*iwarp.QP
	mem  *iwarp.MR
	op   perf.Op
	cpu  time.Duration
}

func newTransfer(ctx context.Context, op perf.Op, cc string, fpdus iwarp.FPDUs) (t *transfer, err error) {
	t = &transfer{rnic: iwarp.NewRNIC(iwarp.RNICConfig{}), op: op}
	if err := t.connect(ctx, cc, iwarp.QPConfig{FPDUs: fpdus}); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *transfer) close() { _ = t.rnic.Close() }

// connect has both ends in one PD, with memory for both.
func (t *transfer) connect(ctx context.Context, cc string, cfg iwarp.QPConfig) error {
	pd, err := t.rnic.AllocPD()
	if err != nil {
		return err
	}
	if t.mem, err = pd.Register(make([]byte, 2<<20), iwarp.LocalWrite|iwarp.RemoteRead|iwarp.RemoteWrite); err != nil {
		return err
	}
	control := func(_, _ string, c syscall.RawConn) error { return limitSegments(c, cc) }
	ln, err := (&iwarp.ListenConfig{PD: pd, Net: net.ListenConfig{Control: control}}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return err
	}
	defer ln.Close()
	d := iwarp.Dialer{PD: pd, QP: cfg, Net: net.Dialer{Control: control}}
	t.ends[0], t.ends[1], err = meet(ctx, ln, iwarp.AcceptConfig{QP: cfg},
		func() (*iwarp.QP, error) { return d.Dial(ctx, "tcp", ln.Addr().String()) })
	return err
}

// move has one message go from the first half of the memory to the second, or with Read the other way.
func (t *transfer) move(ctx context.Context) error {
	near, far := t.mem.Slice(0, 1<<20), t.mem.Slice(1<<20, 1<<20)
	switch t.op {
	case perf.Write:
		_, err := t.ends[0].Write(ctx, near, t.mem.Remote(1<<20))
		return err
	case perf.Read:
		_, err := t.ends[0].Read(ctx, near, t.mem.Remote(1<<20))
		return err
	}
	if err := t.ends[1].PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{far}}); err != nil {
		return err
	}
	if err := t.ends[0].Send(ctx, near); err != nil {
		return err
	}
	return nextMessage(ctx, t.ends[1])
}

// oneAfterTheOther gives two transfers short turns, and returns the ratio of their CPU time.
func oneAfterTheOther(ctx context.Context, a, b *transfer) ([]float64, error) {
	const turns, messages = 20, 8
	for turn := range turns + 1 {
		for _, t := range []*transfer{a, b} {
			start := procstat.CPUTime()
			for range messages {
				if err := t.move(ctx); err != nil {
					return nil, err
				}
			}
			if turn > 0 { // the first is for TCP to find its pace
				t.cpu += procstat.CPUTime() - start
			}
		}
	}
	return []float64{float64(a.cpu) / float64(b.cpu)}, nil
}
