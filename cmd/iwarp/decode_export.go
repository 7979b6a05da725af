package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
)

// An exportFile is the file of --export while the capture is read. It is nil without --export.
type exportFile struct {
	*export.Exporter
	file *output // nil for standard output
}

// openExport begins the file. With - it is standard output, which has nothing else then.
func (c *decodeCmd) openExport() (*exportFile, error) {
	if c.Export == "" {
		return nil, nil
	}
	var out io.Writer = os.Stdout // not what texts of peers pass on their way to a terminal
	if c.Export == "-" && term.IsTerminal(int(os.Stdout.Fd())) {
		return nil, usage("decode: --export: standard output is a terminal: name a file, or add | wireshark -k -i -")
	}
	cfg := export.Config{Application: "iwarp decode", Some: c.Filter != "", Unbuffered: c.Export == "-"}
	e := &exportFile{}
	if c.Export != "-" {
		var err error
		if e.file, err = openOver("decode", "export", c.Export, "a capture", isCapture, c.File); err != nil {
			return nil, err
		}
		out = e.file
	}
	var err error
	e.Exporter, err = export.New(out, cfg)
	return e, err
}

// with returns a consumer that tells the file too.
func (e *exportFile) with(to decode.Consumer) decode.Consumer {
	if e == nil {
		return to
	}
	return both{to, e.Exporter}
}

// after is told of each packet.
func (e *exportFile) after() func(*capture.Packet) {
	if e == nil {
		return nil
	}
	return e.Packet
}

// end writes what is left. If no packet came, the file stays as it was.
func (e *exportFile) end(came bool) error {
	switch {
	case e == nil:
		return nil
	case !came && e.file != nil:
		e.file.leave()
		return nil
	}
	err := e.Close()
	if e.file != nil {
		err = join(err, e.file.finish(err))
	}
	return err
}
