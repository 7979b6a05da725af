package decode_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	rping "github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/nvmf/host"
	"github.com/goiwarp/iwarp/nvmf/target"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stream"
)

// taped has connections of a Dialer recorded.
func taped(t *testing.T, d *iwarp.Dialer) (done func() []byte) {
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{MSS: 1460})
	testrig.Must(t, err)
	d.Wrap = func(c net.Conn) (net.Conn, error) { return capture.Tap(c, w, capture.Forward) }
	return func() []byte {
		testrig.Must(t, w.Flush())
		return file.Bytes()
	}
}

// verbose decodes a capture, as iwarp decode -v does.
func verbose(t *testing.T, file []byte) string {
	var b bytes.Buffer
	text := decode.NewText(&b, decode.TextConfig{FPDUs: true})
	_, err := decode.Run(bytes.NewReader(file), decode.Config{}, text)
	testrig.Must(t, err)
	testrig.Must(t, text.Flush())
	return b.String()
}

// wantLines looks for patterns in a text, one after the other.
func wantLines(t *testing.T, text string, patterns ...string) {
	t.Helper()
	rest := text
	for _, p := range patterns {
		at := regexp.MustCompile(p).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("%q does not come next in\n%s", p, text)
		}
		rest = rest[at[1]:]
	}
}

// TestNVMe records a host that writes, reads, and asks for a subsystem that is not there.
func TestNVMe(t *testing.T) {
	const nqn = "nqn.2026-11.org.example:disk"
	ctx := context.Background()
	disk, err := target.NewMemory(1<<20, 512)
	testrig.Must(t, err)
	served, err := target.New(target.Config{NQN: nqn, Namespaces: []target.Namespace{{Backend: disk, Name: "disk"}}})
	testrig.Must(t, err)
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	go served.Serve(ctx, ln) //nolint:errcheck // it ends with the listener
	d := host.Dialer{Queues: 1}
	done := taped(t, &d.RDMA)
	c, err := d.Dial(ctx, "tcp", ln.Addr().String(), nqn)
	testrig.Must(t, err)
	ns, err := c.Namespace(ctx, 1)
	testrig.Must(t, err)
	_, err = ns.WriteAt(make([]byte, 64<<10), 4096)
	testrig.Must(t, err)
	_, err = ns.ReadAt(make([]byte, 64<<10), 4096)
	testrig.Must(t, err)
	testrig.Must(t, c.Close())
	if _, err = d.Dial(ctx, "tcp", ln.Addr().String(), nqn+"s"); err == nil {
		t.Error("another NQN is found")
	}
	testrig.Must(t, served.Shutdown(ctx))
	testrig.Must(t, ln.Close())

	text := verbose(t, done())
	wantLines(t, text, `-> NVMe: command 0x\w+: Connect, 1024 bytes (in the capsule|at STag 0x\w+)\n`, `<- NVMe: completion 0x\w+, Connect: success`,
		`-> NVMe: command 0x\w+: Identify, 4096 bytes at STag (0x\w+)\n`, `<- NVMe: Write to STag 0x\w+: data of command 0x\w+, Identify\n`,
		`NVMe reports Connect: invalid parameter \(0x182\), do not retry\n.*compare nvme connect -n`)
	wantLines(t, text, `-> NVMe: command (0x\w+): Write of 128 blocks at 8, namespace 1, 65536 bytes at STag`,
		`<- NVMe: Read of STag 0x\w+: data of command 0x\w+, Write of 128 blocks`, `<- NVMe: completion 0x\w+, Write of 128 blocks at 8, namespace 1: success`)
	wantLines(t, text, `ULP +NVMe: \d+ messages explained, 1 failure; answers after min \S+, median \S+, 99% \S+, max \S+\n`)
}

// TestRsockets records a stream: what is written, and the words that tell of it.
func TestRsockets(t *testing.T) {
	ctx := context.Background()
	ln, err := stream.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	var d stream.Dialer
	done := taped(t, &d.RDMA)
	c, err := d.Dial(ctx, "tcp", ln.Addr().String())
	testrig.Must(t, err)
	_, err = c.Write(make([]byte, 3000))
	testrig.Must(t, err)
	testrig.Must(t, c.CloseWrite())
	_, err = io.Copy(io.Discard, c)
	testrig.Must(t, err)
	testrig.Must(t, c.Close())
	wantLines(t, verbose(t, done()), `-> rsockets: 3000 bytes in the ring`, `<- rsockets: 3000 bytes in the ring`,
		`ULP +rsockets: \d+ messages explained, 0 failures`)
}

