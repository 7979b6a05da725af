// Package monitor tells of a server over HTTP: metrics for Prometheus, whether it is alive, and whether it takes connections.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/metrics"
)

// patience is how long a client of ours may take for a request, and an idle one may stay.
const patience = 10 * time.Second

// atOnce is how many scrapes there may be at a time.
const atOnce = 4

// A Monitor is an HTTP server.
type Monitor struct {
	ln     net.Listener
	server http.Server
	ended  chan error
}

// Listen listens at addr, for HTTP. What it tells is of a server, and of its RNIC, which is named device.
func Listen(ctx context.Context, addr string, of *serve.Server, rnic metrics.Source, device string, log *slog.Logger) (*Monitor, error) {
	h, err := handler(of, rnic, device)
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	m := &Monitor{ln: ln, ended: make(chan error, 1)}
	m.server = http.Server{
		Handler: h, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: 6 * patience, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() { m.ended <- m.server.Serve(ln) }()
	return m, nil
}

// Addr is where it listens.
func (m *Monitor) Addr() net.Addr { return m.ln.Addr() }

// Close ends it, at once.
func (m *Monitor) Close() error {
	err := m.server.Close()
	if ended := <-m.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(ended, err)
	}
	return err
}

// handler has the pages.
func handler(of *serve.Server, rnic metrics.Source, device string) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		metrics.New(rnic, device), newServices(of),
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: atOnce}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ready(w, of.Stats().State) })
	return mux, nil
}

// ready answers whether connections are taken.
func ready(w http.ResponseWriter, state serve.State) {
	if state != serve.Serving {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, state)
}
