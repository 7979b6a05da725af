package main

import (
	"fmt"
	"net"
	"time"

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
	times          bool // print those of a client's pings
	sctp           bool

	remote           net.Addr
	pings            int
	least, most, all time.Duration
}

func (p *rpingPrinter) event(e rping.Event) {
	switch e := e.(type) {
	case rping.PrivateData:
		if p.debug || p.verbose {
			fmt.Fprintf(p.std.out, "private data received: %q\n", []byte(e))
		}
	case rping.Connected:
		p.remote = e.Remote
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
		if p.times && !e.Server {
			p.timed(e)
		}
	case rping.Disconnected:
		fmt.Fprintf(p.std.err, "%s DISCONNECT EVENT...\n", wording.If(e.Server, "server", "client"))
	case rping.ClientFailed:
		fmt.Fprintf(p.std.err, "%v: %s\n", e.Remote, oneLine(e.Err))
	}
}

func (p *rpingPrinter) debugf(format string, args ...any) {
	if p.debug {
		fmt.Fprintf(p.std.err, format+"\n", args...)
	}
}

// timed prints the time of a ping.
func (p *rpingPrinter) timed(e rping.Pinged) {
	fmt.Fprintf(p.std.out, "%s from %v: ping=%d time=%s\n", wording.Count(e.Size, "byte"), p.remote, p.pings, pingTime(e.Time))
	if p.pings == 0 || e.Time < p.least {
		p.least = e.Time
	}
	p.most = max(p.most, e.Time)
	p.all += e.Time
	p.pings++
}

// summary prints the times of all pings that were printed.
func (p *rpingPrinter) summary() {
	if p.pings == 0 {
		return
	}
	fmt.Fprintf(p.std.out, "%s to %v: min %s, avg %s, max %s\n", wording.Count(p.pings, "ping"), p.remote,
		pingTime(p.least), pingTime(p.all/time.Duration(p.pings)), pingTime(p.most))
}

func pingTime(d time.Duration) string { return latencyText(float64(d) / float64(time.Microsecond)) }

// connected prints what the startup came to.
func (p *rpingPrinter) connected(e rping.Connected) {
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
func (p *rpingPrinter) connectedSCTP(e rping.Connected) {
	n := e.Negotiated
	if n.FellBack {
		fmt.Fprintf(p.std.err, "responder at %v did not take an Enhanced Initiate (%s); connected with an unenhanced one\n",
			e.Remote, oneLine(n.FallbackReason))
	}
	p.debugf("negotiated: initiate=%s ird=%v ord=%v rtr=%s private-data=%q",
		wording.If(n.Dialect == mpa.DialectRFC6581, "enhanced", "unenhanced"), n.IRD, n.ORD,
		wording.If(n.RTR != 0, n.RTR.String(), "none"), n.PrivateData)
}
