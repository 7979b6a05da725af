//go:build interop

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// tsharkArgs make tshark print all it knows of iWARP as PDML, and after that a
// table of its complaints: some of them are nowhere else.
//
// It looks at what is said before it goes by the port, which may be another protocol's, and even
// then nvme-tcp takes FPDUs for its own, rpcordma the message in a Send without
// bytes, and complains that there is nothing in it.
var tsharkArgs = []string{
	"-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "nvme-tcp", "--disable-protocol", "rpcordma",
	"-T", "pdml", "-J", "tcp iwarp_mpa iwarp_ddp_rdmap", "-z", "expert,note",
}

// tshark reads a capture, and returns what it found and what it complains of.
func tshark(t testing.TB, pcap string) (found map[[2]string][]reported, complaints []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tshark", append([]string{"-r", pcap}, tsharkArgs...)...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		testrig.Lacks(t, err.Error())
	}
	doc, table, ok := strings.Cut(string(out), "</pdml>")
	if err != nil || !ok {
		t.Fatalf("tshark: %v after %d bytes", err, len(out))
	}
	return parsePDML(t, doc+"</pdml>"), parseExpert(table)
}

// expertRow is a line of the table: frequency, group, protocol, summary.
var expertRow = regexp.MustCompile(`(?m)^ +\d+ +(\S+) +(\S+)  (.+)$`)

// parseExpert returns the table's lines but those about TCP's coming and going, and about the tokens of SMB's logins.
func parseExpert(table string) []string {
	var complaints []string
	for _, m := range expertRow.FindAllStringSubmatch(table, -1) {
		group, protocol, summary := m[1], m[2], m[3]
		if protocol != "SPNEGO" && (protocol != "TCP" || group == "Malformed") {
			complaints = append(complaints, protocol+": "+summary)
		}
	}
	slices.Sort(complaints)
	return slices.Compact(complaints)
}

// wantAgreement checks that tshark finds in a capture what our decoder finds,
// startup frame by startup frame and FPDU by FPDU, with all that it prints of them, and
// has no complaint but those that are known. What is left out of this is in gaps_test.go.
func wantAgreement(t testing.TB, pcap string) (all []event) {
	t.Helper()
	found, complaints := tshark(t, pcap)
	blind := false
	for _, c := range iwarpIn(t, pcap) {
		all = append(all, c.events...)
		for _, dir := range []capture.Dir{fromInitiator, fromResponder} {
			ports := [2]string{c.port(dir), c.port(dir.Peer())}
			ours, theirs := only(c.events, dir), found[ports]
			if gap := blindSpot(c, dir); gap != "" {
				t.Logf("%v: only the startup frame is compared: %s", dir, gap)
				ours, theirs, blind = ours[:1], theirs[:min(1, len(theirs))], true
			}
			wantSameEvents(t, ours, theirs)
			delete(found, ports)
		}
	}
	for ports := range found {
		t.Errorf("tshark finds iWARP from port %s to %s, we do not", ports[0], ports[1])
	}
	if d := cmp.Diff(knownComplaints(all), complaints); d != "" && !blind {
		t.Errorf("tshark's complaints (-known +got):\n%s", d)
	}
	return all
}

// wantSameEvents compares the events of a direction.
func wantSameEvents(t testing.TB, ours []event, theirs []reported) {
	t.Helper()
	var a, b []string
	for i, r := range theirs {
		if i < len(ours) {
			r.terminate = blur(r.terminate, ours[i].fpdu.Terminate)
		}
		b = append(b, r.String())
	}
	for _, e := range ours {
		r := reportOf(e)
		r.terminate = blur(r.terminate, r.terminate)
		a = append(a, r.String())
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("tshark differs (-ours +tshark's):\n%s", d)
	}
}

// port returns the port of the end that a direction comes from.
func (c *connection) port(d capture.Dir) string { return fmt.Sprint(c.tcp.Halves[d].Addr.Port()) }
