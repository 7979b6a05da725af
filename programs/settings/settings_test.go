package settings

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
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
		{"foo", "siw", false, "siw", []string{`IWARP_LOG: "foo" is none of connection, packet, frame`}},
		{"frame", "foo", true, "", []string{"IWARP_PEER: ", `no preset "foo": one of siw`}},
		{"foo", "bar", false, "", []string{"IWARP_LOG: ", "IWARP_PEER: "}},
	} {
		s, err := From(environment{"IWARP_LOG": tt.log, "IWARP_PEER": tt.peer}.lookup)
		if (err == nil) != (tt.wrong == nil) || (s.Level != nil) != tt.level || (s.Preset != nil) != (tt.preset != "") {
			t.Errorf("%q, %q: %+v, %v", tt.log, tt.peer, s, err)
		}
		if s.Level != nil && *s.Level != map[string]any{"packet": iwarp.LevelPacket, "frame": iwarp.LevelFrame}[tt.log] {
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
	for name, want := range map[string]bool{"": false, "iwarp": false, "roce": true, "ib": false} {
		s, err := From(environment{"IWARP_AS": name}.lookup)
		if s.RoCE != want || (err != nil) != (name == "ib") {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
	}
	_, err := From(environment{"IWARP_PEER": "foo"}.lookup)
	if !errors.Is(err, iwarp.ErrInvalid) {
		t.Error(err)
	}
}
