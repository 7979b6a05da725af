package carrier

import "net"

// A SegmentedConn is a connection of an MPA-aware TCP (RFC 5044, section 3 and appendix A): one
// that shows octets as soon as their segment has come, and cuts segments where it is told to.
//
// Its errors are those of net and os: os.ErrDeadlineExceeded, net.ErrClosed, a wrapped
// syscall.ECONNRESET; io.EOF means the peer's FIN and nothing else.
type SegmentedConn interface {
	net.Conn
	// CloseWrite sends a FIN after all that was written. Receiving goes on.
	CloseWrite() error
	// Reset ends the connection at once, with a RST.
	Reset() error
	// ShowAhead has f called with octets that have arrived ahead of others. at is their
	// place, counted from the octet that Read would have returned next when ShowAhead was
	// called, which is 0. f keeps nothing. It is never called twice at once, and not after
	// ShowAhead(nil) has returned. What was shown comes by Read again, at times even while it
	// is shown. The conn calls f with no lock held that any of its other methods
	// takes, so that f may take locks under which they are called. ShowAhead itself waits for a
	// call of the f before it to return: it is called without those locks, and not by f.
	ShowAhead(f func(at uint64, octets []byte))
	// EMSS returns the octets of payload of a full segment, as of now. It does not wait.
	EMSS() int
	// WriteFPDUs sends each slice as a unit: TCP begins a segment with the first, and never
	// cuts one that is at most EMSS octets long. Small ones may share a segment, which then
	// holds whole ones. It waits until at least one is taken, and returns how many octets
	// were, which are those of whole slices. It keeps none of them.
	WriteFPDUs(fpdus [][]byte) (octets int, err error)
}
