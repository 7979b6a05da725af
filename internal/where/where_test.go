package where_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/where"
	"github.com/goiwarp/iwarp/rdmap"
)

// A list has the names of what comes through.
type list struct {
	decode.Ignore
	all []string
}

func (l *list) Found(c *decode.Connection) {
	l.all = append(l.all, fmt.Sprint("#", c.TCP.Number))
}

func (l *list) FPDU(_ *decode.Connection, f *decode.FPDU) {
	l.all = append(l.all, fmt.Sprint(f.Number))
}

func (l *list) Read(*decode.Connection, *decode.Read) {
	l.all = append(l.all, "read")
}

func (l *list) Finding(_ *decode.Connection, f *decode.Finding) {
	l.all = append(l.all, f.Name)
}

func (l *list) Ended(*decode.Connection) { l.all = append(l.all, "ended") }

// tell tells of a few events.
func tell(to decode.Consumer) {
	first, second := conn(0), conn(1)
	to.Found(first)
	to.Found(second)
	request := &rdmap.ReadRequest{SinkSTag: 5, SrcSTag: 6, Size: 8192}
	to.Startup(first, &decode.Startup{})
	to.FPDU(first, fpdu(1, rdmap.OpWrite, 1, 0, 100))
	to.FPDU(first, fpdu(2, rdmap.OpSendSE, 0, 7, 5000))
	asks := fpdu(3, rdmap.OpReadRequest, 0, 1, 28)
	asks.ReadRequest = request
	to.FPDU(second, asks)
	to.FPDU(second, fpdu(4, rdmap.OpReadResponse, 5, 0, 8192))
	invalidates := fpdu(5, rdmap.OpSendInvalidate, 0, 8, 10)
	invalidates.Segment.ULP = 6
	to.FPDU(second, invalidates)
	at := time.Unix(1, 0)
	to.Read(second, &decode.Read{Request: capture.Stamp{Time: at}, Last: capture.Stamp{Time: at.Add(3 * time.Millisecond)},
		ReadRequest: *request})
	to.Finding(second, &decode.Finding{Severity: decode.Error, Name: "crc-wrong"})
	to.Finding(second, &decode.Finding{Severity: decode.Note, Name: "midstream"})
	to.FPDU(second, &decode.FPDU{Number: 6}) // in error: it has no field
	to.Ended(first)
	to.Ended(second)
}

func conn(n int) *decode.Connection {
	return &decode.Connection{TCP: &capture.Connection{Number: n}}
}

func fpdu(number uint64, op rdmap.Opcode, stag, msn uint32, payload int) *decode.FPDU {
	f := &decode.FPDU{Number: number, HasSegment: true, Op: op}
	info, _ := op.Info()
	f.Segment.Tagged, f.Segment.STag, f.Segment.MSN = info.Tagged, stag, msn
	f.Segment.Payload = make([]byte, payload)
	return f
}

// TestWhere chooses events.
func TestWhere(t *testing.T) {
	for text, want := range map[string]string{
		"op=write":                         "#0 1",
		"OP = Send":                        "#0 2 #1 5",
		"op=send-with-invalidate":          "#1 5",
		"op=read":                          "#1 3 4 read",
		"op!=read":                         "#0 1 2 #1 5",
		"stag=6":                           "#1 3 5 read",
		"stag==0x5 and op=read-response":   "#1 4",
		"stag!=5":                          "#0 1 #1 5",
		"msn>=7":                           "#0 2 #1 5",
		"bytes>4K":                         "#0 2 #1 3 4 read",
		"bytes<=100":                       "#0 1 #1 5",
		"latency>2ms":                      "#1 read",
		"latency>=3ms":                     "#1 read",
		"latency<3ms":                      "",
		"finding=crc-wrong":                "#1 crc-wrong",
		"finding>=warning":                 "#1 crc-wrong",
		"finding=note":                     "#1 midstream",
		"finding!=crc-wrong":               "#1 midstream",
		"not op=send and not finding>note": "#0 1 #1 3 4 read midstream 6",
		"op=write or msn=1 and bytes=8192": "#0 1 #1 3",
		"(op=write or msn=1) && bytes=100": "#0 1",
		"!(op=write||op=send)&&bytes>0":    "#1 3 4 read",
	} {
		expr, err := where.Parse(text)
		l := &list{}
		tell(where.NewFilter(expr, l))
		if got := strings.Join(l.all, " "); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", text, got, err, want)
		}
	}
}

// TestEnds hands on ends as well.
func TestEnds(t *testing.T) {
	expr, err := where.Parse("op=write")
	l := &list{}
	f := where.NewFilter(expr, l)
	f.Ends = true
	tell(f)
	if got := strings.Join(l.all, " "); err != nil || got != "#0 1 ended" {
		t.Errorf("%q (%v)", got, err)
	}
}

// TestErrors says what is wrong, and where.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "a comparison is missing, such as bytes>4K (column 1)",
		"op=write and":                     "a comparison is missing, such as bytes>4K (column 13)",
		"opcode=write":                     `there is no field "opcode": op, stag, msn, bytes, latency, finding (column 1)`,
		"op=rite":                          `there is no op "rite": write, read, send, terminate, immediate, atomic (column 4)`,
		"op":                               "behind op, one of = != < <= > >= is missing (column 3)",
		"op=":                              "behind op=, a name is missing (column 4)",
		"op=(write)":                       "behind op=, a name is missing (column 4)",
		"op<write":                         `op "write" is no number: compare it by = or != (column 4)`,
		"finding>=bad":                     `"bad" is no severity: note, warning, error (column 10)`,
		"bytes>lots":                       `bytes is compared with a number of bytes, such as 4096 or 4K, and not with "lots" (column 7)`,
		"latency>3":                        `latency is compared with a time, such as 50us, 1.5ms or 2s, and not with "3" (column 9)`,
		"latency>-1s":                      `latency is compared with a time, such as 50us, 1.5ms or 2s, and not with "-1s" (column 9)`,
		"stag=0x100000000":                 `stag is compared with a number, such as 0x1234, and not with "0x100000000" (column 6)`,
		"msn=1 msn=2":                      `there is "msn" where and, or, or the end was expected (column 7)`,
		"(msn=1":                           "a ) is missing (column 7)",
		"msn=1)":                           `there is ")" where and, or, or the end was expected (column 6)`,
		strings.Repeat("(", 200) + "msn=1": "it is nested too deep (column 102)",
	} {
		_, err := where.Parse(text)
		var is *where.Error
		if !errors.As(err, &is) || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzParse has any text be an expression or not: one that is can be put in parentheses, and negated twice.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"op=write", "not (msn=1 or finding>=note) and bytes<4K", "!!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		expr, err := where.Parse(text)
		if err != nil {
			if at := new(where.Error); !errors.As(err, &at) || at.Column < 1 || at.Column > len(text)+1 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := where.Parse("not(not (" + text + "))")
		if err != nil {
			if strings.Contains(err.Error(), "too deep") {
				return
			}
			t.Fatal(err)
		}
		var one, other list
		tell(where.NewFilter(expr, &one))
		tell(where.NewFilter(again, &other))
		if !slices.Equal(one.all, other.all) {
			t.Errorf("%q: %q, and twice negated %q", text, one.all, other.all)
		}
	})
}
