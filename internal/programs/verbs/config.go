//go:build linux && (amd64 || arm64)

package verbs

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/settings"
	"github.com/goiwarp/iwarp/mpa"
)

// Config says how a Device is to behave.
type Config struct {
	// RNIC is passed on to package iwarp.
	RNIC iwarp.RNICConfig
	// Preset, if it is set, is the kind of peer that connections are made with.
	Preset *iwarp.Preset
	// Dialect, if it is set, is the one in which connections start, and the only one that is served.
	Dialect mpa.Dialect
	// Recording, if it is set, is the capture of what is sent and received.
	Recording *Recording
	// RoCE has the device pass for one of RoCE: QPs can connect without a rdma_cm_id, by Meet, and Sends that find no
	// receive wait for one.
	RoCE bool
}

// ConfigFrom reads the settings of a process from its environment, as [settings.From] does. A value that is not known,
// which iwarp run refuses, is reported on standard error, and has no effect; so is a capture that cannot be written.
// The guise is the caller's to choose.
func ConfigFrom(getenv func(string) (string, bool)) Config {
	s, err := settings.From(getenv)
	if err != nil {
		complain(err)
	}
	cfg := Config{Preset: s.Preset, Dialect: s.Dialect, RNIC: iwarp.RNICConfig{Markers: s.Markers, CRC: s.CRC, Spin: s.Spin}}
	if s.Level != nil {
		cfg.RNIC.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: *s.Level}))
	}
	if s.Capture.File != "" {
		if cfg.Recording, err = Record(s.Capture.File, s.Capture.Limit); err != nil {
			complain(fmt.Errorf("IWARP_PCAP: %w", err))
		}
	}
	return cfg
}

// complain tells the user, who has no other way to hear of it.
func complain(err error) { _, _ = fmt.Fprintf(os.Stderr, "iwarp: %v\n", err) }

// dialer is that of a connection with such an offer. noReads leaves depths of zero as they are.
func (d *Device) dialer(offer mpa.Offer, noReads bool) iwarp.Dialer {
	offer.Dialect, offer.Messages = d.dialect, d.dialect == mpa.DialectStartKey
	return iwarp.Dialer{Preset: d.preset, MPA: offer, NoReads: noReads, Wrap: d.recording.wrap()}
}

// listener is that of the connections that another listener accepts. It takes private data in every dialect: without,
// programs do not know their peers.
func (d *Device) listener(ln net.Listener) *iwarp.Listener {
	cfg := iwarp.ListenConfig{RNIC: d.rnic, Preset: d.preset}
	if d.dialect != 0 {
		cfg.Dialects, cfg.Messages = []mpa.Dialect{d.dialect}, d.dialect == mpa.DialectStartKey
	}
	return cfg.NewListener(d.recording.listener(ln))
}
