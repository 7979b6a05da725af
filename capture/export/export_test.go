package export_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
	"github.com/goiwarp/iwarp/internal/testrig"
)

func TestMain(m *testing.M) { testrig.Main(m) }

const upperPDU = capture.LinkType(252)

// exported exports a capture, and tells another consumer of it.
func exported(t *testing.T, in []byte, cfg export.Config, also decode.Consumer) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := export.New(&out, cfg)
	testrig.Must(t, err)
	_, err = decode.Run(bytes.NewReader(in), decode.Config{After: e.Packet}, tee{e, also})
	testrig.Must(t, err)
	testrig.Must(t, e.Close())
	return out.Bytes()
}

// tee tells of FPDUs and findings twice.
type tee struct {
	*export.Exporter
	also decode.Consumer
}

func (x tee) FPDU(c *decode.Connection, f *decode.FPDU) {
	x.Exporter.FPDU(c, f)
	x.also.FPDU(c, f)
}

func (x tee) Finding(c *decode.Connection, f *decode.Finding) {
	x.Exporter.Finding(c, f)
	x.also.Finding(c, f)
}

// seen has copies of ULPDUs and of what findings say.
type seen struct {
	decode.Ignore
	ulpdus   [][]byte
	findings []string
}

func (s *seen) FPDU(_ *decode.Connection, f *decode.FPDU) {
	if f.HasSegment && f.Cut == 0 {
		s.ulpdus = append(s.ulpdus, bytes.Clone(f.ULPDU))
	}
}

func (s *seen) Finding(_ *decode.Connection, f *decode.Finding) {
	s.findings = append(s.findings, f.Text)
}

// packets reads a capture.
func packets(t *testing.T, file []byte) (all []capture.Packet) {
	t.Helper()
	r, err := capture.Open(bytes.NewReader(file))
	testrig.Must(t, err)
	for {
		p, err := r.Next()
		if err == io.EOF {
			return all
		}
		testrig.Must(t, err)
		c := *p
		c.Data = bytes.Clone(p.Data)
		all = append(all, c)
	}
}

// tags takes apart what is in front of a ULPDU.
func tags(t *testing.T, b []byte) (values map[uint16][]byte, ulpdu []byte) {
	t.Helper()
	values = map[uint16][]byte{}
	for len(b) >= 4 {
		tag, size := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if tag == 0 && size == 0 {
			return values, b[4:]
		}
		values[tag], b = b[4:4+size], b[4+size:]
	}
	t.Fatal("the tags have no end")
	return nil, nil
}

// TestExport exports captures of siw and of our own ends. All packets are there as they were, each ULPDU
// is behind the packet that completed it, and each finding is a comment.
func TestExport(t *testing.T) {
	files, err := filepath.Glob("../../interop/testdata/captures/*.pcap")
	testrig.Must(t, err)
	if len(files) < 3 {
		t.Fatalf("captures: %q", files)
	}
	for _, file := range files {
		in, err := os.ReadFile(file)
		testrig.Must(t, err)
		want := &seen{}
		out := exported(t, in, export.Config{Application: "test"}, want)
		var same []capture.Packet
		var ulpdus [][]byte
		for _, p := range packets(t, out) {
			if p.Link != upperPDU {
				same = append(same, p)
				continue
			}
			values, ulpdu := tags(t, p.Data)
			if number := binary.BigEndian.Uint32(values[30]); int(number) != len(same) {
				t.Errorf("%s: a ULPDU of packet %d is behind packet %d", file, number, len(same))
			}
			if got := string(bytes.TrimRight(values[12], "\x00")); got != "iwarp_ddp_rdmap" {
				t.Errorf("the dissector is %q", got)
			}
			ulpdus = append(ulpdus, ulpdu)
		}
		if !slices.EqualFunc(ulpdus, want.ulpdus, bytes.Equal) {
			t.Errorf("%s: %d ULPDUs, want %d", file, len(ulpdus), len(want.ulpdus))
		}
		wantSame(t, file, same, packets(t, in))
		for _, text := range want.findings {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s: no comment has %q", file, text)
			}
		}
	}
}

// TestExportAgain exports what was exported: the packets are the same, and no ULPDU is there twice.
func TestExportAgain(t *testing.T) {
	in, err := os.ReadFile("../../interop/testdata/captures/siw-rping.pcap")
	testrig.Must(t, err)
	once := packets(t, exported(t, in, export.Config{}, &seen{}))
	again := packets(t, exported(t, exported(t, in, export.Config{}, &seen{}), export.Config{}, &seen{}))
	if len(once) == len(packets(t, in)) || len(again) != len(once) {
		t.Errorf("%d packets, and then %d", len(once), len(again))
	}
	totals, err := decode.Run(bytes.NewReader(exported(t, in, export.Config{}, &seen{})), decode.Config{}, decode.Ignore{})
	if err != nil || len(totals.Unread) > 0 {
		t.Errorf("of what was exported, %v was not read (%v)", totals.Unread, err)
	}
}

// TestExportSome leaves out the packets of other connections.
func TestExportSome(t *testing.T) {
	var in bytes.Buffer
	w, err := capture.NewPacketWriter(&in, "")
	testrig.Must(t, err)
	testrig.Must(t, w.Packet(&capture.Packet{Link: capture.LinkRaw, Data: []byte("no packet of a connection")}))
	testrig.Must(t, w.Flush())
	for some, want := range map[bool]int{false: 1, true: 0} {
		if n := len(packets(t, exported(t, in.Bytes(), export.Config{Some: some}, &seen{}))); n != want {
			t.Errorf("some %v: %d packets, want %d", some, n, want)
		}
	}
}

// wantSame compares packets but for their numbers.
func wantSame(t *testing.T, file string, got, want []capture.Packet) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b capture.Packet) bool {
		return a.Time.Equal(b.Time) && a.Link == b.Link && a.OrigLen == b.OrigLen && bytes.Equal(a.Data, b.Data)
	}) {
		t.Errorf("%s: %d packets, want %d, or others", file, len(got), len(want))
	}
}
