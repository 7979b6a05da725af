//go:build linux && interposer

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// guises has testdata/guise.c stand for programs, by their names: each has the guise that it needs, whoever starts it,
// and the environment overrules that.
func (l Library) guises(t *testing.T) {
	binary := l.program(t, "guise")
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"rping", "ibv_rc_pingpong", "ibv_ud_pingpong", "ib_write_bw", "ib_send_lat",
		"ib_read_lat", "ucx_perftest", "mpirun", "oshrun", "tgtd", "ring"} {
		testrig.Must(t, os.Symlink(binary, filepath.Join(dir, name)))
	}
	for line, want := range map[string]Guise{
		"rping -s":                                IWARP,
		"ibv_rc_pingpong -g 0":                    RoCE,
		filepath.Join(dir, "ibv_rc_pingpong"):     RoCE,
		"ibv_ud_pingpong -g 0":                    RoCE,
		"ib_write_bw -a":                          RoCE,
		"ib_write_bw -a -R":                       IWARP,
		"ib_send_lat -aR 127.0.0.1":               IWARP,
		"ib_send_lat --rdma_cm":                   IWARP,
		"ib_send_lat --rdma_cmx":                  RoCE,
		"ib_read_lat -d Roce":                     RoCE,
		"ucx_perftest":                            RoCE,
		"tgtd -f":                                 RoCE,
		"ring":                                    IWARP,
		"mpirun exec ring":                        RoCE,
		"oshrun exec ring":                        RoCE,
		"rping exec ibv_rc_pingpong":              RoCE,
		"ibv_rc_pingpong exec rping":              IWARP,
		"env ib_write_bw":                         RoCE,
		"IWARP_AS=iwarp ib_write_bw":              IWARP,
		"IWARP_AS=iwarp mpirun exec ring":         IWARP,
		"IWARP_AS= ib_write_bw":                   RoCE,
		"IWARP_AS=roce rping":                     RoCE,
		"IWARP_AS=roce rping exec ib_write_bw -R": RoCE,
	} {
		p := start(t, l, line)
		p.awaitSuccess(t)
		if got := strings.TrimSpace(p.out.String()); got != string(want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// device is what ibv_devinfo says of the device.
func (l Library) device(t *testing.T) {
	p := start(t, l, "ibv_devinfo -v")
	p.awaitSuccess(t)
	for _, says := range []string{"hca_id:\tiwarp0", "iWARP (1)", "PORT_ACTIVE", "Ethernet", "GID[  0]"} {
		if !strings.Contains(p.out.String(), says) {
			t.Errorf("no %q:\n%s", says, p.out.String())
		}
	}
}
