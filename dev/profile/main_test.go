package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestNameless: what is left of a profile has the functions, and no file of the machine.
func TestNameless(t *testing.T) {
	f := &profile.Function{ID: 1, Name: "iwarp.post", SystemName: "iwarp.post", Filename: "/home/somebody/post.go", StartLine: 3}
	m := &profile.Mapping{ID: 1, File: "/tmp/somebody/iwarp.test"}
	l := &profile.Location{ID: 1, Mapping: m, Address: 0x1234, Line: []profile.Line{{Function: f, Line: 5}}}
	kinds := []*profile.ValueType{{Type: "samples", Unit: "count"}}
	p := &profile.Profile{SampleType: kinds, Function: []*profile.Function{f}, Mapping: []*profile.Mapping{m},
		Location: []*profile.Location{l}, Sample: []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{7}}}}
	var measured bytes.Buffer
	testrig.Must(t, p.WriteUncompressed(&measured))
	if !bytes.Contains(measured.Bytes(), []byte("somebody")) {
		t.Fatal("there is nothing to remove")
	}
	text, err := nameless(measured.Bytes())
	testrig.Must(t, err)
	got, err := profile.ParseData(text)
	testrig.Must(t, err)
	if len(got.Mapping) != 0 || len(got.Function) != 1 || got.Function[0].Filename != "" {
		t.Errorf("%v", got)
	}
	if s := got.Sample[0]; s.Value[0] != 7 || s.Location[0].Line[0].Line != 5 || got.Function[0].StartLine != 3 {
		t.Errorf("%v", got)
	}
}

// TestRecorded: the profile of the release is one that this command wrote, and has the way of a post.
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile("../../" + out)
	testrig.Must(t, err)
	p, err := profile.ParseData(text)
	testrig.Must(t, err)
	names := make(map[string]bool)
	for _, f := range p.Function {
		names[f.Name] = true
		if f.Filename != "" {
			t.Errorf("%s is in %s", f.Name, f.Filename)
		}
	}
	if post := "github.com/goiwarp/iwarp.(*QP).PostSend"; !names[post] {
		t.Errorf("there is no %s among %d functions", post, len(names))
	}
}
