//go:build unix

package perf

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTryReader reads what there is, nothing, and the end.
func TestTryReader(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	out, err := net.Dial("tcp", ln.Addr().String())
	testrig.Must(t, err)
	in, err := ln.Accept()
	testrig.Must(t, err)
	defer in.Close()
	r, b := newTryReader(in), make([]byte, 8)
	if n, ok, err := r.read(b); n != 0 || ok || err != nil {
		t.Errorf("nothing is there: got %d, %v, %v", n, ok, err)
	}
	_, err = out.Write([]byte("abc"))
	testrig.Must(t, err)
	if n, err := eventually(r, b); n != 3 || err != nil {
		t.Errorf("three bytes: got %d, %v", n, err)
	}
	out.Close()
	if n, err := eventually(r, b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the end: got %d, %v", n, err)
	}
	if newTryReader(struct{ net.Conn }{in}) != nil {
		t.Error("a connection without a socket has a tryReader")
	}
	var none *tryReader
	if n, ok, err := none.read(b); n != 0 || ok || err != nil {
		t.Errorf("without a socket: got %d, %v, %v", n, ok, err)
	}
}

func eventually(r *tryReader, b []byte) (int, error) {
	for {
		if n, ok, err := r.read(b); ok {
			return n, err
		}
	}
}
