package oooexperiment

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/usertcp"
)

// arriving is the receivers' end of the path. It notes when which bytes have come.
type arriving struct {
	usertcp.Link
	held *total

	mu     sync.Mutex
	halves map[uint16]*half // by the sender's port
}

func newArriving(l usertcp.Link, held *total) *arriving {
	return &arriving{Link: l, held: held, halves: make(map[uint16]*half)}
}

// Receive is Link's.
func (a *arriving) Receive(deliver func(packet []byte)) error {
	return a.Link.Receive(func(packet []byte) {
		a.note(packet)
		deliver(packet)
	})
}

// half returns what has arrived from a port.
func (a *arriving) half(port uint16) *half {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.halves[port]
	if h == nil {
		h = &half{held: a.held}
		a.halves[port] = h
	}
	return h
}

// note notes a packet of a stack's, which is correct IPv4 and TCP without IP options.
func (a *arriving) note(packet []byte) {
	const ip, least = 20, 40
	if len(packet) < least || packet[0] != 0x45 {
		return
	}
	tcp := packet[ip:]
	seq := binary.BigEndian.Uint32(tcp[4:])
	h := a.half(binary.BigEndian.Uint16(tcp))
	if syn := tcp[13]&2 != 0; syn {
		h.setFirst(seq + 1)
	} else if data := tcp[min(int(tcp[12]>>4)*4, len(tcp)):]; len(data) > 0 {
		h.note(seq, len(data), time.Now())
	}
}

// A half is what has arrived of one half connection.
type half struct {
	held *total // of all

	mu     sync.Mutex
	first  uint32    // sequence number of byte 0
	edge   uint64    // all before it has come
	pieces []arrived // in order, disjoint
	beyond int       // bytes that have come beyond the edge
	most   int
}

// arrived are bytes that came at the same time.
type arrived struct {
	from, to uint64
	at       time.Time
	early    bool // not all in front of them had come
}

func (h *half) setFirst(first uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = first
}

// note notes bytes. Those that came before stay as they were.
func (h *half) note(seq uint32, n int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ahead := int32(seq - h.first - uint32(h.edge))
	if ahead < 0 {
		cut := min(int(-int64(ahead)), n)
		n -= cut
		ahead = 0
	}
	if n == 0 {
		return
	}
	from := h.edge + uint64(ahead)
	was := h.beyond
	h.insert(arrived{from, from + uint64(n), now, ahead > 0})
	h.advance()
	h.most = max(h.most, h.beyond)
	h.held.add(h.beyond - was)
}

// mostBeyond is how many bytes there were beyond the edge at most.
func (h *half) mostBeyond() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

// insert puts in what no other piece has.
func (h *half) insert(p arrived) {
	i := len(h.pieces)
	for i > 0 && h.pieces[i-1].to > p.from {
		i--
	}
	for ; p.from < p.to; i++ {
		end := p.to
		if i < len(h.pieces) {
			end = min(end, h.pieces[i].from)
		}
		if p.from < end {
			h.pieces = slices.Insert(h.pieces, i, arrived{p.from, end, p.at, p.early})
			h.beyond += int(end - p.from)
			i++
		}
		if i >= len(h.pieces) {
			return
		}
		p.from = max(p.from, h.pieces[i].to)
	}
}

// advance moves the edge over what has come.
func (h *half) advance() {
	i, _ := slices.BinarySearchFunc(h.pieces, h.edge, func(p arrived, edge uint64) int {
		if p.from < edge {
			return -1
		}
		return 1
	})
	for ; i < len(h.pieces) && h.pieces[i].from <= h.edge; i++ {
		if n := h.pieces[i].to - h.edge; h.pieces[i].to > h.edge {
			h.edge += n
			h.beyond -= int(n)
		}
	}
}

// arrival returns when the last of some bytes came, and whether something in front of them was missing then.
func (h *half) arrival(from, to uint64) (last time.Time, early bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := slices.BinarySearchFunc(h.pieces, from, func(p arrived, from uint64) int {
		if p.to <= from {
			return -1
		}
		return 1
	})
	for ; i < len(h.pieces) && h.pieces[i].from < to; i++ {
		if p := &h.pieces[i]; p.at.After(last) {
			last, early = p.at, p.early
		}
	}
	return last, early
}

// taken drops what lies before an offset, and returns how long ago that of it came that was early.
func (h *half) taken(before uint64, now time.Time) (early []time.Duration) {
	h.mu.Lock()
	for _, p := range h.pieces {
		if p.to > min(before, h.edge) {
			break
		}
		if p.early {
			early = append(early, now.Sub(p.at))
		}
	}
	h.mu.Unlock()
	h.forget(before)
	return early
}

// forget drops what lies before an offset.
func (h *half) forget(before uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for n < len(h.pieces) && h.pieces[n].to <= min(before, h.edge) {
		n++
	}
	h.pieces = slices.Delete(h.pieces, 0, n)
}
