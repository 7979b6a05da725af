package settings

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/mpa"
)

// An environment is that of a process.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// TestFrom reads what is right, and names what is wrong, each by its variable.
func TestFrom(t *testing.T) {
	for _, tt := range []struct {
		log, peer string
		level     bool
		preset    string
		wrong     []string
	}{
		{"", "", false, "", nil},
		{"packet", "siw", true, "siw", nil},
		{"foo", "siw", false, "siw", []string{`IWARP_LOG: "foo" is not one of connection, packet, frame`}},
		{"frame", "foo", true, "", []string{`IWARP_PEER: invalid argument: no preset "foo": one of siw`}},
		{"foo", "bar", false, "", []string{"IWARP_LOG: ", "IWARP_PEER: "}},
	} {
		s, err := From(environment{"IWARP_LOG": tt.log, "IWARP_PEER": tt.peer}.lookup)
		if (err == nil) != (tt.wrong == nil) || (s.Level != nil) != tt.level || (s.Preset != nil) != (tt.preset != "") {
			t.Errorf("%q, %q: %+v, %v", tt.log, tt.peer, s, err)
		}
		if s.Level != nil && *s.Level != map[string]any{"packet": slog.LevelDebug, "frame": iwarp.LevelFrame}[tt.log] {
			t.Errorf("%q: level %v", tt.log, *s.Level)
		}
		if s.Preset != nil && s.Preset.Name != tt.preset {
			t.Errorf("%q: preset %q", tt.peer, s.Preset.Name)
		}
		for _, text := range tt.wrong {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q, %q: no %q in %v", tt.log, tt.peer, text, err)
			}
		}
	}
	for text, want := range map[string]time.Duration{"": 0, "0": -1, "0s": -1, "-1us": -1, "50us": 50 * time.Microsecond} {
		if s, err := From(environment{"IWARP_SPIN": text}.lookup); err != nil || s.Spin != want {
			t.Errorf("IWARP_SPIN=%s: %v, %v", text, s.Spin, err)
		}
	}
	if _, err := From(environment{"IWARP_SPIN": "50"}.lookup); err == nil || !strings.Contains(err.Error(), `IWARP_SPIN: "50" is not a time`) {
		t.Error(err)
	}
	for _, name := range []string{"", "iwarp", "roce", "ib"} {
		if _, err := From(environment{"IWARP_AS": name}.lookup); (err != nil) != (name == "ib") {
			t.Errorf("%q: %v", name, err)
		}
	}
	s, err := From(environment{
		"IWARP_CRC": "off", "IWARP_MARKERS": "on", "IWARP_DIALECT": "rtr2007", "IWARP_PCAP": "x",
		"IWARP_PCAP_LIMIT": "2M",
	}.lookup)
	if want := (Settings{CRC: iwarp.CRCUnwanted, Markers: true, Dialect: mpa.DialectRtr,
		Capture: Capture{"x", 2 << 20}}); s != want || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{"IWARP_CRC", "IWARP_MARKERS", "IWARP_DIALECT", "IWARP_PCAP_LIMIT"} {
		s, err := From(environment{name: "foo"}.lookup)
		if s != (Settings{Capture: Capture{Limit: 256 << 20}}) || err == nil ||
			!strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if !strings.Contains(Help, name+"=") {
			t.Errorf("%s is not in the help", name)
		}
	}
	_, err = From(environment{"IWARP_PEER": "foo"}.lookup)
	if !errors.Is(err, iwarp.ErrInvalid) {
		t.Error(err)
	}
}

// TestCheck refuses a capture that cannot be written, begins one that is empty, and leaves others as they are.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	there, old, empty, fresh := filepath.Join(dir, "there"), filepath.Join(dir, "old"), filepath.Join(dir, "empty"),
		filepath.Join(dir, "new")
	const capture = "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00"
	for file, data := range map[string]string{there: "bytes", old: capture, empty: ""} {
		if err := os.WriteFile(file, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for file, right := range map[string]bool{
		"": true, there: false, old: true, empty: true, fresh: true, dir: false, os.DevNull: false,
		filepath.Join(dir, "none", "x"): false,
	} {
		err := Capture{File: file}.Check()
		if (err == nil) != right || err != nil && !strings.HasPrefix(err.Error(), "IWARP_PCAP: ") {
			t.Errorf("%q: %v", file, err)
		}
	}
	for file, want := range map[string]string{there: "bytes", old: capture} {
		if data, err := os.ReadFile(file); string(data) != want {
			t.Errorf("%q, %v", data, err)
		}
	}
	for _, name := range []string{empty, fresh} {
		wantNoPackets(t, name)
	}
}

// wantNoPackets wants a capture, with nothing in it.
func wantNoPackets(t *testing.T, name string) {
	t.Helper()
	data, _ := os.ReadFile(name) // without, it is no capture
	r, err := capture.Open(bytes.NewReader(data))
	if err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("%s: %v", name, err)
	}
}
