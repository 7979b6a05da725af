// Package oooexperiment is an experiment: it measures what placing FPDUs out of order is worth. Connections of usertcp
// run over a path that loses and reorders packets, with and without markers, from senders that keep an FPDU in one
// segment and from others. Beside them are TCP in order, and what draft-culley-iwarp-mpa-03, section 13.1.2, reckons.
package oooexperiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/usertcp"
)

// Config says what is run.
type Config struct {
	Connections int           `json:"connections"` // at the same time
	Bytes       int           `json:"bytes"`       // that each of them sends, at least
	Loss        float64       `json:"loss"`        // share of packets, from 0 to 0.5
	Reorder     float64       `json:"reorder"`     // share that comes late, by up to four times the Delay
	Delay       time.Duration `json:"delay_ns"`    // of each packet, in one direction
	MTU         int           `json:"mtu"`         // bytes
	Seed        uint64        `json:"seed"`
}

// A Way is how FPDUs are sent, and how they are received.
type Way struct {
	Name    string
	Markers bool
	// Aligned: each TCP segment begins with an FPDU and holds whole ones. Otherwise TCP cuts the stream wherever it
	// does.
	Aligned bool
	// ULPDU is the size of each, in bytes; zero: the EMSS holds its FPDU.
	ULPDU int
	// Ahead: they are placed as their segments come. Otherwise they come by Read.
	Ahead bool
	// Window is the receiver's buffer of each connection, in bytes; zero: as large as TCP makes it, up to 4 MiB.
	Window int
	// QPs: the ends are Queue Pairs, whose RDMA Writes are placed in registered memory. Otherwise there is MPA alone.
	// Placed is then of segments of TCP and counted only ahead of order, and Held the most of each QP, at whatever
	// moment.
	QPs bool
}

// Ways are those that are compared.
var Ways = []Way{
	{Name: "aligned, markers", Markers: true, Aligned: true, Ahead: true},
	{Name: "aligned, no markers", Aligned: true, Ahead: true},
	{Name: "not aligned, markers", Markers: true, Ahead: true},
	{Name: "not aligned, no markers", Ahead: true},
	{Name: "8 KiB FPDUs, markers", Markers: true, ULPDU: 8192, Ahead: true},
	{Name: "8 KiB FPDUs, no markers", ULPDU: 8192, Ahead: true},
	{Name: "64 KiB window, markers", Markers: true, Aligned: true, Ahead: true, Window: 64 << 10},
	{Name: "16 KiB window, markers", Markers: true, Aligned: true, Ahead: true, Window: 16 << 10},
	{Name: "16 KiB window, no markers", Aligned: true, Ahead: true, Window: 16 << 10},
	{Name: "in order", Aligned: true},
	{Name: "QPs, markers", QPs: true, Markers: true, Aligned: true, Ahead: true},
	{Name: "QPs, in order", QPs: true, Aligned: true},
}

// Growth are the ways that show with what MPA's memory grows, and with what it does not: windows, and sizes of FPDUs.
var Growth = []Way{
	growth(16<<10, 0, true), growth(64<<10, 0, true), growth(256<<10, 0, true),
	growth(16<<10, 0, false), growth(64<<10, 0, false), growth(256<<10, 0, false),
	growth(0, 2<<10, true), growth(0, 8<<10, true), growth(0, 32<<10, true),
	growth(0, 2<<10, false), growth(0, 8<<10, false), growth(0, 32<<10, false),
}

// growth is a way with a window, whose FPDUs are aligned, or with FPDUs of a size, which are not.
func growth(window, ulpdu int, markers bool) Way {
	w := Way{Markers: markers, Aligned: ulpdu == 0, ULPDU: ulpdu, Window: window, Ahead: true}
	what, kind := "markers", "window"
	if !markers {
		what = "no markers"
	}
	if ulpdu > 0 {
		kind = "FPDUs"
	}
	w.Name = fmt.Sprintf("%d KiB %s, %s", (window+ulpdu)>>10, kind, what)
	return w
}

