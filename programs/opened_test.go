//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// opened is testdata/opened.c: a program that opens libibverbs by name has the device.
func (l Library) opened(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "opened", "-Wl,--as-needed") // not linked to the libraries, of which it names no function
}

// ctypes is the same for Python, in testdata/ctypes_list.py.
func (l Library) ctypes(t *testing.T) {
	needs(t, "python3")
	p := start(t, l, "python3 testdata/ctypes_list.py")
	p.awaitSuccess(t)
	if !strings.Contains(p.out.String(), "'iwarp0'") {
		t.Errorf("ctypes: %s", p.out.String())
	}
}

// next is testdata/next.c: who asks for what comes after its own library is answered as without ours.
func (l Library) next(t *testing.T) {
	dir := t.TempDir()
	for _, layer := range []string{"2", "1"} {
		compile(t, "-shared", "-fPIC", "-DLAYER="+layer, "-o", filepath.Join(dir, "liblayer"+layer+".so"), "testdata/next.c")
	}
	l.compiled(t, "next", "-D_GNU_SOURCE", "-DLAYER=0", "-Wl,--no-as-needed", "-L"+dir, "-llayer1", "-llayer2",
		"-Wl,-rpath,"+dir)
}

// module is testdata/module.c: a module that looks first in the libraries that it is linked to has the device.
func (l Library) module(t *testing.T) {
	module := filepath.Join(t.TempDir(), "module.so")
	compile(t, "-shared", "-fPIC", "-DMODULE", "-o", module, "testdata/module.c", "-libverbs")
	l.compiledWith(t, "module", []string{module}, "-D_GNU_SOURCE", "-Wl,--as-needed")
}

// sysfs is testdata/sysfs.c: the device has directories and files, as either kind of device. ls and Python list them.
func (l Library) sysfs(t *testing.T) {
	for _, as := range []Guise{IWARP, RoCE} {
		t.Setenv(guiseVariable, string(as))
		l.compiled(t, "sysfs", "-D_GNU_SOURCE")
	}
	for _, line := range []string{"ls -lR /sys/class/infiniband", "python3 testdata/sysfs_list.py"} {
		p := start(t, l, line)
		p.awaitSuccess(t)
		if out := p.out.String(); !strings.Contains(out, "iwarp0") || !strings.Contains(out, "link_layer") {
			t.Errorf("%s: %s", line, out)
		}
	}
}

// compile runs the C compiler.
func compile(t *testing.T, options ...string) {
	t.Helper()
	compiler, err := findCompiler()
	if err != nil {
		t.Fatal(err)
	}
	args := append(compiler[1:], "-O2", "-Wall", "-D_GNU_SOURCE")
	if err := run(exec.CommandContext(t.Context(), compiler[0], append(args, options...)...)); err != nil {
		t.Fatal(err)
	}
}
