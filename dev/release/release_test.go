package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const repository = "../.."

// released makes the archive of a platform, and returns its name and bytes. SHA256SUMS names it.
func released(t *testing.T, platform string) (name string, octets []byte) {
	t.Helper()
	out := t.TempDir()
	archives, err := release(testrig.Within(t), repository, "HEAD", out, []string{platform})
	testrig.Must(t, err)
	if len(archives) != 1 {
		t.Fatalf("%q", archives)
	}
	octets, err = os.ReadFile(filepath.Join(out, archives[0]))
	testrig.Must(t, err)
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	testrig.Must(t, err)
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(octets), archives[0]); string(sums) != want {
		t.Errorf("SHA256SUMS is %q, want %q", sums, want)
	}
	return archives[0], octets
}

// TestRelease makes the archive of this platform twice, in two directories. The two are equal, and the program in them
// says what it was built from.
func TestRelease(t *testing.T) {
	if !testrig.Everything() {
		t.Skip("it builds the program without paths, for which everything is compiled anew: IWARP_ALL=1 has it")
	}
	commit, err := exec.CommandContext(t.Context(), "git", "-C", repository, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("this is no checkout of git: %v", err)
	}
	name, one := released(t, runtime.GOOS+"/"+runtime.GOARCH)
	if again, two := released(t, runtime.GOOS+"/"+runtime.GOARCH); again != name || !bytes.Equal(one, two) {
		t.Errorf("%s has %d bytes, and %s has others: %d", name, len(one), again, len(two))
	}
	if runtime.GOOS == "windows" {
		return // whose archive is a zip file: TestPacked
	}
	files, top := untarred(t, one), strings.TrimSuffix(name, ".tar.gz")
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "man/man1/iwarp.1", "man/man1/iwarp-serve.1",
		"completion/_iwarp", "grafana/iwarp.json", "completion/iwarp.bash", "completion/iwarp.fish",
		"licenses/go/LICENSE", "licenses/gvisor.dev/gvisor/LICENSE"} {
		if files[top+"/"+file].Text == "" {
			t.Errorf("%s is missing or empty", file)
		}
	}
	if unit := files[top+"/systemd/iwarp.service"].Text; (unit != "") != (runtime.GOOS == "linux") {
		t.Errorf("a unit of %d bytes", len(unit))
	}
	wantVersion(t, files[top+"/iwarp"], top, strings.TrimSpace(string(commit)))
}

// wantVersion runs a program, which knows its version, which is in the archive's name, and its commit.
func wantVersion(t *testing.T, program packed, top, commit string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "iwarp")
	testrig.Must(t, os.WriteFile(path, []byte(program.Text), program.Mode))
	said, err := exec.CommandContext(testrig.Within(t), path, "version", "--json").Output()
	testrig.Must(t, err)
	var v struct{ Version, Go, Revision string }
	testrig.Must(t, json.Unmarshal(said, &v))
	if want := fmt.Sprintf("iwarp-%s-%s-%s", v.Version, runtime.GOOS, runtime.GOARCH); top != want {
		t.Errorf("the archive is %s, want %s", top, want)
	}
	if !strings.HasPrefix(v.Revision, commit) || v.Go != runtime.Version() || strings.Contains(v.Revision, "modified") {
		t.Errorf("%+v, want commit %s and %s", v, commit, runtime.Version())
	}
	if path := filepath.Join(os.TempDir(), "release"); strings.Contains(program.Text, path) {
		t.Errorf("the program has %s in it", path)
	}
}

// TestCommitTime: a program that does not know its commit, or was built from other files, is not released.
func TestCommitTime(t *testing.T) {
	at := debug.BuildSetting{Key: "vcs.time", Value: "2026-02-03T04:05:06Z"}
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, "the program does not know its commit"},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, at}, "the clone has other files than the commit"},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "false"}, at}, "<nil>"},
	} {
		if got, err := commitTime(c.settings); fmt.Sprint(err) != c.want || err == nil && got.Unix() != 1770091506 {
			t.Errorf("%v: %v, %v, want %s", c.settings, got, err, c.want)
		}
	}
}

// TestUnknown: what is not there to build is said before anything is built, or by the tool that knows.
func TestUnknown(t *testing.T) {
	for _, name := range []string{"linux", "/amd64", "linux/", ""} {
		if p, err := parsePlatform(name); err == nil {
			t.Errorf("%q is %v", name, p)
		}
	}
	if _, err := release(testrig.Within(t), t.TempDir(), "HEAD", t.TempDir(), nil); err == nil {
		t.Error("there was a release of a directory without a repository")
	}
}

// TestPlatforms: all platforms that there are archives for can be named.
func TestPlatforms(t *testing.T) {
	for _, name := range strings.Split(platforms, ",") {
		if _, err := parsePlatform(name); err != nil {
			t.Error(err)
		}
	}
}