// A Result is what running one Way measured.
type Result struct {
	Way         string  `json:"way"`
	Connections int     `json:"connections"`
	Bytes       int     `json:"bytes"` // of ULPDUs, all connections
	Seconds     float64 `json:"seconds"`
	Packets     int     `json:"packets"` // that the senders have sent
	Lost        int     `json:"lost"`
	Late        int     `json:"late"`
	EMSS        int     `json:"emss"`
	// Ahead is the share of bytes that were placed before all in front of them had come.
	Ahead float64 `json:"ahead"`
	// Placed and Delivered are the times from the arrival of an FPDU's last byte to its placement, and to the delivery
	// of all up to it. Those "ahead" are of the FPDUs that were whole before all in front of them had come.
	Placed         Times `json:"placed"`
	Delivered      Times `json:"delivered"`
	PlacedAhead    Times `json:"placed_ahead"`
	DeliveredAhead Times `json:"delivered_ahead"`
	// Held and TCPHeld are bytes at the moment when they were most: what MPA held for reassembly of one connection,
	// and of all; and what had come ahead of order, which TCP holds until the gap is closed, whether it is placed or
	// not.
	Held       int `json:"held_of_one"`
	HeldAll    int `json:"held"`
	TCPHeld    int `json:"tcp_held_of_one"`
	TCPHeldAll int `json:"tcp_held"`
	// Reckoned is what the draft's formulae give for it.
	Reckoned Reckoned `json:"reckoned"`
}

// Times are of many FPDUs, in microseconds.
type Times struct {
	FPDUs  int     `json:"fpdus"`
	Median float64 `json:"median"`
	Most   float64 `json:"p99"` // of 99 in 100
}

// A Report is all of a study.
type Report struct {
	report.Stamp
	Config
	// Interrupted: the context ended before the last Way.
	Interrupted bool     `json:"interrupted,omitempty"`
	Results     []Result `json:"results"`
}

// Reckoned are the buffers of draft-culley-iwarp-mpa-03, section 13.1.2, in bytes, with K, K1 and K2 taken as 1.
type Reckoned struct {
	TCP        int `json:"tcp"`         // "BufferSizeTCP = K * bandwidth [octets/S] * Delay [S]", of all connections
	NotAligned int `json:"not_aligned"` // "BufferSizeNAF = K1 * EMSS * number_of_connections + K2 * EMSS"
	Aligned    int `json:"aligned"`     // "BufferSizeAF = K2 * EMSS"
}

// ReckonedBuffer is the formula that fits the Way.
func (r *Result) ReckonedBuffer() int {
	for _, w := range slices.Concat(Ways, Growth) {
		switch {
		case w.Name != r.Way:
		case !w.Ahead:
			return r.Reckoned.TCP
		case w.Aligned:
			return r.Reckoned.Aligned
		default:
			return r.Reckoned.NotAligned
		}
	}
	return 0
}

func (r *Result) reckon(delay time.Duration) {
	bandwidth := float64(r.Bytes) / r.Seconds
	r.Reckoned = Reckoned{
		TCP:        int(bandwidth * 2 * delay.Seconds()),
		NotAligned: r.EMSS*r.Connections + r.EMSS,
		Aligned:    r.EMSS,
	}
}

// Check says what is wrong with a Config.
func (c *Config) Check() error {
	switch {
	case c.Connections < 1 || c.Connections > MaxConnections:
		return fmt.Errorf("--connections: 1 to %d, not %d", MaxConnections, c.Connections)
	case c.Bytes < 1 || c.Bytes > MaxBytes:
		return fmt.Errorf("--bytes: %d for each connection: 1 to %d", c.Bytes, MaxBytes)
	case !(c.Loss >= 0 && c.Loss <= .5): // NaN is not, either
		return fmt.Errorf("--loss: %.6g is not a share from 0 to 50 percent", 100*c.Loss)
	case !(c.Reorder >= 0 && c.Reorder <= 1):
		return fmt.Errorf("--reorder: %.6g is not a share from 0 to 100 percent", 100*c.Reorder)
	case c.Delay < 0 || c.Delay > time.Second:
		return fmt.Errorf("--delay: 0 to 1s, not %v", c.Delay)
	case c.MTU < usertcp.MinMTU || c.MTU > usertcp.MaxMTU:
		return fmt.Errorf("--mtu: %d to %d bytes, not %d", usertcp.MinMTU, usertcp.MaxMTU, c.MTU)
	}
	return nil
}

// Bounds of a [Config].
const (
	MaxConnections = 20_000 // each has a port of one address
	MaxBytes       = 1 << 30
)

// Run runs one Way.
func Run(ctx context.Context, cfg Config, w Way) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r, err := newRun(cfg, w)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if w.QPs {
		return runQPs(ctx, r)
	}
	if err := r.connect(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name, err)
	}
	if err := r.transfer(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name, err)
	}
	return r.result(), nil
}

// path is the way of the data. Acknowledgements take as long, and all arrive.
func (c *Config) path() usertcp.Path {
	return usertcp.Path{Seed: c.Seed, Loss: c.Loss, Reorder: c.Reorder, Delay: c.Delay, Late: 4 * c.Delay}
}
