package main

import (
	"path/filepath"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
)

// A htmlFile is the page of --html while the capture is read. It is nil without --html.
type htmlFile struct {
	page *page.Page
	file *output
}

// openHTML opens the file, so that one that cannot be written is known at once.
func (c *decodeCmd) openHTML() (*htmlFile, error) {
	if c.HTML == "" {
		return nil, nil
	}
	f, err := openOver("decode", "html", c.HTML, "a page", isPage, c.File)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(c.name())
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

// write writes the page, of what has come. If nothing has, the file stays as it was.
func (h *htmlFile) write(totals decode.Totals, came bool) error {
	switch {
	case h == nil:
		return nil
	case !came:
		h.file.leave()
		return nil
	}
	h.page.Totals(totals)
	return h.file.write(h.page.Write)
}

// both tells two consumers.
type both [2]decode.Consumer

func (b both) each(tell func(decode.Consumer)) {
	for _, to := range b {
		tell(to)
	}
}

func (b both) Found(c *decode.Connection) {
	b.each(func(to decode.Consumer) { to.Found(c) })
}

func (b both) Segment(c *decode.Connection, e *decode.Segment) {
	b.each(func(to decode.Consumer) { to.Segment(c, e) })
}

func (b both) Startup(c *decode.Connection, e *decode.Startup) {
	b.each(func(to decode.Consumer) { to.Startup(c, e) })
}

func (b both) FPDU(c *decode.Connection, e *decode.FPDU) {
	b.each(func(to decode.Consumer) { to.FPDU(c, e) })
}

func (b both) Missing(c *decode.Connection, e *decode.Missing) {
	b.each(func(to decode.Consumer) { to.Missing(c, e) })
}

func (b both) Read(c *decode.Connection, e *decode.Read) {
	b.each(func(to decode.Consumer) { to.Read(c, e) })
}

func (b both) Finding(c *decode.Connection, e *decode.Finding) {
	b.each(func(to decode.Consumer) { to.Finding(c, e) })
}

func (b both) ULP(c *decode.Connection, e *decode.ULP) {
	b.each(func(to decode.Consumer) { to.ULP(c, e) })
}

func (b both) Ended(c *decode.Connection) {
	b.each(func(to decode.Consumer) { to.Ended(c) })
}
