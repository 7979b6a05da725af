package matrix_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// TestWrongCellDiffers has every cell of figure 2 demanded as it is not.
func TestWrongCellDiffers(t *testing.T) {
	figure := matrix.Figures[0]
	figure.Rows = slices.Clone(figure.Rows)
	for line := range figure.Rows {
		cells := slices.Clone(figure.Rows[line].Cells)
		for n, cell := range cells {
			cells[n] = map[string]string{"close": "V=1 M=1/1", "V=1 M=0/1": "V=1 M=1/0"}[cell]
			if cells[n] == "" {
				cells[n] = "close"
			}
		}
		figure.Rows[line].Cells = cells
	}
	report, err := matrix.RunData(t.Context(), matrix.Config{Timeout: patience}, []matrix.Figure{figure}, nil)
	testrig.Must(t, err)
	if report.AsDemanded != 0 || report.Cells != 9 {
		t.Errorf("%d of %d wrong demands were met", report.AsDemanded, report.Cells)
	}
	text := printed(t, report, false)
	for _, want := range []string{
		"| V=0 M=1/1 FAIL |", "| close     FAIL", "demanded close, got up", "demanded up, got close",
		"fail           figure 2/RDMAC M=1 -> RDMAC M=1",
		"demanded M=1/0, got M=0/1", "9 cells, 0 as demanded",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not in the text: %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestEveryDemandCanFail spoils the demands of a row of each kind, one after the other.
func TestEveryDemandCanFail(t *testing.T) {
	t.Parallel()
	picked := regexp.MustCompile(`^(dialects/(rfc6581 -> serving (rfc6581|rfc5044)|rtr2007 -> serving rtr2007)` +
		`|kinds/non-permissive, 2007.*|RTR indications/offered (send, supported read|write, all.*)` +
		`|IRD and ORD/(the responder raises its IRD|Reply's ORD needs.*)|rejections/the responder says.*` +
		`|private data/startkey\+messages: the most|frames by hand/Reply: closes on revision 2, no fallback)$`)
	wantSpoiled(t, matrix.Groups(), picked,
		"V", "M", "CRC", "dialect", "rev", "asked", "flags", "request", "reply", "ird", "ord", "p2p", "rtr", "answer",
		"pd", "first", "data", "stream", "code", "failure", "named", "fellback", "closed", "rtrframe")
}

// wantSpoiled spoils each demand of the rows that are picked, one after the other, and wants it to be reported. There
// must be one of each kind.
func wantSpoiled(t *testing.T, groups []matrix.Group, picked *regexp.Regexp, kinds ...string) {
	t.Helper()
	spoiled := matrix.Group{Name: "spoiled"}
	keys := map[string]bool{}
	for _, g := range groups {
		for _, row := range g.Rows {
			if !picked.MatchString(g.Name + "/" + row.Name) {
				continue
			}
			demands := matrix.Demands(&row)
			for n, demand := range demands {
				key, _, ok := strings.Cut(demand, "=")
				keys[key] = keys[key] || ok
				wrong := slices.Clone(demands)
				wrong[n] = spoil(demand)
				row.Demanded = strings.Join(wrong, " ")
				spoiled.Rows = append(spoiled.Rows, row)
			}
		}
	}
	report, err := matrix.RunData(t.Context(), matrix.Config{Timeout: patience}, nil, []matrix.Group{spoiled})
	testrig.Must(t, err)
	for _, r := range report.Wider {
		if r.OK || !strings.Contains(strings.Join(r.Differences, "\n"), "spoiled") {
			t.Errorf("%s: demanded %q, got %q, differences %q", r.Name, r.Demanded, r.Got, r.Differences)
		}
	}
	for _, key := range kinds {
		if !keys[key] {
			t.Errorf("no row that was picked demands %q", key)
		}
	}
}

// spoil makes a demand that nothing meets.
func spoil(demand string) string {
	if key, _, ok := strings.Cut(demand, "="); ok {
		return key + "=spoiled"
	}
	return "spoiled"
}

// TestJudge: a fact must be what is demanded, and the same for all who know it.
func TestJudge(t *testing.T) {
	up := [3]string{"initiator", "outcome", "up"}
	for _, c := range []struct {
		demands     string
		said        [][3]string
		got         string
		differences []string
	}{
		{"up V=1", [][3]string{up, {"initiator", "V", "1"}, {"wire", "V", "1"}}, "up V=1", nil},
		{
			"up V=1", [][3]string{up, {"initiator", "V", "1"}, {"responder", "V", "1"}, {"wire", "V", "0"}},
			"up V=1@initiator+1@responder+0@wire", []string{"demanded V=1, got V=1@initiator+1@responder+0@wire"},
		},
		{
			"up", [][3]string{up, {"initiator", "CRC", "1"}, {"wire", "CRC", "0"}},
			"up", []string{"not the same everywhere: CRC=1@initiator+0@wire"},
		},
		{"up CRC=1", [][3]string{up}, "up CRC=unknown", []string{"demanded CRC=1, got CRC=unknown"}},
		{"close", [][3]string{up}, "up", []string{"demanded close, got up"}},
		{"up rtr=write,read", [][3]string{up, {"wire", "rtr", "read"}}, "up rtr=read", nil},
		{"up rtr=write,read", [][3]string{up, {"wire", "rtr", "send"}}, "up rtr=send",
			[]string{"demanded rtr=write,read, got rtr=send"}},
		{"up ird=*/7", [][3]string{up, {"both", "ird", "32/7"}}, "up ird=32/7", nil},
		{"up ird=*/7", [][3]string{up, {"both", "ird", "32/8"}}, "up ird=32/8",
			[]string{"demanded ird=*/7, got ird=32/8"}},
		{"up failure=*", [][3]string{up}, "up failure=unknown", []string{"demanded failure=*, got failure=unknown"}},
	} {
		got, differences := matrix.Judge(c.demands, c.said...)
		if got != c.got || !slices.Equal(differences, c.differences) {
			t.Errorf("%q: %q %q, want %q %q", c.demands, got, differences, c.got, c.differences)
		}
	}
}

// TestHang has a responder promise private data that it does not send.
func TestHang(t *testing.T) {
	half := &mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1, PDLength: 20, PrivateData: make([]byte, 10)}
	rows := []matrix.Row{{
		Name: "half a Reply", Demanded: "up",
		Initiator: matrix.Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}},
		Responder: matrix.Responder{Replies: []*mpa.StartupFields{half}},
	}}
	report, err := matrix.RunData(t.Context(), matrix.Config{Timeout: 50 * time.Millisecond}, nil,
		[]matrix.Group{{Name: "hang", Rows: rows}})
	testrig.Must(t, err)
	r := report.Wider[0]
	if r.OK || len(r.Differences) == 0 || r.Differences[0] != "it hangs: it is not over after 50ms" {
		t.Errorf("ok is %v, differences %q", r.OK, r.Differences)
	}
}

