package testrig

import (
	"bytes"
	"io"
	"testing"
)

// Swap writes to a connection while it reads from it to the end, and compares what has come. It returns the error of
// the Write.
func Swap(t testing.TB, conn io.ReadWriter, out, want []byte) error {
	t.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(out)
		wrote <- err
	}()
	came, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(came, want) {
		t.Errorf("%d bytes came, want %d (%v)", len(came), len(want), err)
	}
	return <-wrote
}
