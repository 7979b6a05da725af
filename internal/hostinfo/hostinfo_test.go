package hostinfo

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestThis: what is told is of this machine, but neither its name nor who has built its kernel.
func TestThis(t *testing.T) {
	m := This()
	if m.CPUs != runtime.NumCPU() || m.Go != runtime.Version() || m.CPU == "" ||
		!strings.HasPrefix(m.Kernel, runtime.GOOS) {
		t.Errorf("%+v", m)
	}
	if strings.ContainsAny(m.Kernel, "-/") {
		t.Errorf("the kernel is %q", m.Kernel)
	}
}

func TestText(t *testing.T) {
	m := Machine{CPU: "Some CPU", CPUs: 2, Kernel: "linux 6.1", Go: "go1.26"}
	if want := "2 CPUs, Some CPU; linux 6.1; go1.26"; m.Text() != want {
		t.Errorf("%q, want %q", m.Text(), want)
	}
}

func TestField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "info")
	testrig.Must(t, os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: Some CPU: 2 GHz\nmodel name\t: another\n"),
		0o600))
	for name, want := range map[string]string{"model name": "Some CPU: 2 GHz", "model": ""} {
		if got := field(file, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := field(file+"-not-there", "model name"); got != "" {
		t.Errorf("%q", got)
	}
}
