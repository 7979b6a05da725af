package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/internal/network"
)

// RunData is Run with other data.
func RunData(ctx context.Context, cfg Config, figures []Figure, groups []Group) (*Report, error) {
	return run(ctx, cfg, figures, groups)
}

// Planned returns how many cells the figures have, and how many rows there are beside.
func Planned() (cells, wider int) {
	r, tasks := plan(&Config{}, Figures, Groups())
	return len(tasks) - len(r.Wider), len(r.Wider)
}

// Demands returns a row's demands, each as a text, with those that every row has.
func Demands(r *Row) (texts []string) {
	for _, d := range r.demands() {
		texts = append(texts, d.String())
	}
	return texts
}

// Row returns a cell of a figure as a row.
func (f *Figure) Row(line, column int) *Row { return f.row(line, column) }

// Judge compares what is said, as source, key and value, with demands.
func Judge(demands string, said ...[3]string) (got string, differences []string) {
	var f facts
	for _, s := range said {
		f.say(s[0], s[1], s[2])
	}
	return judge(parseDemands(demands), &f)
}

// ReadFPDUs tells what one direction says by itself.
func ReadFPDUs(b []byte) string {
	s := readFPDUs(b)
	return fmt.Sprintf("markers=%v crc=%v versions=%v rtr=%v err=%v", s.markers, s.crc, s.versions, s.rtr, s.err)
}

// Wire returns the frames that a direction begins with, and how many bytes follow.
func Wire(b []byte, message bool) (lines []string, rest int) {
	frames, left := splitStartup(b, message)
	t := transcript{frames: [2][][]byte{frames}}
	return t.describe(), len(left)
}

// First says who sent the first FPDU, given the bytes sent in both directions at each
// turn, after startup frames of 20 bytes each.
func First(end int, turns ...[2]int) string {
	frame := [][]byte{make([]byte, 20)}
	t := transcript{frames: [2][][]byte{frame, frame}}
	for _, sent := range turns {
		t.turns = append(t.turns, turn{sent: sent})
	}
	return t.first(end)
}

// Names reports whether a text names a revision.
func Names(text string, rev uint8) bool { return names(text, rev) }

// Relayed has two functions play the ends of a connection with a relay between them,
// and returns how it says that they closed, and what it kept.
func Relayed(ctx context.Context, initiator, responder func(*net.TCPConn) error) (ending string,
	kept [2]string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", kept, err
	}
	defer ln.Close()
	over, err := network.Open(network.TCP)
	if err != nil {
		return "", kept, err
	}
	r, err := newRelay(ctx, over, ln.Addr().String())
	if err != nil {
		return "", kept, err
	}
	defer r.close()
	near, err := net.Dial("tcp", r.addr())
	if err != nil {
		return "", kept, err
	}
	far, err := ln.Accept()
	if err != nil {
		return "", kept, err
	}
	errs := make(chan error, 1)
	go func() { errs <- responder(far.(*net.TCPConn)) }()
	err = errors.Join(initiator(near.(*net.TCPConn)), <-errs, r.drain(ctx))
	w := r.all()[0]
	return w.ending(), [2]string{string(w.bytes[0]), string(w.bytes[1])}, err
}

// ReadAll reads a connection to its end.
func ReadAll(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	return err
}
