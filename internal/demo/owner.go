// Package demo shows RDMA between two programs. An owner offers memory. A writer reaches it, and the owner's program has
// no part in that.
package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Size is how many bytes the owner offers.
const Size = 16

// A State is what the owner's program finds when it is asked.
type State struct {
	PID         int
	Memory      []byte
	Completions int           // that the program has got
	Writes      uint64        // that the library has placed
	Reads       uint64        // that the library has answered
	CPU         time.Duration // of the process
}

// An owner offers memory to all who connect.
type owner struct {
	pd     *iwarp.PD
	memory *iwarp.MR
	cq     *iwarp.CQ // of all connections
	state  State
}

// Own offers memory on ln. For each line of questions it writes its State to answers. It returns when they end.
func Own(ctx context.Context, ln *iwarp.Listener, questions io.Reader, answers io.Writer) error {
	o, err := offer(ln.RNIC())
	if err != nil {
		return err
	}
	go o.accept(ctx, ln)
	answer := json.NewEncoder(answers)
	for lines := bufio.NewScanner(questions); lines.Scan(); {
		if err := o.look(); err != nil {
			return err
		}
		if err := answer.Encode(o.state); err != nil {
			return err
		}
	}
	return nil
}

func offer(rnic *iwarp.RNIC) (*owner, error) {
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	memory, err := pd.Register(make([]byte, Size), iwarp.RemoteRead|iwarp.RemoteWrite)
	if err != nil {
		return nil, err
	}
	cq, err := rnic.CreateCQ(1 << 10)
	return &owner{pd: pd, memory: memory, cq: cq, state: State{PID: os.Getpid(), Memory: make([]byte, Size)}}, err
}

// accept takes all connections, and tells each where the memory is.
func (o *owner) accept(ctx context.Context, ln *iwarp.Listener) {
	where, err := o.memory.Region().MarshalBinary()
	for err == nil {
		var req *iwarp.Request
		if req, err = ln.Accept(ctx); err == nil {
			// One that fails fails at the other end, too, which reports it.
			_, _ = req.Accept(ctx, iwarp.AcceptConfig{PD: o.pd, QP: iwarp.QPConfig{SendCQ: o.cq},
				MPA: mpa.Answer{PrivateData: where}})
		}
	}
}

// look finds out what there is now.
func (o *owner) look() error {
	var wc [16]iwarp.WC
	for n := len(wc); n == len(wc); {
		n = o.cq.Poll(wc[:])
		o.state.Completions += n
	}
	received := o.pd.RNIC().Stats().Received
	o.state.Writes, o.state.Reads = received[rdmap.OpWrite].Messages, received[rdmap.OpReadRequest].Messages
	o.state.CPU = procstat.CPUTime()
	_, err := o.memory.ReadAt(o.state.Memory, 0)
	return err
}
