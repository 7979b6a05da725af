package endings

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// Each end of a scene posts so many Sends of so many bytes before it closes: some take more than one packet.
const silentSends, silentSize = 3, 1500

// A parting is what is left of two ends that have closed, each of whose programs has ended with its Close.
type parting struct {
	ends [2]*rig.End
	errs [2]error
	took [2]time.Duration // by Close
	got  [2]int           // Sends that were received
	sent [2]int           // Sends that were completed with success
}

// partFrom posts what there is to send, and closes: who closes second does so when it has heard of the first, or after
// some time. leave ends the program of one end.
func partFrom(s rig.Silence, ends [2]*rig.End, patience time.Duration, leave func(i int)) *parting {
	p := &parting{ends: ends}
	for _, e := range ends {
		sink := e.MR(silentSends*silentSize, iwarp.LocalWrite)
		for i := range silentSends {
			e.MustPostRecv(uint64(i), sink.Slice(i*silentSize, silentSize))
		}
		e.MustPostRecv(silentSends) // which ends with the peer's half
	}
	for _, e := range ends {
		src := e.Filled(silentSends*silentSize, 1, 0)
		for i := range silentSends {
			e.MustPost(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend,
				SGL: []iwarp.SGE{src.Slice(i*silentSize, silentSize)}})
		}
	}
	var closes sync.WaitGroup
	for i, e := range ends {
		closes.Go(func() {
			if s.Order == 1-i {
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

// learns counts what completes at an end until its receives end, at the latest with its connection, or its patience
// does.
func (p *parting) learns(i int, patience time.Duration) {
	e := p.ends[i]
	ctx, cancel := context.WithTimeout(e.T.Context(), patience)
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

// gaveUp reports whether an end that heard everything, and was not heard, has given up: what its TCP had taken for it
// may be lost, and it says so itself. Nobody else can know.
func (p *parting) gaveUp(s rig.Silence, i int) bool {
	return (s.From == i || s.Gone) && s.At > 0 && !s.Alone && p.errs[i] != nil
}

// falsehood returns what an end has said that is not so: that all is well where something that was completed has not
// arrived. Of a packet that is lost alone nobody has to say anything.
func (p *parting) falsehood(s rig.Silence) error {
	for i, err := range p.errs {
		switch {
		case err == nil && p.gaveUp(s, 1-i):
		case err == nil && p.got[1-i] < p.sent[i]:
			return fmt.Errorf("Close of end %d returned nil, and of %d Sends %d have arrived", i, p.sent[i], p.got[1-i])
		case s.Alone && err == nil && p.sent[i] < silentSends:
			return fmt.Errorf("end %d: %d Sends have completed", i, p.sent[i])
		case err != nil && s.Alone:
			return fmt.Errorf("end %d: %w (of its %d Sends %d have arrived, and it has %d)",
				i, err, p.sent[i], p.got[1-i], p.got[i])
		case err != nil && !errors.Is(err, iwarp.ErrConnectionLost):
			return fmt.Errorf("end %d: %w", i, err)
		}
	}
	return nil
}

// silences returns all that may befall ends which send so many packets.
func silences(packets [2]int, order int) (all []rig.Silence) {
	for from, n := range packets {
		for at := range n {
			is := rig.Silence{From: from, At: at + 1, Order: order}
			alone := is
			alone.Alone = true
			all = append(all, alone, is)
		}
	}
	return all
}

// departures returns when a host may go, of ends which send so many packets.
func departures(packets [2]int, order int) (all []rig.Silence) {
	for _, s := range silences(packets, order) {
		if !s.Alone {
			s.Gone = true
			all = append(all, s)
		}
	}
	return all
}
