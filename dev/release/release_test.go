package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const repository = "../.."

// released makes the release of a platform, and returns it with the bytes of its files.
func released(t *testing.T, platform string) (r *release, files map[string][]byte) {
	t.Helper()
	r, err := makeRelease(t.Context(), repository, "HEAD", t.TempDir(), []string{platform})
	testrig.Must(t, err)
	files = make(map[string][]byte)
	var sums strings.Builder
	for _, m := range r.made {
		files[m.name], err = os.ReadFile(filepath.Join(r.out, m.name))
		testrig.Must(t, err)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[m.name]), m.name)
	}
	said, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	testrig.Must(t, err)
	if string(said) != sums.String() {
		t.Errorf("SHA256SUMS is %q, want %q", said, sums.String())
	}
	for _, what := range r.missing {
		t.Log("left out: ", what)
	}
	return r, files
}

// TestRelease makes the release of this platform twice, in two directories. The two are equal, the program in them says
// what it was built from, and packages and installers do what they should.
func TestRelease(t *testing.T) {
	if !testrig.Everything() {
		t.Skip("it builds the program without paths, for which everything is compiled anew: IWARP_ALL=1 has it")
	}
	commit, err := exec.CommandContext(t.Context(), "git", "-C", repository, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("this is no checkout of git: %v", err)
	}
	r, one := released(t, runtime.GOOS+"/"+runtime.GOARCH)
	_, two := released(t, runtime.GOOS+"/"+runtime.GOARCH)
	for name, data := range one {
		if !bytes.Equal(data, two[name]) {
			t.Errorf("%s has %d bytes, and then others: %d", name, len(data), len(two[name]))
		}
	}
	if runtime.GOOS == "windows" {
		return // whose archive is a zip file: TestPacked
	}
	top, name := r.archiveName(r.here.platform)
	files := untarred(t, one[name])
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "share/man/man1/iwarp.1",
		"share/man/man1/iwarp-serve.1", "share/" + completions["zsh"], "share/iwarp/grafana/iwarp.json",
		"share/" + completions["bash"], "share/" + completions["fish"],
		"licenses/go/LICENSE", "licenses/gvisor.dev/gvisor/LICENSE"} {
		if files[top+"/"+file].Text == "" {
			t.Errorf("%s is missing or empty", file)
		}
	}
	for _, name := range []string{"iwarp.service", "iwarp-disk.service"} {
		if unit := files[top+"/lib/systemd/system/"+name].Text; (unit != "") != (runtime.GOOS == "linux") {
			t.Errorf("a unit of %d bytes", len(unit))
		}
	}
	wantVersion(t, files[top+"/bin/iwarp"], top, strings.TrimSpace(string(commit)))
	t.Run("install", func(t *testing.T) { installs(t, r) })
	t.Run("library", func(t *testing.T) { hasLibrary(t, r, top, files) })
	t.Run("deb", func(t *testing.T) { installsDeb(t, r) })
	t.Run("rpm", func(t *testing.T) { listsRPM(t, r) })
	t.Run("recipes", func(t *testing.T) { followsRecipes(t, r) })
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
	info, err := buildinfo.ReadFile(path)
	testrig.Must(t, err)
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "-pgo", Value: filepath.Base(profile)}) {
		t.Errorf("the program is not built by the profile: %v", info.Settings)
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
	if _, err := makeRelease(testrig.Within(t), t.TempDir(), "HEAD", t.TempDir(), nil); err == nil {
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
