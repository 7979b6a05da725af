package driver

import (
	"io"
	"sync"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// A segmentStream is a Stream that takes whatever is sent, and brings what the test has put into it.
type segmentStream struct {
	each   func(call string) // is called by each method, if it is set
	in     chan lowerlayer.Arrival
	closed chan struct{}
	once   sync.Once
}

func newSegments() *segmentStream {
	return &segmentStream{in: make(chan lowerlayer.Arrival, 16), closed: make(chan struct{})}
}

func (s *segmentStream) call(what string) {
	if s.each != nil {
		s.each(what)
	}
}

func (s *segmentStream) Send(segments [][]byte) (bytes int, err error) {
	s.call("Send")
	for _, b := range segments {
		bytes += len(b)
	}
	return bytes, nil
}

func (s *segmentStream) Recv() (lowerlayer.Arrival, error) {
	s.call("Recv")
	select {
	case a := <-s.in:
		return a, nil
	case <-s.closed:
		return lowerlayer.Arrival{}, io.ErrClosedPipe
	}
}

func (s *segmentStream) MULPDU() int {
	s.call("MULPDU")
	return 1444
}

func (s *segmentStream) CloseWrite() error {
	s.call("CloseWrite")
	return nil
}

func (s *segmentStream) Close() error {
	s.call("Close")
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *segmentStream) Reset() error {
	s.call("Reset")
	s.once.Do(func() { close(s.closed) })
	return nil
}
