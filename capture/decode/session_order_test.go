package decode_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// pcapHead is the bytes of a pcap file's header, and of a packet's.
const pcapHead, pcapRecord = 24, 16

// pcapPackets cuts a pcap file into its packets.
func pcapPackets(tb testing.TB, file []byte) (packets [][]byte) {
	tb.Helper()
	for b := file[pcapHead:]; len(b) > 0; {
		n := pcapRecord + int(binary.LittleEndian.Uint32(b[8:]))
		packets = append(packets, b[:n])
		b = b[n:]
	}
	return packets
}

// pcapOf makes a file of packets.
func pcapOf(file []byte, packets [][]byte) []byte {
	return append(slices.Clone(file[:pcapHead]), bytes.Join(packets, nil)...)
}

// TestSessionLoss leaves out packets of a session in which nothing is wrong: nothing is
// found but that they are missing.
func TestSessionLoss(t *testing.T) {
	s := newSCTP(t)
	file := dialogue(s)
	all := pcapPackets(t, file)
	check := func(name string, packets [][]byte) {
		t.Helper()
		r := run(t, pcapOf(file, packets))
		if serious := r.serious(); len(serious) > 0 {
			t.Errorf("%s: %q", name, r.texts)
		}
	}
	for i := range all {
		check(fmt.Sprint("without ", i), slices.Delete(slices.Clone(all), i, i+1))
		check(fmt.Sprint("from ", i), all[i:])
		check(fmt.Sprint("up to ", i), all[:i])
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		some := slices.DeleteFunc(slices.Clone(all), func([]byte) bool { return rnd.IntN(5) == 0 })
		check("without some", some)
	}
}

// TestSessionOrder has the segments of each end come in any order, some of them twice: what
// is in the session is the same.
func TestSessionOrder(t *testing.T) {
	write := func(s *sctpScript) []byte {
		s.open()
		for i := range 40 {
			s.tagged(fw, rdmap.OpWrite, 7, uint64(i), make([]byte, i))
			s.untagged(fw, rdmap.OpSend, make([]byte, i))
		}
		return s.close()
	}
	file := write(newSCTP(t))
	want := run(t, file)
	all := pcapPackets(t, file)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		mixed := slices.Clone(all)
		first, last := 6, len(all)-6 // after the Accept, and before the Terminates
		mixed = slices.Insert(mixed, last, all[first+rnd.IntN(last-first)])
		rnd.Shuffle(last+1-first, func(i, j int) { mixed[first+i], mixed[first+j] = mixed[first+j], mixed[first+i] })
		r := run(t, pcapOf(file, mixed))
		if !slices.Equal(r.fpdus, want.fpdus) || len(r.findings) > 0 || r.conns[0].Session.Ahead[fw] == 0 ||
			r.conns[0].Session.SCTP.Ends[fw].Count.Repeated != 1 {
			t.Fatalf("%d segments, %q, %+v", len(r.fpdus), r.texts, r.conns[0].Session)
		}
	}
}

// TestManySessions has several sessions in one association, one after the other and side by
// side, and an association that is begun anew from the same ports.
func TestManySessions(t *testing.T) {
	s := newSCTP(t)
	s.up()
	for range 3 {
		for stream := range uint16(4) {
			s.stream, s.ssn, s.msn = stream, [2]uint16{}, [2][4]uint32{{1, 1, 1, 1}, {1, 1, 1, 1}}
			s.session()
			s.untagged(bw, rdmap.OpSend, []byte("hello"))
			s.function(bw, sctp.FunctionTerminate)
			if stream > 0 { // else the other end needs not
				s.function(fw, sctp.FunctionTerminate)
			}
		}
	}
	r := run(t, s.down())
	if len(r.conns) != 12 || len(r.findings) > 0 || len(r.fpdus) != 24 {
		t.Errorf("%d sessions, %q", len(r.conns), r.texts)
	}
	for i, c := range r.conns {
		if c.Session.Number != i || c.Label() != fmt.Sprint("s", i) || c.Session.Stream != uint16(i%4) || !c.Agreed {
			t.Errorf("%v: %+v", c, c.Session)
		}
	}
}

