package decode_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// start is when captures begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var (
	client = netip.MustParseAddrPort("10.0.0.1:40000")
	server = netip.MustParseAddrPort("10.0.0.2:4791")
)

// A script is a capture in the making: a connection whose ends say what they are told.
type script struct {
	tb   testing.TB
	file bytes.Buffer
	w    *capture.Writer
	flow *capture.Flow
	now  time.Time
	mpa  [2]mpa.Writer
	msn  [2][4]uint32
	sent [2]int
}

// newScript opens a connection, in segments of up to mss bytes.
func newScript(tb testing.TB, mss int) *script { return newScriptBetween(tb, mss, client, server) }

// newScriptBetween is the same between other ends.
func newScriptBetween(tb testing.TB, mss int, client, server netip.AddrPort) *script {
	s := &script{tb: tb, now: start}
	w, err := capture.NewWriter(&s.file, capture.WriterConfig{MSS: mss})
	testrig.Must(s.tb, err)
	s.w = w
	s.flow, err = w.Open(client, server, s.tick())
	testrig.Must(s.tb, err)
	return s
}

// tick lets a millisecond pass.
func (s *script) tick() time.Time {
	s.now = s.now.Add(time.Millisecond)
	return s.now
}

// send sends bytes as they are.
func (s *script) send(d capture.Dir, b []byte) {
	testrig.Must(s.tb, s.flow.Send(d, s.tick(), b))
	s.sent[d] += len(b)
}

// close ends both directions, and returns the capture.
func (s *script) close() []byte {
	testrig.Must(s.tb, s.flow.Close(capture.Forward, s.tick()))
	testrig.Must(s.tb, s.flow.Close(capture.Backward, s.tick()))
	return s.fileBytes()
}

func (s *script) fileBytes() []byte {
	testrig.Must(s.tb, s.w.Flush())
	return s.file.Bytes()
}

// enhanced returns a startup frame of RFC 6581 with CRC, and e in it.
func enhanced(key string, e mpa.Enhanced) []byte {
	return mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true, Rev: 2,
		PrivateData: mpa.AppendEnhanced(nil, &e)})
}

// startup exchanges frames that agree on CRC, and on an RTR by a Write.
func (s *script) startup(markers bool) {
	e := mpa.Enhanced{A: true, C: true, IRD: 4, ORD: 4}
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		s.send(capture.Dir(d), mpa.AppendStartup(nil, &mpa.StartupFields{
			Key: key, M: markers, C: true, S: true, Rev: 2, PrivateData: mpa.AppendEnhanced(nil, &e),
		}))
	}
	s.operate(markers, true)
	s.write(capture.Forward, 1, 0, nil)
}

// operate begins Full Operation in both directions.
func (s *script) operate(markers, crc bool) {
	for d := range s.mpa {
		s.mpa[d] = mpa.NewWriter(markers, crc)
		s.msn[d] = [4]uint32{1, 1, 1, 1}
	}
}

// fpdu makes an FPDU around a DDP segment. The Writer and the MSN are the script's, as some scripts put another in
// their place between two FPDUs: an internal/script.Link, which has them in its keeping, has no way for that.
func (s *script) fpdu(d capture.Dir, h ddp.Header, payload []byte) []byte {
	return s.mpa[d].Append(nil, h.Append(nil), payload)
}

// segment sends a DDP segment.
func (s *script) segment(d capture.Dir, h ddp.Header, payload []byte) {
	s.send(d, s.fpdu(d, h, payload))
}

// write sends a Write of one segment.
func (s *script) write(d capture.Dir, stag uint32, to uint64, payload []byte) {
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag, h.TO = true, stag, to
	s.segment(d, h, payload)
}

// untagged returns the header of the next message of a queue, of one segment.
func (s *script) untagged(d capture.Dir, op rdmap.Opcode) ddp.Header {
	h := op.Header(1)
	h.Last, h.MSN = true, s.msn[d][h.QN]
	s.msn[d][h.QN]++
	return h
}

// message sends a Send.
func (s *script) message(d capture.Dir, payload string) {
	s.segment(d, s.untagged(d, rdmap.OpSend), []byte(payload))
}

// read sends a Read Request.
func (s *script) read(d capture.Dir, r rdmap.ReadRequest) {
	s.segment(d, s.untagged(d, rdmap.OpReadRequest), r.Append(nil))
}

// respond sends a Read Response of one segment.
func (s *script) respond(d capture.Dir, stag uint32, to uint64, payload []byte) {
	h := rdmap.OpReadResponse.Header(1)
	h.Last, h.STag, h.TO = true, stag, to
	s.segment(d, h, payload)
}

// pieces sends a Send of segments, each of an MO, a length and the L bit.
func (s *script) pieces(segments ...[3]int) {
	h := s.untagged(capture.Forward, rdmap.OpSend)
	for _, p := range segments {
		h.MO, h.Last = uint32(p[0]), p[2] == 1
		s.segment(capture.Forward, h, make([]byte, p[1]))
	}
}

// terminate sends a Terminate.
func (s *script) terminate(d capture.Dir, t rdmap.Terminate) {
	s.segment(d, s.untagged(d, rdmap.OpTerminate), t.Append(nil))
}

