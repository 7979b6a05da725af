package decode

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A fault is why a startup fails.
type fault struct {
	failure mpa.Failure
	frame   *Startup      // that is at fault, nil if there is none
	request *Startup      // that it answers, nil if it is one
	reason  string        // the machine's, of bytes in place of a key
	hint    string        // and what it advises
	arrived int           // bytes of the answer, where there is no more
	waited  time.Duration // from the request until an end gave up
	act     string        // by which it did
	unheard bool          // TCP has never acknowledged the request
}

// String says what is wrong.
func (f *fault) String() string {
	switch f.failure {
	case mpa.FailureInitiatorInitiator:
		return "two Initiators: the answer to the MPA Request Frame is another one"
	case mpa.FailureRevision:
		return f.revision()
	case mpa.FailurePrivateData:
		if n := f.frame.Fields.PDLength(); n > mpa.MaxPrivateData {
			return fmt.Sprintf("PD_Length is %d bytes, but at most %d are allowed", n, mpa.MaxPrivateData)
		}
		return fmt.Sprintf("S=1 announces IRD and ORD, which take %d bytes, and PD_Length is %d",
			mpa.EnhancedLen, f.frame.Fields.PDLength())
	case mpa.FailureMismatch:
		q, a := f.request.Fields, f.frame.Fields
		return fmt.Sprintf("the Reply has S=%d and revision %d, and the Request S=%d and revision %d",
			wording.Bit(a.S()), a.Rev(), wording.Bit(q.S()), q.Rev())
	case mpa.FailureClosed:
		return f.closed()
	case mpa.FailureTimeout:
		return fmt.Sprintf("the Initiator has %s the connection: %s", f.act, f.reason)
	}
	return fmt.Sprintf("no answer to the %v: %s", f.request.Frame, f.reason)
}

// patience is for how long a Responder may think about a Request that it understands. One that takes it for
// no Request at all closes the connection at once.
const patience = time.Second

// closed says how the Responder has left.
func (f *fault) closed() string {
	text := fmt.Sprintf("the Responder %s the connection ", f.act)
	if f.arrived == 0 {
		text += "without an answer"
	} else {
		text += fmt.Sprintf("after %s of its answer", wording.Bytes(f.arrived))
	}
	if f.waited > 0 {
		text += ", " + wording.Elapsed(f.waited) + " after the Initiator's frame"
	}
	return text
}

func (f *fault) revision() string {
	if f.request != nil {
		return fmt.Sprintf("the Reply has revision %d, and the Request revision %d",
			f.frame.Fields.Rev(), f.request.Fields.Rev())
	}
	return fmt.Sprintf("no dialect has revision %d with S=%d", f.frame.Fields.Rev(), wording.Bit(f.frame.Fields.S()))
}

// advice says what to do about it.
func (f *fault) advice() string {
	switch f.failure {
	case mpa.FailureClosed:
		if f.unheard {
			return "TCP never acknowledged the frame, though it was sent again, so that this does not answer it: " +
				"look for lost packets, a firewall, or a restart of the Responder's host"
		}
		if f.arrived == 0 && f.waited >= patience {
			return "the Responder has not refused the frame at once: it has taken it, and nobody there has accepted the connection"
		}
		return f.hint
	case mpa.FailureInitiatorInitiator, mpa.FailureMismatch, mpa.FailureTimeout:
		return f.hint
	case mpa.FailureRevision:
		return f.revisionAdvice()
	case mpa.FailurePrivateData:
		if f.frame.Fields.PDLength() > mpa.MaxPrivateData {
			return "the sender's private data is too long: send the rest as messages"
		}
		return "the sender must put IRD and ORD in front of its private data, or leave S unset"
	}
	return "the Responder does not speak MPA on this port, or another dialect of it: check address, port and TLS"
}

func (f *fault) revisionAdvice() string {
	switch {
	case f.request == nil:
		return "there are revisions 0, 1 and 2 with S=0, 1 with S=1, and 2 or higher with S=1"
	case f.frame.Fields.Rev() == 0:
		return "the Responder is an RNIC of the RDMA Consortium, with DDP and RDMAP version 0: the Initiator has to be a permissive RNIC"
	case f.request.Fields.Rev() == 0:
		return "the Responder is a non-permissive RNIC, with DDP and RDMAP version 1: only permissive ones take revision 0"
	}
	return "the Responder must answer with the revision of the Request, or a lower one that both have"
}
