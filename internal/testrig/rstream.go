package testrig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// An Rstream is what the two ends of rdma-core's rstream do with -I 1 -T v: they greet each other, and then the client
// sends so many messages, and the server as many back. The bytes of each direction count up from its first.
type Rstream struct {
	Size, Count int // of the messages: -S and -C
}

// RstreamGreeting is how many bytes a greeting has.
const RstreamGreeting = 16

// all returns what one direction carries.
func (x *Rstream) all() []byte {
	all := make([]byte, RstreamGreeting+x.Size*x.Count)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// Lead is the client's part.
func (x *Rstream) Lead(conn io.ReadWriter) error {
	return errors.Join(x.Greet(conn), x.greeted(conn), x.send(conn), x.receive(conn))
}

// Follow is the server's.
func (x *Rstream) Follow(conn io.ReadWriter) error {
	return errors.Join(x.greeted(conn), x.Greet(conn), x.receive(conn), x.send(conn))
}

// Greet sends a greeting.
func (x *Rstream) Greet(conn io.Writer) error {
	_, err := conn.Write(x.all()[:RstreamGreeting])
	return err
}

func (x *Rstream) greeted(conn io.Reader) error {
	return wantBytes(conn, x.all()[:RstreamGreeting])
}

func (x *Rstream) send(conn io.Writer) error {
	all := x.all()[RstreamGreeting:]
	for i := range x.Count {
		if _, err := conn.Write(all[i*x.Size:][:x.Size]); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

func (x *Rstream) receive(conn io.Reader) error {
	return wantBytes(conn, x.all()[RstreamGreeting:])
}

func wantBytes(conn io.Reader, data []byte) error {
	got := make([]byte, len(data))
	n, err := io.ReadFull(conn, got)
	switch {
	case !bytes.Equal(got[:n], data[:n]):
		return errors.New("the bytes differ")
	case err != nil:
		return &CutError{n, err}
	}
	return nil
}

// A CutError says that less came than was to come. What came was right.
type CutError struct {
	Bytes int
	Err   error
}

// Error says how much came, and why no more.
func (e *CutError) Error() string { return fmt.Sprintf("after %d bytes: %v", e.Bytes, e.Err) }

// Unwrap returns why no more came.
func (e *CutError) Unwrap() error { return e.Err }
