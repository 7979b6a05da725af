package decode_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// sctpCaptures is where captures of SCTP lie.
const sctpCaptures = testrig.Stored + "sctp/"

// dialogue is a session in which nothing is wrong: messages both ways, and Reads.
func dialogue(s *sctpScript) []byte {
	s.open()
	for i := range 8 {
		s.untagged(fw, rdmap.OpSend, []byte("hello"))
		s.untagged(bw, rdmap.OpSend, make([]byte, 100*i))
		s.tagged(fw, rdmap.OpWrite, 7, 4096, make([]byte, 170*i))
		r := rdmap.ReadRequest{SinkSTag: 9, SinkTO: 16, Size: 300, SrcSTag: 7, SrcTO: 4096}
		s.untagged(fw, rdmap.OpReadRequest, r.Append(nil))
		s.tagged(bw, rdmap.OpReadResponse, 9, 16, make([]byte, 300))
		s.ack(fw)
	}
	return s.close()
}

// TestSessions reads a session in UDP, in IP, and with its packets cut off.
func TestSessions(t *testing.T) {
	for _, c := range []struct {
		name   string
		native bool
		snap   int
		reads  int
	}{{"UDP", false, 0, 8}, {"IP", true, 0, 8}, {"cut", true, 100, 0}} {
		t.Run(c.name, func(t *testing.T) {
			s := newSCTP(t)
			s.native, s.snap = c.native, c.snap
			r := run(t, dialogue(s))
			if len(r.conns) != 1 || len(r.fpdus) != 41 || r.reads != c.reads || len(r.startups) != 4 || len(r.serious()) > 0 {
				t.Fatalf("%d sessions, %d segments, %d Reads, %q, %q", len(r.conns), len(r.fpdus), r.reads, r.startups, r.texts)
			}
			p := r.conns[0]
			if !p.Agreed || p.Dialect != mpa.DialectRFC6581 || p.RTR.Sent != mpa.RTRWrite || p.Enhanced[bw].IRD != 4 ||
				p.Session.Terminated != [2]bool{true, true} || p.Session.SCTP.InUDP == c.native || p.Failed() != "" {
				t.Errorf("%+v, %+v", p, p.Session)
			}
		})
	}
}

