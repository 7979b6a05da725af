package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/credits"
)

// A client connects when it has something to do, and again when the connection has ended. Its zero value needs an address.
type client struct {
	addr string
	torn atomic.Int64 // Reads that were repeated, as the slot was being written

	mu sync.Mutex // for one operation at a time
	s  *session   // nil: not connected
}

// get reads the value of a key out of the server's memory.
func (c *client) get(ctx context.Context, key string) (value string, err error) {
	err = c.do(ctx, func(s *session) error {
		for probe := range probes {
			e, err := c.read(ctx, s, (hash(key)+probe)%s.slots)
			switch {
			case err != nil:
				return err
			case e.version == 0:
				return errNoKey
			case e.key == key:
				value = e.value
				return nil
			}
		}
		return errNoKey
	})
	return value, err
}

// read reads a slot until it has one that is whole.
func (c *client) read(ctx context.Context, s *session, slot int) (entry, error) {
	for {
		if _, err := s.qp.Read(ctx, s.page.Slice(0, s.slotLen), s.table.Add(slot*s.slotLen)); err != nil {
			return entry{}, err
		}
		e, err := parse(s.page.Bytes())
		if !errors.Is(err, errTorn) {
			return e, err
		}
		c.torn.Add(1)
	}
}

// put has the server write entries, given as key, value, key, value ... A put that was lost with its connection is done again:
// to put the same value twice does no harm.
func (c *client) put(ctx context.Context, entries ...string) error {
	return c.do(ctx, func(s *session) error { return s.put(ctx, entries) })
}

// do has f done with a connection, and with another one when that has ended. If an end has broken a rule, there is no other:
// it would do so again.
func (c *client) do(ctx context.Context, f func(*session) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.s == nil {
			if err := c.connect(ctx); err != nil {
				return err
			}
		}
		err := f(c.s)
		if !errors.Is(err, iwarp.ErrClosed) {
			return err
		}
		_ = c.s.qp.Close()
		c.s = nil
		if broken := (*iwarp.TerminateError)(nil); errors.As(err, &broken) && !errors.Is(err, iwarp.ErrConnectionLost) {
			return err
		}
	}
}

// connect tries until there is a server, or the context has ended. A server that has no place says so: that is an error.
func (c *client) connect(ctx context.Context) (err error) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var no *iwarp.RejectError
		c.s, err = dial(ctx, c.addr, c.leave)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &no):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// leave ends a session as the server wishes to: when no operation is under way, by a word that is the last.
func (c *client) leave(s *session) {
	c.mu.Lock()
	if c.s == s {
		c.s = nil
		_ = s.qp.PostSend(&iwarp.SendWR{Inline: []byte{sayBye}, Unsignaled: true})
	}
	c.mu.Unlock()
	<-s.qp.Done() // the server closes
	_ = s.qp.Close()
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s != nil {
		_ = c.s.qp.Close()
		c.s = nil
	}
}

// A session is a connection with a server, and what that has said of itself.
type session struct {
	qp                      *iwarp.QP
	table                   iwarp.Remote
	slots, slotLen, credits int
	granted                 *credits.Credits
	page                    *iwarp.MR // takes what is read
	requests                *iwarp.MR
	answers                 chan string
}

const (
	welcomeLen = iwarp.RemoteLen + 3*4
	inboxLen   = 256
	maxCredits = 64 // more are not made use of
)

// dial connects. leaving is called, in a goroutine of its own, when the server wants to leave. There is a receive for
// each answer, and one for the word that the server leaves.
func dial(ctx context.Context, addr string, leaving func(*session)) (*session, error) {
	s := &session{answers: make(chan string, maxCredits+1)}
	d := iwarp.Dialer{QP: iwarp.QPConfig{Receives: iwarp.Receives{Count: maxCredits + 1, Size: inboxLen}}}
	qp, err := d.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s.qp = qp
	if err := s.welcome(qp.Negotiated().PrivateData); err != nil {
		_ = qp.Abort()
		return nil, err
	}
	s.granted = credits.New(qp, s.credits)
	go s.listen(leaving)
	return s, nil
}

// welcome reads what the server says of its table. It is a stranger: no number of its is believed that makes no sense.
func (s *session) welcome(b []byte) (err error) {
	if len(b) != welcomeLen {
		return fmt.Errorf("kv: the server says %d bytes of itself, not %d", len(b), welcomeLen)
	}
	if err := s.table.UnmarshalBinary(b[:iwarp.RemoteLen]); err != nil {
		return err
	}
	number := func(i int) int { return int(binary.BigEndian.Uint32(b[iwarp.RemoteLen+4*i:])) }
	s.slots, s.slotLen, s.credits = number(0), number(1), min(number(2), maxCredits)
	if s.slots < 1 || s.slotLen < headerLen || s.slotLen > 1<<24 || s.credits < 1 {
		return fmt.Errorf("kv: no table has %d slots of %d bytes, with %d credits", s.slots, s.slotLen, s.credits)
	}
	if s.page, err = s.qp.PD().Register(make([]byte, s.slotLen), iwarp.LocalWrite); err != nil {
		return err
	}
	s.requests, err = s.qp.PD().Register(make([]byte, s.credits*s.slotLen), 0)
	return err
}

// listen takes what the server says, until the connection has ended.
func (s *session) listen(leaving func(*session)) {
	for m, err := range s.qp.Messages(context.Background()) {
		if err != nil {
			return
		}
		switch say := string(m.Bytes()); {
		case say != "" && say[0] == sayAnswer:
			s.answers <- say[1:]
		case say != "" && say[0] == sayLeaving:
			go leaving(s)
		}
	}
}

// put sends a request for each entry. There are never more on the way than the server has given credits for: a message that
// finds no receive would end the connection. Each answer gives one credit back, and the memory of its request.
func (s *session) put(ctx context.Context, entries []string) (failed error) {
	sent, answered, want := 0, 0, len(entries)/2
	for i := range want {
		if requestLen(entries[2*i], entries[2*i+1]) > s.slotLen {
			return fmt.Errorf("kv: put %q: %w", entries[2*i], errTooLong)
		}
	}
	for answered < want {
		if sent < want && s.granted.Left() > 0 {
			if err := s.granted.Take(ctx); err != nil {
				return err
			}
			if err := s.request(sent%s.credits, entries[2*sent], entries[2*sent+1]); err != nil {
				return err
			}
			sent++
			continue
		}
		select {
		case a := <-s.answers:
			if a != "" {
				failed = fmt.Errorf("kv: put %q: %s", entries[2*answered], a)
			}
			if err := s.granted.Give(1); err != nil {
				return err
			}
			answered++
		case <-s.qp.Done():
			return s.qp.Err()
		case <-ctx.Done():
			_ = s.qp.Abort() // the answers that are on their way have nobody to go to
			return ctx.Err()
		}
	}
	return failed
}

// requestLen is the length of a put. It has room in an inbox of the server's if the entry has in a slot.
func requestLen(key, value string) int { return 3 + len(key) + len(value) }

// request sends a put from one place of the memory for requests.
func (s *session) request(place int, key, value string) error {
	b := append(binary.BigEndian.AppendUint16([]byte{sayPut}, uint16(len(key))), key+value...)
	at := place * s.slotLen
	if _, err := s.requests.WriteAt(b, int64(at)); err != nil {
		return err
	}
	return s.qp.PostSend(&iwarp.SendWR{SGL: []iwarp.SGE{s.requests.Slice(at, len(b))}, Unsignaled: true})
}
