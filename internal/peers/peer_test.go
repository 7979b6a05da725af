package peers_test

import (
	"reflect"
	"testing"

	"github.com/goiwarp/iwarp/internal/peers"
)

// TestAssumed: what is assumed is a field of Behavior, and Knows says so.
func TestAssumed(t *testing.T) {
	for _, p := range peers.All() {
		for _, name := range p.Assumed {
			if _, ok := reflect.TypeFor[peers.Behavior]().FieldByName(name); !ok || p.Knows("AsksCRC", name) {
				t.Errorf("%s: there is no field %q that is not known", p.Name, name)
			}
		}
		if !p.Knows("AsksCRC") {
			t.Errorf("%s: nothing is known", p.Name)
		}
	}
}

// TestLookup finds each peer by its name, and nothing else.
func TestLookup(t *testing.T) {
	for _, p := range peers.All() {
		if got, ok := peers.Lookup(p.Name); !ok || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: got %+v", p.Name, got)
		}
		if p.Title == "" || p.Product == "" || p.Source == "" {
			t.Errorf("%+v", p)
		}
	}
	if p, ok := peers.Lookup("mlx5"); ok {
		t.Errorf("got %+v", p)
	}
}