// sessionCases are associations in which something is wrong or remarkable, and what is found.
var sessionCases = []struct {
	name     string
	say      func(s *sctpScript) []byte
	findings []string
}{
	{"no indication in the INIT ACK", func(s *sctpScript) []byte {
		s.setup(fw, 16, 16, indication(1))
		s.setup(bw, 16, 16, nil)
		s.packet(fw, tags[fw], sctpChunk(typeAbort, 0, nil))
		return s.file.Bytes()
	}, []string{"error no-indication", "warning association-aborted"}},
	{"another indication in the INIT", func(s *sctpScript) []byte {
		s.setup(fw, 16, 16, indication(7))
		s.setup(bw, 16, 16, indication(1))
		s.cookies()
		s.session()
		return s.close()
	}, []string{"error no-indication"}},
	{"neither has an indication, and DDP all the same", func(s *sctpScript) []byte {
		s.setup(fw, 16, 16, nil)
		s.setup(bw, 16, 16, nil)
		s.cookies()
		s.session()
		return s.close()
	}, []string{"error no-indication", "error no-indication"}},
	{"streams", func(s *sctpScript) []byte {
		s.setup(fw, 16, 8, indication(1))
		s.setup(bw, 16, 16, indication(1))
		s.cookies()
		s.session()
		return s.close()
	}, []string{"error streams-differ"}},
	{"PPID", func(s *sctpScript) []byte {
		s.open()
		s.message(fw, 0x10000000, []byte("in host byte order"))
		return s.close()
	}, []string{"error wrong-ppid"}},
	{"PPID, with a DDP-SSN", func(s *sctpScript) []byte {
		s.open()
		s.message(fw, 18, s.numbered(fw, write1))
		s.quiet()
		return s.close()
	}, []string{"error wrong-ppid"}},
	{"ordered", func(s *sctpScript) []byte {
		s.open()
		s.packet(fw, tags[fw], s.chunk(fw, 3, sctp.PPIDSegment, s.numbered(fw, write1)))
		return s.close()
	}, []string{"error ordered-message"}},
	{"in fragments", func(s *sctpScript) []byte {
		s.open()
		m := s.numbered(fw, write1)
		first, last := s.chunk(fw, 6, sctp.PPIDSegment, m[:9]), s.chunk(fw, 5, sctp.PPIDSegment, m[9:])
		s.packet(fw, tags[fw], last)
		s.packet(fw, tags[fw], first)
		return s.close()
	}, []string{"warning fragmented"}},
	{"SSN twice", func(s *sctpScript) []byte {
		s.open()
		s.ssn[fw]--
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, write1))
		return s.close()
	}, []string{"error ssn-twice"}},
	{"SSN twice, ahead", func(s *sctpScript) []byte {
		s.open()
		s.ssn[fw]++
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, write1))
		s.ssn[fw]--
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, write1))
		s.ssn[fw] -= 2
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, write1))
		s.ssn[fw]++
		return s.close()
	}, []string{"error ssn-twice"}},
	{"SSN skipped", func(s *sctpScript) []byte {
		s.open()
		s.ssn[fw]++
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, write1))
		s.quiet()
		return s.close()
	}, []string{"error ssn-skipped"}},
	{"too short", func(s *sctpScript) []byte {
		s.open()
		s.message(fw, sctp.PPIDSegment, []byte{0})
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, []byte{0x81}))
		s.message(fw, sctp.PPIDControl, s.numbered(fw, []byte{0}))
		return s.close()
	}, []string{"error session-message", "error ddp-too-short", "error session-message"}},
	{"unknown function", func(s *sctpScript) []byte {
		s.open()
		s.function(fw, 8)
		return s.close()
	}, []string{"error session-message"}},
	{"private data", func(s *sctpScript) []byte {
		s.up()
		s.control(fw, sctp.Control{Function: sctp.FunctionInitiate, PrivateData: make([]byte, 513)})
		s.message(bw, sctp.PPIDControl, s.numbered(bw, []byte{0, byte(sctp.FunctionEnhancedAccept), 1}))
		return s.down()
	}, []string{"error session-private-data", "error session-private-data", "error answer-kind", "error no-session-terminate"}},
	{"a malformed Initiate, and its answer", func(s *sctpScript) []byte {
		s.up()
		s.control(fw, sctp.Control{Function: sctp.FunctionInitiate, PrivateData: make([]byte, 513)})
		s.function(bw, sctp.FunctionTerminate)
		return s.down()
	}, []string{"error session-private-data", "warning session-refused"}},
	{"an unknown Initiate, and its answer", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, 8)
		s.function(bw, sctp.FunctionTerminate)
		return s.down()
	}, []string{"error session-message", "warning session-refused"}},
	{"an Enhanced Reject without enhanced data", func(s *sctpScript) []byte {
		s.up()
		s.control(fw, sctp.Control{Function: sctp.FunctionEnhancedInitiate})
		s.control(bw, sctp.Control{Function: sctp.FunctionEnhancedReject, Bare: true, PrivateData: []byte("no")})
		return s.down()
	}, []string{"note session-rejected"}},
	{"private data in a Terminate", func(s *sctpScript) []byte {
		s.open()
		s.control(fw, sctp.Control{Function: sctp.FunctionTerminate, PrivateData: []byte("bye")})
		s.function(bw, sctp.FunctionTerminate)
		return s.down()
	}, []string{"error session-private-data"}},
	{"segment before the Initiate", func(s *sctpScript) []byte {
		s.up()
		s.message(fw, sctp.PPIDSegment, s.numbered(fw, write1))
		return s.close()
	}, []string{"error segment-before-accept", "error session-sequence", "error session-sequence"}},
	{"segment before the Accept", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionInitiate)
		s.tagged(fw, rdmap.OpWrite, 1, 0, []byte("early"))
		s.function(bw, sctp.FunctionAccept)
		return s.close()
	}, []string{"error segment-before-accept"}},
	{"segment in place of the Accept", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionInitiate)
		s.tagged(bw, rdmap.OpWrite, 1, 0, []byte("early"))
		return s.close()
	}, []string{"error segment-before-accept"}},
	{"Accept without Initiate", func(s *sctpScript) []byte {
		s.up()
		s.function(bw, sctp.FunctionAccept)
		return s.down()
	}, []string{"error session-sequence"}},
	{"both Initiate", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionInitiate)
		s.function(bw, sctp.FunctionInitiate)
		return s.close()
	}, []string{"error session-sequence"}},
	{"Accept twice", func(s *sctpScript) []byte {
		s.open()
		s.function(bw, sctp.FunctionEnhancedAccept)
		return s.close()
	}, []string{"error session-sequence"}},
	{"Initiate in an open session", func(s *sctpScript) []byte {
		s.open()
		s.function(bw, sctp.FunctionInitiate)
		return s.close()
	}, []string{"error session-in-use"}},
	{"Initiate anew in an open session", func(s *sctpScript) []byte {
		s.open()
		s.ssn[fw] = 0
		s.function(fw, sctp.FunctionInitiate)
		s.ssn[fw] = 2
		return s.close()
	}, []string{"error session-in-use"}},
	{"after the Terminate", func(s *sctpScript) []byte {
		s.open()
		s.function(fw, sctp.FunctionTerminate)
		s.tagged(fw, rdmap.OpWrite, 1, 0, []byte("late"))
		s.function(bw, sctp.FunctionTerminate)
		return s.down()
	}, []string{"error session-sequence"}},
	{"Accept of another kind", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionEnhancedInitiate)
		s.function(bw, sctp.FunctionAccept)
		return s.close()
	}, []string{"error answer-kind"}},
	{"depths, model and kinds", func(s *sctpScript) []byte {
		s.up()
		s.control(fw, sctp.Control{Function: sctp.FunctionEnhancedInitiate, Enhanced: mpa.Enhanced{A: true, IRD: 2, ORD: 2}})
		s.control(bw, sctp.Control{Function: sctp.FunctionEnhancedAccept, Enhanced: mpa.Enhanced{IRD: 2, ORD: 3, B: true}})
		return s.close()
	}, []string{"warning no-rtr-kind", "warning rtr-flags-without-a", "error reply-ord-above-ird", "error reply-model"}},
	{"no RTR", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionEnhancedInitiate)
		s.function(bw, sctp.FunctionEnhancedAccept)
		s.untagged(fw, rdmap.OpSend, []byte("no RTR"))
		return s.close()
	}, []string{"error no-rtr"}},
	{"rejected", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionEnhancedInitiate)
		s.control(bw, sctp.Control{Function: sctp.FunctionEnhancedReject, PrivateData: []byte("no")})
		return s.down()
	}, []string{"note session-rejected"}},
	{"refused", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionEnhancedInitiate)
		s.function(bw, sctp.FunctionTerminate)
		return s.down()
	}, []string{"warning session-refused"}},
	{"taken back", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionInitiate)
		s.function(fw, sctp.FunctionTerminate)
		s.function(bw, sctp.FunctionAccept)
		s.function(bw, sctp.FunctionTerminate)
		return s.down()
	}, nil},
	{"not answered", func(s *sctpScript) []byte {
		s.up()
		s.function(fw, sctp.FunctionInitiate)
		return s.down()
	}, []string{"warning closed-at-startup"}},
	{"no Terminate", func(s *sctpScript) []byte {
		s.open()
		return s.down()
	}, []string{"error no-session-terminate"}},
	{"aborted", func(s *sctpScript) []byte {
		s.open()
		s.packet(bw, tags[bw], sctpChunk(typeAbort, 0, append([]byte{0, 12, 0, 7}, "why"...)))
		return s.file.Bytes()
	}, []string{"warning association-aborted"}},
	{"a Send of the wrong number", func(s *sctpScript) []byte {
		s.open()
		s.msn[fw][0] = 3
		s.untagged(fw, rdmap.OpSend, nil)
		return s.close()
	}, []string{"error msn"}},
	{"RDMAP's Terminate", func(s *sctpScript) []byte {
		s.open()
		term := rdmap.Terminate{Code: rdmap.CodeMPACRC}
		s.untagged(bw, rdmap.OpTerminate, term.Append(nil))
		return s.close()
	}, []string{"warning terminate"}},
}

