package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp"
)

// A mailbox is an end of a connection: as many receives, with memory for each, as the peer may have messages on the way, and
// memory for as many Sends.
type mailbox struct {
	qp      *iwarp.QP
	in, out *iwarp.MR
	size    int
	sent    int
}

// open posts the receives. It runs before the connection is up, as the peer may send as soon as it is.
func (m *mailbox) open(qp *iwarp.QP, size int) (err error) {
	m.qp, m.size = qp, size
	if m.in, err = qp.PD().Register(make([]byte, size*messageLen), iwarp.LocalWrite); err != nil {
		return err
	}
	if m.out, err = qp.PD().Register(make([]byte, size*messageLen), 0); err != nil {
		return err
	}
	for i := range size {
		err = errors.Join(err, m.post(i))
	}
	return err
}

func (m *mailbox) post(place int) error {
	return m.qp.PostRecv(&iwarp.RecvWR{ID: uint64(place), SGL: []iwarp.SGE{m.in.Slice(place*messageLen, messageLen)}})
}

// send sends a message. Its place in memory was that of the message that was sent so many ago as there are credits: that has
// had its answer, and so is done.
func (m *mailbox) send(b []byte) error {
	at := m.sent % m.size * messageLen
	m.sent++
	if _, err := m.out.WriteAt(b, int64(at)); err != nil {
		return err
	}
	return m.qp.PostSend(&iwarp.SendWR{SGL: []iwarp.SGE{m.out.Slice(at, len(b))}, Unsignaled: true})
}

var (
	errMore    = errors.New("there may be more jobs now")
	errMessage = errors.New("a message without a number")
)

// next waits for a message, takes it out, and posts the receive again: the peer has its credit back with whatever we send next.
// When more is closed before, that is errMore.
func (m *mailbox) next(ctx context.Context, more <-chan struct{}) (job int, text string, err error) {
	wait, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if more != nil {
		go func() {
			select {
			case <-more:
				stop(errMore)
			case <-wait.Done():
			}
		}()
	}
	wc, err := m.qp.RecvCQ().Next(wait)
	if err == nil {
		err = wc.Err()
	}
	switch {
	case err != nil && context.Cause(wait) != nil:
		return 0, "", context.Cause(wait)
	case err != nil:
		return 0, "", err
	case wc.Length < 4:
		return 0, "", errMessage
	}
	at := int(wc.ID) * messageLen
	b := m.in.Bytes()[at : at+wc.Length]
	job, text = int(binary.BigEndian.Uint32(b)), string(b[4:])
	_ = m.post(int(wc.ID)) // where that fails, the next call tells why, after what has come before
	return job, text, nil
}