// TestULPSegments sends a message in several segments. One of which the capture lacks a part is not spoken of.
func TestULPSegments(t *testing.T) {
	s := newScriptBetween(t, 0, client, netip.MustParseAddrPort("10.0.0.2:7174"))
	s.startup(false)
	advert := string([]byte{0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 9, 0, 0, 0, 64})
	pieces := func(at ...int) {
		h := s.untagged(capture.Forward, 3)
		for i, from := range at[:len(at)-1] {
			h.MO, h.Last = uint32(from), i == len(at)-2
			s.segment(capture.Forward, h, []byte(advert[from:at[i+1]]))
		}
	}
	pieces(0, 5, 11, 16)
	s.write(capture.Backward, 9, 0x1000, make([]byte, 64))
	s.message(capture.Backward, advert)
	pieces(8, 16) // its first half is not there
	text := verbose(t, s.close())
	wantLines(t, text, `-> rping: buffer of 64 bytes at STag 0x00000009`, `<- rping: Write to STag 0x00000009: the client's buffer`, `<- rping: go ahead, after 2ms\n`,
		`ULP +rping: 3 messages explained, 0 failures; answers after min 2ms, median 2ms, 99% 2ms, max 2ms\n`)
	if n := strings.Count(text, "rping: "); n != 4 { // with the summary's
		t.Errorf("%d lines of rping in\n%s", n, text)
	}
}

// vectors are the messages of internal/ulp by name.
func vectors(t testing.TB) map[string]string {
	file, err := os.ReadFile("../../internal/ulp/testdata/vectors.txt")
	testrig.Must(t, err)
	all := map[string]string{}
	for l := range strings.Lines(string(file)) {
		name, text, _ := strings.Cut(strings.TrimSpace(l), " ")
		b, err := hex.DecodeString(text)
		testrig.Must(t, err)
		all[name] = string(b)
	}
	return all
}

// spoken returns a capture of Sends to a port, those with an even number from the client.
func spoken(t testing.TB, port uint16, names ...string) []byte {
	all := vectors(t)
	s := newScriptBetween(t, 0, client, netip.AddrPortFrom(server.Addr(), port))
	s.startup(false)
	for i, name := range names {
		s.message(capture.Dir(i%2), all[name])
	}
	return s.close()
}

// TestULPFailures: FPDUs without a fault carry a failure. What it is stands in one finding, however often it comes, and
// fails no connection.
func TestULPFailures(t *testing.T) {
	for _, c := range []struct {
		port  uint16
		names []string
		want  string
		again uint64
	}{
		{20049, []string{"rpc-call-open", "rpc-reply-grace", "rpc-call-open", "rpc-reply-grace"},
			`^warning ulp-failure \[\] <- at \d+: RPC reports NFS4ERR_GRACE of OPEN \(the server has started anew[^\n]*$`, 1},
		{5445, []string{"smbd-req", "smbd-resp", "smb-write-req", "smb-write-err"},
			`^warning ulp-failure \[\] <- at \d+: SMB Direct reports STATUS_DISK_FULL of WRITE \(the share's file system is full\)$`, 0},
		{5445, []string{"smb-neg-req", "smb-neg-resp"}, "^$", 0},
	} {
		file := spoken(t, c.port, c.names...)
		r := run(t, file)
		h := r.conns[0]
		if got := strings.Join(r.texts, "\n"); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%q: %s", c.names, got)
		}
		if h.Suppressed["ulp-failure"] != c.again || h.Failed() != "" || h.ULP.Messages != uint64(len(c.names)) {
			t.Errorf("%q: %v, %q, %+v", c.names, h.Suppressed, h.Failed(), h.ULP)
		}
	}
}

// TestULPForgotten has more connections that say something than may be kept in mind: one that was quiet is followed no
// more, which its summary says once. The others are followed.
func TestULPForgotten(t *testing.T) {
	const n = 40
	p := newTape(capture.LinkRaw)
	advert := func(i, msn int, end capture.Dir) {
		p.ends[fw] = netip.AddrPortFrom(client.Addr(), uint16(40000+i))
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN = true, uint32(msn)
		b := rping.Advert{STag: uint32(0x100*i + msn), TO: 4096, Length: 64}
		w := mpa.NewWriter(false, true)
		p.data(end, w.Append(nil, h.Append(nil), b.Append(nil)))
	}
	seqs := make([][2]uint32, n)
	for i := range n {
		p.ends[fw] = netip.AddrPortFrom(client.Addr(), uint16(40000+i))
		p.seq = [2]uint32{1000, 5000}
		p.open()
		p.data(fw, []byte(request1))
		p.data(bw, []byte(reply1))
		advert(i, 1, fw)
		advert(i, 1, bw)
		seqs[i] = p.seq
	}
	for k, i := range []int{0, n - 1, 0, n - 1} {
		p.seq = seqs[i]
		advert(i, 2+k/2, fw)
		seqs[i] = p.seq
	}
	var b bytes.Buffer
	text := decode.NewText(&b, decode.TextConfig{})
	_, err := decode.Run(bytes.NewReader(p.file.Bytes()), decode.Config{MaxULP: 64 << 10}, text)
	testrig.Must(t, err)
	testrig.Must(t, text.Flush())
	wantLines(t, b.String(), `summary of #0 `, `ULP +not followed to the end: too many connections at once\n`, `summary of #1 `)
	if got := strings.Count(b.String(), "not followed to the end"); got != 1 {
		t.Errorf("it is said %d times:\n%s", got, &b)
	}
}
