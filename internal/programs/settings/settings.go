// Package settings reads the settings of a program under iwarp run from its environment. iwarp run refuses those that
// are wrong before the program starts, and the library complains where it was preloaded by hand.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/pcapfile"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Settings are those of a process.
type Settings struct {
	Level   *slog.Level     // from which on its device logs, of IWARP_LOG; nil is nothing
	Preset  *iwarp.Preset   // of its peers, of IWARP_PEER; nil is none
	Capture Capture         // of what it sends and receives
	CRC     iwarp.CRCPolicy // of IWARP_CRC
	Markers bool            // wanted in what it receives, of IWARP_MARKERS
	Dialect mpa.Dialect     // of its startup, of IWARP_DIALECT; 0 is the default
	Spin    time.Duration   // of its waits, of IWARP_SPIN; 0 is the default, negative is none
}

// A Capture says where to write what a process sends and receives.
type Capture struct {
	File  string // of IWARP_PCAP; "" is none
	Limit int64  // of its bytes, of IWARP_PCAP_LIMIT; 0 is none
}

// WriterConfig is that of whoever writes the file.
func (Capture) WriterConfig() capture.WriterConfig {
	return capture.WriterConfig{MSS: capture.MaxMSS, Application: "iwarp", Unbuffered: true}
}

// Check reports why the file cannot be written, if there is one. One that is empty gets its head: a program that
// creates nothing on the device leaves a capture of no packets. It leaves what is in others, which another process may
// be writing.
func (c Capture) Check() error {
	if c.File == "" {
		return nil
	}
	file, err := pcapfile.Open(c.File)
	if err != nil {
		return &mistake{"IWARP_PCAP", err}
	}
	if err = cmp.Or(writeHeader(file), file.Close()); err != nil {
		return &mistake{"IWARP_PCAP", err}
	}
	return nil
}

// writeHeader writes the file header without the lock of a writer. If there is a writer by now, it has written the same
// bytes to the same place.
func writeHeader(file *os.File) error {
	info, err := file.Stat()
	switch {
	case err != nil || info.Size() > 0:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", file.Name())
	}
	w, err := capture.NewWriter(file, Capture{}.WriterConfig())
	if err != nil {
		return err
	}
	return w.Flush()
}

// Help says what the environment may have, as lines of a help text.
const Help = `    IWARP_LOG=LEVEL      log to standard error: connection, packet, frame
    IWARP_PCAP=FILE      write what the program sends and receives to FILE,
                         for "iwarp decode"; if another process has FILE, to
                         FILE.NUMBER, of the process
    IWARP_PCAP_LIMIT=N   end FILE before it gets longer: bytes, or K, M, G
                         (default: 256M; 0 is no limit)
    IWARP_PEER=NAME      settings for a peer of "iwarp version", such as siw
    IWARP_CRC=on|off     CRCs always, or where the peer wants them only
    IWARP_MARKERS=on|off ask peers for markers in what they send
    IWARP_DIALECT=NAME   start in a dialect of "iwarp version", such as
                         rfc5044, and serve no other
    IWARP_SPIN=TIME      how long a wait polls the socket before it sleeps,
                         such as 50us (default: 100us; 0 is not at all)
    IWARP_AS=iwarp|roce  as --as`

var levels = map[string]*slog.Level{
	"connection": new(slog.LevelInfo), "packet": new(slog.LevelDebug), "frame": new(iwarp.LevelFrame),
}

// A reader collects what is wrong while it reads.
type reader struct {
	getenv func(string) (string, bool)
	wrong  []error
}

// From reads the settings, which [Help] names.
//
// One that is empty is as one that is not there. The error, of an [errors.Join], has those that are wrong, without
// which the others hold.
func From(getenv func(string) (string, bool)) (Settings, error) {
	r := &reader{getenv: getenv}
	s := Settings{
		Level: choice(r, "IWARP_LOG", levels, "connection, packet, frame"),
		CRC: choice(r, "IWARP_CRC", map[string]iwarp.CRCPolicy{"on": iwarp.CRCAlways,
			"off": iwarp.CRCUnwanted}, "on, off"),
		Markers: choice(r, "IWARP_MARKERS", map[string]bool{"on": true, "off": false}, "on, off"),
		Capture: Capture{File: r.text("IWARP_PCAP"), Limit: pcapfile.DefaultLimit},
	}
	// C has chosen by it, or by the program's name
	_ = choice(r, "IWARP_AS", map[string]bool{"iwarp": true, "roce": true}, "iwarp, roce")
	if name := r.text("IWARP_PEER"); name != "" {
		if preset, err := iwarp.LookupPreset(name); r.right("IWARP_PEER", err) {
			s.Preset = &preset
		}
	}
	if text := r.text("IWARP_PCAP_LIMIT"); text != "" {
		if n, err := wording.ParseBytes(text); r.right("IWARP_PCAP_LIMIT", err) {
			s.Capture.Limit = n
		}
	}
	if text := r.text("IWARP_SPIN"); text != "" {
		s.Spin = r.spin(text)
	}
	if name := r.text("IWARP_DIALECT"); name != "" && !r.right("IWARP_DIALECT", s.Dialect.UnmarshalText([]byte(name))) {
		s.Dialect = 0
	}
	return s, errors.Join(r.wrong...)
}

// spin reads how long a wait polls: a text of 0 switches that off.
func (r *reader) spin(text string) time.Duration {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		r.wrong = append(r.wrong, fmt.Errorf("IWARP_SPIN: %q is not a time such as 50us, or 0", text))
		return 0
	case d <= 0:
		return -1
	}
	return d
}

func (r *reader) text(name string) string {
	text, _ := r.getenv(name)
	return text
}

// right reports whether a variable is right.
func (r *reader) right(name string, err error) bool {
	if err != nil {
		r.wrong = append(r.wrong, &mistake{name, err})
	}
	return err == nil
}

// A mistake is a variable that is wrong.
type mistake struct {
	variable string
	error
}

// Unwrap returns what is wrong.
func (m *mistake) Unwrap() error { return m.error }

// Error names the variable, and not package iwarp or what was asked of it.
func (m *mistake) Error() string {
	text, ok := iwarp.Brief("look up preset", m.error)
	if !ok {
		text = m.error.Error()
	}
	return m.variable + ": " + text
}

// choice reads a variable that has one of several words. names are these, as they are named to the user.
func choice[T any](r *reader, name string, words map[string]T, names string) (value T) {
	text := r.text(name)
	value, ok := words[text]
	if !ok && text != "" {
		r.wrong = append(r.wrong, fmt.Errorf("%s: %q is not one of %s", name, text, names))
	}
	return value
}