// bulk returns a capture of Writes with CRCs of about the given size.
func bulk(tb testing.TB, markers bool, payload, size int) []byte {
	s := newScript(tb, 0)
	s.startup(markers)
	b := bytes.Repeat([]byte("iWARP bulk data "), payload/16+1)[:payload]
	for n := 0; n < size; n += payload {
		s.write(capture.Forward, 0x1234, uint64(n), b)
	}
	return s.close()
}

// A record is what a consumer was told.
type record struct {
	decode.Ignore
	conns    []*decode.Connection
	findings []string // severity and name
	texts    []string
	startups []string
	fpdus    []string
	reads    int
	told     map[*decode.Connection]*[2][]capture.Span // bytes that were told of
	untold   []string                                  // bytes that were not
	unruled  []string                                  // requirements that do not say what they are

	miscounted []string // directions whose messages are not those of their FPDUs
}

// tells takes note of bytes that an event is about.
func (r *record) tells(c *decode.Connection, d capture.Dir, from, to uint64) {
	if r.told == nil {
		r.told = map[*decode.Connection]*[2][]capture.Span{}
	}
	if r.told[c] == nil {
		r.told[c] = new([2][]capture.Span)
	}
	r.told[c][d] = append(r.told[c][d], capture.Span{Offset: from, Length: int(to - from)})
}

func (r *record) Missing(c *decode.Connection, m *decode.Missing) { r.tells(c, m.Dir, m.Offset, m.End) }

// Ended looks for bytes that were not told of, in any event.
func (r *record) Ended(c *decode.Connection) {
	for d := range c.Halves {
		var next uint64
		all := r.told[c]
		if all == nil {
			all = new([2][]capture.Span)
		}
		slices.SortFunc(all[d], func(a, b capture.Span) int { return cmp.Compare(a.Offset, b.Offset) })
		for _, s := range append(all[d], capture.Span{Offset: c.Halves[d].End.Offset}) {
			if s.Offset > next {
				r.untold = append(r.untold, fmt.Sprintf("%v %d to %d", capture.Dir(d), next, s.Offset))
			}
			next = max(next, s.Offset+uint64(s.Length))
		}
		h := &c.Halves[d]
		segments := h.Malformed
		for _, op := range h.Ops {
			segments += op.Segments
		}
		if segments != h.FPDUs || segments != h.Sizes.Count {
			r.miscounted = append(r.miscounted, fmt.Sprintf("%v %d segments of %d FPDUs", capture.Dir(d), segments, h.FPDUs))
		}
	}
}

func (r *record) Found(c *decode.Connection) { r.conns = append(r.conns, c) }

func (r *record) Startup(c *decode.Connection, s *decode.Startup) {
	r.tells(c, s.Dir, s.Offset, s.Offset+uint64(s.Size))
	r.startups = append(r.startups, fmt.Sprint(s.Dir, " ", s))
}

func (r *record) FPDU(c *decode.Connection, f *decode.FPDU) {
	r.tells(c, f.Dir, f.Offset, f.End)
	r.fpdus = append(r.fpdus, fmt.Sprint(f.Dir, " at ", f.Offset, "-", f.End, " crc ", f.CRC, " ", f.Op, " ",
		f.Segment.Header, " ", len(f.ULPDU), f.Markers))
}

func (r *record) Read(*decode.Connection, *decode.Read) { r.reads++ }

func (r *record) Finding(_ *decode.Connection, f *decode.Finding) {
	if (f.ID == "") != (f.Rule() == "") {
		r.unruled = append(r.unruled, f.ID)
	}
	r.findings = append(r.findings, fmt.Sprint(f.Severity, " ", f.Name))
	r.texts = append(r.texts, fmt.Sprintf("%v %s [%s] %v at %d: %s (%s)",
		f.Severity, f.Name, f.ID, f.Dir, f.Offset, f.Text, f.Advice))
}

// sends returns how many Sends were read.
func (r *record) sends() (n int) {
	for _, f := range r.fpdus {
		n += strings.Count(f, " Send ")
	}
	return n
}

// run decodes a capture.
func run(tb testing.TB, file []byte) *record {
	tb.Helper()
	r := new(record)
	if _, err := decode.Run(bytes.NewReader(file), decode.Config{}, r); err != nil {
		tb.Fatal(err)
	}
	r.check(tb)
	return r
}

// check has all bytes told of, and each FPDU counted as what is in it.
func (r *record) check(tb testing.TB) {
	tb.Helper()
	if len(r.untold) > 0 {
		tb.Errorf("nothing is told of bytes %q", r.untold)
	}
	if len(r.miscounted) > 0 {
		tb.Errorf("counted: %q", r.miscounted)
	}
	if len(r.unruled) > 0 {
		tb.Errorf("requirements without a rule: %q", r.unruled)
	}
}

// serious returns the findings that are no notes.
func (r *record) serious() (list []string) {
	for _, f := range r.findings {
		if !strings.HasPrefix(f, "note ") {
			list = append(list, f)
		}
	}
	return list
}

// without returns the findings but those of a kind.
func (r *record) without(kind string) []string {
	return slices.DeleteFunc(slices.Clone(r.findings), func(f string) bool { return f == kind })
}