// TestNothingPicked: a typing error in a pattern is no success.
func TestNothingPicked(t *testing.T) {
	if r, err := matrix.Run(t.Context(), matrix.Config{Match: regexp.MustCompile("nothing like it")}); err == nil {
		t.Errorf("%d cells, and no error", r.Cells)
	}
}

// TestNoErrorWhereAllIsWell: that a connection was closed in order is no error of either end, and where one was
// refused, as is demanded, both tell why.
func TestNoErrorWhereAllIsWell(t *testing.T) {
	for _, over := range []string{network.TCP, network.SCTP} {
		report, err := matrix.Run(t.Context(), matrix.Config{Timeout: patience, Network: over,
			Match: regexp.MustCompile("^(private data|SCTP private data|figure 2)/")})
		testrig.Must(t, err)
		rows := slices.Clone(report.Wider)
		for _, f := range report.Figures {
			for _, c := range f.Cells {
				rows = append(rows, &c.Result)
			}
		}
		up := 0
		for _, r := range rows {
			came := strings.HasPrefix(r.Got, "up ")
			up += wording.Bit(came)
			if none := r.InitiatorError == "" && r.ResponderError == ""; !r.OK || none != came {
				t.Errorf("%s/%s: %s: %q, %q", r.Group, r.Name, r.Got, r.InitiatorError, r.ResponderError)
			}
		}
		if up == 0 {
			t.Errorf("%s: no connection of %d came up", over, len(rows))
		}
	}
}

// TestJSON holds the keys that the package's documentation names.
func TestJSON(t *testing.T) {
	report, err := matrix.Run(t.Context(), matrix.Config{Timeout: patience,
		Match: regexp.MustCompile("^(figure 2/RDMAC M=1 -> non|rejections/rfc5044, 0)")})
	testrig.Must(t, err)
	row := []string{
		"group", "name", "requirements", "section", "demanded", "got", "ok", "differences", "wire", "ms",
	}
	top := object(t, report)
	keys(t, top, "cells", "as_demanded", "ms", "figures", "wider")
	figures, wider := top["figures"].([]any), top["wider"].([]any)
	if len(figures) != 1 || len(wider) != 1 {
		t.Fatalf("%d figures and %d wider rows", len(figures), len(wider))
	}
	figure := figures[0].(map[string]any)
	keys(t, figure, "figure", "title", "cells")
	cells := figure["cells"].([]any)
	if len(cells) != 2 {
		t.Fatalf("%d cells", len(cells))
	}
	keys(t, cells[0].(map[string]any), append([]string{"initiator", "initiator_markers", "responder",
		"responder_markers", "printed", "initiator_error", "responder_error"}, row...)...)
	keys(t, wider[0].(map[string]any), append(row, "initiator_error")...)
	var junit bytes.Buffer
	testrig.Must(t, report.Report().WriteJUnit(&junit))
	if want := fmt.Sprintf(` time="%.3f"`, report.MS/1000); !strings.Contains(strings.SplitAfter(junit.String(),
		"\n")[1], want) {
		t.Errorf("JUnit has another time than JSON, %s: %s", want, &junit)
	}
}

func object(t *testing.T, v any) (o map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	testrig.Must(t, err)
	return o
}

func keys(t *testing.T, o map[string]any, want ...string) {
	t.Helper()
	for key := range o {
		if !slices.Contains(want, key) {
			t.Errorf("%q is not documented", key)
		}
	}
	for _, key := range want {
		if v, ok := o[key]; !ok || v == nil {
			t.Errorf("%q is missing, or null", key)
		}
	}
}

func printed(t *testing.T, r *matrix.Report, verbose bool) string {
	t.Helper()
	var b bytes.Buffer
	testrig.Must(t, r.Report().WriteText(&b, verbose))
	return b.String()
}

// TestText: everything fits in 100 columns of ASCII.
func TestText(t *testing.T) {
	t.Parallel()
	var text string
	for _, name := range []string{network.TCP, network.SCTP} {
		report, err := matrix.Run(t.Context(), matrix.Config{Timeout: patience, Network: name})
		testrig.Must(t, err)
		text += printed(t, report, true)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 100 ||
			strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{
		"Figure 3: ", "| RDMAC M=1      | V=0 M=1/1 ok | N/A       ok   | V=0 M=1/1 ok   |\n",
		"wire      -> MPA ID Req Frame M C rev 0 pd 0\n", "wire      <- MPA ID Rep Frame C rev 1 pd 0\n",
		"RTR indications     ", "wire      <- Enhanced Reject pd 0 flags ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not in the text: %q", want)
		}
	}
}
