package ulp_test

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulp"
)

//go:embed testdata/vectors.txt
var vectors string

// vector returns a message by its name. Those of RPC and SMB are made by the layouts of RFC 8166, RFC 5531, MS-SMBD and
// MS-SMB2; tshark 4.0 says of them, in RoCE, what the tests here expect.
func vector(t testing.TB, name string) []byte {
	t.Helper()
	for l := range strings.Lines(vectors) {
		if is, text, _ := strings.Cut(strings.TrimSpace(l), " "); is == name {
			b, err := hex.DecodeString(text)
			testrig.Must(t, err)
			return b
		}
	}
	t.Fatalf("there is no vector %q", name)
	return nil
}

// A dialogue is a connection in the making. A mark is the number of a step, from 1.
type dialogue struct {
	t     testing.TB
	conn  *ulp.Conn[int]
	steps int
	heard []string
	pairs [][2]int // answers, and what they answer
}

func newDialogue(t testing.TB, port uint16, private ...string) *dialogue {
	var raw [2][]byte
	for i, text := range private {
		b, err := hex.DecodeString(text)
		testrig.Must(t, err)
		raw[i] = b
	}
	return &dialogue{t: t, conn: new(ulp.Group[int]).New(port, raw)}
}

func (d *dialogue) take(said []ulp.Said[int]) {
	for _, s := range said {
		text := fmt.Sprintf("%d %s: %s", s.Mark, s.Protocol, s.Text)
		if s.Failure != "" {
			text += " FAILS " + s.Failure
		}
		d.heard = append(d.heard, text)
		if s.Answers {
			d.pairs = append(d.pairs, [2]int{s.Mark, s.Asked})
		}
	}
}

// send sends a vector, of which names say who sends them: requests and calls are those of the client.
func (d *dialogue) send(names ...string) {
	d.t.Helper()
	for _, name := range names {
		end := 1
		if strings.Contains(name, "call") || strings.Contains(name, "req") || name == "iser-cmd" || name == "iser-login" {
			end = 0
		}
		d.sendFrom(end, vector(d.t, name))
	}
}

func (d *dialogue) sendFrom(end int, b []byte) {
	d.steps++
	d.take(d.conn.Send(d.steps, end, ulp.Message{Data: b, Length: len(b)}))
}

// access has the server read or write.
func (d *dialogue) access(a ulp.Access) {
	d.steps++
	d.take(d.conn.Access(d.steps, 1, a))
}

// want compares what was heard since the last time.
func (d *dialogue) want(want ...string) {
	d.t.Helper()
	if !slices.Equal(d.heard, want) {
		d.t.Errorf("heard\n%s\nwant\n%s", strings.Join(d.heard, "\n"), strings.Join(want, "\n"))
	}
	d.heard = nil
}

// TestNFS: a READ whose data is written into the chunk, an OPEN in the grace period, a WRITE that is fetched, and a
// READDIR whose reply is in a chunk.
func TestNFS(t *testing.T) {
	d := newDialogue(t, 20049)
	d.send("rpc-call-read")
	d.want() // one message shows nothing yet
	d.access(ulp.Access{STag: 0xaabb0001, TO: 0x7f0000001000, Length: 1400, Data: make([]byte, 1400)})
	d.want("1 RPC: call xid 0x00000011: NFSv3 READ, write chunk of 65536 bytes at STag 0xaabb0001",
		"2 RPC: Write to STag 0xaabb0001: write chunk of xid 0x00000011, NFSv3 READ")
	d.send("rpc-reply-read", "rpc-call-open", "rpc-reply-grace")
	d.want("3 RPC: reply xid 0x00000011: NFSv3 READ: OK",
		"4 RPC: call xid 0x00000012: NFSv4 COMPOUND OPEN",
		"5 RPC: reply xid 0x00000012: NFSv4 COMPOUND: NFS4ERR_GRACE of OPEN FAILS NFS4ERR_GRACE of OPEN")
	d.send("rpc-call-write")
	d.access(ulp.Access{Read: true, STag: 0xaabb0002, TO: 0x2000, Length: 8192})
	d.send("rpc-reply-stale")
	d.want("6 RPC: call xid 0x00000013: NFSv3 WRITE, read chunk of 8192 bytes at STag 0xaabb0002",
		"7 RPC: Read of STag 0xaabb0002: read chunk of xid 0x00000013, NFSv3 WRITE",
		"8 RPC: reply xid 0x00000013: NFSv3 WRITE: NFS3ERR_STALE FAILS NFS3ERR_STALE of WRITE")
	d.send("rpc-call-dir")
	long := vector(t, "rpc-reply-stale")[28:] // without the header
	long[3] = 0x14
	d.access(ulp.Access{STag: 0xaabb0003, TO: 0x3000, Length: uint32(len(long)), Data: long})
	d.send("rpc-reply-long")
	d.want("9 RPC: call xid 0x00000014: NFSv3 READDIR, reply chunk of 32768 bytes at STag 0xaabb0003",
		"10 RPC: Write to STag 0xaabb0003: reply chunk of xid 0x00000014, NFSv3 READDIR",
		"11 RPC: reply xid 0x00000014 in the reply chunk: NFSv3 READDIR: NFS3ERR_STALE FAILS NFS3ERR_STALE of READDIR")
}

