package main

import (
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/terminal"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A rpingPrinter prints what a client or server tells, in rdma-core's words where those
// have some. It is no report: a server's has no end.
type rpingPrinter struct {
	std            streams
	verbose, debug bool
	sctp           bool
}

func (p rpingPrinter) event(e rping.Event) {
	switch e := e.(type) {
	case rping.PrivateData:
		if p.debug || p.verbose {
			fmt.Fprintf(p.std.out, "private data received: %q\n", []byte(e))
		}
	case rping.Connected:
		p.connected(e)
	case rping.Sent:
		p.debugf("RDMA addr %x rkey %x len %d", e.TO, e.STag, e.Length)
	case rping.Received:
		p.debugf("Received rkey %x addr %x len %d from peer", e.STag, e.TO, e.Length)
	case rping.Completed:
		p.debugf("%v completion", iwarp.Op(e))
	case rping.Pinged:
		if p.verbose {
			fmt.Fprintf(p.std.out, "%sping data: %s\n",
				wording.If(e.Server, "server ", ""), terminal.Escape(string(e.Text)))
		}
	case rping.Disconnected:
		fmt.Fprintf(p.std.err, "%s DISCONNECT EVENT...\n", wording.If(e.Server, "server", "client"))
	case rping.ClientFailed:
		fmt.Fprintf(p.std.err, "%v: %s\n", e.Remote, oneLine(e.Err))
	}
}

func (p rpingPrinter) debugf(format string, args ...any) {
	if p.debug {
		fmt.Fprintf(p.std.err, format+"\n", args...)
	}
}

// connected prints what the startup came to.
func (p rpingPrinter) connected(e rping.Connected) {
	n := e.Negotiated
	if p.sctp {
		p.connectedSCTP(e)
		return
	}
	if n.FellBack {
		fmt.Fprintf(p.std.err, "responder at %v did not take a revision 2 request (%s); connected with revision 1\n",
			e.Remote, oneLine(n.FallbackReason))
	}
	p.debugf("negotiated: revision=%d dialect=%q crc=%s markers=%s/%s ird=%v ord=%v rtr=%s private-data=%q",
		n.Revision, n.Dialect, wording.OnOff(n.CRC),
		wording.If(n.MarkersReceive, "received", "none"), wording.If(n.MarkersSend, "sent", "none"),
		n.IRD, n.ORD, wording.If(n.RTR != 0, n.RTR.String(), "none"), n.PrivateData)
}

// connectedSCTP is connected without what is MPA's.
func (p rpingPrinter) connectedSCTP(e rping.Connected) {
	n := e.Negotiated
	if n.FellBack {
		fmt.Fprintf(p.std.err, "responder at %v did not take an Enhanced Initiate (%s); connected with an unenhanced one\n",
			e.Remote, oneLine(n.FallbackReason))
	}
	p.debugf("negotiated: initiate=%s ird=%v ord=%v rtr=%s private-data=%q",
		wording.If(n.Dialect == mpa.DialectRFC6581, "enhanced", "unenhanced"), n.IRD, n.ORD,
		wording.If(n.RTR != 0, n.RTR.String(), "none"), n.PrivateData)
}
