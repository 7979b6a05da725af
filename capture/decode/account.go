package decode

import (
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
)

// account takes note that consumers know of the bytes up to an offset, from another one
// on: those in front of them that they were not told of are not decoded. The packet is
// that at which this is known.
func (h *half) account(from, to uint64, p capture.Stamp) {
	if h.c.pub == nil {
		return
	}
	if from > h.told {
		h.undecoded(h.told, from, p)
	}
	h.told = max(h.told, to)
}

// recountValid takes note of an FPDU that was told of, and counted, as one in error, and is valid
// in another mode. Its bytes may be more than were told of.
func (h *half) recountValid(f *FPDU) {
	if f.End > h.told {
		h.c.d.to.Missing(h.c.pub, &Missing{Dir: h.dir, Offset: max(h.told, f.Offset), End: f.End,
			Captured: true, Packet: f.Last})
		h.told = f.End
	}
	h.decideUpTo(f.End, f.Last.Number)
}

// undecoded tells of bytes that are not decoded. Those that are missing were told of
// before.
func (h *half) undecoded(from, to uint64, p capture.Stamp) {
	for from < to {
		next, end := to, to
		for _, g := range h.gaps {
			if g.Offset+g.Length > from {
				next, end = max(from, min(g.Offset, to)), min(g.Offset+g.Length, to)
				break
			}
		}
		if next > from {
			h.publicHalf().Undecoded += next - from
			h.c.d.to.Missing(h.c.pub, &Missing{Dir: h.dir, Offset: from, End: next, Captured: true, Packet: p})
			h.c.report(findUndecoded, h.dir, from, p,
				wording.Bytes(next-from)+" are not decoded: "+h.c.unread().String(), "")
		}
		from = end
	}
	h.dropGaps(to)
}

// unread is why bytes are not decoded.
type unread uint8

const (
	unreadNothing  unread = iota // no startup has come to an end
	unreadFPDUs                  // FPDUs are due
	unreadRejected               // MPA is over
)

// unread returns why bytes are not decoded now.
func (c *conn) unread() unread {
	switch {
	case c.pub.Rejected:
		return unreadRejected
	case c.pub.Agreed, c.pub.Midstream:
		return unreadFPDUs
	}
	return unreadNothing
}

func (u unread) String() string {
	switch u {
	case unreadRejected:
		return "the connection is the consumers' after the rejection"
	case unreadFPDUs:
		return "no FPDU was found in them"
	}
	return "neither a whole startup frame nor an FPDU was found in them"
}
