package decode_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt and *.json")

// TestPrinted compares what is printed of some captures with what was printed before.
func TestPrinted(t *testing.T) {
	for _, name := range []string{"siw-rping-p2p", "siw-rping-crc-refused", "iwarp-markers", "iwarp-terminate"} {
		file, err := os.ReadFile("../../interop/testdata/captures/" + name + ".pcap")
		if err != nil {
			t.Fatal(err)
		}
		var text, lines bytes.Buffer
		plain := decode.NewText(&text, decode.TextConfig{FPDUs: true, Hex: true})
		objects := decode.NewJSON(&lines, decode.JSONConfig{FPDUs: true, Octets: true})
		for _, to := range []interface {
			decode.Consumer
			Totals(decode.Totals)
			Flush() error
		}{plain, objects} {
			totals, err := decode.Run(bytes.NewReader(file), decode.Config{Octets: true}, to)
			if err != nil {
				t.Fatal(err)
			}
			to.Totals(totals)
			if err := to.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		for line := range bytes.Lines(lines.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%s: no JSON: %s", name, line)
			}
		}
		golden(t, name+".txt", text.Bytes())
		golden(t, name+".json", lines.Bytes())
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(got, want) {
		t.Errorf("%s is printed otherwise: run go test -run TestPrinted -update, and look at what has changed", name)
	}
}
