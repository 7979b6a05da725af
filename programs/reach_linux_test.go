package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestObstacle names what keeps a program from the library, and has nothing to say of others.
func TestObstacle(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs are those of amd64's compiler")
	}
	dir := t.TempDir()
	source, l := filepath.Join(dir, "a.c"), Library{dir}
	testrig.Must(t, os.WriteFile(source, []byte("int main(void) { return 0; }\nvoid _start(void) {}\n"), 0o666))
	library := filepath.Join(dir, "library.c")
	testrig.Must(t, os.WriteFile(library, []byte("int puts(const char *);\nvoid f(void) { puts(\"\"); }\n"), 0o666))
	compileTo(t, l.Preload(), library, "-shared", "-fPIC")
	at := func(name string) string { return filepath.Join(dir, name) }
	const bare = "-nostartfiles"
	compileTo(t, at("dynamic"), source, bare)
	compileTo(t, at("static"), source, bare, "-static", "-nostdlib")
	compileTo(t, at("static-pie"), source, bare, "-static-pie", "-nostdlib", "-fPIE")
	compileTo(t, at("small"), source, bare, "-m32", "-nostdlib", "-fno-pic", "-no-pie")
	compileTo(t, at("musl"), source, bare, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
	script(t, at("script"), at("static"))
	script(t, at("nested"), at("script"))
	script(t, at("fine"), at("dynamic"))
	for name, says := range map[string]string{
		"dynamic": "", "fine": "", "a.c": "", "no such": "",
		"static": "static is linked statically", "static-pie": "is linked statically",
		"script": "static is linked statically", "nested": "static is linked statically",
		"small": "for 32 bits, and the library is for 64 bits", "musl": "is linked to musl",
	} {
		got := l.Obstacle(at(name))
		if !strings.Contains(got, says) || (got == "") != (says == "") {
			t.Errorf("%s: %q, want %q", name, got, says)
		}
	}
	if got := l.Obstacle("/lib64/ld-linux-x86-64.so.2"); got != "" {
		t.Errorf("the dynamic linker: %q", got)
	}
}

// TestPrivileges: a program that runs with the rights of others is named, and one with the caller's own is not.
func TestPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	file := filepath.Join(t.TempDir(), "program")
	testrig.Must(t, os.WriteFile(file, nil, 0o777))
	const other = 65534
	for _, tt := range []struct {
		uid, gid int
		mode     os.FileMode
		says     string
	}{
		{0, 0, 0o755 | os.ModeSetuid | os.ModeSetgid, ""},
		{other, other, 0o755, ""},
		{other, 0, 0o755 | os.ModeSetuid, "is set-user-id"},
		{0, other, 0o755 | os.ModeSetgid, "is set-group-id"},
	} {
		testrig.Must(t, os.Chown(file, tt.uid, tt.gid))
		testrig.Must(t, os.Chmod(file, tt.mode))
		got := Library{t.TempDir()}.Obstacle(file)
		if !strings.Contains(got, tt.says) || (got == "") != (tt.says == "") {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func script(t *testing.T, path, interpreter string) {
	t.Helper()
	testrig.Must(t, os.WriteFile(path, []byte("#! "+interpreter+" -x\n"), 0o777))
}

// compileTo compiles a program, or skips the test where the compiler does not make such.
func compileTo(t *testing.T, path, source string, options ...string) {
	t.Helper()
	compiler, err := findCompiler()
	if err != nil {
		testrig.Lacks(t, err.Error())
	}
	args := append(append(compiler[1:], options...), "-o", path, source)
	if out, err := exec.CommandContext(t.Context(), compiler[0], args...).CombinedOutput(); err != nil {
		testrig.Lacks(t, string(out))
	}
}
