package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// String returns what the startup came to, such as "Initiator, RFC 6581, revision 2, markers off received and off sent, CRC on,
// IRD 32, ORD 32, EMSS 1448, MULPDU 1440". It shows nothing of the private data.
func (n Negotiated) String() string {
	s := fmt.Sprintf("%v, %v", n.Role, n.Dialect)
	if !n.noMPA {
		s += fmt.Sprintf(", revision %d, markers %v received and %v sent, CRC %v",
			n.Revision, markersOf(n.MarkersReceive), markersOf(n.MarkersSend), markersOf(n.CRC))
	}
	s += fmt.Sprintf(", IRD %v, ORD %v", n.IRD, n.ORD)
	if n.PeerToPeer {
		s += fmt.Sprintf(", peer-to-peer with RTR %v", n.RTR)
	}
	if n.EMSS > 0 { // else there is no TCP
		s += fmt.Sprintf(", EMSS %d", n.EMSS)
	}
	s += fmt.Sprintf(", MULPDU %d", n.MULPDU)
	if n.FellBack {
		s += fmt.Sprintf(", after a fallback: %v", n.FallbackReason)
	}
	return s
}

// String returns the attributes, such as "RTS, IRD 32, ORD 32, version 1, markers off received and off sent, permissive, MULPDU
// 1440, outstanding: 1 send request, 5 receives".
func (a QPAttr) String() string {
	s := fmt.Sprintf("%v, IRD %d, ORD %d, version %v, markers %v received and %v sent, %v, MULPDU %d, outstanding: %s, %s",
		a.State, a.IRD, a.ORD, a.Stream.Version, a.Stream.MarkersReceive, a.Stream.MarkersSend, a.Kind, a.MULPDU,
		wording.Count(a.Sends, "send request"), wording.Count(a.Receives, "receive"))
	if a.Terminate != nil {
		s += ", " + a.Terminate.text()
	}
	return s
}
