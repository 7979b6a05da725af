package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A fault is why a startup fails.
type fault struct {
	failure mpa.Failure
	frame   *Startup // that is at fault, nil if there is none
	request *Startup // that it answers, nil if it is one
	key     string   // what MPA says of octets in place of a key
	arrived int      // octets of the answer, where there is no more
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
			return fmt.Sprintf("PD_Length is %d octets, but at most %d are allowed", n, mpa.MaxPrivateData)
		}
		return fmt.Sprintf("S=1 announces IRD and ORD, which take %d octets, and PD_Length is %d", mpa.EnhancedLen, f.frame.Fields.PDLength())
	case mpa.FailureMismatch:
		q, a := f.request.Fields, f.frame.Fields
		return fmt.Sprintf("the Reply has S=%d and revision %d, and the Request S=%d and revision %d", bit(a.S()), a.Rev(), bit(q.S()), q.Rev())
	case mpa.FailureClosed:
		if f.arrived == 0 {
			return "the Responder closed the connection without an answer"
		}
		return fmt.Sprintf("the Responder closed the connection after %s of its answer", wording.Octets(f.arrived))
	}
	return fmt.Sprintf("no answer to the %v: %s", f.request.Frame, f.key)
}

func (f *fault) revision() string {
	switch {
	case f.frame.Frame == FrameStartKey:
		return fmt.Sprintf("Start Key of revision %d, but there is only revision 0", mpa.StartKey(f.frame.Octets).Rev())
	case f.request != nil:
		return fmt.Sprintf("the Reply has revision %d, and the Request revision %d", f.frame.Fields.Rev(), f.request.Fields.Rev())
	}
	return fmt.Sprintf("no dialect has revision %d with S=%d", f.frame.Fields.Rev(), bit(f.frame.Fields.S()))
}

// advice says what to do about it.
func (f *fault) advice() string {
	switch f.failure {
	case mpa.FailureInitiatorInitiator:
		return "both ends were started as Initiator: start one of them as Responder"
	case mpa.FailureRevision:
		return f.revisionAdvice()
	case mpa.FailurePrivateData:
		if f.frame.Fields.PDLength() > mpa.MaxPrivateData {
			return "the sender's private data is too long: send the rest as messages"
		}
		return "the sender must put IRD and ORD in front of its private data, or leave S unset"
	case mpa.FailureMismatch:
		return f.mismatchAdvice()
	case mpa.FailureClosed:
		return f.closedAdvice()
	}
	return "the Responder does not speak MPA on this port, or another dialect of it: check address, port and TLS"
}

func (f *fault) revisionAdvice() string {
	switch {
	case f.frame.Frame == FrameStartKey:
		return "the receiver closes the connection: revisions 1 and 2 begin with a Request Frame"
	case f.request == nil:
		return "there are revisions 0, 1 and 2 with S=0, 1 with S=1, and 2 or higher with S=1"
	case f.frame.Fields.Rev() == 0:
		return "the Responder is an RNIC of the RDMA Consortium, with DDP and RDMAP version 0: the Initiator has to be a permissive RNIC"
	case f.request.Fields.Rev() == 0:
		return "the Responder is a non-permissive RNIC, with DDP and RDMAP version 1: only permissive ones take revision 0"
	}
	return "the Responder must answer with the revision of the Request, or a lower one that both have"
}

func (f *fault) mismatchAdvice() string {
	switch {
	case !f.request.Fields.S():
		return "the Responder must answer without enhanced data: have the Initiator send a revision 2 Request with S=1"
	case f.frame.Fields.Rev() == 0:
		return "the Responder is an RNIC of the RDMA Consortium: it answers a revision 1 Request on a new connection with revision 0 too"
	}
	return "the Responder does not know RFC 6581: have the Initiator try again with revision 1 on a new connection"
}

func (f *fault) closedAdvice() string {
	switch {
	case f.request.Frame == FrameStartKey:
		return "the Responder does not know the Start Key, or does not speak MPA: try a Request Frame of revision 1"
	case f.request.Fields.S() && f.arrived == 0:
		return "a Responder that does not know RFC 6581 closes the connection this way: have the Initiator try again with revision 1"
	case f.request.Fields.Rev() == 0:
		return "the Responder refused revision 0, as those do that have no DDP and RDMAP version 0, or does not speak MPA"
	}
	return "the Responder refused the Request, or does not speak MPA"
}
