package usertcp

import (
	"bytes"
	"os"
	"testing"

	"gvisor.dev/gvisor/pkg/log"
)

// TestQuiet: with a Stack, gVisor writes nothing to standard error, and what a program has set stays.
func TestQuiet(t *testing.T) {
	was := log.Log().Emitter
	defer log.SetTarget(was)
	withStacks := func() {
		a, b, err := Pair(Config{}, Path{}, Path{})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = a.Close(), b.Close()
	}
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: os.Stderr}}) // as gVisor begins
	withStacks()
	if e, loud := log.Log().Emitter.(log.GoogleEmitter); loud {
		t.Errorf("%+v", e)
	}
	var said bytes.Buffer
	log.SetTarget(&log.Writer{Next: &said})
	withStacks()
	if log.Warningf("heard"); said.String() != "heard\n" {
		t.Errorf("%q", said.String())
	}
}
