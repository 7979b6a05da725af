package mpa

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// noReplyHint guesses why an Initiator's deadline has passed.
func (i *Initiator) noReplyHint() string {
	switch {
	case i.in.maybeMessage():
		return maybeTwoInitiatorsHint
	case len(i.in.buf) > 0:
		return "the responder stopped in the middle of its " + i.in.await.String()
	case i.in.await == awaitMessage:
		return "the responder has not decided yet, or takes no private data messages: leave Messages off"
	case i.in.await == awaitStartKey && i.offer.Messages:
		return "the responder answered our private data message, and neither waits for a Start Key nor closes the connection, as it would to reject it"
	case i.in.await == awaitStartKey:
		return "the responder has not decided yet, or waits for the 4 bytes more that a Request Frame has: try one of revision 1"
	}
	return "the responder has not decided yet, or does not speak MPA, or not this dialect of it, on this port"
}

// refusedHint guesses why a responder closes the connection on what an Initiator
// sent.
func (i *Initiator) refusedHint() string {
	switch {
	case i.in.maybeMessage():
		return maybeTwoInitiatorsHint
	case i.in.part == partData:
		return "the responder gave up in the middle of its " + i.in.await.String() +
			", or announces more Private Data than it sends"
	case i.in.begun():
		return "the responder gave up in the middle of its " + i.in.await.String()
	case i.in.await == awaitMessage:
		return "the responder refused the connection, or takes no private data messages: leave Messages off"
	case i.in.await == awaitStartKey && i.offer.Messages:
		return "the responder sent something else after its private data message, or more data than the length of that says"
	case i.dialect == DialectRevision0:
		return "the responder refused revision 0, as those do that have no DDP and RDMAP version 0, or is not an MPA responder"
	case i.dialect == DialectStartKey:
		return "the responder does not know the Start Key, or is not an MPA responder: try a Request Frame of revision 1"
	}
	return "the responder refused the Request, or is not an MPA responder, or has TLS in front of it"
}

// begun reports whether what has arrived is a key, or a part of one, of the frame that is
// awaited.
func (in *intake) begun() bool {
	if in.part == partKey {
		return len(in.buf) > 0 && strings.HasPrefix(in.await.key(), string(in.buf))
	}
	return in.part == partHeader
}

// noRequestHint guesses why a Responder's deadline has passed. [Q03]
func (r *Responder) noRequestHint() string {
	switch {
	case r.request == nil && r.in.maybeMessage():
		return messageHint
	case len(r.in.buf) > 0:
		return "the peer stopped in the middle of its " + r.in.await.String()
	case r.request == nil:
		return "the peer may be a Responder too (Responder/Responder startup): one end must be started as Initiator"
	case r.in.await == awaitRtr:
		return strayHint
	}
	return "the peer did not go on after our private data message: it may have rejected the connection"
}

// goneHint guesses why an initiator closes the connection before its Request is
// whole.
func (r *Responder) goneHint() string {
	switch {
	case len(r.in.buf) == 0:
		return "the initiator gave up, or looked only whether the port is open"
	case r.in.maybeMessage():
		return messageHint
	case r.in.part == partData:
		return "the initiator gave up, or announces more Private Data than it sends"
	}
	return "the initiator gave up in the middle of its first frame"
}

const (
	strayHint   = "the peer set S in its Request without knowing the Rtr frame of the 2007 proposal: switch that dialect off"
	messageHint = "what arrived may be a private data message, which goes before Start Keys: take such, or have the peer leave it out"
)

// maybeMessage reports whether what arrived in place of a key may be a private data
// message, and nobody looks for one: it is as long as its first two bytes say, or fills
// the room of a key and would be longer.
func (in *intake) maybeMessage() bool {
	if in.messages || in.part != partKey || len(in.buf) < messageLenLen {
		return false
	}
	n := messageLenLen + int(binary.BigEndian.Uint16(in.buf))
	return n == len(in.buf) || len(in.buf) == KeyLen && n > KeyLen && n <= messageLenLen+MaxPrivateData
}

// goneAfterHint says why an initiator may have closed the connection on our Reply.
func (r *Responder) goneAfterHint() string {
	switch rev := r.neg.PeerRevision; {
	case r.neg.Dialect != DialectRevision0 || rev == revision0:
	case rev == revision1:
		return "its Request was of revision 1 and our Reply of revision 0: a non-permissive IETF RNIC does not use DDP and RDMAP version 0"
	default:
		return fmt.Sprintf("its Request was of revision %d and our Reply of revision 0: a permissive IETF RNIC may try again with revision 1", rev)
	}
	return "the initiator gave up before our Reply arrived, or did not want the connection after it"
}

// goneAfterHint says why a responder may close the connection on what we sent last.
func (i *Initiator) goneAfterHint() string {
	if i.neg.Dialect == DialectRtr {
		return "the responder gave up before our Rtr frame arrived, or did not take it"
	}
	return "the responder's consumer did not want the connection, or failed"
}

// revisionError names the revisions of both sides, and what to do. [N04]
func (in *intake) revisionError(f StartupFrame) *Error {
	rev := f.Rev()
	e := &Error{Code: CodeStartupFrame, Offset: startupRev, Field: "Rev"}
	switch {
	case in.await == awaitReply:
		e.Reason = fmt.Sprintf("Reply of revision %d to our Request of revision %d", rev, in.asked)
		e.Hint = replyHint(rev, in.asked)
	case rev == revision0 && !in.kind.Version(revision0):
		e.Reason = "Request of revision 0, and this RNIC is a non-permissive one of revisions 1 and 2"
		e.Hint = "revision 0 is the RDMA Consortium's MPA, with DDP and RDMAP version 0: make this RNIC permissive, or have the peer use revision 1 or 2"
	default:
		e.Reason = fmt.Sprintf("revision %d is not served with S=%d", rev, wording.Bit(f.S()))
		e.Hint = in.servedHint()
	}
	return e
}

func replyHint(rev, asked uint8) string {
	switch {
	case rev == revision0:
		return "the responder is an RDMAC RNIC, with DDP and RDMAP version 0: make this RNIC permissive"
	case asked == revision0:
		return "the responder is a non-permissive IETF RNIC, with DDP and RDMAP version 1: only permissive RNICs take revision 0"
	}
	return "the responder must answer with a revision of 1 or 2"
}

// servedHint names the dialects of Requests that are served.
func (in *intake) servedHint() string {
	var served []string
	for _, d := range []Dialect{DialectRevision0, DialectRFC5044, DialectRtr, DialectRFC6581} {
		if in.served(d) {
			served = append(served, servedFrames[d])
		}
	}
	if len(served) == 0 {
		return "no Request Frames are: the peer must use Start Keys"
	}
	return "served are " + strings.Join(served, ", ") + ": have the peer use that, or switch its dialect on"
}

var servedFrames = [...]string{
	DialectRevision0: "revision 0",
	DialectRFC5044:   "revision 1 (and 2 with S=0)",
	DialectRtr:       "revision 1 with S=1",
	DialectRFC6581:   "revision 2 or higher with S=1",
}
