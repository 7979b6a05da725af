// Package settings reads the settings of a program under iwarp run from its environment. iwarp run refuses those that are wrong
// before the program starts, and the library complains where it was preloaded by hand.
package settings

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/goiwarp/iwarp"
)

// Settings are those of a process.
type Settings struct {
	Level  *slog.Level   // from which on its device logs, of IWARP_LOG; nil is nothing
	Preset *iwarp.Preset // of its peers, of IWARP_PEER; nil is none
	RoCE   bool          // what it passes for, of IWARP_AS
}

var levels = map[string]slog.Level{
	"connection": iwarp.LevelConnection, "packet": iwarp.LevelPacket, "frame": iwarp.LevelFrame,
}

// From reads the settings:
//
//	IWARP_LOG   connection, packet or frame: log what happens, on standard error
//	IWARP_PEER  the name of a preset, as that of iwarp.LookupPreset
//	IWARP_AS    iwarp or roce: what the device says that it is
//
// One that is empty is as one that is not there. The error, of an [errors.Join], has those that are wrong, without which the
// others hold.
func From(getenv func(string) (string, bool)) (Settings, error) {
	var s Settings
	var wrong []error
	if name, _ := getenv("IWARP_LOG"); name != "" {
		if level, ok := levels[name]; ok {
			s.Level = &level
		} else {
			wrong = append(wrong, fmt.Errorf("IWARP_LOG: %q is none of connection, packet, frame", name))
		}
	}
	if name, _ := getenv("IWARP_PEER"); name != "" {
		if preset, err := iwarp.LookupPreset(name); err != nil {
			wrong = append(wrong, fmt.Errorf("IWARP_PEER: %w", err))
		} else {
			s.Preset = &preset
		}
	}
	switch name, _ := getenv("IWARP_AS"); name {
	case "", "iwarp":
	case "roce":
		s.RoCE = true
	default:
		wrong = append(wrong, fmt.Errorf("IWARP_AS: %q is none of iwarp, roce", name))
	}
	return s, errors.Join(wrong...)
}