// write1 is a Write of one segment.
var write1 = func() []byte {
	h := rdmap.OpWrite.Header(1)
	h.Last, h.STag = true, 7
	return append(h.Append(nil), "some data"...)
}()

// TestSessionFindings breaks each rule.
func TestSessionFindings(t *testing.T) {
	doc, err := os.ReadFile("../../docs/decode-json.md")
	testrig.Must(t, err)
	for _, c := range sessionCases {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, c.say(newSCTP(t)))
			if !slices.Equal(r.findings, c.findings) {
				t.Errorf("found %q, want %q", r.texts, c.findings)
			}
			if len(r.conns) != 1 {
				t.Errorf("%d sessions", len(r.conns))
			}
		})
		for _, f := range c.findings {
			if _, name, _ := strings.Cut(f, " "); !strings.Contains(string(doc), "| `"+name+"` |") {
				t.Errorf("%q is not documented", name)
			}
		}
	}
}

// TestStoredSCTP reads a capture of our endpoint, and holds what it finds against what
// tshark has found in it, with its dissector of DDP and RDMAP called by ddp.lua:
//
//	tshark -r iwarp-udp.pcap -X lua_script:ddp.lua -d udp.port==7175,sctp -Y 'sctp.chunk_type==0' -T fields
//	  -e frame.number -e sctp.data_tsn_raw -e sctp.data_sid -e sctp.data_payload_proto_id -e ddp_sctp.ssn -e iwarp_ddp.stag
//	  -e iwarp_ddp.tagged_offset -e iwarp_ddp.qn -e iwarp_ddp.msn -e iwarp_ddp.mo -e iwarp_rdma.opcode
func TestStoredSCTP(t *testing.T) {
	file, err := os.ReadFile(sctpCaptures + "iwarp-udp.pcap")
	testrig.Must(t, err)
	theirs, err := os.ReadFile(sctpCaptures + "iwarp-udp.tshark")
	testrig.Must(t, err)
	k := &asTshark{}
	_, err = decode.Run(bytes.NewReader(file), decode.Config{}, k)
	testrig.Must(t, err)
	slices.SortFunc(k.lines, func(a, b tsharkLine) int { return cmp.Compare(a.packet, b.packet) })
	var ours strings.Builder
	for _, l := range k.lines {
		ours.WriteString(l.text)
	}
	if ours.String() != string(theirs) {
		t.Errorf("ours:\n%s\ntshark's:\n%s", &ours, theirs)
	}
	if r := run(t, file); len(r.findings) > 0 || r.reads != 2 || len(r.startups) != 4 {
		t.Errorf("%q, %d Reads, %q", r.texts, r.reads, r.startups)
	}
}