// TestRPCErrors: the transport and RPC itself refuse.
func TestRPCErrors(t *testing.T) {
	d := newDialogue(t, 20049)
	d.send("rpc-call-read", "rpc-reply-read", "rpc-call-read")
	d.heard = nil
	for _, c := range []struct {
		name string
		at   map[int]byte
		want string
	}{
		{"rpc-err-chunk", map[int]byte{3: 0x11}, "error for xid 0x00000011: ERR_CHUNK, in answer to NFSv3 READ FAILS ERR_CHUNK"},
		{"rpc-err-vers", nil, "error for xid 0x00000015: ERR_VERS, versions 1 to 1 are supported FAILS ERR_VERS, versions 1 to 1 are supported"},
		{"rpc-reply-grace", nil, "reply xid 0x00000012: accepted"}, // to a call that is not known
		{"rpc-reply-grace", map[int]byte{51: 4}, "reply xid 0x00000012: GARBAGE_ARGS FAILS GARBAGE_ARGS"},
		{"rpc-reply-grace", map[int]byte{39: 1, 43: 1, 47: 5}, "reply xid 0x00000012: AUTH_ERROR 5 FAILS AUTH_ERROR 5"},
	} {
		b := vector(t, c.name)
		for i, v := range c.at {
			b[i] = v
		}
		d.sendFrom(1, b)
		d.want(fmt.Sprintf("%d RPC: %s", d.steps, c.want))
	}
}

// TestRPCTwice: a reply that comes again is no second answer, also in a reply chunk; one to the call that is sent again is.
func TestRPCTwice(t *testing.T) {
	d := newDialogue(t, 20049)
	d.send("rpc-call-read", "rpc-reply-read", "rpc-reply-read", "rpc-call-read", "rpc-reply-read")
	d.send("rpc-call-dir", "rpc-reply-long", "rpc-reply-long")
	want := [][2]int{{2, 1}, {5, 4}, {7, 6}}
	if !slices.Equal(d.pairs, want) {
		t.Errorf("pairs %v, want %v: %q", d.pairs, want, d.heard)
	}
}

// TestSealed: what RPCSEC_GSS may have wrapped is not read, and a status that NFS does not have is none.
func TestSealed(t *testing.T) {
	d := newDialogue(t, 20049)
	d.send("rpc-call-read", "rpc-reply-read")
	d.heard = nil
	call := vector(t, "rpc-call-open")
	call[28+27] = 6 // the flavor
	d.sendFrom(0, call)
	d.send("rpc-reply-grace")
	d.want("3 RPC: call xid 0x00000012: NFSv4 COMPOUND", "4 RPC: reply xid 0x00000012: NFSv4 COMPOUND: accepted")
	odd := vector(t, "rpc-reply-grace")
	odd[54], odd[55] = 0x77, 0x77
	d.send("rpc-call-open")
	d.sendFrom(1, odd)
	d.want("5 RPC: call xid 0x00000012: NFSv4 COMPOUND OPEN", "6 RPC: reply xid 0x00000012: NFSv4 COMPOUND: accepted")
}

