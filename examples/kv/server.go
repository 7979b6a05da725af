package main

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

type config struct {
	slots, slotLen int // of the table
	clients        int // at a time
	credits        int // requests that each of them may have on the way
}

// A server has one table, one Shared Receive Queue and one Completion Queue for all of its clients.
type server struct {
	config
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	ln      *iwarp.Listener
	srq     *iwarp.SRQ
	cq      *iwarp.CQ
	inboxes *iwarp.MR
	table   table
	stop    context.CancelFunc

	mu      sync.Mutex
	joining int // clients that are being accepted
	clients map[*iwarp.QP]bool
	leaving bool
}

// Messages begin with a byte that says what they are. A client says put and bye, the server answer and leaving.
const (
	sayPut     = 'P' // length of the key (2 bytes), key, value
	sayBye     = 'B'
	sayAnswer  = 'A' // the error, if there was one
	sayLeaving = 'L'
)

func newServer(addr string, cfg config) (*server, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{config: cfg, rnic: iwarp.NewRNIC(iwarp.RNICConfig{}), stop: stop, clients: map[*iwarp.QP]bool{}}
	err := s.allocate()
	if err == nil {
		s.ln, err = (&iwarp.ListenConfig{PD: s.pd}).Listen(ctx, "tcp", addr)
	}
	if err != nil {
		stop()
		return nil, errors.Join(err, s.rnic.Close())
	}
	go s.accept(ctx)
	go s.serve(ctx)
	return s, nil
}

// allocate makes the table and the queues. As each client has its credits and no more, the Shared Receive Queue never runs
// out, and the Completion Queue never overflows: what one client does takes nothing from the others.
func (s *server) allocate() (err error) {
	if s.pd, err = s.rnic.AllocPD(); err != nil {
		return err
	}
	if s.table.mr, err = s.pd.Register(make([]byte, s.slots*s.slotLen), iwarp.RemoteRead); err != nil {
		return err
	}
	s.table.slots, s.table.slotLen = s.slots, s.slotLen
	depth := s.config.clients * s.credits
	if s.srq, err = s.pd.CreateSRQ(iwarp.SRQConfig{Depth: depth, PerQP: s.credits}); err != nil {
		return err
	}
	if s.inboxes, err = s.pd.Register(make([]byte, depth*s.slotLen), iwarp.LocalWrite); err != nil {
		return err
	}
	for i := range depth {
		if err := s.post(uint64(i)); err != nil {
			return err
		}
	}
	if s.cq, err = s.rnic.CreateCQ(depth + (s.config.clients+1)*s.sendDepth()); err != nil {
		return err
	}
	_, err = s.pd.CreateQP(s.qp()) // one that is never connected: while there is a QP, the CQ waits for others
	return err
}

// sendDepth has room for an answer to each request, and for the word that the server leaves.
func (s *server) sendDepth() int { return s.credits + 1 }

func (s *server) qp() iwarp.QPConfig {
	return iwarp.QPConfig{SRQ: s.srq, RecvCQ: s.cq, SendCQ: s.cq, SendDepth: s.sendDepth()}
}

func (s *server) post(inbox uint64) error {
	return s.srq.PostRecv(&iwarp.RecvWR{ID: inbox, SGL: []iwarp.SGE{s.inboxes.Slice(int(inbox)*s.slotLen, s.slotLen)}})
}

func (s *server) accept(ctx context.Context) {
	for {
		req, err := s.ln.Accept(ctx)
		if err != nil {
			return // the Listener is closed
		}
		go s.admit(ctx, req)
	}
}

// admit accepts a client for which there are credits left. The Reply's private data tell it where the table is.
func (s *server) admit(ctx context.Context, req *iwarp.Request) {
	if !s.join() {
		_ = req.Reject([]byte("no place for another client"))
		return
	}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{QP: s.qp(), MPA: mpa.Answer{PrivateData: s.welcome()}})
	s.joined(qp)
	if err != nil {
		_ = req.Close()
		return
	}
	<-qp.Done() // by its own wish, or because it is lost
	_ = qp.Close()
	s.left(qp)
}

// join takes a place, which joined gives to a QP, or back if that is nil.
func (s *server) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving || s.joining+len(s.clients) >= s.config.clients {
		return false
	}
	s.joining++
	return true
}

func (s *server) joined(qp *iwarp.QP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joining--
	if qp != nil {
		s.clients[qp] = true
	}
}

func (s *server) left(qp *iwarp.QP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, qp)
}

// welcome is where the table is, and how large: all that a client needs for reading.
func (s *server) welcome() []byte {
	b, _ := s.table.mr.Remote(0).AppendBinary(nil)
	for _, n := range []int{s.slots, s.slotLen, s.credits} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// serve takes what clients send, one message after the other.
func (s *server) serve(ctx context.Context) {
	for {
		wc, err := s.cq.Next(ctx)
		if err != nil {
			return
		}
		if wc.Op != iwarp.OpRecv {
			continue // an answer to a client that has gone
		}
		var say []byte
		if wc.Err() == nil { // otherwise the client has gone in the middle of a message
			say = s.handle(&wc)
		}
		_ = s.post(wc.ID) // first the receive, and then the answer, by which the client has its credit back
		if say != nil {
			_ = wc.QP.PostSend(&iwarp.SendWR{Inline: say, Unsignaled: true}) // if it fails, the client has gone
		}
	}
}

// handle carries out a message, and returns the answer.
func (s *server) handle(wc *iwarp.WC) (answer []byte) {
	at := int(wc.ID) * s.slotLen
	switch m := s.inboxes.Bytes()[at : at+wc.Length]; {
	case len(m) >= 3 && m[0] == sayPut && len(m) >= 3+int(binary.BigEndian.Uint16(m[1:])):
		value := 3 + int(binary.BigEndian.Uint16(m[1:]))
		if err := s.table.put(string(m[3:value]), string(m[value:])); err != nil {
			return append([]byte{sayAnswer}, err.Error()...)
		}
		return []byte{sayAnswer}
	case len(m) == 1 && m[0] == sayBye:
		go wc.QP.Close() // the last message has come
		return nil
	}
	go wc.QP.Abort() // it does not speak our language
	return nil
}

// shutdown ends the server and loses nothing: clients are told, finish what they have begun, and say goodbye
// (docs/endings.md). Those that do not until the context ends are cut off.
func (s *server) shutdown(ctx context.Context) error {
	defer s.stop()
	_ = s.ln.Close()
	s.mu.Lock()
	s.leaving = true
	clients := slices.Collect(maps.Keys(s.clients))
	s.mu.Unlock()
	for _, qp := range clients {
		_ = qp.PostSend(&iwarp.SendWR{Inline: []byte{sayLeaving}, Unsignaled: true})
	}
	for _, qp := range clients {
		select {
		case <-qp.Done():
		case <-ctx.Done():
		}
	}
	return s.rnic.Shutdown(ctx)
}