// asTshark makes the fields of messages as tshark does.
type asTshark struct {
	decode.Ignore
	lines []tsharkLine
	tsn   map[uint64]uint32
}

type tsharkLine struct {
	packet uint64
	text   string
}

func (k *asTshark) Segment(_ *decode.Connection, s *decode.Segment) {
	if k.tsn == nil {
		k.tsn = map[uint64]uint32{}
	}
	k.tsn[s.Packet.Number] = s.Seq
}

func (k *asTshark) add(c *decode.Connection, packet uint64, ppid uint32, rest string) {
	k.lines = append(k.lines, tsharkLine{packet, fmt.Sprintf("%d\t%d\t0x%04x\t%d\t%s\n", packet, k.tsn[packet], c.Session.Stream, ppid, rest)})
}

func (k *asTshark) Startup(c *decode.Connection, s *decode.Startup) {
	k.add(c, s.Last.Number, sctp.PPIDControl, "\t\t\t\t\t\t")
}

func (k *asTshark) FPDU(c *decode.Connection, f *decode.FPDU) {
	g := &f.Segment
	fields := fmt.Sprintf("0x%08x\t0x%016x\t\t\t", g.STag, g.TO)
	if !g.Tagged {
		fields = fmt.Sprintf("\t\t%d\t%d\t%d", g.QN, g.MSN, g.MO)
	}
	k.add(c, f.Last.Number, sctp.PPIDSegment, fmt.Sprintf("%d\t%s\t0x%02x", f.Chunk.SSN, fields, uint8(f.Op)))
}
