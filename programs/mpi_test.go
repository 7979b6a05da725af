//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mpiRuns are programs of Open MPI's over libfabric, whose provider is verbs with ofi_rxm above it: testdata/ring.c.
var mpiRuns = []string{
	"mpirun --oversubscribe -n 2 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca btl self RING",
	"mpirun --oversubscribe -n 4 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca btl self RING",
}

// TestMPI has processes of Open MPI's pass messages round a ring, and add up, over the library.
func TestMPI(t *testing.T) {
	l := built(t)
	needs(t, "mpicc", "mpirun")
	host(t, true) // libfabric takes no other
	ring := filepath.Join(t.TempDir(), "ring")
	if err := run(exec.CommandContext(t.Context(), "mpicc", "-O2", "-Wall", "-o", ring, filepath.Join("testdata", "ring.c"))); err != nil {
		t.Fatal(err)
	}
	// Who is root in a container is meant to be.
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	table := "| program of MPI | package | all processes ours | data |\n|---|---|---|---|\n"
	for _, words := range mpiRuns {
		table += row(t, strings.Replace(words, "RING", "ring", 1), "openmpi-bin", compared, func(t *testing.T) {
			p := startWords(t, l, nil, replaced(strings.Fields(words), "RING", ring)...)
			p.end(t)
			if !strings.Contains(p.out.String(), ": right") {
				t.Errorf("%s", p.out.String())
			}
		})
	}
	writeTable(t, ".mpi", table)
}
