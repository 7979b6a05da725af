package stream_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/stream"
)

// TestWaitsGoOn has two calls wait for words, and the first, which polls, reach its deadline. It checks that the
// second gets its bytes.
func TestWaitsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{})
		must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		wrote, read := make(chan error, 1), make(chan error, 1)
		go func() { _, err := a.Write(make([]byte, 2*stream.DefaultRing)); wrote <- err }()
		synctest.Wait()
		go func() { _, err := io.ReadFull(a, make([]byte, 5)); read <- err }()
		if err := <-wrote; !isTimeout(err) {
			t.Errorf("a Write for which there is no room: %v", err)
		}
		_, err := b.Write([]byte("words"))
		must(t, err)
		synctest.Wait()
		select {
		case err := <-read:
			must(t, err)
		default:
			t.Fatal("the Read still waits for what has come")
		}
		go b.Close()
		must(t, a.Close())
	})
}

// TestMapsGoOn has one end map more than it has credits, while the peer waits in a Read without bytes. It checks that
// the credits come back.
func TestMapsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{Credits: 16, Maps: 128})
		read := make(chan error, 1)
		go func() { _, err := a.Read(make([]byte, 1)); read <- err }()
		for i := range 100 {
			must(t, b.SetWriteDeadline(time.Now().Add(time.Second)))
			if _, err := b.Map(make([]byte, 1), uint64(i)); err != nil {
				t.Fatalf("map %d: %v", i, err)
			}
		}
		go b.Close()
		if err := <-read; !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
		must(t, a.Close())
	})
}