// TestSMB: SMB Direct negotiates, and SMB2 tells of a full disk.
func TestSMB(t *testing.T) {
	d := newDialogue(t, 5445)
	d.send("smbd-req")
	d.want()
	d.send("smbd-resp", "smb-neg-req", "smb-neg-resp", "smb-read-req")
	d.want("1 SMB Direct: negotiate request: credits 255, send 1364, receive 8192, fragmented 1048576",
		"2 SMB Direct: negotiate response: credits 255 of 255 asked for, read and write 1048576, send 1364, receive 8192, fragmented 1048576",
		"3 SMB Direct: NEGOTIATE request 0", "4 SMB Direct: NEGOTIATE response 0: STATUS_SUCCESS",
		"5 SMB Direct: READ request 5, 65536 bytes at STag 0x44556601")
	d.access(ulp.Access{STag: 0x44556601, TO: 0x5000 + 4096, Length: 1400})
	d.access(ulp.Access{STag: 0x44556601, TO: 0x4fff, Length: 1400}) // outside
	d.send("smb-read-resp", "smb-write-req")
	d.access(ulp.Access{Read: true, STag: 0x44556602, TO: 0x9000, Length: 32768})
	d.send("smb-write-err", "smb-keepalive")
	d.sendFrom(0, vector(t, "smbd-frag1"))
	d.sendFrom(0, vector(t, "smbd-frag2"))
	d.want("6 SMB Direct: Write to STag 0x44556601: buffer of READ 5", "8 SMB Direct: READ response 5: STATUS_SUCCESS",
		"9 SMB Direct: WRITE request 6, 32768 bytes at STag 0x44556602",
		"10 SMB Direct: Read of STag 0x44556602: buffer of WRITE 6",
		"11 SMB Direct: WRITE response 6: STATUS_DISK_FULL FAILS STATUS_DISK_FULL of WRITE",
		"12 SMB Direct: credits: 1 granted, 255 asked for", "13 SMB Direct: WRITE request 7",
		"14 SMB Direct: 50 bytes of a fragmented message, and 0 to come")
}

// TestFragmented: three requests of Linux's client in three fragments, the second and the third of which fail because the
// first one finds no file.
func TestFragmented(t *testing.T) {
	d := newDialogue(t, 5445)
	d.send("smbd-req", "smbd-resp")
	d.heard = nil
	d.send("smb-create-req", "smb-create-req2", "smb-create-req3", "smb-notfound-resp")
	d.want("3 SMB Direct: CREATE request 26", "4 SMB Direct: 104 bytes of a fragmented message, and 88 to come",
		"5 SMB Direct: 88 bytes of a fragmented message, and 0 to come: QUERY_INFO request 27; CLOSE request 28",
		"6 SMB Direct: CREATE response 26: STATUS_OBJECT_NAME_NOT_FOUND; QUERY_INFO response 27: STATUS_FILE_CLOSED; "+
			"CLOSE response 28: STATUS_INVALID_PARAMETER")
}

// TestAnswers: an answer names what it answers, also from before the protocol was known.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		port  uint16
		names string
		want  string
	}{
		{20049, "rpc-call-read rpc-call-open rpc-reply-grace rpc-reply-read rpc-call-dir rpc-reply-long", "[[3 2] [4 1] [6 5]]"},
		{5445, "smbd-req smbd-resp smb-read-req smb-write-req smb-write-err smb-read-resp", "[[5 4] [6 3]]"},
		{3260, "iser-login iser-loginresp iser-cmd iser-resp", "[[2 1] [4 3]]"},
	} {
		d := newDialogue(t, c.port)
		d.send(strings.Fields(c.names)...)
		if got := fmt.Sprint(d.pairs); got != c.want {
			t.Errorf("%s: %s, want %s", c.names, got, c.want)
		}
	}
}

// TestUnhinted: without a usual port it takes more of a protocol to be sure.
func TestUnhinted(t *testing.T) {
	d := newDialogue(t, 4711)
	d.send("rpc-call-read", "rpc-reply-read", "rpc-call-open")
	d.want()
	d.send("rpc-reply-grace")
	if len(d.heard) != 4 || d.conn.Protocol() != "RPC" {
		t.Errorf("%q of %q", d.heard, d.conn.Protocol())
	}
}

// TestOthers: on no port is something said of bytes that are of none of the protocols, and after some Sends nobody looks at
// them any more.
func TestOthers(t *testing.T) {
	for _, port := range []uint16{4420, 20049, 5445, 860, 3260, 7174, 4711} {
		for _, n := range []int{1, 4, 16, 20, 32, 64, 200} {
			d := newDialogue(t, port)
			for i := range 200 {
				d.sendFrom(i%2, []byte(strings.Repeat("iWARP says hello", 13))[i%3:][:n])
				d.access(ulp.Access{STag: 7, TO: 0, Length: 64, Data: make([]byte, 64)})
			}
			d.want()
			if !d.conn.Off() {
				t.Errorf("port %d, %d bytes: it is looked at for ever", port, n)
			}
		}
	}
}

