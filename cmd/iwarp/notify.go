package main

import (
	"log/slog"
	"net"
	"os"

	"github.com/goiwarp/iwarp/internal/serve"
)

// notifySocket names the socket where systemd wants to be told how a service is: sd_notify(3).
const notifySocket = "NOTIFY_SOCKET"

// notify returns what tells systemd, if it has started this process and wants to know.
func notify(log *slog.Logger) func(serve.State) {
	path := os.Getenv(notifySocket)
	if path == "" {
		return nil
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
