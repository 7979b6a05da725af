package main

import (
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
)

// A htmlFile is the page of --html while the capture is read. It is nil without --html.
type htmlFile struct {
	page *page.Page
	file *os.File
}

// openHTML makes the file, so that one that cannot be written is known at once.
func (c *decodeCmd) openHTML() (*htmlFile, error) {
	if c.HTML == "" {
		return nil, nil
	}
	f, err := os.Create(c.HTML)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(c.File)
	if c.File == "-" {
		name = "standard input"
	}
	return &htmlFile{page.New(page.Config{Name: name}), f}, nil
}

// with returns a consumer that tells the page too.
func (h *htmlFile) with(to decode.Consumer) decode.Consumer {
	if h == nil {
		return to
	}
	return both{to, h.page}
}

// write writes the page, of what has come.
func (h *htmlFile) write(totals decode.Totals) error {
	if h == nil {
		return nil
	}
	h.page.Totals(totals)
	err := h.page.Write(h.file)
	if closed := h.file.Close(); err == nil {
		err = closed
	}
	return err
}

// both tells two consumers.
type both struct{ first, second decode.Consumer }

func (b both) Found(c *decode.Connection) {
	b.first.Found(c)
	b.second.Found(c)
}

func (b both) Segment(c *decode.Connection, s *decode.Segment) {
	b.first.Segment(c, s)
	b.second.Segment(c, s)
}

func (b both) Startup(c *decode.Connection, s *decode.Startup) {
	b.first.Startup(c, s)
	b.second.Startup(c, s)
}

func (b both) FPDU(c *decode.Connection, f *decode.FPDU) {
	b.first.FPDU(c, f)
	b.second.FPDU(c, f)
}

func (b both) Missing(c *decode.Connection, m *decode.Missing) {
	b.first.Missing(c, m)
	b.second.Missing(c, m)
}

func (b both) Read(c *decode.Connection, r *decode.Read) {
	b.first.Read(c, r)
	b.second.Read(c, r)
}

func (b both) Finding(c *decode.Connection, f *decode.Finding) {
	b.first.Finding(c, f)
	b.second.Finding(c, f)
}

func (b both) Ended(c *decode.Connection) {
	b.first.Ended(c)
	b.second.Ended(c)
}
