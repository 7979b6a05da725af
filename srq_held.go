package iwarp

import "sync/atomic"

// srqHeld counts the receives of a Shared Receive Queue that the present connection of a QP holds:
// those it has taken whose completions were not polled. At its end their places go back all at once;
// completions that are polled after that count no more, and not for the QP's next connection either.
type srqHeld struct {
	v atomic.Uint64 // number of the connection, and in the lower 32 bits the receives
}

// next begins a connection.
func (h *srqHeld) next() { h.v.Store(uint64(h.connection()+1) << 32) }

func (h *srqHeld) connection() uint32 { return uint32(h.v.Load() >> 32) }

func (h *srqHeld) count() int64 { return int64(uint32(h.v.Load())) }

func (h *srqHeld) take() { h.v.Add(1) }

// giveBack takes note that a completion of a connection was polled. It reports whether that gives a
// place back.
func (h *srqHeld) giveBack(connection uint32) bool {
	for {
		v := h.v.Load()
		if uint32(v>>32) != connection || uint32(v) == 0 {
			return false
		}
		if h.v.CompareAndSwap(v, v-1) {
			return true
		}
	}
}

// giveAllBack returns how many receives the connection, which has ended, still held.
func (h *srqHeld) giveAllBack() int64 {
	for {
		v := h.v.Load()
		if h.v.CompareAndSwap(v, v>>32<<32) {
			return int64(uint32(v))
		}
	}
}
