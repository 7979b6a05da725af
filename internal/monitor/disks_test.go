package monitor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// TestDisks: a target without hosts has all metrics, and says whether it takes hosts.
func TestDisks(t *testing.T) {
	disk, err := target.NewMemory(1<<20, 512)
	testrig.Must(t, err)
	of, err := target.New(target.Config{NQN: "nqn.2026-11.org.example:disk",
		Namespaces: []target.Namespace{{Backend: disk}}})
	testrig.Must(t, err)
	state := serve.Serving
	c := newDisks(of, func() serve.State { return state })
	for _, ready := range []string{"1", "0"} {
		want := "# HELP iwarp_disk_ready Whether hosts are taken.\n# TYPE iwarp_disk_ready gauge\niwarp_disk_ready " + ready + "\n"
		if err := testutil.CollectAndCompare(c, strings.NewReader(want), "iwarp_disk_ready"); err != nil {
			t.Error(err)
		}
		state = serve.Draining
	}
	if n := testutil.CollectAndCount(c); n != 5 {
		t.Errorf("%d metrics", n)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	testrig.Must(t, err)
	page, err := os.ReadFile("../../docs/metrics.md")
	testrig.Must(t, err)
	for _, f := range families {
		if row := fmt.Sprintf("| `%s` | %s |\n", f.GetName(), f.GetHelp()); !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md has no %s", row)
		}
	}
	problems, err := testutil.CollectAndLint(prometheus.Collector(c))
	testrig.Must(t, err)
	for _, p := range problems {
		t.Errorf("%+v", p)
	}
}
