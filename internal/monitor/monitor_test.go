package monitor

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// A rig is a server of rping with a Monitor.
type rig struct {
	t       *testing.T
	addr    string
	monitor *Monitor
	stop    context.CancelFunc
	ended   chan error
}

func run(t *testing.T) *rig {
	t.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	pings := rping.NewServer(rnic, rping.Config{})
	log := slog.New(slog.DiscardHandler)
	server := serve.New(serve.Config{
		Services: []serve.Service{{Name: "rping", Wants: "none", Knows: pings.Knows, Serve: pings.Serve}},
		Grace:    time.Hour, Log: log,
	})
	r := &rig{t: t, addr: ln.Addr().String(), ended: make(chan error, 1)}
	r.monitor, err = Listen(t.Context(), "127.0.0.1:0", Sources{Name: "serve", State: server.State,
		Server: server, RNIC: rnic, SCTP: new(iwarpsctp.Network), Device: "iwarp0"}, log)
	testrig.Must(t, err)
	r.says("/readyz", http.StatusServiceUnavailable, "starting")
	ctx, stop := context.WithCancel(testrig.Within(t))
	r.stop = stop
	go func() { r.ended <- server.Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		testrig.Must(t, r.monitor.Close())
	})
	return r
}

// get returns a page.
func (r *rig) get(path string) (status int, text string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(testrig.Within(r.t), http.MethodGet,
		"http://"+r.monitor.Addr().String()+path, nil)
	testrig.Must(r.t, err)
	page, err := http.DefaultClient.Do(req)
	testrig.Must(r.t, err)
	defer page.Body.Close()
	b, err := io.ReadAll(page.Body)
	testrig.Must(r.t, err)
	return page.StatusCode, string(b)
}

// says wants a page of one line.
func (r *rig) says(path string, status int, line string) {
	r.t.Helper()
	if got, text := r.get(path); got != status || text != line+"\n" {
		r.t.Errorf("%s: %d %q, want %d %q", path, got, text, status, line)
	}
}

// becomes waits until a page is so.
func (r *rig) becomes(path string, status int) {
	r.t.Helper()
	for ctx := testrig.Within(r.t); ctx.Err() == nil; {
		if got, _ := r.get(path); got == status {
			return
		}
	}
	r.t.Fatalf("%s does not become %d", path, status)
}

// TestScrape: the metrics tell of pings that were made, and are as Prometheus wants them.
func TestScrape(t *testing.T) {
	r := run(t)
	testrig.Must(t, rping.Client(testrig.Within(t), r.addr, rping.ClientConfig{Count: 3, Size: 100}))
	r.stop()
	testrig.Must(t, <-r.ended)
	status, text := r.get("/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	for _, line := range []string{
		`iwarp_serve_connections_ended_total{outcome="in_order",service="rping"} 1`,
		`iwarp_serve_connections_ended_total{outcome="gave_way",service="rping"} 0`,
		`iwarp_serve_rejected_total{reason="off"} 0`,
		`iwarp_serve_rejected_total{reason="declined"} 0`,
		`iwarp_serve_connections{service="rping"} 0`,
		`iwarp_payload_received_bytes_total{device="iwarp0",opcode="RDMA Read Response"} 300`,
		`iwarp_messages_sent_total{device="iwarp0",opcode="RDMA Write"} 3`,
		`iwarp_startups_established_total{device="iwarp0"} 1`,
		`iwarp_objects{device="iwarp0",kind="qp"} 0`,
		`iwarp_serve_ready 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
	for _, name := range []string{"node_infiniband_port_data_transmitted_bytes_total",
		"node_infiniband_port_packets_received_total"} {
		if !strings.Contains(text, "\n"+name+`{device="iwarp0",port="1"} `) ||
			strings.Contains(text, "\n"+name+`{device="iwarp0",port="1"} 0`) {
			t.Errorf("%s: %s", name, text)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	testrig.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestContents has / name the other pages, each of which is there.
func TestContents(t *testing.T) {
	r := run(t)
	r.becomes("/readyz", http.StatusOK)
	status, text := r.get("/")
	links := regexp.MustCompile(`href="(.*?)"`).FindAllStringSubmatch(text, -1)
	if status != http.StatusOK || len(links) != 3 {
		t.Errorf("%d %s", status, text)
	}
	for _, link := range links {
		if status, _ := r.get(link[1]); status != http.StatusOK {
			t.Errorf("%s: %d", link[1], status)
		}
	}
}

// TestHealth: a server is ready while it takes connections, and alive all the time.
func TestHealth(t *testing.T) {
	r := run(t)
	r.becomes("/readyz", http.StatusOK)
	r.says("/readyz", http.StatusOK, "serving")
	client, leave := context.WithCancel(testrig.Within(t))
	pinged := make(chan struct{}, 1<<20)
	left := make(chan error, 1)
	watch := func(e rping.Event) {
		if _, ok := e.(rping.Pinged); ok {
			select {
			case pinged <- struct{}{}:
			default:
			}
		}
	}
	go func() { left <- rping.Client(client, r.addr, rping.ClientConfig{Config: rping.Config{Watch: watch}}) }()
	<-pinged
	r.stop()
	r.becomes("/readyz", http.StatusServiceUnavailable)
	r.says("/readyz", http.StatusServiceUnavailable, "draining")
	r.says("/healthz", http.StatusOK, "ok")
	leave()
	testrig.Must(t, <-left)
	testrig.Must(t, <-r.ended)
	if status, _ := r.get("/other"); status != http.StatusNotFound {
		t.Errorf("/other: %d", status)
	}
}
