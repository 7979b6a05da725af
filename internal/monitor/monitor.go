// Package monitor tells of a server over HTTP: metrics for Prometheus, whether it is alive, and whether it takes
// connections.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/sparse"
	"github.com/goiwarp/iwarp/metrics"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// How long a client may take for a header, for a request or its answer, and how long one may stay that asks for
// nothing.
const (
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second
	idleTime    = time.Minute
)

// atOnce is how many scrapes there may be at a time.
const atOnce = 4

// A Monitor is an HTTP server.
type Monitor struct {
	ln     net.Listener
	server http.Server
	errors *sparse.Handler
	ended  chan error
}

// Sources are what a Monitor tells of.
type Sources struct {
	Name    string             // of the command
	Version string             // as iwarp version prints it
	State   func() serve.State // of the server
	Server  *serve.Server      // whose services have metrics, or nil
	Disks   *target.Target     // whose commands have metrics, or nil
	RNIC    metrics.Source
	SCTP    metrics.SCTPSource // below the RNIC
	Device  string             // names the RNIC
}

// Listen listens at addr, for HTTP.
func Listen(ctx context.Context, addr string, of Sources, log *slog.Logger) (*Monitor, error) {
	h, err := handler(of)
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return startServing(ln, h, log), nil
}

func startServing(ln net.Listener, h http.Handler, log *slog.Logger) *Monitor {
	m := &Monitor{ln: ln, errors: sparse.New(log.Handler()), ended: make(chan error, 1)}
	m.server = http.Server{
		Handler: noting(h), ConnContext: know, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(m.errors, slog.LevelWarn),
	}
	go func() { m.ended <- m.server.Serve(newCrowd(ln)) }()
	return m
}

// Addr is where it listens.
func (m *Monitor) Addr() net.Addr { return m.ln.Addr() }

// Close ends it, at once.
func (m *Monitor) Close() error {
	err := m.server.Close()
	if ended := <-m.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(ended, err)
	}
	m.errors.Flush()
	return err
}

// contents is the page that says what the others are.
const contents = `<!doctype html>
<html lang="en">
<title>iwarp %[1]s</title>
<h1>iwarp %[1]s</h1>
<ul>
<li><a href="/metrics">/metrics</a>: metrics for Prometheus
<li><a href="/healthz">/healthz</a>: whether the process is alive
<li><a href="/readyz">/readyz</a>: whether connections are taken
</ul>
`

// buildInfo has the version that the command prints: Go's own collector knows that of the module alone, which a build
// from a checkout does not have.
func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "iwarp_build_info", Help: "Always 1: the version is a label.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()}}, func() float64 { return 1 })
}

// handler has the pages.
func handler(of Sources) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	all := []prometheus.Collector{
		metrics.New(of.RNIC, of.Device), metrics.NewSCTP(of.SCTP, of.Device),
		collectors.NewGoCollector(), buildInfo(of.Version),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if of.Server != nil {
		all = append(all, newServices(of.Server))
	}
	if of.Disks != nil {
		all = append(all, newDisks(of.Disks, of.State))
	}
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, contents, of.Name) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: atOnce}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ready(w, of.State()) })
	return mux, nil
}

// ready answers whether connections are taken.
func ready(w http.ResponseWriter, state serve.State) {
	if state != serve.Serving {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, state)
}
