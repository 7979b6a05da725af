//go:build linux && interposer

package programs

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// learning are libraries with which programs of machine learning pass their data, and what a program of theirs says at
// the end. They connect QPs by themselves.
var learning = []struct {
	pkg, source, says string
	libraries         []string
	run               func(t *testing.T, l Library, binary string) (says *process)
}{
	{"libtensorpipe-dev", "tensorpipe.cc", "tensorpipe: right", []string{"-ltensorpipe"}, askTensorPipe},
	{"libgloo-dev", "gloo.cc", "gloo: right", []string{"-lgloo", "-libverbs"}, addUp},
}

// TestLearning has programs of these libraries pass messages and add up, with all data compared. libtensorpipe opens
// libibverbs by name.
func TestLearning(t *testing.T) {
	needs(t, "g++")
	l := built(t)
	t.Setenv(guiseVariable, string(RoCE))
	var results []result
	for _, p := range learning {
		name := strings.TrimSuffix(p.source, ".cc")
		run := func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), name)
			compile := exec.CommandContext(t.Context(), "g++", append([]string{"-std=c++17", "-O2", "-Wall", "-o", binary,
				filepath.Join("testdata", p.source)}, p.libraries...)...)
			if err := run(compile); err != nil {
				t.Fatal(err)
			}
			if out := p.run(t, l, binary).out.String(); !strings.Contains(out, p.says) {
				t.Errorf("%s", out)
			}
		}
		results = append(results, ran(t, name, version(p.pkg), compared, run))
		captured(t, name, 2, run)
	}
	wantResults(t, "TestLearning", results)
}

func askTensorPipe(t *testing.T, l Library, binary string) *process {
	port := freePort(t)
	server := startWords(t, l, nil, binary, port)
	server.awaitListening(t, port)
	client := startWords(t, l, nil, binary, port, "127.0.0.1")
	client.awaitSuccess(t)
	server.awaitSuccess(t)
	return client
}

// addUp has three processes of gloo's meet in a directory.
func addUp(t *testing.T, l Library, binary string) *process {
	const n = 3
	dir := t.TempDir()
	var all [n]*process
	for rank := range all {
		all[rank] = startWords(t, l, nil, binary, fmt.Sprint(rank), fmt.Sprint(n), dir)
	}
	for _, p := range all {
		p.awaitSuccess(t)
	}
	return all[0]
}
