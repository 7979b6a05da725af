//go:build linux && interposer

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// What runs programs of arm64 on another machine, and compiles for it.
const (
	emulator      = "qemu-aarch64-static"
	crossCompiler = "aarch64-linux-gnu-gcc"
)

// emulated are programs of arm64 that are run, and the guise of the device.
var emulated = []struct {
	as Guise
	pairing
}{
	{IWARP, pairing{"rdmacm-utils", "rping -s -a 127.0.0.1 -p PORT -C 10 -V",
		"rping -c -a 127.0.0.1 -p PORT -C 10 -V -v", compared, false, "rdma-ping-9:"}},
	{IWARP, pairing{"rdmacm-utils", "rdma_server -p PORT", "rdma_client -s 127.0.0.1 -p PORT", completed,
		false, "rdma_client: end 0"}},
	{IWARP, pairing{"rdmacm-utils", "riostream -p PORT -T v -S 4096 -C 5",
		"riostream -s 127.0.0.1 -p PORT -T v -S 4096 -C 5", compared, false, "4k"}},
	{IWARP, pairing{"perftest", "ib_send_bw -R -p PORT -n 50",
		"ib_send_bw -R -p PORT -n 50 127.0.0.1", rate, false, "65536"}},
	{IWARP, pairing{"perftest", "ib_write_bw -R -p PORT -n 50",
		"ib_write_bw -R -p PORT -n 50 127.0.0.1", rate, false, "65536"}},
	{RoCE, pairing{"ibverbs-utils", "ibv_rc_pingpong -p PORT -c -n 50", "ibv_rc_pingpong -p PORT -c -n 50 127.0.0.1",
		compared, false, "usec/iter"}},
}

// TestArm64 builds the library for arm64 where that is not this machine's processor, and runs programs of Debian's for
// it, emulated by QEMU: those that were unpacked into the directory IWARP_ARM64, whose file versions has a line for
// each package, as dpkg-deb -W prints it. Its libraries have to be there beside this machine's. With -update
// it writes its results to results.json.
func TestArm64(t *testing.T) {
	dir := os.Getenv("IWARP_ARM64")
	if dir == "" {
		testrig.Lacks(t, "IWARP_ARM64 names no directory with programs of arm64")
	}
	versions, err := os.ReadFile(filepath.Join(dir, "versions"))
	testrig.Must(t, err)
	needs(t, emulator, crossCompiler)
	t.Setenv("CC", crossCompiler)
	t.Setenv("GOARCH", "arm64")
	l := Library{t.TempDir()}
	if err := l.Build(t.Context(), "(devel)"); err != nil {
		testrig.Lacks(t, err.Error())
	}
	for _, name := range []string{"extended", "windows", "fork"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(guiseVariable, string(RoCE))
			options := pair
			if name == "extended" {
				options = nil
			}
			start(t, l, onArm64(l.program(t, name, options...))).awaitSuccess(t)
		})
	}
	var results []result
	for _, p := range emulated {
		name := strings.NewReplacer(" -p PORT", "", "127.0.0.1", "IP").Replace(p.client)
		results = append(results, ran(t, name, unpacked(t, string(versions), p.pkg), p.verified, func(t *testing.T) {
			t.Setenv(guiseVariable, string(p.as))
			p.server, p.client = onArm64(filepath.Join(dir, "usr/bin", p.server)),
				onArm64(filepath.Join(dir, "usr/bin", p.client))
			p.run(t, l)
		}))
	}
	wantResults(t, testOnArm64, results)
}

// unpacked names a package with the version that was unpacked.
func unpacked(t *testing.T, versions, pkg string) string {
	for line := range strings.Lines(versions) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == pkg {
			return pkg + " " + version
		}
	}
	t.Errorf("the file versions does not have %s", pkg)
	return pkg
}

// onArm64 runs a program by the emulator, which takes what is to be preloaded from its environment.
func onArm64(line string) string { return emulator + " -L / " + line }
