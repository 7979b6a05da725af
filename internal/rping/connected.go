package rping

import (
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// connected prints what the startup came to.
func (c *Config) connected(qp *iwarp.QP) {
	n := qp.Negotiated()
	if n.FellBack {
		c.Err.Printf("responder at %v did not take a revision 2 request (%v); connected with revision 1", qp.RemoteAddr(), n.FallbackReason)
	}
	c.debugf("%s", describe(n))
}

// describe returns one line of what was negotiated.
func describe(n iwarp.Negotiated) string {
	return fmt.Sprintf("negotiated: revision=%d dialect=%q crc=%s markers=%s/%s ird=%s ord=%s rtr=%s private-data=%q",
		n.Revision, n.Dialect, word(n.CRC, "on", "off"),
		word(n.MarkersReceive, "received", "none"), word(n.MarkersSend, "sent", "none"),
		depth(n.IRD), depth(n.ORD), word(n.RTR != 0, n.RTR.String(), "none"), n.PrivateData)
}

func word(yes bool, ifYes, ifNo string) string {
	if yes {
		return ifYes
	}
	return ifNo
}

func depth(n uint16) string {
	if n == mpa.NoNegotiation {
		return "not-negotiated"
	}
	return fmt.Sprint(n)
}
