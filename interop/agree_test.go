//go:build interop

package interop_test

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tsharkArgs make tshark print all it knows of iWARP as PDML, and behind that a
// table of its complaints: some of them are nowhere else.
//
// nvme-tcp takes FPDUs for its own, rpcordma the message in a Send without
// octets, and complains that there is nothing in it.
var tsharkArgs = []string{
	"--disable-protocol", "nvme-tcp", "--disable-protocol", "rpcordma",
	"-T", "pdml", "-J", "tcp iwarp_mpa iwarp_ddp_rdmap", "-z", "expert,note",
}

// tshark reads a capture, and returns what it found and what it complains of.
func tshark(t testing.TB, pcap string) (found map[[2]string][]event, complaints []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tshark", append([]string{"-r", pcap}, tsharkArgs...)...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		skip(t, err.Error())
	}
	doc, table, ok := strings.Cut(string(out), "</pdml>")
	if err != nil || !ok {
		t.Fatalf("tshark: %v after %d octets", err, len(out))
	}
	return parsePDML(t, doc+"</pdml>"), parseExpert(table)
}

// expertRow is a line of the table: frequency, group, protocol, summary.
var expertRow = regexp.MustCompile(`(?m)^ +\d+ +(\S+) +(\S+)  (.+)$`)

// parseExpert returns the table's lines but those about TCP's coming and going.
func parseExpert(table string) []string {
	var complaints []string
	for _, m := range expertRow.FindAllStringSubmatch(table, -1) {
		if group, protocol, summary := m[1], m[2], m[3]; protocol != "TCP" || group == "Malformed" {
			complaints = append(complaints, protocol+": "+summary)
		}
	}
	slices.Sort(complaints)
	return slices.Compact(complaints)
}

// wantAgreement checks that tshark finds in a capture what our decoders find,
// startup frame by startup frame and FPDU by FPDU, and has no complaint but
// those that are known. What is left out of this is in gaps_test.go.
func wantAgreement(t testing.TB, pcap string) []event {
	t.Helper()
	found, complaints := tshark(t, pcap)
	var all []event
	blind := false
	for _, c := range iwarpIn(t, pcap) {
		events := decodeAll(t, c.pieces)
		all = append(all, events...)
		for _, dir := range []direction{fromInitiator, fromResponder} {
			ports := [2]string{c.ports[dir], c.ports[dir.peer()]}
			ours, theirs := only(events, dir), found[ports]
			if gap := blindSpot(c, events, dir); gap != "" {
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

func only(events []event, dir direction) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.dir != dir })
}

// wantSameEvents compares the events of a direction.
func wantSameEvents(t testing.TB, ours, theirs []event) {
	t.Helper()
	var a, b []string
	for i, e := range theirs {
		e.dir = ours[0].dir
		if i < len(ours) {
			e.fpdu.terminate = blur(e.fpdu.terminate, ours[i].fpdu.terminate)
		}
		b = append(b, e.String())
	}
	for _, e := range ours {
		e.fpdu.terminate = blur(e.fpdu.terminate, e.fpdu.terminate)
		a = append(a, e.String())
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("tshark differs (-ours +tshark's):\n%s", d)
	}
}
