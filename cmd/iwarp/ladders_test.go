package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
)

var update = flag.Bool("update", false, "write docs/troubleshooting.md and the pictures of docs/dialects as they should be")

// A conversation is how the ends of a ladder come together.
type conversation struct {
	network string
	dial    iwarp.Dialer
	listen  iwarp.ListenConfig
	reject  string // private data of a rejection
}

// conversations are those that docs/dialects shows, by the name of the picture.
var conversations = map[string]conversation{
	"rfc6581":               {},
	"rfc6581-client-server": {dial: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}},
	"rfc6581-markers":       {dial: iwarp.Dialer{MPA: mpa.Offer{Markers: true}}},
	"rfc6581-rejected":      {dial: iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte("may I?")}}, reject: "not today"},
	"rfc6581-fallback":      {listen: iwarp.ListenConfig{Dialects: []mpa.Dialect{mpa.DialectRFC5044}}},
	"rfc5044":               {dial: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}}},
	"rtr2007": {dial: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRtr}},
		listen: iwarp.ListenConfig{Dialects: []mpa.Dialect{mpa.DialectRtr, mpa.DialectRFC5044}}},
	"revision0": {dial: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRevision0}}},
	"startkey":  {dial: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey}}},
	"startkey-messages": {
		dial: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true,
			PrivateData: []byte("hello")}},
		listen: iwarp.ListenConfig{Messages: true, Dialects: []mpa.Dialect{mpa.DialectStartKey}},
	},
	"sctp": {network: "sctp", dial: iwarp.Dialer{Network: new(iwarpsctp.Network)}},
}

// TestLadders draws the ladders of docs/dialects anew: each is a connection of two ends of ours, as iwarp decode --html
// draws it from its capture. -update writes them.
func TestLadders(t *testing.T) {
	for name, c := range conversations {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("..", "..", "docs", "dialects", name+".svg")
			drawn := draw(t, c.capture(t))
			if *update {
				testrig.Must(t, os.WriteFile(file, drawn, 0o600))
			}
			if stored, err := os.ReadFile(file); err != nil || !bytes.Equal(stored, drawn) {
				t.Errorf("%s is not what is drawn (%v):\n%s", file, err, drawn)
			}
		})
	}
	pictures, err := filepath.Glob("../../docs/dialects/*.svg")
	if err != nil || len(pictures) != len(conversations) {
		t.Errorf("%d pictures, %d conversations (%v)", len(pictures), len(conversations), err)
	}
}

// capture has the two ends talk, and returns the file of what the server has seen.
func (c conversation) capture(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "ladder.pcapng")
	file, err := os.Create(path)
	testrig.Must(t, err)
	w, err := capture.NewWriter(file, capture.WriterConfig{MSS: capture.MaxMSS})
	testrig.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ln := c.listener(ctx, t, w)
	served := make(chan error, 1)
	go func() { served <- c.serve(ctx, ln) }()
	network := ln.Addr().Network()
	if c.network != "" {
		network = c.network
	}
	testrig.Must(t, errors.Join(c.talk(ctx, network, ln.Addr().String()), <-served, ln.Close(),
		w.Flush(), file.Close()))
	return path
}

func (c conversation) listener(ctx context.Context, t *testing.T, w *capture.Writer) *iwarp.Listener {
	if c.network == "sctp" {
		c.listen.Network = &iwarpsctp.Network{WrapUDP: func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket,
			error) {
			return capture.TapUDP(s, w), nil
		}}
		ln, err := c.listen.Listen(ctx, "sctp", "127.0.0.1:0")
		testrig.Must(t, err)
		return ln
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	return c.listen.NewListener(capture.TapListener(inner, w))
}

// serve hears one message, answers it, and closes when the client has.
func (c conversation) serve(ctx context.Context, ln *iwarp.Listener) error {
	req, err := ln.Accept(ctx)
	if err != nil {
		return err
	}
	if c.reject != "" {
		conn, err := req.RejectKeep([]byte(c.reject), 0, 0)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, conn)
		return errors.Join(err, conn.Close())
	}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{Prepare: oneReceive})
	if err != nil {
		return err
	}
	if wc, err := qp.RecvCQ().Next(ctx); err != nil || wc.Err() != nil {
		return cmp.Or(err, wc.Err())
	}
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("hello, client"), Unsignaled: true}); err != nil {
		return err
	}
	<-qp.Done()
	return qp.Close()
}

// talk says hello, hears the answer, and closes.
func (c conversation) talk(ctx context.Context, network, addr string) error {
	c.dial.Prepare = oneReceive
	qp, err := c.dial.Dial(ctx, network, addr)
	if no := (*iwarp.RejectError)(nil); errors.As(err, &no) && c.reject != "" {
		return nil
	}
	if err != nil {
		return err
	}
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("hello, server"), Unsignaled: true}); err != nil {
		return err
	}
	if wc, err := qp.RecvCQ().Next(ctx); err != nil || wc.Err() != nil {
		return cmp.Or(err, wc.Err())
	}
	return qp.Close()
}

func oneReceive(qp *iwarp.QP) error {
	mr, err := qp.PD().Register(make([]byte, 64), iwarp.LocalWrite)
	if err != nil {
		return err
	}
	return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, 64)}})
}

// ladderStyle is what the page has in its style sheet.
const ladderStyle = `<style>text{font:11.5px ui-monospace,monospace;fill:#1b1f24}.what{text-anchor:middle;white-space:pre}.end{font-weight:600}.right{text-anchor:end}` +
	`.life{stroke:#c4cad1;stroke-width:2}.arrow{stroke:#1b1f24}.tcp .arrow{stroke:#8b949e;stroke-dasharray:4 3}.fpdu .arrow{stroke:#0969da;stroke-width:2}.ground{fill:none}</style>`

// draw has the command draw a capture, and makes a picture of the page's ladders: without the times, and with names for
// the ends.
func draw(t *testing.T, file string) []byte {
	html := filepath.Join(t.TempDir(), "ladder.html")
	var out bytes.Buffer
	run([]string{"decode", "--html", html, file}, streams{&out, &out})
	page, err := os.ReadFile(html)
	testrig.Must(t, err)
	var b strings.Builder
	height := 0
	for _, part := range regexp.MustCompile(`(?s)<svg viewBox="0 0 1000 (\d+)".*?>\n(.*?)</svg>`).FindAllSubmatch(page,
		-1) {
		text := string(part[2])
		for _, same := range [][2]string{
			{`<text class="when".*?</text>\n?`, ""},
			{` tsn \d+`, ""},
			{` (id|data-\w+)="[^"]*"`, ""},
			{`(class="end" [^>]*>)[^<]*`, "${1}Initiator"},
			{`(class="end right" [^>]*>)[^<]*`, "${1}Responder"},
		} {
			text = regexp.MustCompile(same[0]).ReplaceAllString(text, same[1])
		}
		b.WriteString(`<g transform="translate(-160 ` + strconv.Itoa(height) + `)">` + "\n" + text + "</g>\n")
		n, err := strconv.Atoi(string(part[1]))
		testrig.Must(t, err)
		height += n + 20
	}
	return []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 ` + strconv.Itoa(height) +
		`" width="840" height="` + strconv.Itoa(height) + `">` + "\n" +
		ladderStyle + "\n" + `<rect width="100%" height="100%" fill="#fff"/>` + "\n" + b.String() + "</svg>\n")
}
