//go:build linux && (amd64 || arm64)

package verbs

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/goiwarp/iwarp/programs/settings"
)

// ConfigFrom reads the settings of a process from its environment, as [settings.From] does. A value that is not known, which
// iwarp run refuses, is reported on standard error, and has no effect.
func ConfigFrom(getenv func(string) (string, bool)) Config {
	s, err := settings.From(getenv)
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "iwarp: %v\n", err)
	}
	cfg := Config{Preset: s.Preset, RoCE: s.RoCE}
	if s.Level != nil {
		cfg.RNIC.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: *s.Level}))
	}
	return cfg
}
