//go:build linux && (amd64 || arm64)

package verbs

import (
	"log/slog"
	"os"

	"github.com/goiwarp/iwarp"
)

// ConfigFrom reads the settings of a process from its environment, which iwarp run sets:
//
//	IWARP_LOG   connection, packet or frame: log what happens, on standard error
//	IWARP_PEER  the name of a preset, as that of iwarp.LookupPreset
//	IWARP_AS    iwarp or roce: what the device says that it is
//
// A value that is not known is reported on standard error, and has no effect.
func ConfigFrom(getenv func(string) (string, bool)) Config {
	var cfg Config
	if name, ok := getenv("IWARP_LOG"); ok && name != "" {
		cfg.RNIC.Logger = logger(name)
	}
	if name, ok := getenv("IWARP_PEER"); ok && name != "" {
		preset, err := iwarp.LookupPreset(name)
		if err != nil {
			complain("IWARP_PEER", err.Error())
		} else {
			cfg.Preset = &preset
		}
	}
	switch name, _ := getenv("IWARP_AS"); name {
	case "", "iwarp":
	case "roce":
		cfg.RoCE = true
	default:
		complain("IWARP_AS", name+" is none of iwarp, roce")
	}
	return cfg
}

var levels = map[string]slog.Level{
	"connection": iwarp.LevelConnection, "packet": iwarp.LevelPacket, "frame": iwarp.LevelFrame,
}

func logger(name string) *slog.Logger {
	level, ok := levels[name]
	if !ok {
		complain("IWARP_LOG", name+" is none of connection, packet, frame")
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

func complain(setting, what string) {
	_, _ = os.Stderr.WriteString("iwarp: " + setting + ": " + what + "\n")
}
