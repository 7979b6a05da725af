package main

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// installs runs the installer against the released archive, from a directory and over HTTP.
func installs(t *testing.T, r *release) {
	server := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer server.Close()
	for _, from := range []string{r.out, server.URL} {
		prefix := filepath.Join(t.TempDir(), "a prefix")
		out, err := runInstaller(t, filepath.Join(r.out, "install.sh"), from, prefix)
		if err != nil || !strings.Contains(out, r.version) {
			t.Fatalf("%v: %s", err, out)
		}
		version, err := exec.CommandContext(t.Context(), filepath.Join(prefix, "bin", "iwarp"), "version").Output()
		if err != nil || !strings.Contains(string(version), r.version) {
			t.Errorf("%v: %s", err, version)
		}
	}
}

func runInstaller(t *testing.T, script, from, prefix string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(testrig.Within(t), "sh", script)
	cmd.Env = append(os.Environ(), "IWARP_FROM="+from, "PREFIX="+prefix)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// scripted is a release of one archive with a script in place of the program, and its installer.
func scripted(t *testing.T) *release {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the installer is for other systems")
	}
	r := &release{builder: &builder{clone: repository, version: "v1.2.3"}, out: t.TempDir()}
	p := &program{platform: platform{runtime.GOOS, runtime.GOARCH}}
	program := "#!/bin/sh\necho iwarp v1.2.3\n"
	testrig.Must(t, r.archive(p, []entry{
		{"bin/iwarp", []byte(program), true},
		{"lib/systemd/system/iwarp.service", []byte("ExecStart=/usr/bin/iwarp serve\n"), false},
		{"lib/systemd/system/iwarp-disk.service", []byte("ExecStart=/usr/bin/iwarp disk\n"), false},
		{"share/man/man1/iwarp.1", []byte("page\n"), false},
		{"LICENSE", []byte("license\n"), false},
	}))
	testrig.Must(t, r.fill())
	return r
}

// TestInstaller: the installer puts the archive's tree below a directory, and again over what is there.
func TestInstaller(t *testing.T) {
	r := scripted(t)
	prefix := filepath.Join(t.TempDir(), "prefix")
	for range 2 {
		if out, err := runInstaller(t, filepath.Join(r.out, "install.sh"), r.out, prefix); err != nil ||
			!strings.Contains(out, "installed iwarp v1.2.3 into "+prefix) {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for file, want := range map[string]string{
		"lib/systemd/system/iwarp.service":      "ExecStart=" + prefix + "/bin/iwarp serve\n",
		"lib/systemd/system/iwarp-disk.service": "ExecStart=" + prefix + "/bin/iwarp disk\n",
		"share/man/man1/iwarp.1":                "page\n",
		"share/iwarp/files": prefix + "/bin/iwarp\n" + prefix + "/lib/systemd/system/iwarp-disk.service\n" + prefix + "/lib/systemd/system/iwarp.service\n" +
			prefix + "/share/man/man1/iwarp.1\n",
	} {
		if got, err := os.ReadFile(filepath.Join(prefix, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(prefix, "LICENSE")); err == nil {
		t.Error("what is beside the tree is installed, too")
	}
}

// TestInstallerRefuses: an archive with another checksum is not unpacked, nor is one that is not there.
func TestInstallerRefuses(t *testing.T) {
	r := scripted(t)
	_, name := r.archiveName(platform{runtime.GOOS, runtime.GOARCH})
	prefix := filepath.Join(t.TempDir(), "prefix")
	refused := func(want string) {
		t.Helper()
		out, err := runInstaller(t, filepath.Join(r.out, "install.sh"), r.out, prefix)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %s, want %q", err, out, want)
		}
		if _, err := os.Stat(filepath.Join(prefix, "bin")); err == nil {
			t.Error("something is installed")
		}
	}
	path := filepath.Join(r.out, name)
	data, err := os.ReadFile(path)
	testrig.Must(t, err)
	data[len(data)-1] ^= 1
	testrig.Must(t, os.WriteFile(path, data, 0o600))
	refused("nothing is installed")
	testrig.Must(t, os.Remove(path))
	refused("cannot be fetched")
}

// TestShellcheck reads the scripts as people get them.
func TestShellcheck(t *testing.T) {
	r := scripted(t)
	check, err := exec.LookPath("shellcheck")
	if err != nil {
		testrig.Lacks(t, "there is no shellcheck")
	}
	out, err := exec.CommandContext(t.Context(), check, filepath.Join(r.out, "install.sh"),
		repository+"/dist/packages/remove.sh", repository+"/.ci/run").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestFormula: the formula has the archives of the systems that Homebrew is for, with their checksums.
func TestFormula(t *testing.T) {
	r := &release{builder: &builder{clone: repository, version: "v1.2.3"}, out: t.TempDir()}
	for _, p := range []platform{{"darwin", "arm64"}, {"darwin", "amd64"}, {"linux", "amd64"}, {"windows", "amd64"}} {
		_, name := r.archiveName(p)
		r.made = append(r.made, made{name, sha256.Sum256([]byte(name))})
	}
	testrig.Must(t, r.fill())
	formula, err := os.ReadFile(filepath.Join(r.out, "iwarp.rb"))
	testrig.Must(t, err)
	const from = "https://github.com/goiwarp/iwarp/releases/download/v1.2.3/iwarp-v1.2.3-"
	var got []string
	for line := range strings.Lines(string(formula)) {
		if url, is := strings.CutPrefix(strings.TrimSpace(line), `url "`+from); is {
			got = append(got, url)
		}
	}
	want := `darwin-arm64.tar.gz" darwin-amd64.tar.gz" linux-amd64.tar.gz"`
	if strings.Join(got, " ") != want || strings.Count(string(formula), "sha256 ") != 3 {
		t.Errorf("%q, want %s", got, want)
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		check := exec.CommandContext(t.Context(), ruby, "-c", filepath.Join(r.out, "iwarp.rb"))
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
