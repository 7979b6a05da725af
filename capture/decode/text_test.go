package decode_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt and *.json")

// printed returns the text of a capture.
func printed(t *testing.T, file []byte) string {
	t.Helper()
	var b bytes.Buffer
	text := decode.NewText(&b, decode.TextConfig{})
	_, err := decode.Run(bytes.NewReader(file), decode.Config{}, text)
	testrig.Must(t, err)
	testrig.Must(t, text.Flush())
	return b.String()
}

// TestPrinted compares what is printed of some captures with what was printed before.
func TestPrinted(t *testing.T) {
	captures := []string{"siw-rping-p2p", "siw-rping-crc-refused", "iwarp-markers", "iwarp-terminate", "sctp/iwarp-udp"}
	if stored, err := filepath.Glob("testdata/*.*"); err != nil || len(stored) != 2*len(captures) {
		t.Errorf("%q is stored, for %d captures (%v)", stored, len(captures), err)
	}
	for _, path := range captures {
		name := filepath.Base(path)
		file, err := os.ReadFile(testrig.Stored + path + ".pcap")
		testrig.Must(t, err)
		var text, lines bytes.Buffer
		plain := decode.NewText(&text, decode.TextConfig{FPDUs: true, Hex: true})
		objects := decode.NewJSON(&lines, decode.JSONConfig{FPDUs: true, Bytes: true})
		for _, to := range []interface {
			decode.Consumer
			Totals(decode.Totals)
			Flush() error
		}{plain, objects} {
			totals, err := decode.Run(bytes.NewReader(file), decode.Config{}, to)
			testrig.Must(t, err)
			to.Totals(totals)
			testrig.Must(t, to.Flush())
		}
		for line := range bytes.Lines(lines.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%s: no JSON: %s", name, line)
			}
		}
		testrig.Golden(t, filepath.Join("testdata", name+".txt"), text.Bytes(), *update)
		testrig.Golden(t, filepath.Join("testdata", name+".json"), lines.Bytes(), *update)
	}
}

// TestFolded prints for terminals: the same words, headed, in lines that are no longer than a terminal's.
func TestFolded(t *testing.T) {
	for _, path := range testrig.Captures(t, testrig.Stored) {
		file, err := os.ReadFile(path)
		testrig.Must(t, err)
		print := func(columns int) string {
			var b bytes.Buffer
			text := decode.NewText(&b, decode.TextConfig{FPDUs: true, Hex: true, Columns: columns})
			totals, err := decode.Run(bytes.NewReader(file), decode.Config{}, text)
			testrig.Must(t, err)
			text.Totals(totals)
			testrig.Must(t, text.Flush())
			return b.String()
		}
		whole := strings.Fields(print(0))
		for _, columns := range []int{72, 80, 132} {
			heading, rest, _ := strings.Cut(print(columns), "\n")
			if heading != "conn.   packet     seconds direction" || !slices.Equal(strings.Fields(rest), whole) {
				t.Errorf("%s, %d columns: %s\n%s", path, columns, heading, rest)
			}
			for line := range strings.Lines(rest) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
					t.Errorf("%s: %d columns of %d: %s", path, n, columns, line)
				}
			}
		}
	}
}