// TestSCTPRestart has an end begin anew from the same ports, and a stranger who tries to.
func TestSCTPRestart(t *testing.T) {
	s := newSCTP(t)
	s.open()
	old := tags
	defer func() { tags = old }()
	stranger := [2]uint32{0x33333333, 0x44444444}
	tags = stranger
	s.setup(fw, 16, 16, nil)
	tags = old
	s.untagged(fw, rdmap.OpSend, []byte("still here"))
	s.packet(bw, 0x55555555, sctpChunk(typeAbort, 0, nil))
	s.untagged(fw, rdmap.OpSend, []byte("still here"))

	tags = stranger
	s.tsn, s.ssn, s.msn[fw][0] = [2]uint32{5, 6}, [2]uint16{}, 1
	s.up()
	s.session()
	r := run(t, s.close())
	if len(r.conns) != 2 || len(r.findings) > 0 || len(r.fpdus) != 4 ||
		r.conns[0].Halves[fw].End.Reason != capture.EndReplaced {
		t.Errorf("%d sessions, %q, %q", len(r.conns), r.texts, r.fpdus)
	}
	if a := r.conns[0].Session.SCTP; a.Ends[bw].Count.Foreign != 1 {
		t.Errorf("%+v", a)
	}
}

// TestSessionBounds has more wait than there is room for, and more sessions than may be.
func TestSessionBounds(t *testing.T) {
	s := newSCTP(t)
	s.open()
	s.ssn[fw]++
	for i := range 3000 {
		s.tagged(fw, rdmap.OpWrite, 7, uint64(i), make([]byte, 1400))
	}
	r := run(t, s.close())
	if !slices.Equal(r.findings, []string{"error ssn-skipped"}) || len(r.fpdus) != 3001 {
		t.Errorf("%d segments, %q", len(r.fpdus), r.texts)
	}
	s = newSCTP(t)
	s.up()
	for stream := range uint16(100) {
		s.stream, s.ssn = stream, [2]uint16{}
		s.function(fw, sctp.FunctionInitiate)
	}
	few := new(record)
	_, err := decode.Run(bytes.NewReader(s.file.Bytes()),
		decode.Config{Capture: capture.Config{MaxConnections: 10}}, few)
	testrig.Must(t, err)
	if len(few.conns) != 100 || few.conns[0].Halves[fw].End.Reason != capture.EndEvicted ||
		few.conns[90].Halves[fw].End.Reason != capture.EndCapture {
		t.Errorf("%d sessions, %q", len(few.conns), few.texts)
	}
}

// TestSCTPPorts: what is in UDP is one of SCTP by its checksum, or by its port.
func TestSCTPPorts(t *testing.T) {
	s := newSCTP(t)
	file := dialogue(s)
	for _, p := range pcapPackets(t, file) {
		p[pcapRecord+20+8+8]++ // the checksum
	}
	for _, c := range []struct {
		ports    []uint16
		sessions int
	}{{nil, 0}, {[]uint16{server.Port() + 1}, 1}} {
		r := new(record)
		totals, err := decode.Run(bytes.NewReader(file), decode.Config{Capture: capture.Config{UDPPorts: c.ports}}, r)
		testrig.Must(t, err)
		if len(r.conns) != c.sessions || totals.Sessions != uint64(c.sessions) {
			t.Errorf("ports %d: %d sessions, %+v", c.ports, len(r.conns), totals)
		}
	}
}

// FuzzSessions reads packets that may be anything, some of them with chunks that look well.
func FuzzSessions(f *testing.F) {
	for _, c := range sessionCases {
		file := c.say(newSCTP(f))
		f.Add(file[pcapHead:])
	}
	f.Add(dialogue(newSCTP(f))[pcapHead:])
	f.Fuzz(func(t *testing.T, packets []byte) {
		file := append(slices.Clone(newSCTP(t).file.Bytes()), packets...)
		r := new(record)
		cfg := decode.Config{Capture: capture.Config{UDPPorts: []uint16{server.Port() + 1},
			MaxConnections: 4, MaxBuffered: 5000}}
		_, _ = decode.Run(bytes.NewReader(file), cfg, r)
		if len(r.untold) > 0 {
			t.Errorf("nothing is told of bytes %q", r.untold)
		}
	})
}

// TestWantSCTP looks at one session of several, though all are in one association.
func TestWantSCTP(t *testing.T) {
	s := newSCTP(t)
	s.up()
	for range 3 {
		s.ssn, s.msn = [2]uint16{}, [2][4]uint32{{1, 1, 1, 1}, {1, 1, 1, 1}}
		s.session()
		s.untagged(bw, rdmap.OpSend, []byte("hello"))
		s.function(bw, sctp.FunctionTerminate)
		s.function(fw, sctp.FunctionTerminate)
	}
	file := s.down()
	for n := range 4 {
		r := new(record)
		totals, err := decode.Run(bytes.NewReader(file),
			decode.Config{WantSCTP: func(x *decode.Session) bool { return x.Number == n }}, r)
		testrig.Must(t, err)
		if want := min(1, 3-n); len(r.conns) != want || totals.Sessions != uint64(want) ||
			len(r.findings) > 0 || len(r.fpdus) != 2*want {
			t.Errorf("session %d: %d are told of, %+v, %q", n, len(r.conns), totals, r.texts)
		}
	}
}
