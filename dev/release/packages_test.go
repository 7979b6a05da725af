package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// installedFiles are some that a package has.
var installedFiles = []string{"/usr/bin/iwarp", "/usr/lib/systemd/system/iwarp.service",
	"/usr/lib/systemd/system/iwarp-disk.service", "/usr/share/man/man1/iwarp.1",
	"/usr/share/bash-completion/completions/iwarp", "/usr/share/doc/iwarp/LICENSE"}

// packageOf is the file of a format's package.
func packageOf(t *testing.T, r *release, format string) string {
	t.Helper()
	for _, m := range r.made {
		if strings.HasSuffix(m.name, "."+format) {
			return filepath.Join(r.out, m.name)
		}
	}
	t.Fatalf("there is no %s", format)
	return ""
}

// TestPackages: the same files give the same packages, which the tools of their systems read.
func TestPackages(t *testing.T) {
	made := func() *release {
		r := &release{builder: &builder{clone: repository, scratch: t.TempDir(), version: "v1.2.3"}, out: t.TempDir()}
		p := &program{platform{"linux", "amd64"}, "", "v1.2.3", time.Unix(1770091506, 0)}
		testrig.Must(t, r.packages(p, []entry{
			{"bin/iwarp", []byte("#!/bin/sh\n"), true},
			{"lib/systemd/system/iwarp.service", []byte("unit\n"), false},
			{"lib/systemd/system/iwarp-disk.service", []byte("unit\n"), false},
			{"share/man/man1/iwarp.1", []byte("page\n"), false},
			{"share/bash-completion/completions/iwarp", []byte("script\n"), false},
			{"LICENSE", []byte("license\n"), false},
		}))
		return r
	}
	one, two := made(), made()
	if len(one.made) != len(formats) || !slices.Equal(one.made, two.made) {
		t.Errorf("%v, and then %v", one.made, two.made)
	}
	t.Run("rpm", func(t *testing.T) { listsRPM(t, one) })
	t.Run("deb", func(t *testing.T) {
		needsTool(t, "dpkg-deb")
		list := exec.CommandContext(testrig.Within(t), "dpkg-deb", "-c", packageOf(t, one, "deb"))
		list.Env = append(os.Environ(), "TZ=UTC")
		out, err := list.Output()
		testrig.Must(t, err)
		for _, file := range installedFiles {
			if !strings.Contains(string(out), " ."+file+"\n") {
				t.Errorf("%s is missing: %s", file, out)
			}
		}
		if !strings.Contains(string(out), "-rwxr-xr-x root/root        10 2026-02-03 04:05 ./usr/bin/iwarp\n") {
			t.Errorf("owner, mode or time: %s", out)
		}
	})
}

// needsTool skips a test without a program of Linux.
func needsTool(t *testing.T, tools ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("packages are for Linux")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			testrig.Lacks(t, "there is no "+tool)
		}
	}
}

// listsRPM: rpm reads the package.
func listsRPM(t *testing.T, r *release) {
	needsTool(t, "rpm")
	out, err := exec.CommandContext(testrig.Within(t), "rpm", "-qpl", packageOf(t, r, "rpm")).Output()
	testrig.Must(t, err)
	for _, file := range installedFiles {
		if !strings.Contains(string(out), file+"\n") {
			t.Errorf("%s is missing", file)
		}
	}
}

// installsDeb installs, uses and removes the package in bare Debians that have neither Go nor a compiler nor headers.
// An ordinary user there runs unmodified programs on the library.
func installsDeb(t *testing.T, r *release) {
	needsTool(t, "debootstrap", "unshare")
	if os.Getuid() != 0 {
		testrig.Lacks(t, "a root file system needs root")
	}
	for _, suite := range []string{"bullseye", "bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) { installsIn(t, r, bareDebian(t, suite)) })
	}
}

func installsIn(t *testing.T, r *release, root string) {
	deb := packageOf(t, r, "deb")
	data, err := os.ReadFile(deb)
	testrig.Must(t, err)
	testrig.Must(t, os.WriteFile(filepath.Join(root, "iwarp.deb"), data, 0o644))
	inside(t, root, "! { command -v go || command -v gcc || command -v cc; }")
	inside(t, root, "dpkg -i /iwarp.deb && iwarp version")
	for _, file := range installedFiles {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Errorf("after dpkg -i: %v", err)
		}
	}
	if !strings.Contains(strings.Join(r.missing, ""), "library") {
		for _, by := range []string{"iwarp run", "LD_PRELOAD=/usr/lib/iwarp/libiwarp-preload.so"} {
			runsBoth(t, root, by+" rping -s -a 127.0.0.1 -p 7999 -C 5", by+" rping -c -a 127.0.0.1 -p 7999 -C 5 -v", "rdma-ping-4:")
		}
		const writes = "iwarp run ib_write_bw -F -R -n 100 -p 7998"
		runsBoth(t, root, writes, writes+" 127.0.0.1", "65536")
	}
	inside(t, root, "dpkg -r iwarp")
	for _, file := range installedFiles {
		if _, err := os.Stat(filepath.Join(root, file)); err == nil {
			t.Errorf("after dpkg -r, there is %s", file)
		}
	}
}

// runsBoth has nobody run both ends of one of Debian's programs. The client tries until the server is there.
func runsBoth(t *testing.T, root, server, client, says string) {
	t.Helper()
	said := inside(t, root, `su -s /bin/sh nobody -c '
		`+server+` &
		for turn in 1 2 3 4 5 6 7 8 9 10; do
			sleep 1
			`+client+` && break
		done
		wait'`)
	if !strings.Contains(said, says) {
		t.Errorf("%s does not say %q: %s", client, says, said)
	}
}

// bareDebian unpacks the smallest Debian, of this machine's archive, with rping and perftest.
func bareDebian(t *testing.T, suite string) string {
	t.Helper()
	archive, err := archiveOf(t.Context())
	if err != nil {
		testrig.Lacks(t, err.Error())
	}
	root := filepath.Join(t.TempDir(), "root")
	// A whole system is unpacked: only the time of all tests bounds that.
	out, err := exec.CommandContext(t.Context(), "debootstrap", "--variant=minbase", "--include=rdmacm-utils,perftest",
		suite, root, archive).CombinedOutput()
	if err != nil {
		testrig.Lacks(t, "debootstrap failed: "+string(out[max(0, len(out)-300):]))
	}
	return root
}

// inside runs a command of the shell in a root file system, as its root.
func inside(t *testing.T, root, command string) string {
	t.Helper()
	cmd := exec.CommandContext(testrig.Within(t), "unshare", "--mount", "sh", "-c",
		`mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh -c "$2"`, "sh", root, command)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, out)
	}
	return string(out)
}
