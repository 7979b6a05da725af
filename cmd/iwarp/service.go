package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/goiwarp/iwarp/internal/monitor"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/serve"
)

// serviceFlags are those of commands that run as services.
type serviceFlags struct {
	Metrics string `placeholder:"HOST:PORT" help:"Serve metrics and health checks at this address (plain HTTP): /metrics for Prometheus, /healthz, and /readyz, which fails while the server ends. With port 0 a free port is taken and printed."`
	Log     string `enum:"text,json" default:"text" help:"How to log on standard error: ${enum}."`
}

// checkService refuses what is not an address.
func (f *serviceFlags) checkService(command string) error {
	if f.Metrics == "" {
		return nil
	}
	return wantListen(command+": --metrics", f.Metrics)
}

// logger logs what is of a level, or above.
func (f *serviceFlags) logger(std streams, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if f.Log == "json" {
		return slog.New(slog.NewJSONHandler(std.err, options))
	}
	return slog.New(slog.NewTextHandler(std.err, options))
}

// A told error was logged, and needs no other text.
type told struct{ error }

// Unwrap returns the error as it was.
func (t *told) Unwrap() error { return t.error }

// logged logs in JSON what a service has ended with, if that is how it logs: a reader of its standard error expects
// nothing else there.
func (f *serviceFlags) logged(ctx context.Context, std streams, command string, err error) error {
	if err == nil || f.Log != "json" {
		return err
	}
	log := f.logger(std, slog.LevelInfo)
	if statusOf(ctx, err) == statusFine {
		log.Info("interrupted")
	} else {
		log.Error("ended", "error", oneLine(&failure{command, err}))
	}
	return &told{err}
}

// warn tells that nobody can come as yet, as the service logs.
func (f *serviceFlags) warn(std streams, command string, over *network.Network) {
	if f.Log != "json" {
		warn(std, command, over)
	} else if err := over.Unready(); err != nil {
		f.logger(std, slog.LevelInfo).Warn(err.Error())
	}
}

// monitor serves the metrics of --metrics until stop is called.
func (f *serviceFlags) monitor(ctx context.Context, std streams, of monitor.Sources,
	log *slog.Logger) (stop func(), err error) {
	if f.Metrics == "" {
		return func() {}, nil
	}
	of.Version = versionName(built())
	m, err := monitor.Listen(ctx, f.Metrics, of, log)
	if err != nil {
		return nil, fmt.Errorf("%s: --metrics: %w", of.Name, err)
	}
	fmt.Fprintf(std.out, "metrics at http://%v/metrics\n", m.Addr())
	return func() { _ = m.Close() }, nil
}

// notifySocket names the socket where systemd wants to be told how a service is: sd_notify(3).
const notifySocket = "NOTIFY_SOCKET"

// notify returns what tells systemd, if it has started this process and wants to know; otherwise what does nothing.
func notify(log *slog.Logger) func(serve.State) {
	path := os.Getenv(notifySocket)
	if path == "" {
		return func(serve.State) {}
	}
	return func(state serve.State) {
		if err := tellSystemd(path, state); err != nil {
			log.Warn("systemd cannot be told", "state", state.String(), "error", err.Error())
		}
	}
}

func tellSystemd(path string, state serve.State) error {
	message, ok := map[serve.State]string{serve.Serving: "READY=1", serve.Draining: "STOPPING=1"}[state]
	if !ok {
		return nil
	}
	conn, err := net.Dial("unixgram", path) //nolint:noctx // it takes no time
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(message + "\nSTATUS=" + state.String()))
	return err
}
