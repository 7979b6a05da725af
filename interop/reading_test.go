package interop_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// The directions of a connection. MPA's Initiator is the end that opened the
// connection in every capture here.
const (
	fromInitiator = capture.Forward
	fromResponder = capture.Backward
)

// A reading is what the project's own decoder, package capture/decode, tells of a
// capture.
type reading struct {
	decode.Ignore
	all []*connection // of TCP, in the order of their first packets
}

// A connection is a TCP connection, and what was found in it.
type connection struct {
	tcp      *capture.Connection
	iwarp    *decode.Connection // nil if it does not carry iWARP
	events   []event
	segments [2][]capture.Span // with new bytes, by direction
	missing  []decode.Missing
	findings []decode.Finding
}

// An event is one startup frame or one FPDU, with all that is compared.
type event struct {
	dir    capture.Dir
	packet uint64 // the number of the packet that completed it
	offset uint64 // of the first byte in the direction's stream
	bytes  []byte // on the stream

	startup mpa.StartupFrame // nil for an FPDU
	kind    decode.Frame     // of a startup frame
	fpdu    decode.FPDU
}

// read decodes a capture.
func read(t testing.TB, pcap io.Reader) []*connection {
	t.Helper()
	all, err := decodeAll(pcap)
	testrig.Must(t, err)
	return all
}

func decodeAll(pcap io.Reader) ([]*connection, error) {
	var r reading
	_, err := decode.Run(pcap, decode.Config{Want: r.opened}, &r)
	return r.all, err
}

// opened takes note of every TCP connection: not each of them is iWARP.
func (r *reading) opened(tcp *capture.Connection) bool {
	r.all = append(r.all, &connection{tcp: tcp})
	return true
}

func (r *reading) of(c *decode.Connection) *connection { return r.all[c.TCP.Number] }

// Found is part of decode.Consumer, as is what follows.
func (r *reading) Found(c *decode.Connection) { r.of(c).iwarp = c }

func (r *reading) Segment(c *decode.Connection, s *decode.Segment) {
	if s.Length > s.Repeated {
		to := &r.of(c).segments[s.Dir]
		*to = append(*to, capture.Span{Offset: s.Offset, Length: s.Length})
	}
}

func (r *reading) Startup(c *decode.Connection, s *decode.Startup) {
	r.add(c, event{
		dir: s.Dir, packet: s.Last.Number, offset: s.Offset, bytes: bytes.Clone(s.Bytes),
		startup: mpa.StartupFrame(bytes.Clone(s.Fields)), kind: s.Frame,
	})
}

func (r *reading) FPDU(c *decode.Connection, f *decode.FPDU) {
	kept := *f
	kept.Bytes, kept.Markers = bytes.Clone(f.Bytes), slices.Clone(f.Markers)
	kept.ULPDU, kept.Segment.Payload = nil, bytes.Clone(f.Segment.Payload)
	if f.Terminate != nil {
		t := *f.Terminate
		t.DDPHeader, t.RDMAPHeader = bytes.Clone(t.DDPHeader), bytes.Clone(t.RDMAPHeader)
		kept.Terminate = &t
	}
	r.add(c, event{dir: f.Dir, packet: f.Last.Number, offset: f.Offset, bytes: kept.Bytes, fpdu: kept})
}

func (r *reading) add(c *decode.Connection, e event) {
	to := r.of(c)
	to.events = append(to.events, e)
}

func (r *reading) Missing(c *decode.Connection, m *decode.Missing) {
	to := r.of(c)
	to.missing = append(to.missing, *m)
}

func (r *reading) Finding(c *decode.Connection, f *decode.Finding) {
	to := r.of(c)
	to.findings = append(to.findings, *f)
}

// iwarpIn returns the connections of a capture that carry iWARP. The guests' own
// connection on another port, by which they wait for each other, does not.
func iwarpIn(t testing.TB, path string) []*connection {
	t.Helper()
	file, err := os.ReadFile(path)
	testrig.Must(t, err)
	all := slices.DeleteFunc(read(t, bytes.NewReader(file)), func(c *connection) bool { return c.iwarp == nil })
	if len(all) == 0 {
		t.Fatalf("%s: there is no iWARP connection", path)
	}
	for _, c := range all {
		c.wantWhole(t)
	}
	return all
}

// wantWhole checks that every byte of a connection belongs to one event, and that no
// FPDU is in error. What follows a rejection does not belong to MPA.
func (c *connection) wantWhole(t testing.TB) {
	t.Helper()
	var next [2]uint64
	for _, e := range c.events {
		if e.offset != next[e.dir] {
			t.Errorf("%v is at offset %d, want %d", e, e.offset, next[e.dir])
		}
		if e.startup == nil && (e.fpdu.Err != nil || !e.fpdu.HasSegment ||
			int(e.fpdu.End-e.fpdu.Offset) != len(e.bytes)) {
			t.Errorf("%v of %d bytes: %v", e, len(e.bytes), e.fpdu.Err)
		}
		next[e.dir] = e.offset + uint64(len(e.bytes))
	}
	for d := range next {
		if end := c.tcp.Halves[d].Next(); next[d] != end && !c.iwarp.Rejected {
			t.Errorf("%v: what was found ends at %d of %d bytes", capture.Dir(d), next[d], end)
		}
	}
	if len(c.missing) > 0 {
		t.Errorf("bytes are missing or in no FPDU: %v", c.missing)
	}
}

func only(events []event, dir capture.Dir) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.dir != dir })
}

// String describes the event without its place in the stream.
func (e event) String() string {
	if e.kind == decode.FrameStartKey {
		return fmt.Sprintf("%v %v", e.dir, mpa.StartKey(e.bytes))
	}
	if e.kind != 0 {
		return strings.TrimSpace(fmt.Sprintf("%v %v %x", e.dir, e.startup, e.startup.ULPData()))
	}
	return fmt.Sprintf("%v FPDU %s", e.dir, describe(&e.fpdu))
}

// describe tells all that there is to know of an FPDU but its payload.
func describe(f *decode.FPDU) string {
	if f.Err != nil || f.Bytes == nil {
		return fmt.Sprintf("%d to %d of %d bytes: %v", f.Offset, f.End, f.Length, f.Err)
	}
	version, op := rdmap.ParseControl(f.Segment.RsvdULP)
	pad, crc := f.Trailer()
	s := fmt.Sprintf("%d%s CRC %v %x, %v, RDMAP v%d %v",
		f.Length, shown(" pad", pad), f.CRC, crc, f.Segment.Header, version, op)
	if stag, ok := rdmap.InvalidateSTag(&f.Segment.Header); ok {
		s += fmt.Sprintf(" of STag %#08x", stag)
	}
	if r := f.ReadRequest; r != nil {
		s += fmt.Sprintf(", %v", r)
	}
	if t := f.Terminate; t != nil {
		s += fmt.Sprintf(", %v, M=%t length %d, headers %x %x",
			t, t.HasLength, t.SegmentLength, t.DDPHeader, t.RDMAPHeader)
	}
	for i, m := range f.Markers {
		s += fmt.Sprintf("%s %d", map[bool]string{true: ", FPDUPTR", false: ""}[i == 0], m.FPDUPTR)
	}
	return s
}

func shown(name string, data []byte) string {
	if len(data) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %x", name, data)
}
