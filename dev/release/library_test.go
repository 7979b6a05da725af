package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// newestGlibc is that of Debian 12. The library needs no newer one, wherever it is built.
const newestGlibc = 36

// hasLibrary: the library is in the archive, knows no path of the machine, and needs no new glibc.
func hasLibrary(t *testing.T, r *release, top string, files map[string]packed) {
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		testrig.Lacks(t, "there is no gcc: "+strings.Join(r.missing, "; "))
	}
	for _, name := range []string{"libiwarp-preload.so", "libiwarp-engine.so"} {
		file := files[top+"/lib/iwarp/"+name]
		if file.Text == "" {
			t.Fatalf("%s is missing: %s", name, strings.Join(r.missing, "; "))
		}
		if strings.Contains(file.Text, filepath.Join(os.TempDir(), "release")) {
			t.Errorf("%s names the directory that it was built in", name)
		}
		path := filepath.Join(t.TempDir(), name)
		testrig.Must(t, os.WriteFile(path, []byte(file.Text), file.Mode))
		needed, err := neededGlibc(path)
		testrig.Must(t, err)
		t.Logf("%s needs glibc %v", name, needed)
		if needed < 2 || needed > newestGlibc {
			t.Errorf("%s needs glibc %v", name, needed)
		}
	}
}

// TestNoCompiler: a library that cannot be built is left out, with the reason, and platforms without one need none.
func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &builder{scratch: t.TempDir()}
	for _, arch := range []string{"amd64", "arm64"} {
		files, missing, err := b.library(t.Context(), platform{"linux", arch}, nil)
		if err != nil || files != nil || !strings.Contains(missing, "library for programs") {
			t.Errorf("%s: %v, %q, %v", arch, files, missing, err)
		}
	}
	for _, p := range []platform{{"linux", "386"}, {"darwin", "arm64"}} {
		if files, missing, err := b.library(t.Context(), p, nil); files != nil || missing != "" || err != nil {
			t.Errorf("%v: %v, %q, %v", p, files, missing, err)
		}
	}
}
