//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An mpiRun is an implementation of MPI over a transport, with the compiler for its programs, and a program to compile.
type mpiRun struct {
	pkg, compiler, line, source string
	processes                   int
}

// mpiRuns are Open MPI over libfabric, whose provider is verbs with ofi_rxm above it, both Open MPI and MPICH over
// UCX, and Open MPI's OpenSHMEM.
var mpiRuns = []mpiRun{
	{"openmpi-bin", "mpicc.openmpi", "mpirun.openmpi --oversubscribe -n 2 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca btl self", "testdata/ring.c", 2},
	{"openmpi-bin", "mpicc.openmpi", "mpirun.openmpi --oversubscribe -n 4 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca btl self", "testdata/ring.c", 4},
	{"openmpi-bin", "mpicc.openmpi", connected + "mpirun.openmpi --oversubscribe -n 2 --mca pml ucx --mca pml_ucx_devices any --mca pml_ucx_tls any --mca btl self", "testdata/ring.c", 2},
	{"mpich", "mpicc.mpich", connected + "mpiexec.mpich -n 2", "testdata/ring.c", 2},
	{"mpich", "mpicc.mpich", connected + "mpiexec.mpich -n 3", "testdata/ring.c", 3},
	{"mpich", "mpicc.mpich", byDatagrams + "mpiexec.mpich -n 2", "testdata/ring.c", 2},
	{"openmpi-bin", "mpicc.openmpi", connected + "mpirun.openmpi --oversubscribe -n 2 --mca pml ucx --mca osc ucx --mca pml_ucx_devices any --mca pml_ucx_tls any --mca btl self", "testdata/onesided.c", 2},
	{"mpich", "mpicc.mpich", connected + "mpiexec.mpich -n 3", "testdata/onesided.c", 3},
	{"openmpi-bin", "oshcc", connected + "oshrun --oversubscribe -n 2 --mca spml ucx", "testdata/shmem.c", 2},
}

// TestMPI has processes of MPI's pass messages round a ring, add up, and use each other's memory, over the library.
func TestMPI(t *testing.T) {
	l := built(t)
	host(t, true) // libfabric takes no other
	// Who is root in a container is meant to be.
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	var results []result
	for _, r := range mpiRuns {
		line, run := r.line+" "+r.name(), func(t *testing.T) { r.run(t, l) }
		results = append(results, ran(t, line, version(r.pkg), compared, run))
		capturedWith(t, line, wantedCaptures{connected: r.processes,
			datagrams: strings.HasPrefix(line, byDatagrams)}, run)
	}
	wantResults(t, "TestMPI", results)
}

// name is that of the program.
func (r *mpiRun) name() string { return strings.TrimSuffix(filepath.Base(r.source), ".c") }

func (r *mpiRun) run(t *testing.T, l Library) {
	_, program := settingsOf(strings.Fields(r.line))
	needs(t, r.compiler, program[0])
	binary := filepath.Join(t.TempDir(), r.name())
	if err := run(exec.CommandContext(t.Context(), r.compiler, "-O2", "-Wall", "-o", binary, r.source)); err != nil {
		t.Fatal(err)
	}
	p := start(t, l, r.line+" "+binary)
	p.awaitSuccess(t)
	if !strings.Contains(p.out.String(), ": right") {
		t.Errorf("%s", p.out.String())
	}
}