// TestWrongForm: what has another form than a protocol that is known says nothing, and what follows does.
func TestWrongForm(t *testing.T) {
	d := newDialogue(t, 20049)
	d.send("rpc-call-read", "rpc-reply-read")
	d.heard = nil
	d.sendFrom(0, []byte("something else"))
	d.sendFrom(0, vector(t, "rpc-call-open")[:60])
	d.want()
	d.send("rpc-call-open")
	d.want("5 RPC: call xid 0x00000012: NFSv4 COMPOUND OPEN")
}

// FuzzConn takes messages of any form, on ports of all protocols.
func FuzzConn(f *testing.F) {
	for l := range strings.Lines(vectors) {
		_, text, _ := strings.Cut(strings.TrimSpace(l), " ")
		b, err := hex.DecodeString(text)
		testrig.Must(f, err)
		f.Add(b, b, b[4:], uint16(20049))
	}
	private := [2][]byte{}
	for i := range private {
		private[i], _ = hex.DecodeString("0102001000000080" + "00007f00000010000000010100000004" + "00007f00000020000000020100010000")
	}
	f.Fuzz(func(t *testing.T, one, two, three []byte, port uint16) {
		for _, raw := range [][2][]byte{{}, private, {one, two}} {
			c := new(ulp.Group[int]).New(port, raw)
			for i := range 12 {
				b := [][]byte{one, two, three}[i%3]
				said := c.Send(i, i/3%2, ulp.Message{Data: b[:min(len(b), 8192)], Length: len(b)})
				said = append(said, c.Access(i, i%2, ulp.Access{Read: i%2 == 0, STag: uint32(i), TO: uint64(port), Length: 1, Data: three})...)
				for _, s := range said {
					if s.Text == "" || len(s.Text) > 2000 || s.Protocol == "" {
						t.Errorf("%+v", s)
					}
				}
			}
		}
	})
}

// TestNumbersComeAgain: NVMe and iSER use the number of a command again after its answer. If the capture lacks a command,
// its answer is not that of the earlier one. Nor is one of rping, which has no numbers.
func TestNumbersComeAgain(t *testing.T) {
	write := &capsule.Command{Opcode: capsule.OpWrite, Flags: capsule.FlagSGL, ID: 7,
		SGL: capsule.SGL{Type: capsule.SGLKeyed, Key: 3, Length: 512}}
	answered := func(d *dialogue, ask, answer []byte) {
		t.Helper()
		for range 4 {
			d.sendFrom(0, ask)
			d.sendFrom(1, answer)
		}
		if len(d.pairs) == 0 {
			t.Error("no answer was seen")
		}
		d.heard, d.pairs = nil, nil
	}

	d := newDialogue(t, 4420)
	answered(d, write.Append(nil), capsule.Completion{ID: 7}.Append(nil))
	d.sendFrom(1, capsule.Completion{ID: 7, Status: capsule.WriteFault}.Append(nil))
	if len(d.pairs) > 0 || len(d.heard) != 1 || strings.Contains(d.heard[0], "opcode") {
		t.Errorf("%q, answers %v", d.heard, d.pairs)
	}

	d = newDialogue(t, 4420, "0000000020001f00"+strings.Repeat("00", 24)) // of an admin queue
	answered(d, write.Append(nil), capsule.Completion{ID: 7}.Append(nil))
	d.sendFrom(1, capsule.Completion{ID: 7, Status: capsule.InvalidParameter}.Append(nil))
	if len(d.heard) != 1 || strings.Contains(d.heard[0], "FAILS") { // it may be of what hosts try out
		t.Errorf("%q", d.heard)
	}

	d = newDialogue(t, 3260)
	answered(d, vector(t, "iser-cmd"), vector(t, "iser-resp"))
	d.send("iser-resp")
	if len(d.pairs) > 0 {
		t.Errorf("%q, answers %v", d.heard, d.pairs)
	}

	d = newDialogue(t, 7174)
	advert, _ := hex.DecodeString("00000000000010000000000300000040")
	for range 8 {
		d.sendFrom(0, advert)
		d.access(ulp.Access{Read: true, STag: 3, TO: 0x1000, Length: 64})
		d.sendFrom(1, advert)
	}
	d.pairs = nil
	d.sendFrom(0, advert) // its answer is not there
	d.sendFrom(0, advert)
	d.sendFrom(1, advert)
	if want := [][2]int{{d.steps, d.steps - 1}}; !slices.Equal(d.pairs, want) {
		t.Errorf("answers %v, want %v", d.pairs, want)
	}
}
