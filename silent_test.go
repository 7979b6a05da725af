package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

// A silence is what befalls a path from one moment on, while nothing else does: a packet that is lost, or all from one on.
type silence struct {
	from  int  // whose packets: 0 is the Initiator, 1 the Responder
	at    int  // which of them, from 1 on; 0: nothing befalls it
	alone bool // none after it is lost
	order int  // who closes: the end with this number first, and 2: both at once
	gone  bool // nor does anything come to that end any more: its host is gone
}

func (s silence) String() string {
	what := "all from packet %d of end %d on are lost"
	switch {
	case s.alone:
		what = "packet %d of end %d is lost"
	case s.gone:
		what = "from packet %d on the host of end %d is gone"
	}
	return fmt.Sprintf(what, s.at, s.from) + ", " + [...]string{"the Initiator closes first", "the Responder closes first", "both close at once"}[s.order]
}

// A hush counts the packets of both ends, and has a silence befall them.
type hush struct {
	mu    sync.Mutex
	is    silence
	armed bool
	sent  [2]int
}

func (h *hush) arm(s silence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.is, h.armed = s, true
}

// loses reports whether the next packet of an end is lost.
func (h *hush) loses(from int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.armed {
		return false
	}
	h.sent[from]++
	n := h.sent[h.is.from]
	return h.is.at > 0 && n >= h.is.at && (from == h.is.from && !h.is.alone || from == h.is.from && n == h.is.at || h.is.gone)
}

// count returns how many packets an end has sent since the silence was told.
func (h *hush) count(from int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent[from]
}

// Each end of a scene posts so many Sends of so many octets before it closes: some take more than one packet.
const silentSends, silentSize = 3, 1500

// A parting is what is left of two ends that have closed, each of whose programs has ended with its Close.
type parting struct {
	ends [2]*end
	errs [2]error
	took [2]time.Duration // by Close
	got  [2]int           // Sends that were received
	sent [2]int           // Sends that were completed with success
}

// partFrom posts what there is to send, and closes: who closes second does so when it has heard of the first, or after some time. leave
// ends the program of one end.
func partFrom(s silence, ends [2]*end, patience time.Duration, leave func(i int)) *parting {
	p := &parting{ends: ends}
	for _, e := range ends {
		sink := e.mr(silentSends*silentSize, iwarp.LocalWrite)
		for i := range silentSends {
			e.postRecv(uint64(i), sink.Slice(i*silentSize, silentSize))
		}
		e.postRecv(silentSends) // which ends with the peer's half
	}
	for _, e := range ends {
		src := e.filled(silentSends*silentSize, 1, 0)
		for i := range silentSends {
			e.post(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(i*silentSize, silentSize)}})
		}
	}
	var closes sync.WaitGroup
	for i, e := range ends {
		closes.Go(func() {
			if s.order == 1-i {
				p.learns(i, patience)
			}
			began := time.Now()
			p.errs[i] = e.Close()
			p.took[i] = time.Since(began)
			leave(i)
		})
	}
	closes.Wait()
	for i := range ends {
		p.drain(i)
	}
	return p
}

// learns counts what completes at an end until its receives end, at the latest with its connection, or its patience does.
func (p *parting) learns(i int, patience time.Duration) {
	e := p.ends[i]
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	for {
		if wc, err := e.RecvCQ().Next(ctx); err != nil || p.count(i, &wc) {
			return
		}
	}
}

// drain counts the rest, which is there when the end has closed: no patience is asked for.
func (p *parting) drain(i int) {
	var wcs [1]iwarp.WC
	for p.ends[i].RecvCQ().Poll(wcs[:]) > 0 {
		p.count(i, &wcs[0])
	}
}

// count counts a completion, and reports whether it ends the receives.
func (p *parting) count(i int, wc *iwarp.WC) (ended bool) {
	switch {
	case wc.Status != iwarp.StatusSuccess:
		return wc.Op == iwarp.OpRecv
	case wc.Op == iwarp.OpRecv:
		p.got[i]++
	default:
		p.sent[i]++
	}
	return false
}

// gaveUp reports whether an end that heard everything, and was not heard, has given up: what its TCP had taken for it may be lost, and it says so
// itself. Nobody else can know.
func (p *parting) gaveUp(s silence, i int) bool {
	return (s.from == i || s.gone) && s.at > 0 && !s.alone && p.errs[i] != nil
}

// falsehood returns what an end has said that is not so: that all is well where something that was completed has not arrived. Of a packet
// that is lost alone nobody has to say anything.
func (p *parting) falsehood(s silence) error {
	for i, err := range p.errs {
		switch {
		case err == nil && p.gaveUp(s, 1-i):
		case err == nil && p.got[1-i] < p.sent[i]:
			return fmt.Errorf("Close of end %d returned nil, and of %d Sends %d have arrived", i, p.sent[i], p.got[1-i])
		case s.alone && err == nil && p.sent[i] < silentSends:
			return fmt.Errorf("end %d: %d Sends have completed", i, p.sent[i])
		case err != nil && s.alone:
			return fmt.Errorf("end %d: %w (of its %d Sends %d have arrived, and it has %d)", i, err, p.sent[i], p.got[1-i], p.got[i])
		case err != nil && !errors.Is(err, iwarp.ErrConnectionLost):
			return fmt.Errorf("end %d: %w", i, err)
		}
	}
	return nil
}

// silences returns all that may befall ends which send so many packets.
func silences(packets [2]int, order int) (all []silence) {
	for from, n := range packets {
		for at := range n {
			is := silence{from: from, at: at + 1, order: order}
			alone := is
			alone.alone = true
			all = append(all, alone, is)
		}
	}
	return all
}

// departures returns when a host may go, of ends which send so many packets.
func departures(packets [2]int, order int) (all []silence) {
	for _, s := range silences(packets, order) {
		if !s.alone {
			s.gone = true
			all = append(all, s)
		}
	}
	return all
}
